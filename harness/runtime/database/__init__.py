"""The shared PostgreSQL: one of the run's own, or one that exists already; its statements live in toolset/database/."""

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
SHARED_USER = DatabaseAddress(host="", port=0).user  # TechEmpower's role, of which those of servers are members
REQUIRE_AUTH_SINCE = 160000  # version of libpq that knows require_auth
_CRASH = re.compile(rb"process \(PID \d+\) (was terminated by signal \d+[^\n]*|exited with exit code [^\n]*)")
_MOST_BYTES = 1 << 20  # of a log that are searched


@contextmanager
def connect(address: DatabaseAddress, *, admin: bool = False, name: str | None = None) -> Iterator[psycopg.Connection]:
    """An autocommit connection; StartError says who could not be reached and why.

    The administrator's password is sent to nobody: a program of another user that has taken the port while PostgreSQL
    was down could ask for it in plain text.
    """
    proof = "require_auth=scram-sha-256" if admin and psycopg.pq.version() >= REQUIRE_AUTH_SINCE else ""
    user, password = (address.admin_user, address.admin_password) if admin else (address.user, address.password)
    try:
        connection = psycopg.connect(
            proof,
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
    """Bring database and role back to the seed by toolset/database/restore.sql; needs the administrator.

    ``owned``: the role owns the tables, as folders expect that are written for TechEmpower's toolset.
    """
    with connect(address, admin=True, name="postgres") as connection:
        execute_script(connection, "restore.sql")
    if owned:
        with connect(address, admin=True) as connection:
            execute_script(connection, "guests.sql")
    # The database is a new one, and what was counted of the old one only takes room. Where the extension is missing,
    # verification says so.
    with contextlib.suppress(psycopg.Error), connect(address, admin=True) as connection:
        connection.execute("SELECT pg_stat_statements_reset()")


def execute_script(connection: psycopg.Connection, script: str) -> None:
    """Run a script of toolset/database statement by statement: some of them may not share a transaction."""
    text = (SCRIPTS / script).read_text(encoding="utf-8")
    code = "\n".join(line for line in text.splitlines() if not line.startswith("--"))
    for statement in code.split(";\n"):
        if statement.strip():
            connection.execute(statement.strip().rstrip(";").encode())


def file_size(log: Path) -> int:
    """Bytes so far; 0 without a log."""
    try:
        return log.stat().st_size
    except OSError:
        return 0


def find_backend_crash(log: Path, offset: int) -> str | None:
    """What PostgreSQL's log says behind ``offset`` of a killed process of its own, or None.

    The others then end their sessions, and servers lose their work.
    """
    try:
        with log.open("rb") as file:
            file.seek(offset)
            found = _CRASH.search(file.read(_MOST_BYTES))
    except OSError:
        return None
    return f"one of PostgreSQL's processes {found[1].decode(errors='replace').strip()}; log: {log}" if found else None
