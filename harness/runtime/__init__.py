"""The interface of runtimes, which is the same for local processes and containers."""

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
    """The address of a server."""

    host: str
    port: int

    def url(self, path: str) -> str:
        """Return the absolute URL of a path."""
        return f"http://{self.host}:{self.port}{path}"


@dataclass(frozen=True, kw_only=True)
class DatabaseAddress:
    """The address and the accounts of a PostgreSQL database.

    The administrator, if any, may read statistics and restore the seeded state.
    """

    host: str
    port: int
    name: str = "hello_world"
    user: str = "benchmarkdbuser"
    password: str = "benchmarkdbpass"  # noqa: S105 - public by TechEmpower's convention
    admin_user: str | None = None
    admin_password: str | None = None


NO_DATABASE = DatabaseAddress(host="", port=0)  # address for services that need no database or include one


class Meter(Protocol):
    """A meter of the resource usage of a process tree."""

    def read(self) -> Reading:
        """Return the counters. Raises ServerDiedError if all processes have exited."""


class ConnectionTracker(Protocol):
    """A meter of the connections from load generators to a server."""

    def read(self) -> SocketCounters | None:
        """Return the counters, or None if they are unavailable."""

    def close(self) -> None:
        """Stop metering."""


class ServerProgram(Meter, Protocol):
    """A running server program: a process tree or a container, on this machine or a remote machine."""

    log: Path  # contains standard output and standard error

    def connections(self, port: int) -> ConnectionTracker:
        """Start metering the connections from this machine to a port of the server."""
        return SocketMeter(port)

    def identity(self) -> str:
        """Return an identity that changes if the server restarts: pid or container id, and start time."""

    def require_alive(self) -> None:
        """Raise ServerDiedError, with exit status and the end of the log, if the server has exited."""

    def end(self) -> float | None:
        """Send SIGTERM. Return the seconds until the server exits, or None if it keeps running."""
        return None

    def steal_ticks(self) -> tuple[float, float] | None:
        """Return the stolen and the total CPU ticks of the server's machine, or None if unknown."""
        return machine.steal_ticks()


@dataclass(kw_only=True)
class Server:
    """A running implementation."""

    implementation: Implementation
    endpoint: Endpoint
    program: ServerProgram
    startup_time: float = 0.0  # seconds from the start to the first successful response
    upstream: "Upstream | None" = None  # the variable UPSTREAM_URL contains the address


class Database(Protocol):
    """The database that a server uses."""

    @property
    def address(self) -> DatabaseAddress:
        """The address of the database."""

    def restore(self) -> None:
        """Restore the seeded tables. No server may be connected to a shared database."""

    def meter(self) -> Meter | None:
        """Return a meter of the database's processes, or None if they run elsewhere."""


@dataclass(frozen=True, kw_only=True)
class UpstreamStats:
    """Counters of an upstream server since the last reset."""

    calls: int
    sum: int  # sum of the numbers in the upstream server's responses
    delay_seconds: float = 0.0  # minimum delay of each response


class Upstream(Protocol):
    """The slow server that implementations of the fan-out test type call."""

    @property
    def url(self) -> str:
        """The value of UPSTREAM_URL."""

    def reset(self) -> None:
        """Set the counters to zero."""

    def stats(self) -> UpstreamStats:
        """Return the counters."""


class SharedDatabase(Database, Protocol):
    """The PostgreSQL of a run, which can provide a private database for each server.

    ``restore`` also restarts PostgreSQL, at the same address, if it has exited.
    """

    @property
    def log(self) -> Path | None:
        """PostgreSQL's log, or None if it cannot be read."""

    def crash_reason(self) -> str | None:
        """Return why PostgreSQL exited or ended sessions since the last restore, or None if it did not."""

    @property
    def supports_copies(self) -> bool:
        """Whether simultaneous servers can have private databases."""

    def private_database(self, name: str, *, empty: bool = False) -> AbstractContextManager[Database]:
        """Create a database for a single server, which can be restored while the server is connected.

        Args:
            name: Name of the server.
            empty: Whether to create an empty database that belongs to the server, instead of the seeded tables.
        """


class RunningGenerator(Protocol):
    """A running load generator."""

    @property
    def command(self) -> Sequence[str]:
        """The command line."""

    def begin(self) -> None:
        """Start the load if the generator waits for permission. Raises LoadError if it fails."""

    def wait(self, seconds: float) -> int | None:
        """Wait for the exit. Return the exit status (negative: a signal), or None after ``seconds``."""

    def interrupt(self) -> None:
        """Ask the generator to stop and print the results so far."""

    def output(self) -> str:
        """Return the output."""


@dataclass(frozen=True, kw_only=True)
class GeneratorStart:
    """The start of a load generator in a group, measured by this machine's clock."""

    client: str
    connections: int
    threads: int
    go_sent_at: float  # time.monotonic() when tfb sent the request to begin
    start_seen_at: float | None  # when the generator reported the start; None without a report


@runtime_checkable
class GeneratorGroup(Protocol):
    """Load generators on several clients, used like a single ``RunningGenerator``."""

    def starts(self) -> Sequence[GeneratorStart]:
        """Return the start of each generator, in the order of their results."""


class Runtime(Protocol):
    """A way to build and start implementations: as local processes or in containers."""

    @property
    def name(self) -> str:
        """``local`` or ``docker``."""

    @property
    def side_by_side(self) -> bool:
        """Whether several servers can run at the same time."""

    @property
    def accounts(self) -> dict[str, str]:
        """The accounts of "builds" and "servers". Empty for containers, because images determine the accounts."""

    @property
    def network(self) -> str:
        """The network of load generator, servers and database: ``host`` (loopback) or ``bridge``."""

    def build(self, implementation: Implementation, log: Path) -> BuildRecord:
        """Build an implementation. A failed build raises no error; the returned record describes it."""

    def database(self) -> AbstractContextManager[SharedDatabase]:
        """Start and seed the shared database. Stop it at the end of the block."""

    def start(
        self, implementation: Implementation, database: DatabaseAddress, log: Path, *, ready_path: str
    ) -> AbstractContextManager[Server]:
        """Start a server, and wait until it responds to ``ready_path``. Stop it at the end of the block."""

    def own_generator(self) -> str:
        """Return the argument ``program`` that makes ``generator`` start tfb's load generator.

        Build the load generator if necessary. Raises EnvironmentLacksError if it cannot be built here, or BuildError.
        """

    def generator(
        self, program: str, arguments: Sequence[str], *, waits_for_go: bool = False, folder: Path | None = None
    ) -> AbstractContextManager[RunningGenerator]:
        """Start a load generator.

        Args:
            program: ``wrk`` or the path of a program.
            arguments: Arguments of the program. Names of scripts in toolset/wrk become paths.
            waits_for_go: Whether the program prints that it is ready and waits for a line on stdin.
            folder: A folder that the program may write to.
        """

    def versions(self) -> dict[str, str]:
        """Return the versions of wrk, PostgreSQL and other programs of this runtime."""
