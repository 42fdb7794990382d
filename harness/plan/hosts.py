"""The machines that a run is spread over: server, database and clients, as the flags or a layout file name them.

A HOST is ``[ssh://][user@]name[:port][=address]`` or ``context:NAME[=address]`` (a context of the Docker client);
``address`` is what the other machines call it, where that differs. ``postgresql://host:port``: a database that exists.
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
NAME = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"  # no leading dash: ssh would take it for an option
SSH = re.compile(
    rf"(?:ssh://)?(?P<login>(?:{NAME}@)?(?P<name>{NAME}))(?::(?P<port>\d{{1,5}}))?(?:=(?P<address>{NAME}))?"
)
CONTEXT = re.compile(rf"context:(?P<name>{NAME})(?:=(?P<address>{NAME}))?")
EXISTING = re.compile(rf"postgres(?:ql)?://(?P<host>{NAME}|\[[0-9a-f:]+\])(?::(?P<port>\d{{1,5}}))?/?")


@dataclass(frozen=True, kw_only=True)
class Host:
    """A machine with a Docker engine, and how it is reached."""

    text: str  # as it was given
    reached_by: Literal["here", "ssh", "context"]
    name: str  # for ssh (with the user), or of the context
    port: int | None = None
    address: str | None = None  # None: as ssh's configuration says


@dataclass(frozen=True, kw_only=True)
class ExistingDatabase:
    """A PostgreSQL that exists."""

    host: str
    port: int


HERE = Host(text="this machine", reached_by="here", name="localhost", address="127.0.0.1")


@dataclass(frozen=True, kw_only=True)
class Hosts:
    """Who does what."""

    server: Host = HERE
    database: Host | ExistingDatabase = HERE
    clients: tuple[Host, ...] = field(default_factory=lambda: (HERE,))

    @property
    def uses_remote_machines(self) -> bool:
        """Whether a container runs on another machine than this one."""
        return any(host.reached_by != "here" for host in self.machines)

    @property
    def machines(self) -> tuple[Host, ...]:
        """Each machine once, the server's first."""
        all_of = (self.server, *((self.database,) if isinstance(self.database, Host) else ()), *self.clients)
        return tuple(dict.fromkeys(all_of))


def parse_host(text: str, flag: str) -> Host:
    """One HOST; raises UsageError that names the flag and the form."""
    if text in LOOPBACK:
        return HERE
    if match := CONTEXT.fullmatch(text):
        return Host(text=text, reached_by="context", name=match["name"], address=match["address"])
    match = SSH.fullmatch(text)
    if match and 0 < int(match["port"] or 22) < 1 << 16:
        port = int(match["port"]) if match["port"] else None
        return Host(text=text, reached_by="ssh", name=match["login"], port=port, address=match["address"])
    raise UsageError(f"{flag} {text}: is not [user@]name[:port][=address] or context:NAME[=address]")


def parse_database(text: str) -> Host | ExistingDatabase:
    """A HOST, or ``postgresql://host[:port]``; raises UsageError for anything more in it."""
    if not text.startswith(("postgresql://", "postgres://")):
        return parse_host(text, "--database-host")
    match = EXISTING.fullmatch(text)
    port = int(match["port"] or 5432) if match else 0
    if not match or not 0 < port < 1 << 16:
        raise UsageError(
            f"--database-host {text}: is not postgresql://host:port (role and database are the benchmark's own)"
        )
    return ExistingDatabase(host=match["host"].strip("[]"), port=port)


def hosts_from_flags(server: str | None, database: str | None, clients: tuple[str, ...]) -> Hosts:
    """The machines that the flags name; raises UsageError for what does not go together.

    A flag that is not given means: the database beside nobody but this machine, clients this machine.
    """
    named = Hosts(
        server=parse_host(server, "--server-host") if server else HERE,
        database=parse_database(database) if database else HERE,
        clients=tuple(parse_host(client, "--client-host") for client in clients) or (HERE,),
    )
    if len(set(named.clients)) < len(named.clients):
        raise UsageError("--client-host: the same machine twice; each client takes its share of the connections")
    if HERE in named.machines and named.uses_remote_machines:
        raise UsageError(
            "a machine that is not named would be this machine by its loopback address, which the others cannot reach: "
            "give --server-host, --database-host (a PostgreSQL that exists: postgresql://host:port) and --client-host, "
            "this machine too (as name=address)"
        )
    return named


class HostLayoutFile(ConfigSection):
    """A file of config/hosts."""

    server: str | None = None
    database: str | None = None
    client: str | tuple[str, ...] = ()


def read_layout(name: str) -> Hosts:
    """The machines of ``config/hosts/NAME.toml`` or a .toml of one's own; raises ConfigError."""
    path = Path(name) if name.endswith(".toml") else LAYOUT_FOLDER / f"{name}.toml"
    known = ", ".join(sorted(each.stem for each in LAYOUT_FOLDER.glob("*.toml"))) or "none yet"
    found = read_toml(path, HostLayoutFile, f"--hosts {name}: {path} is not there; there are: {known}")
    return hosts_from_flags(
        found.server, found.database, (found.client,) if isinstance(found.client, str) else found.client
    )
