"""The machines for a run's server, database and clients, as named by flags or a layout file.

A HOST is ``[ssh://][user@]name[:port][=address]`` or ``context:NAME[=address]`` for a Docker context. ``=address`` is
the address at which the other machines reach this host, if it differs from ``name``. ``postgresql://host:port`` is a
database server that is already running.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from harness.errors import UsageError
from harness.paths import REPOSITORY
from harness.plan.profile import ConfigSection, read_toml

LAYOUT_FOLDER = REPOSITORY / "config" / "hosts"
LOOPBACK = ("127.0.0.1", "localhost", "::1")
NAME = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"  # no leading dash, because ssh would read it as an option
SSH = re.compile(
    rf"(?:ssh://)?(?P<login>(?:{NAME}@)?(?P<name>{NAME}))(?::(?P<port>\d{{1,5}}))?(?:=(?P<address>{NAME}))?"
)
CONTEXT = re.compile(rf"context:(?P<name>{NAME})(?:=(?P<address>{NAME}))?")
DATABASE_URL = re.compile(rf"postgres(?:ql)?://(?P<host>{NAME}|\[[0-9a-f:]+\])(?::(?P<port>\d{{1,5}}))?/?")


@dataclass(frozen=True, kw_only=True)
class Host:
    """A machine with a Docker engine, and how tfb connects to it."""

    text: str  # HOST as written by the user
    reached_by: Literal["here", "ssh", "context"]
    name: str  # [user@]name for ssh, or the name of the context
    port: int | None = None
    # Address at which other machines reach this host. None: resolve ``name`` with the ssh configuration.
    address: str | None = None


@dataclass(frozen=True, kw_only=True)
class ExistingDatabase:
    """A PostgreSQL server that is already running."""

    host: str
    port: int


HERE = Host(text="this machine", reached_by="here", name="localhost", address="127.0.0.1")


@dataclass(frozen=True, kw_only=True)
class Hosts:
    """The machines that run the server, the database and the load generators."""

    server: Host = HERE
    database: Host | ExistingDatabase = HERE
    clients: tuple[Host, ...] = field(default_factory=lambda: (HERE,))

    @property
    def uses_remote_machines(self) -> bool:
        """True if any container runs on a remote machine."""
        return any(host.reached_by != "here" for host in self.machines)

    @property
    def machines(self) -> tuple[Host, ...]:
        """The distinct machines of all roles, starting with the server's machine."""
        machines = (self.server, *((self.database,) if isinstance(self.database, Host) else ()), *self.clients)
        return tuple(dict.fromkeys(machines))


def parse_host(text: str, flag: str) -> Host:
    """Parse a HOST. Raises a UsageError that names ``flag``."""
    if text in LOOPBACK:
        return HERE
    if match := CONTEXT.fullmatch(text):
        return Host(text=text, reached_by="context", name=match["name"], address=match["address"])
    match = SSH.fullmatch(text)
    if match and 0 < int(match["port"] or 22) < 1 << 16:
        port = int(match["port"]) if match["port"] else None
        return Host(text=text, reached_by="ssh", name=match["login"], port=port, address=match["address"])
    raise UsageError(f"{flag} {text}: expected [user@]name[:port][=address] or context:NAME[=address]")


def parse_database(text: str) -> Host | ExistingDatabase:
    """Parse a HOST or ``postgresql://host[:port]``. Raises UsageError for other values, such as a URL with a user."""
    if not text.startswith(("postgresql://", "postgres://")):
        return parse_host(text, "--database-host")
    match = DATABASE_URL.fullmatch(text)
    port = int(match["port"] or 5432) if match else 0
    if not match or not 0 < port < 1 << 16:
        raise UsageError(
            f"--database-host {text}: expected postgresql://host:port (tfb creates the role and the database)"
        )
    return ExistingDatabase(host=match["host"].strip("[]"), port=port)


def hosts_from_flags(server: str | None, database: str | None, clients: tuple[str, ...]) -> Hosts:
    """Return the machines named by flags. A role without a flag uses this machine.

    Raises UsageError if a client is named twice, or if a remote machine would have to reach this machine at a
    loopback address.
    """
    hosts = Hosts(
        server=parse_host(server, "--server-host") if server else HERE,
        database=parse_database(database) if database else HERE,
        clients=tuple(parse_host(client, "--client-host") for client in clients) or (HERE,),
    )
    if len(set(hosts.clients)) < len(hosts.clients):
        raise UsageError(
            "--client-host: a machine is named twice; name each client once, because the clients divide the connections"
        )
    if HERE in hosts.machines and hosts.uses_remote_machines:
        raise UsageError(
            "roles without a flag use this machine's loopback address, which other machines cannot reach. "
            "Give --server-host, --database-host and --client-host; write this machine as name=address"
        )
    return hosts


class HostLayoutFile(ConfigSection):
    """A layout file in config/hosts, with a HOST for each role. A missing role uses this machine."""

    server: str | None = None
    database: str | None = None
    client: str | tuple[str, ...] = ()


def read_layout(name: str) -> Hosts:
    """Read ``config/hosts/NAME.toml`` or any other .toml file. Raises ConfigError."""
    path = Path(name) if name.endswith(".toml") else LAYOUT_FOLDER / f"{name}.toml"
    available = ", ".join(sorted(each.stem for each in LAYOUT_FOLDER.glob("*.toml"))) or "none"
    file = read_toml(path, HostLayoutFile, f"--hosts {name}: {path} does not exist; available: {available}")
    return hosts_from_flags(file.server, file.database, (file.client,) if isinstance(file.client, str) else file.client)
