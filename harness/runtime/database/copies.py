"""The PostgreSQL of a run: brought back to the seed, and divided into a database for each server.

Servers that are up side by side share none: what one reads and writes is counted apart, and its tables can be restored
while others are connected to theirs. Each has a role of its own, which may connect to no other copy: settings and
password that it changes are its own.
"""

import contextlib
import logging
import re
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import LiteralString

import psycopg
from psycopg import sql

from harness.errors import StartError
from harness.runtime import DatabaseAddress, Meter
from harness.runtime.database import connect, execute_script, file_size, find_backend_crash, restore

logger = logging.getLogger("tfb.database")

LONGEST_NAME = 63  # bytes: PostgreSQL's
RECOVERY_SECONDS = 15.0  # what PostgreSQL has to accept connections again after one of its processes was killed


@dataclass(frozen=True, kw_only=True)
class ServerDatabase:
    """One server's tables in the run's PostgreSQL."""

    address: DatabaseAddress
    postgres: Meter

    def restore(self) -> None:
        """Fill the tables anew, while the server is connected; row by row where it has a transaction open."""
        with connect(self.address, admin=True) as connection:
            connection.execute("SET lock_timeout = '1s'")
            try:
                execute_script(connection, "refill.sql")
            except psycopg.errors.LockNotAvailable:
                connection.execute("ROLLBACK")
                execute_script(connection, "reload.sql")
                connection.execute('VACUUM world, "World"')

    def meter(self) -> Meter:
        """Of the whole PostgreSQL: one server is under load at a time."""
        return self.postgres


class RunDatabase:
    """The run's own server; ``restore`` brings the seed back from a template database, and a dead server to life."""

    supports_copies = True
    owned = False  # by the role, as upstream folders expect

    def __init__(self, address: DatabaseAddress, log: Path) -> None:
        self.address, self.log = address, log
        self.read_to = 0  # of the log: what stands before was known when the seed was last brought back
        self._copies = 0  # databases of servers that are up

    def ended(self) -> str | None:
        """How the server has ended; None while it lives."""
        raise NotImplementedError

    def begin(self) -> None:
        """Start a new server, in the place of one that has ended; raises StartError."""
        raise NotImplementedError

    def meter(self) -> Meter:
        """CPU and memory of the server and its backends."""
        raise NotImplementedError

    def crash_reason(self) -> str | None:
        """How it ended, or lost its sessions, since it was last restored; None where it did not."""
        return self.ended() or find_backend_crash(self.log, self.read_to)

    def restore(self) -> None:
        """Drop the database and copy the seeded template, in a new server if the old one is gone."""
        until = time.monotonic() + RECOVERY_SECONDS
        while True:
            try:
                if how := self.ended():
                    logger.warning("%s", how)
                    self.begin()
                restore(self.address, owned=self.owned)
            except (StartError, psycopg.Error) as error:
                if time.monotonic() > until:
                    raise StartError(f"PostgreSQL could not restore the seeded state: {error}") from error
                time.sleep(0.1)
            else:
                self.read_to = file_size(self.log)
                return

    @contextmanager
    def private_database(self, name: str, *, empty: bool = False) -> Iterator[ServerDatabase]:
        """Yield a copy of the template with a role for one server, and drop both at the end; raises StartError.

        While there is a copy, servers cannot enter the shared database: one that ignores DBNAME or DBUSER is refused
        instead of working on tables that nobody looks at. ``empty``: an empty database that belongs to the role.
        Upstream folders have the shared one, whose name stands in their source.
        """
        if self.owned:
            self.restore()
            yield ServerDatabase(address=self.address, postgres=self.meter())
            return
        # What of an implementation's name may stand in theirs can be the same of two.
        word = f"{secrets.token_hex(4)}_{re.sub(r'[^a-z0-9]+', '_', name.lower())}"
        database, user = (f"{begin}_of_{word}"[:LONGEST_NAME] for begin in ("hello_world", self.address.user))
        password = secrets.token_hex(16)
        names = {"database": sql.Identifier(database), "user": sql.Identifier(user), "password": sql.Literal(password)}
        drops = ("DROP DATABASE IF EXISTS {database} WITH (FORCE)", "DROP ROLE IF EXISTS {user}")
        made: LiteralString = (
            "CREATE DATABASE {database} OWNER {user} ENCODING 'UTF8' LOCALE 'C.UTF-8' TEMPLATE template0"
            if empty
            else "CREATE DATABASE {database} TEMPLATE hello_world_seed"
        )
        makes = (
            # The rights on the tables are those of the benchmark's role, whose members alone PostgreSQL lets in.
            "CREATE ROLE {user} LOGIN PASSWORD {password} IN ROLE {shared}",
            made,
            # Rights on a database are not copied with its template.
            "REVOKE ALL ON DATABASE {database} FROM PUBLIC",
            "GRANT CONNECT ON DATABASE {database} TO {user}",
        )

        def execute_all(statements: Sequence[LiteralString]) -> None:
            with connect(self.address, admin=True, name="postgres") as connection:
                for statement in statements:
                    connection.execute(sql.SQL(statement).format(**names, shared=sql.Identifier(self.address.user)))

        try:
            execute_all(makes)
            # What was counted of databases that are gone takes the room of others. Where the extension is missing,
            # verification says so.
            with contextlib.suppress(psycopg.Error), connect(self.address, admin=True) as connection:
                connection.execute(
                    "SELECT pg_stat_statements_reset(0, dbid, 0) FROM (SELECT DISTINCT dbid FROM pg_stat_statements "
                    "WHERE dbid NOT IN (SELECT oid FROM pg_database)) AS gone"
                )
            self._count(1)
            address = replace(self.address, name=database, user=user, password=password)
            try:
                yield ServerDatabase(address=address, postgres=self.meter())
            finally:
                self._count(-1)
        finally:
            execute_all(drops)

    def _count(self, change: int) -> None:
        """Close the shared database to servers with the first copy, and open it again after the last one."""
        before, self._copies = self._copies, self._copies + change
        if bool(before) == bool(self._copies):
            return
        close = "REVOKE CONNECT ON DATABASE {shared} FROM PUBLIC, {user}"
        statement: LiteralString = close if self._copies else "GRANT CONNECT ON DATABASE {shared} TO {user}"
        names = {"shared": sql.Identifier(self.address.name), "user": sql.Identifier(self.address.user)}
        with connect(self.address, admin=True, name="postgres") as connection:
            connection.execute(sql.SQL(statement).format(**names))
