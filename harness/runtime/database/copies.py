"""A database for one server alone, copied from the seeded template: servers that are up side by side share none.

What a server reads and writes is counted apart, and its tables can be restored while others are connected to theirs.
It has a role of its own as well, which may connect to no other copy: settings and password that it changes are its own.
"""

import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from psycopg import sql

from harness.runtime import DatabaseAddress, Meter
from harness.runtime.database import connect, execute

SPARE_CONNECTIONS = 10  # for the harness itself
LONGEST_NAME = 63  # bytes: PostgreSQL's


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


def connections_free(address: DatabaseAddress) -> int | None:
    """Connections that may still be opened, those of the harness left out."""
    with connect(address, admin=True, name="postgres") as connection:
        row = connection.execute(
            "SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int"
            " - (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')"
        ).fetchone()
    return int(row[0]) - SPARE_CONNECTIONS if row else None
