"""The interface of the local and Docker runtimes, and the addresses of servers and databases."""

import socket
import ssl
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Protocol, runtime_checkable

from harness.host import machine
from harness.host.metering import Reading
from harness.host.sockets import SocketCounters, SocketMeter
from harness.host.unix_socket import UnixSocket
from harness.plan.implementation import Implementation
from harness.plan.testtypes import TestType
from harness.records.run_info import BuildRecord


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """The address of a server: host and port, or a Unix socket. Connections may use TLS."""

    host: str  # name or numeric address
    port: int
    name: str = ""  # ``Host`` header from the user's URL; empty to use ``host`` and ``port``
    tls: bool = False
    protocol: str = "http/1.1"  # the protocol that clients offer in the TLS handshake
    unix: UnixSocket | None = None  # if set, clients connect to it instead of host and port

    @property
    def authority(self) -> str:
        """Return the value for the ``Host`` header (RFC 9110 section 7.2). An IPv6 address is in brackets."""
        return self.name or f"{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    @property
    def place(self) -> str:
        """Return the address as shown in messages."""
        return f"unix:{self.unix.path}" if self.unix else self.url("")

    @property
    def metered_port(self) -> int:
        """Return the port whose bytes tfb counts, or 0 for TLS and Unix sockets, whose bytes tfb cannot count."""
        return 0 if self.unix or self.tls else self.port

    def url(self, path: str) -> str:
        """Return the absolute URL of a path. Use ``host`` and ``port``, even if ``name`` is set."""
        scheme = "https" if self.tls else "http"
        return f"{scheme}://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}{path}"

    def connect(self, seconds: float) -> socket.socket:
        """Return a connection with a timeout for each operation. A TLS handshake is part of the first operation."""
        if self.unix:
            connection = self.unix.connect(seconds)
        else:
            connection = socket.create_connection((self.host, self.port), timeout=seconds)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if not self.tls:
            return connection
        name = None if ":" in self.host else self.host
        return _tls_context(self.protocol).wrap_socket(connection, server_hostname=name, do_handshake_on_connect=False)


@cache
def _tls_context(protocol: str) -> ssl.SSLContext:
    """Return a context that accepts every certificate, because services under test use self-signed certificates."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols([protocol])
    return context


@dataclass(frozen=True, kw_only=True)
class DatabaseAddress:
    """The address and accounts of a PostgreSQL database. The administrator may read statistics and restore tables."""

    host: str
    port: int
    name: str = "hello_world"
    user: str = "benchmarkdbuser"
    password: str = "benchmarkdbpass"  # noqa: S105 - public by TechEmpower's convention
    admin_user: str | None = None
    admin_password: str | None = None


NO_DATABASE = DatabaseAddress(host="", port=0)  # for services that need no database or start a database themselves


class Meter(Protocol):
    """A meter for the resource usage of a server or a database."""

    def read(self) -> Reading:
        """Return the current counters. Raises ServerDiedError if all metered processes have exited."""


class ConnectionTracker(Protocol):
    """A meter for the connections from a load generator to a server."""

    def read(self) -> SocketCounters | None:
        """Return the current socket counters, or None if they are unavailable."""

    def close(self) -> None:
        """Stop metering."""


class ServerProgram(Meter, Protocol):
    """A running server program: a process tree or a container, on this machine or a remote machine."""

    log: Path  # contains standard output and standard error

    def connections(self, port: int) -> ConnectionTracker:
        """Start metering connections from this machine to a port of the server."""
        return SocketMeter(port)

    def identity(self) -> str:
        """Return the pid or container id, with the start time. This identity changes if the server restarts."""

    def require_alive(self) -> None:
        """If the server has exited, raise ServerDiedError with the exit status and the last lines of the log."""

    def end(self) -> float | None:
        """Send SIGTERM. Return the seconds until the server exits, or None if it keeps running."""
        return None

    def steal_ticks(self) -> tuple[float, float] | None:
        """Return (ticks stolen by the hypervisor, all CPU ticks) on the server's machine, or None if unknown."""
        return machine.steal_ticks()


@dataclass(kw_only=True)
class Server:
    """A running implementation."""

    implementation: Implementation
    endpoint: Endpoint
    program: ServerProgram
    startup_time: float = 0.0  # seconds from the start to the first successful response
    upstream: "Upstream | None" = None  # upstream server that UPSTREAM_URL points to
    inputs: "Inputs | None" = None  # files and ports that the server finds in environment variables


def endpoint_of(server: Server, test_type: TestType) -> Endpoint:
    """Return the address for requests of a test type. Some test types have a separate port."""
    if not test_type.port_variable or server.inputs is None:
        return server.endpoint
    port = server.inputs.ports[test_type.port_variable]
    protocol = "h2" if test_type.protocol == "http2" else "http/1.1"
    return replace(server.endpoint, port=port, tls=test_type.tls, protocol=protocol)


class Inputs(Protocol):
    """The files and ports that tfb passes to a server process in environment variables."""

    @property
    def ports(self) -> Mapping[str, int]:
        """Return a mapping from environment variables to ports."""

    def path(self, variable: str) -> Path:
        """Return the path of the file or folder that an environment variable names."""


class Database(Protocol):
    """The database that a server uses."""

    @property
    def address(self) -> DatabaseAddress:
        """Return the database's address and accounts."""

    def restore(self) -> None:
        """Restore the seeded tables. No server may be connected while a shared database is being restored."""

    def meter(self) -> Meter | None:
        """Return a meter for the database's processes, or None if they run on a different machine."""


@dataclass(frozen=True, kw_only=True)
class UpstreamStats:
    """An upstream server's counters since the last reset."""

    calls: int
    sum: int  # sum of the numbers in the upstream server's responses
    delay_seconds: float = 0.0  # minimum delay before each response


class Upstream(Protocol):
    """The slow server that implementations call in the fan-out test type."""

    @property
    def url(self) -> str:
        """The URL that implementations find in UPSTREAM_URL."""

    def reset(self) -> None:
        """Reset the counters to zero."""

    def stats(self) -> UpstreamStats:
        """Return the counters since the last reset."""


class SharedDatabase(Database, Protocol):
    """A run's PostgreSQL server. It may provide private databases. If it has exited, ``restore`` restarts it."""

    @property
    def log(self) -> Path | None:
        """PostgreSQL's log, or None if it cannot be read."""

    def crash_reason(self) -> str | None:
        """Return why PostgreSQL exited or ended sessions since the last restore, or None if it did neither."""

    @property
    def supports_copies(self) -> bool:
        """Return whether private databases are available, so that several servers can run at the same time."""

    def private_database(self, name: str, *, empty: bool = False) -> AbstractContextManager[Database]:
        """Create a database for a single server. It has the seeded tables or, if ``empty`` is set, no tables.

        The server's role owns an empty database.
        """


class RunningGenerator(Protocol):
    """A running load generator."""

    @property
    def command(self) -> Sequence[str]:
        """The generator's command line."""

    def begin(self) -> None:
        """If the generator waits for ``go``, send ``go`` to start the load. Raises LoadError if the generator fails."""

    def wait(self, seconds: float) -> int | None:
        """Wait for the generator. Return the exit status, or None if it is still running after ``seconds``."""

    def interrupt(self) -> None:
        """Ask the generator to stop and print the results so far."""

    def output(self) -> str:
        """Return the generator's output so far."""


@dataclass(frozen=True, kw_only=True)
class GeneratorStart:
    """When and how a load generator in a group started. Times are from this machine's clock."""

    client: str
    connections: int
    threads: int
    go_sent_at: float  # time.monotonic() when tfb sent ``go``
    start_seen_at: float | None  # when the generator reported the start; None if it did not


@runtime_checkable
class GeneratorGroup(Protocol):
    """Load generators on several client machines, which tfb uses like a single ``RunningGenerator``."""

    def starts(self) -> Sequence[GeneratorStart]:
        """Return when and how each generator started, in the order of the generators' results."""


class Runtime(Protocol):
    """An environment in which implementations are built and run: local processes or containers."""

    @property
    def name(self) -> str:
        """The name of the runtime: ``local`` or ``docker``."""

    @property
    def side_by_side(self) -> bool:
        """Whether several servers can run at the same time."""

    @property
    def accounts(self) -> dict[str, str]:
        """Return the accounts under which builds and servers run, with the keys "builds" and "servers".

        The mapping is empty for containers, because their images determine the accounts.
        """

    @property
    def network(self) -> str:
        """Return which network connects generator, servers and database: ``host`` (loopback) or ``bridge``."""

    def build(self, implementation: Implementation, log: Path) -> BuildRecord:
        """Build an implementation. If the build fails, return a record with the reason instead of raising an error."""

    def database(self) -> AbstractContextManager[SharedDatabase]:
        """Start and seed the shared database. Stop it at the end of the block."""

    def start(
        self, implementation: Implementation, database: DatabaseAddress, log: Path, *, ready_path: str
    ) -> AbstractContextManager[Server]:
        """Start a server and wait until it responds to ``ready_path``. Stop it at the end of the block."""

    def own_generator(self, crate: str = "loadgen") -> str:
        """Build a load generator in toolset/ if necessary. Return the ``program`` to pass to ``generator``.

        Raises EnvironmentLacksError if it cannot be built on this machine, or BuildError if the build fails.
        """

    def generator(
        self, program: str, arguments: Sequence[str], *, waits_for_go: bool = False, folder: Path | None = None
    ) -> AbstractContextManager[RunningGenerator]:
        """Start a load generator. ``program`` is a name, such as ``wrk``, or a path.

        ``arguments`` may name scripts in toolset/wrk without a path. If ``waits_for_go`` is set, the generator prints
        that it is ready and waits for a line on stdin. It may write files to ``folder``.
        """

    def versions(self) -> dict[str, str]:
        """Return the versions of the programs that this runtime uses, such as wrk and PostgreSQL."""
