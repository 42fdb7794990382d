"""What a runtime promises: the one interface above which local processes and containers are the same."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from harness.host import machine
from harness.host.metering import Reading
from harness.host.sockets import SocketCounters, SocketMeter
from harness.plan.discovery import Implementation
from harness.records.run_info import BuildRecord


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """Where a server answers."""

    host: str
    port: int

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


NO_DATABASE = DatabaseAddress(host="", port=0)  # of a service that needs none, or brings its own


class Meter(Protocol):
    """Reads what a process tree has used so far."""

    def read(self) -> Reading:
        """The counters now; raises ServerDiedError when nothing of it lives any more."""


class ConnectionTracker(Protocol):
    """Follows the connections of a load generator to one server."""

    def read(self) -> SocketCounters | None:
        """The counters now; None where they cannot be seen."""

    def close(self) -> None:
        """Follow them no longer."""


class ServerProgram(Meter, Protocol):
    """What runs as a server: a process tree or a container, here or on another machine."""

    log: Path  # its output

    def connections(self, port: int) -> ConnectionTracker:
        """Follow the connections of clients here to a port of it from now on, by the kernel's socket counters."""
        return SocketMeter(port)

    def identity(self) -> str:
        """Changes when it was restarted: pid and start time, or container id and start time."""

    def require_alive(self) -> None:
        """Raises ServerDiedError (with the exit status and the last lines of the log) when it is gone."""

    def end(self) -> float | None:
        """Ask it to stop with SIGTERM; return the seconds until it had ended, or None if it still runs then."""
        return None

    def steal_ticks(self) -> tuple[float, float] | None:
        """(stolen, all) CPU ticks so far of the machine that it runs on, where they are known: of this one."""
        return machine.steal_ticks()


@dataclass(kw_only=True)
class Server:
    """A running implementation."""

    implementation: Implementation
    endpoint: Endpoint
    meter: ServerProgram
    startup_time: float = 0.0  # seconds from start to the first good answer
    upstream: "Upstream | None" = None  # what UPSTREAM_URL in its environment names


class Database(Protocol):
    """The tables that a server uses."""

    @property
    def address(self) -> DatabaseAddress:
        """Where it answers."""

    def restore(self) -> None:
        """Bring tables back to the seed, in seconds; no implementation is connected to a shared one."""

    def meter(self) -> Meter | None:
        """CPU of the database, or None where it runs elsewhere."""


@dataclass(frozen=True, kw_only=True)
class UpstreamStats:
    """What an upstream counted since it was reset."""

    calls: int
    sum: int  # of the numbers that it answered
    delay_seconds: float = 0.0  # before which no call is answered


class Upstream(Protocol):
    """The slow server that the fan-out test's implementations call."""

    @property
    def url(self) -> str:
        """One complete URL: what UPSTREAM_URL holds."""

    def reset(self) -> None:
        """Count from zero."""

    def stats(self) -> UpstreamStats:
        """What was counted."""


class SharedDatabase(Database, Protocol):
    """The PostgreSQL of a run, which may hold a database for each of several servers.

    ``restore`` also brings one back that has ended, under the same address.
    """

    @property
    def log(self) -> Path | None:
        """PostgreSQL's own log; None where it cannot be read."""

    def crash_reason(self) -> str | None:
        """How it ended, or lost its sessions, since it was last restored; None while all is well."""

    @property
    def supports_copies(self) -> bool:
        """Whether servers that are up side by side may each have seeded tables of their own."""

    def private_database(self, name: str, *, empty: bool = False) -> AbstractContextManager[Database]:
        """Seeded tables for one server, whose use is counted apart; they can be restored while it is connected.

        ``empty``: nothing, in a database that belongs to the server.
        """


class RunningGenerator(Protocol):
    """A load generator that has been started."""

    @property
    def command(self) -> Sequence[str]:
        """Its command line."""

    def begin(self) -> None:
        """Have it begin its load, if it waits for that; raises LoadError when it cannot."""

    def wait(self, seconds: float) -> int | None:
        """Wait at most that long for its end; exit status (negative: the signal) or None."""

    def interrupt(self) -> None:
        """Ask it to end now and print what it has."""

    def output(self) -> str:
        """What it has printed."""


@dataclass(frozen=True, kw_only=True)
class GeneratorStart:
    """A generator of several that load together: its client, its share, and when it began; by this machine's clock."""

    client: str
    connections: int
    threads: int
    go_sent_at: float  # time.monotonic() at which it was sent its word
    start_seen_at: float | None  # at which it was seen to have begun; None where it does not tell


@runtime_checkable
class GeneratorGroup(Protocol):
    """Generators on several clients that answer as one ``RunningGenerator``."""

    def starts(self) -> Sequence[GeneratorStart]:
        """Of each, in the order of their results."""


class Runtime(Protocol):
    """Builds and starts implementations; local processes and containers answer the same questions."""

    @property
    def name(self) -> str:
        """``local`` or ``docker``."""

    @property
    def side_by_side(self) -> bool:
        """Whether several servers may be up at the same time."""

    @property
    def accounts(self) -> dict[str, str]:
        """As whom "builds" and "servers" run; empty in containers, whose images say it."""

    @property
    def network(self) -> str:
        """What lies between generator, servers and database: ``host`` (loopback) or ``bridge``; one for a run."""

    def build(self, implementation: Implementation, log: Path) -> BuildRecord:
        """Build once; a failure is a Build with status failed or skipped and its reason, not an exception."""

    def database(self) -> AbstractContextManager[SharedDatabase]:
        """The shared database, seeded, for the length of the run."""

    def start(
        self, implementation: Implementation, database: DatabaseAddress, log: Path, *, ready_path: str
    ) -> AbstractContextManager[Server]:
        """A fresh server process that has answered ``ready_path`` once; stopped with all its children on exit."""

    def own_generator(self) -> str:
        """What ``generator`` starts as the project's own generator; it is built first, where that has not been done.

        Raises EnvironmentLacksError where it cannot be had, and BuildError.
        """

    def generator(
        self, program: str, arguments: Sequence[str], *, waits_for_go: bool = False, folder: Path | None = None
    ) -> AbstractContextManager[RunningGenerator]:
        """Start a load generator: ``wrk`` (scripts by their name in toolset/wrk), or a program by its path.

        ``waits_for_go``: it says that it is ready on its output and begins at a line on its input. ``folder``: where it
        writes files of its own.
        """

    def versions(self) -> dict[str, str]:
        """Versions of wrk, PostgreSQL and whatever else this runtime brings."""
