"""Finds the database variables (DBHOST, DBPORT, DBNAME, DBUSER, DBPASS) that a server ignores."""

import re
from dataclasses import dataclass
from pathlib import Path

import psycopg

from harness.errors import StartError
from harness.plain_text import printable
from harness.runtime import NO_DATABASE, DatabaseAddress
from harness.runtime.crashes import read_log
from harness.runtime.database import ADMIN_ROLE, SHARED_USER, connect, file_size

# A refused connection in PostgreSQL's log. toolset/database/postgresql.conf defines the prefix, user@database.
_REFUSED = re.compile(r"^\S+ \S+ \S+ \[\d+\] (?P<user>.*?)@(?P<database>.*?) FATAL:  (?P<message>.+)$", re.MULTILINE)
# Messages from language runtimes and drivers about a closed port or an unknown host name.
_UNREACHED = re.compile(
    r"^.*\b(?:ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|UnknownHost\w*"
    r"|connection refused|refused the connection|could not translate host name|name or service not known"
    r"|no such host|failed to (?:lookup|resolve)|name resolution|nodename nor servname|nxdomain|econnrefused"
    r"|connection to .{1,80} refused|network is unreachable|no route to host"
    # Errors from a PostgreSQL server that does not belong to the run.
    r"|authentication failed|no pg_hba\.conf entry|(?:role|database) .{1,80} does not exist).*$",
    re.MULTILINE | re.IGNORECASE,
)
CONNECTED = "SELECT count(*) FROM pg_stat_activity WHERE usename = %s"
WORKED = "SELECT count(*) FROM pg_stat_statements WHERE userid = (SELECT oid FROM pg_roles WHERE rolname = %s)"


@dataclass(frozen=True, kw_only=True)
class RefusalWatch:
    """A monitor that finds a server's refused connections in PostgreSQL's log, beginning at the server's start."""

    address: DatabaseAddress  # address and account that tfb passes to the server
    log: Path | None  # PostgreSQL's log; None if tfb cannot read it
    begin: int  # size of the log, in bytes, before the server started

    @classmethod
    def start(cls, address: DatabaseAddress, log: Path | None) -> "RefusalWatch":
        """Start to watch PostgreSQL's log, and ignore all existing entries."""
        return cls(address=address, log=log, begin=file_size(log) if log else 0)

    def find_mistakes(self, server_log: Path, *, expected: bool = False) -> tuple[str, ...]:
        """Return up to three clauses about variables that the server ignores, such as "connects as user app, but …".

        If the server never connected, quote the reason from ``server_log``. Set ``expected`` if the server has received
        requests for database rows, and must therefore have connected.
        """
        if self.address == NO_DATABASE or self.log is None:
            return ()
        mistakes = dict.fromkeys(filter(None, map(self._mistake, _REFUSED.finditer(read_log(self.log, self.begin)))))
        return tuple(mistakes)[:3] or self._unreached(server_log, expected=expected)

    def _mistake(self, refused: re.Match[str]) -> str | None:
        """Describe the mistake that led to a refused connection. Return None if this server did not cause it."""
        address = self.address
        user, database, message = (printable(refused[name])[:200] for name in ("user", "database", "message"))
        other_server = user.startswith(f"{SHARED_USER}_of_") and user != address.user
        if other_server or user in (ADMIN_ROLE, "", "[unknown]"):
            return None
        if "terminating connection" in message or "shutting down" in message or "starting up" in message:
            return None  # not a mistake: PostgreSQL ended a session or is restarting
        mistakes = []
        if database != address.name:
            mistakes.append(f"queries database {database}, but DBNAME is {address.name}")
        if user != address.user:
            mistakes.append(f"connects as user {user}, but DBUSER is {address.user}")
        if not mistakes and "authentication failed" in message:
            mistakes.append(f"connects as user {user} with a password that differs from DBPASS")
        return "; it ".join(mistakes) or f"was refused by PostgreSQL at {address.host}:{address.port}: {message}"

    def _unreached(self, server_log: Path, *, expected: bool) -> tuple[str, ...]:
        """Return a clause if the server never connected to PostgreSQL. Quote an error message from the server's log."""
        failed = _UNREACHED.search(read_log(server_log, 0))
        if not (failed or expected) or self._arrived():
            return ()
        clause = f"did not connect to PostgreSQL at DBHOST={self.address.host}, DBPORT={self.address.port}"
        return (f"{clause}; the server's log: {printable(' '.join(failed[0].split()))[:300]}" if failed else clause,)

    def _arrived(self) -> bool:
        """Return whether the server's role has, or has had, a connection. If this is unknown, return True."""
        try:
            with connect(self.address, admin=True) as connection:
                for query in (CONNECTED, WORKED):  # WORKED fails if PostgreSQL does not count statements
                    row = connection.execute(query.encode(), (self.address.user,)).fetchone()
                    if row and row[0]:
                        return True
        except (StartError, psycopg.Error):
            return True
        return False
