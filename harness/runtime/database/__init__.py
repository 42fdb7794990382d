"""The shared PostgreSQL: one of the run's own, or one that exists already; its statements live in toolset/database/."""

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from harness.errors import StartError
from harness.paths import TOOLSET
from harness.runtime import DatabaseAddress

SCRIPTS = TOOLSET / "database"


@contextmanager
def connect(address: DatabaseAddress, *, admin: bool = False, name: str | None = None) -> Iterator[psycopg.Connection]:
    """An autocommit connection; StartError says who could not be reached and why."""
    user, password = (address.admin_user, address.admin_password) if admin else (address.user, address.password)
    try:
        connection = psycopg.connect(
            host=address.host,
            port=address.port,
            dbname=name or address.name,
            user=user,
            password=password,
            autocommit=True,
            connect_timeout=5,
        )
    except psycopg.OperationalError as error:
        raise StartError(
            f"PostgreSQL at {address.host}:{address.port} refused {user!r}: {str(error).strip().splitlines()[-1]}"
        ) from error
    with connection:
        yield connection


def restore(address: DatabaseAddress, *, guests: bool = False) -> None:
    """Bring database and role back to the seed by toolset/database/restore.sql; needs the administrator.

    ``guests``: the role owns the tables, as folders expect that are written for TechEmpower's toolset.
    """
    with connect(address, admin=True, name="postgres") as connection:
        execute(connection, "restore.sql")
    if guests:
        with connect(address, admin=True) as connection:
            execute(connection, "guests.sql")
    # The database is a new one, and what was counted of the old one only takes room. Where the extension is missing,
    # verification says so.
    with contextlib.suppress(psycopg.Error), connect(address, admin=True) as connection:
        connection.execute("SELECT pg_stat_statements_reset()")


def execute(connection: psycopg.Connection, script: str) -> None:
    """Run a script of toolset/database statement by statement: some of them may not share a transaction."""
    text = (SCRIPTS / script).read_text(encoding="utf-8")
    code = "\n".join(line for line in text.splitlines() if not line.startswith("--"))
    for statement in code.split(";\n"):
        if statement.strip():
            connection.execute(statement.strip().rstrip(";").encode())


def unrestored(error: Exception, address: DatabaseAddress) -> str:
    """Why the database is not as it should be: whether it cannot be reached at all, or did not do as it was told."""
    cause = error.__cause__ if isinstance(error, StartError) else error
    if isinstance(cause, psycopg.OperationalError) and "FATAL" not in str(cause):  # no server has answered
        return (
            f"PostgreSQL's container runs, but {address.host}:{address.port} cannot be reached from here (another "
            "network? a firewall?); "
            "--network-mode says how containers are connected, --runtime local does without them"
        )
    return "PostgreSQL could not restore the seeded state"
