"""The PostgreSQL of a run: brought back to the seed, and divided into a database for each server.

Servers that are up side by side share none: what one reads and writes is counted apart, and its tables can be restored
while others are connected to theirs. Each has a role of its own, which may connect to no other copy: settings and
password that it changes are its own.
"""

import logging
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import psycopg
from psycopg import sql

from harness.errors import StartError
from harness.runtime import Database, DatabaseAddress, Meter
from harness.runtime.database import connect, crash, execute, restore, size_of

logger = logging.getLogger("tfb.database")

LONGEST_NAME = 63  # bytes: PostgreSQL's
RECOVERY_SECONDS = 15.0  # what PostgreSQL has to accept connections again after one of its processes was killed


@dataclass(frozen=True, kw_only=True)
class OwnDatabase:
    """One server's tables in the run's PostgreSQL."""

    address: DatabaseAddress
    postgres: Meter

    def restore(self) -> None:
        """Fill the tables anew, while the server is connected."""
        with connect(self.address, admin=True) as connection:
            execute(connection, "refill.sql")

    def meter(self) -> Meter:
        """Of the whole PostgreSQL: one server is under load at a time."""
        return self.postgres


@contextmanager
def own(shared: DatabaseAddress, name: str, postgres: Meter) -> Iterator[OwnDatabase]:
    """Make the copy and its role, and drop them on the way out. ``name`` may hold what an implementation's name may."""
    word = re.sub(r"[^a-z0-9]+", "_", name.lower())
    database, user = (f"{begin}_of_{word}"[:LONGEST_NAME] for begin in ("hello_world", shared.user))
    password = secrets.token_hex(16)
    create = sql.SQL("CREATE DATABASE {} TEMPLATE hello_world_seed")
    enrol = sql.SQL("CREATE ROLE {} LOGIN PASSWORD {} IN ROLE {}")
    drops = (
        sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(database)),
        sql.SQL("DROP ROLE IF EXISTS {}").format(sql.Identifier(user)),
    )
    with connect(shared, admin=True, name="postgres") as connection:
        for drop in drops:
            connection.execute(drop)
        connection.execute(create.format(sql.Identifier(database)))
        # The rights on the tables are those of the benchmark's role.
        connection.execute(enrol.format(sql.Identifier(user), sql.Literal(password), sql.Identifier(shared.user)))
        # Rights on a database are not copied with its template.
        connection.execute(sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(sql.Identifier(database)))
        grant = sql.SQL("GRANT CONNECT ON DATABASE {} TO {}")
        connection.execute(grant.format(sql.Identifier(database), sql.Identifier(user)))
    try:
        address = replace(shared, name=database, user=user, password=password)
        yield OwnDatabase(address=address, postgres=postgres)
    finally:
        with connect(shared, admin=True, name="postgres") as connection:
            for drop in drops:
                connection.execute(drop)


class RunDatabase:
    """The run's own server; ``restore`` brings the seed back from a template database, and a dead server to life."""

    divisible = True
    owned = False  # by the role, as upstream folders expect

    def __init__(self, address: DatabaseAddress, log: Path) -> None:
        self.address, self.log = address, log
        self.read_to = 0  # of the log: what stands before was known when the seed was last brought back

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
        return self.ended() or crash(self.log, self.read_to)

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
                self.read_to = size_of(self.log)
                return

    def own(self, name: str) -> AbstractContextManager[Database]:
        """A copy of the template for one server."""
        return own(self.address, name, self.meter())
