"""What a runtime promises: the one interface above which local processes and containers are the same."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from harness.request.discovery import Implementation
from harness.results.records import Build


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """Where a server answers."""

    host: str
    port: int
    visible: bool = True  # whether its connections can be counted in this network namespace

    def url(self, path: str) -> str:
        """The absolute URL of a path."""
        return f"http://{self.host}:{self.port}{path}"


@dataclass(frozen=True, kw_only=True)
class DatabaseAddress:
    """Where the shared PostgreSQL answers; ``admin_*`` may read statistics and restore the state, or is None."""

    host: str
    port: int
    name: str = "hello_world"
    user: str = "benchmarkdbuser"
    password: str = "benchmarkdbpass"  # noqa: S105 - public by TechEmpower's convention
    admin_user: str | None = None
    admin_password: str | None = None


@dataclass(frozen=True, kw_only=True)
class Reading:
    """Counters of a process tree or cgroup at one moment; differences of two readings are what was used between."""

    at: float  # time.monotonic()
    cpu_seconds: float
    rss: float | None  # bytes
    run_seconds: float | None  # time on a CPU, summed over threads (schedstat)
    wait_seconds: float | None  # time runnable but waiting for a CPU, summed over threads (schedstat)
    throttled_seconds: float | None = None
    pids: tuple[int, ...] = ()


class Meter(Protocol):
    """Reads what a process tree has used so far."""

    def read(self) -> Reading:
        """The counters now; raises ServerDiedError when nothing of it lives any more."""


class Server(Protocol):
    """A running implementation."""

    @property
    def implementation(self) -> Implementation:
        """What runs."""

    @property
    def endpoint(self) -> Endpoint:
        """Where it answers."""

    @property
    def meter(self) -> Meter:
        """What it uses."""

    @property
    def log(self) -> Path:
        """Its output."""

    @property
    def first_answer(self) -> float:
        """Seconds from start to the first good answer."""

    def identity(self) -> str:
        """Changes when the server was restarted: pid and start time, or container id and start time."""

    def require_alive(self) -> None:
        """Raises ServerDiedError (with the exit status and the last lines of the log) when the server is gone."""


class Database(Protocol):
    """The shared PostgreSQL of a run."""

    @property
    def address(self) -> DatabaseAddress:
        """Where it answers."""

    def restore(self) -> None:
        """Bring tables back to the seed, in seconds; no implementation is connected."""

    def meter(self) -> Meter | None:
        """CPU of the database, or None where it runs elsewhere."""


@dataclass(frozen=True, kw_only=True)
class UpstreamStats:
    """What an upstream counted since it was reset."""

    calls: int
    sum: int  # of the numbers that it answered
    max_concurrent: int


class Upstream(Protocol):
    """The slow server that the fan-out test's implementations call."""

    @property
    def url(self) -> str:
        """One complete URL: what UPSTREAM_URL holds."""

    def reset(self) -> None:
        """Count from zero."""

    def stats(self) -> UpstreamStats:
        """What was counted."""


class Runtime(Protocol):
    """Builds and starts implementations; local processes and containers answer the same questions."""

    @property
    def name(self) -> str:
        """``local`` or ``docker``."""

    def build(self, implementation: Implementation, log: Path) -> Build:
        """Build once; a failure is a Build with status failed or skipped and its reason, not an exception."""

    def database(self) -> AbstractContextManager[Database]:
        """The shared database, seeded, for the length of the run."""

    def start(
        self, implementation: Implementation, database: DatabaseAddress, log: Path, *, ready_path: str
    ) -> AbstractContextManager[Server]:
        """A fresh server process that has answered ``ready_path`` once; stopped with all its children on exit."""

    def wrk(self, arguments: Sequence[str]) -> Sequence[str]:
        """The command that runs wrk with these arguments; scripts are given by their name in toolset/wrk."""

    def versions(self) -> dict[str, str]:
        """Versions of wrk, PostgreSQL and whatever else this runtime brings."""
