"""A run's PostgreSQL server, which restores seeded tables and provides a private database for each implementation.

Private databases let PostgreSQL count each implementation's statements separately. They also let tfb restore an
implementation's tables while other implementations run. Each implementation has a separate role, which cannot connect
to other private databases.
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
from harness.runtime.database.table_sets import TABLE_SETS

logger = logging.getLogger("tfb.database")


@dataclass(frozen=True, kw_only=True)
class ServerDatabase:
    """A database for the server under test, hosted by the run's PostgreSQL."""

    address: DatabaseAddress
    postgres: Meter

    def restore(self) -> None:
        """Refill the tables while the server stays connected. If the server locks a table, update single rows."""
        with connect(self.address, admin=True) as connection:
            connection.execute("SET lock_timeout = '1s'")
            try:
                for script in ("refill.sql", *(tables.refill_script for tables in TABLE_SETS)):
                    execute_script(connection, script)
            except psycopg.errors.LockNotAvailable:
                connection.execute("ROLLBACK")
                execute_script(connection, "reload.sql")
                connection.execute('VACUUM world, "World"')

    def meter(self) -> Meter:
        """Return a meter for all PostgreSQL processes. It suffices, because only one server at a time is under load."""
        return self.postgres


class RunDatabase:
    """The PostgreSQL server that tfb starts for a run. It restores a database by copying a seeded template."""

    supports_copies = True
    owned = False  # whether the benchmark's role owns the tables, as TechEmpower's implementations expect

    def __init__(self, address: DatabaseAddress, log: Path) -> None:
        self.address, self.log = address, log
        self.log_offset = 0  # size of the log, in bytes, when the database was last restored
        self._copies = 0  # number of private databases

    def exit_reason(self) -> str | None:
        """Return why PostgreSQL has exited, or None while it is running."""
        raise NotImplementedError

    def start_server(self) -> None:
        """Start a new server with a new cluster at the same address. Raises StartError if it fails."""
        raise NotImplementedError

    def meter(self) -> Meter:
        """Return a meter for PostgreSQL's processes."""
        raise NotImplementedError

    def crash_reason(self) -> str | None:
        """Return why PostgreSQL exited or ended sessions since the last restore, or None if it did neither."""
        return self.exit_reason() or find_backend_crash(self.log, self.log_offset)

    def restore(self) -> None:
        """Replace the database with a copy of the seeded template. If PostgreSQL has exited, start a new server."""
        deadline = time.monotonic() + 15.0
        while True:
            try:
                if reason := self.exit_reason():
                    logger.warning("%s", reason)
                    self.start_server()
                restore(self.address, owned=self.owned)
            except (StartError, psycopg.Error) as error:
                if time.monotonic() > deadline:
                    raise StartError(f"PostgreSQL could not restore the seeded state: {error}") from error
                time.sleep(0.1)
            else:
                self.log_offset = file_size(self.log)
                return

    @contextmanager
    def private_database(self, name: str, *, empty: bool = False) -> Iterator[ServerDatabase]:
        """Yield a private database with a separate role for a server. Drop both at the end. Raises StartError.

        While private databases exist, no server can connect to the shared database. PostgreSQL therefore rejects a
        server that ignores DBNAME or DBUSER, instead of letting it change tables that tfb does not verify. TechEmpower
        folders use the shared database, because their source code contains its name. If ``empty`` is set, the private
        database has no tables, and the server's role owns it.
        """
        if self.owned:
            self.restore()
            yield ServerDatabase(address=self.address, postgres=self.meter())
            return
        # Add random digits, because names that differ only in special characters would collide.
        suffix = f"{secrets.token_hex(4)}_{re.sub(r'[^a-z0-9]+', '_', name.lower())}"
        # PostgreSQL limits names to 63 bytes.
        database, user = (f"{prefix}_of_{suffix}"[:63] for prefix in ("hello_world", self.address.user))
        password = secrets.token_hex(16)
        names = {"database": sql.Identifier(database), "user": sql.Identifier(user), "password": sql.Literal(password)}
        drops = ("DROP DATABASE IF EXISTS {database} WITH (FORCE)", "DROP ROLE IF EXISTS {user}")
        create_database: LiteralString = (
            "CREATE DATABASE {database} OWNER {user} ENCODING 'UTF8' LOCALE 'C.UTF-8' TEMPLATE template0"
            if empty
            else "CREATE DATABASE {database} TEMPLATE hello_world_seed"
        )
        makes = (
            # The new role inherits the benchmark role's rights on the tables.
            "CREATE ROLE {user} LOGIN PASSWORD {password} IN ROLE {shared}",
            create_database,
            # CREATE DATABASE does not copy access rights from the template.
            "REVOKE ALL ON DATABASE {database} FROM PUBLIC",
            "GRANT CONNECT ON DATABASE {database} TO {user}",
        )

        def execute_all(statements: Sequence[LiteralString]) -> None:
            with connect(self.address, admin=True, name="postgres") as connection:
                for statement in statements:
                    connection.execute(sql.SQL(statement).format(**names, shared=sql.Identifier(self.address.user)))

        try:
            execute_all(makes)
            # Discard statistics of dropped databases. Ignore a missing extension, because verification reports it.
            with contextlib.suppress(psycopg.Error), connect(self.address, admin=True) as connection:
                connection.execute(
                    "SELECT pg_stat_statements_reset(0, dbid, 0) FROM (SELECT DISTINCT dbid FROM pg_stat_statements "
                    "WHERE dbid NOT IN (SELECT oid FROM pg_database)) AS gone"
                )
            self._count_copy(1)
            address = replace(self.address, name=database, user=user, password=password)
            try:
                yield ServerDatabase(address=address, postgres=self.meter())
            finally:
                self._count_copy(-1)
        finally:
            execute_all(drops)

    def _count_copy(self, change: int) -> None:
        """Change the number of private databases. While it is positive, forbid connections to the shared database."""
        before, self._copies = self._copies, self._copies + change
        if bool(before) == bool(self._copies):
            return
        deny = "REVOKE CONNECT ON DATABASE {shared} FROM PUBLIC, {user}"
        statement: LiteralString = deny if self._copies else "GRANT CONNECT ON DATABASE {shared} TO {user}"
        names = {"shared": sql.Identifier(self.address.name), "user": sql.Identifier(self.address.user)}
        with connect(self.address, admin=True, name="postgres") as connection:
            connection.execute(sql.SQL(statement).format(**names))
