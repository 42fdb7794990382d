"""Opens connections to a run's PostgreSQL, runs the scripts in toolset/database, and finds crashes in the log."""

import contextlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from harness.errors import StartError
from harness.paths import TOOLSET
from harness.runtime import DatabaseAddress

SCRIPTS = TOOLSET / "database"
ADMIN_ROLE = "tfb_admin"
SHARED_USER = DatabaseAddress(host="", port=0).user  # TechEmpower's role; each server's role is a member of it
_CRASH = re.compile(rb"process \(PID \d+\) (was terminated by signal \d+[^\n]*|exited with exit code [^\n]*)")
_MAX_BYTES = 1 << 20  # maximum number of bytes to search in a log


@contextmanager
def connect(address: DatabaseAddress, *, admin: bool = False, name: str | None = None) -> Iterator[psycopg.Connection]:
    """Open an autocommit connection. If this fails, raise StartError with the reason.

    The administrator authenticates only with SCRAM. Otherwise, a program that listens on the port while PostgreSQL is
    down could ask for the password in plain text.
    """
    # require_auth needs libpq 16.
    conninfo = "require_auth=scram-sha-256" if admin and psycopg.pq.version() >= 160000 else ""
    user, password = (address.admin_user, address.admin_password) if admin else (address.user, address.password)
    try:
        connection = psycopg.connect(
            conninfo,
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


def restore(address: DatabaseAddress, *, owned: bool = False) -> None:
    """Restore the seeded database and role. If ``owned`` is set, the role owns the tables, as TechEmpower expects."""
    with connect(address, admin=True, name="postgres") as connection:
        execute_script(connection, "restore.sql")
    if owned:
        with connect(address, admin=True) as connection:
            execute_script(connection, "guests.sql")
    # Discard statistics of the dropped database. Ignore a missing extension, because verification reports it.
    with contextlib.suppress(psycopg.Error), connect(address, admin=True) as connection:
        connection.execute("SELECT pg_stat_statements_reset()")


def execute_script(connection: psycopg.Connection, script: str) -> None:
    """Run a script in toolset/database statement by statement, because some statements cannot run in a transaction."""
    text = (SCRIPTS / script).read_text(encoding="utf-8")
    code = "\n".join(line for line in text.splitlines() if not line.startswith("--"))
    for statement in code.split(";\n"):
        if statement.strip():
            connection.execute(statement.strip().rstrip(";").encode())


def file_size(log: Path) -> int:
    """Return the size of a log in bytes, or 0 if it does not exist."""
    try:
        return log.stat().st_size
    except OSError:
        return 0


def find_backend_crash(log: Path, offset: int) -> str | None:
    """Return the message about a PostgreSQL crash after byte ``offset``, or None. A crash ends all sessions."""
    try:
        with log.open("rb") as file:
            file.seek(offset)
            match = _CRASH.search(file.read(_MAX_BYTES))
    except OSError:
        return None
    return f"one of PostgreSQL's processes {match[1].decode(errors='replace').strip()}; log: {log}" if match else None
