"""Finds the database variables (DBHOST, DBPORT, DBNAME, DBUSER, DBPASS) that a server ignores."""

import re
from dataclasses import dataclass
from pathlib import Path

import psycopg

from harness.errors import StartError
from harness.plain_text import printable
from harness.runtime import NO_DATABASE, DatabaseAddress
from harness.runtime.database import ADMIN_ROLE, SHARED_USER, connect, file_size

LOG_BYTES = 1 << 20  # number of bytes of PostgreSQL's log that are searched for refused connections
MAX_CAUSES = 3  # maximum number of causes in a message
# A refused connection in PostgreSQL's log. toolset/database/postgresql.conf sets the prefix with user and database.
_REFUSED = re.compile(r"^\S+ \S+ \S+ \[\d+\] (?P<user>.*?)@(?P<database>.*?) FATAL:  (?P<message>.+)$", re.MULTILINE)
# Messages of runtimes and drivers about an address without a listener or an unknown host name.
_UNREACHED = re.compile(
    r"^.*\b(?:ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|UnknownHost\w*"
    r"|connection refused|refused the connection|could not translate host name|name or service not known"
    r"|no such host|failed to (?:lookup|resolve)|name resolution|nodename nor servname|nxdomain|econnrefused"
    r"|connection to .{1,80} refused|network is unreachable|no route to host"
    # Responses of a PostgreSQL server that does not belong to the run.
    r"|authentication failed|no pg_hba\.conf entry|(?:role|database) .{1,80} does not exist).*$",
    re.MULTILINE | re.IGNORECASE,
)
CONNECTED = "SELECT count(*) FROM pg_stat_activity WHERE usename = %s"
WORKED = "SELECT count(*) FROM pg_stat_statements WHERE userid = (SELECT oid FROM pg_roles WHERE rolname = %s)"


@dataclass(frozen=True, kw_only=True)
class RefusalWatch:
    """A monitor of the server's connections in PostgreSQL's log since the server's start."""

    address: DatabaseAddress  # as in the server's environment
    log: Path | None  # PostgreSQL's log; None if it cannot be read
    begin: int  # size of the log before the server's start

    @classmethod
    def start(cls, address: DatabaseAddress, log: Path | None) -> "RefusalWatch":
        """Monitor connections from now on."""
        return cls(address=address, log=log, begin=file_size(log) if log else 0)

    def find_mistakes(self, server_log: Path, *, expected: bool = False) -> tuple[str, ...]:
        """Return a clause for each variable that the server ignores. Empty if all connections were correct.

        Args:
            server_log: The server's log, which may explain connections that did not reach PostgreSQL.
            expected: Whether the server received requests for rows, and should therefore have connected.
        """
        if self.address == NO_DATABASE or self.log is None:
            return ()
        mistakes = dict.fromkeys(filter(None, map(self._mistake, _REFUSED.finditer(_end_of(self.log, self.begin)))))
        return tuple(mistakes)[:MAX_CAUSES] or self._unreached(server_log, expected=expected)

    def _mistake(self, refused: re.Match[str]) -> str | None:
        """Return the mistake in a refused connection, or None if the connection is not from this server."""
        address = self.address
        user, database, message = (printable(refused[name])[:200] for name in ("user", "database", "message"))
        other_server = user.startswith(f"{SHARED_USER}_of_") and user != address.user
        if other_server or user in (ADMIN_ROLE, "", "[unknown]"):
            return None
        if "terminating connection" in message or "shutting down" in message or "starting up" in message:
            return None  # an established connection was ended, or the database is restarting
        wrong = []
        if database != address.name:
            wrong.append(f"queries database {database}, but DBNAME is {address.name}")
        if user != address.user:
            wrong.append(f"connects as user {user}, but DBUSER is {address.user}")
        if not wrong and "authentication failed" in message:
            wrong.append(f"connects as user {user} with a password that differs from DBPASS")
        return "; it ".join(wrong) or f"was refused by PostgreSQL at {address.host}:{address.port}: {message}"

    def _unreached(self, server_log: Path, *, expected: bool) -> tuple[str, ...]:
        """Return the server's message about connections that never arrived, with the correct address."""
        failed = _UNREACHED.search(_end_of(server_log, 0))
        if not (failed or expected) or self._arrived():
            return ()
        where = f"did not reach PostgreSQL, which is at DBHOST={self.address.host}, DBPORT={self.address.port}"
        return (f"{where}; the server's log: {printable(' '.join(failed[0].split()))[:300]}" if failed else where,)

    def _arrived(self) -> bool:
        """Return whether the server's role has or had a connection. True if unknown."""
        try:
            with connect(self.address, admin=True) as connection:
                for query in (CONNECTED, WORKED):  # WORKED fails if statements are not counted
                    row = connection.execute(query.encode(), (self.address.user,)).fetchone()
                    if row and row[0]:
                        return True
        except (StartError, psycopg.Error):
            return True
        return False


def _end_of(log: Path, begin: int) -> str:
    """Return a log from byte ``begin`` on, or the last bytes if it has been truncated in the meantime."""
    try:
        with log.open("rb") as file:
            size = log.stat().st_size
            file.seek(begin if begin <= size else max(0, size - LOG_BYTES))
            return file.read(LOG_BYTES).decode(errors="replace").replace("\r\n", "\n")
    except OSError:
        return ""
