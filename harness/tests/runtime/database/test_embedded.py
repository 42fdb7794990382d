"""tfb's own PostgreSQL can be restored, listens only on the loopback address, and requires passwords."""

from dataclasses import replace
from pathlib import Path

import psutil
import psycopg
import pytest

from harness.errors import StartError
from harness.runtime import DatabaseAddress
from harness.runtime.database import connect, file_size, find_backend_crash
from harness.runtime.database.embedded import EmbeddedDatabase


def count(address: DatabaseAddress, query: str) -> int:
    with connect(address) as connection:
        (value,) = connection.execute(query.encode()).fetchone() or (-1,)
        return int(value)


def test_restore_works_while_a_client_is_connected(postgres: EmbeddedDatabase) -> None:
    postgres.restore()
    before = count(postgres.address, "SELECT sum(id::bigint * randomnumber) FROM world")
    with connect(postgres.address) as connection:
        connection.execute(b"UPDATE world SET randomnumber = 1")
        assert count(postgres.address, "SELECT sum(randomnumber) FROM world") == 10_000
        postgres.restore()
        with pytest.raises(psycopg.OperationalError):
            connection.execute(b"SELECT 1")
    assert count(postgres.address, "SELECT sum(id::bigint * randomnumber) FROM world") == before


@pytest.mark.parametrize(
    ("user", "password"),
    [("benchmarkdbuser", "wrong"), ("tfb_admin", ""), ("tfb_admin", "tfb_admin"), ("tfb_admin", "benchmarkdbpass")],
)
def test_wrong_password_is_refused(postgres: EmbeddedDatabase, user: str, password: str) -> None:
    guess = replace(postgres.address, user=user, password=password)
    with pytest.raises(StartError, match=f"refused '{user}'"), connect(guess):
        pass


def test_postgres_listens_on_loopback_only(postgres: EmbeddedDatabase) -> None:
    listening = {
        c.laddr.ip
        for c in psutil.net_connections("tcp")
        if c.status == psutil.CONN_LISTEN and c.laddr and c.laddr.port == postgres.address.port
    }
    assert listening == {"127.0.0.1"}


KILLED = "server process (PID 12) was terminated by signal 9: Killed"


def test_backend_crash_is_reported_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(f"LOG:  starting\nLOG:  {KILLED}\nLOG:  more\n")
    assert KILLED.partition(") ")[2] in (find_backend_crash(log, 0) or "")
    assert find_backend_crash(log, file_size(log)) is None
    log.write_text('LOG:  background worker "parallel worker" (PID 12) exited with exit code 1\n')
    assert find_backend_crash(log, 0) is None
    assert find_backend_crash(tmp_path / "none", 0) is None
