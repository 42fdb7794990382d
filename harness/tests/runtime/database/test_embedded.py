"""The PostgreSQL of a run: seeded, restored, on the loopback address alone, and gone afterwards."""

import contextlib
import signal
import socket
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import psutil
import psycopg
import pytest

from harness.errors import StartError
from harness.host import toolchain
from harness.host.toolchain import Tool
from harness.runtime import DatabaseAddress
from harness.runtime.database import connect, embedded
from harness.runtime.database.embedded import EmbeddedDatabase

TOOL = Tool(kind="postgres", version=(15,), program=Path("postgres"))


def count(address: DatabaseAddress, query: str) -> int:
    with connect(address) as connection:
        (value,) = connection.execute(query.encode()).fetchone() or (-1,)
        return int(value)


def test_it_holds_the_rows_of_the_benchmark(postgres: EmbeddedDatabase) -> None:
    postgres.restore()
    assert count(postgres.address, "SELECT count(*) FROM world WHERE id BETWEEN 1 AND 10000") == 10_000
    assert count(postgres.address, "SELECT count(*) FROM world WHERE randomnumber BETWEEN 1 AND 10000") == 10_000
    assert count(postgres.address, "SELECT count(*) FROM fortune") == 12


def test_restore_brings_the_seed_back_although_a_client_is_still_connected(postgres: EmbeddedDatabase) -> None:
    postgres.restore()
    before = count(postgres.address, "SELECT sum(id::bigint * randomnumber) FROM world")
    with connect(postgres.address) as connection:
        connection.execute(b"UPDATE world SET randomnumber = 1")
        assert count(postgres.address, "SELECT sum(randomnumber) FROM world") == 10_000
        postgres.restore()
        with pytest.raises(psycopg.OperationalError):
            connection.execute(b"SELECT 1")
    assert count(postgres.address, "SELECT sum(id::bigint * randomnumber) FROM world") == before


def test_the_benchmark_s_role_needs_its_password_and_is_no_superuser(postgres: EmbeddedDatabase) -> None:
    wrong = DatabaseAddress(host="127.0.0.1", port=postgres.address.port, password="wrong")
    with pytest.raises(StartError, match="refused 'benchmarkdbuser'"), connect(wrong):
        pass
    assert count(postgres.address, "SELECT usesuper::int FROM pg_user WHERE usename = current_user") == 0


def test_it_listens_on_the_loopback_address_alone(postgres: EmbeddedDatabase) -> None:
    listening = {
        c.laddr.ip
        for c in psutil.net_connections("tcp")
        if c.status == psutil.CONN_LISTEN and c.laddr and c.laddr.port == postgres.address.port
    }
    assert listening == {"127.0.0.1"}


def test_its_cpu_grows_with_work(postgres: EmbeddedDatabase) -> None:
    meter = postgres.meter()
    with connect(postgres.address) as connection:  # one backend, alive at both readings
        before = meter.read()
        connection.execute(b"SELECT count(*) FROM generate_series(1, 2000000)")
        after = meter.read()
    assert after.cpu_seconds > before.cpu_seconds


@pytest.mark.parametrize("times", [2, embedded.BEGINNINGS])
def test_a_port_that_another_program_has_taken_meanwhile_is_given_up(
    times: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[int] = []
    with ExitStack() as others:

        def begin(self: EmbeddedDatabase) -> None:
            tried.append(self.address.port)
            if len(tried) <= times:
                others.enter_context(socket.create_server(("127.0.0.1", self.address.port)))
                raise StartError("PostgreSQL ended at once")

        monkeypatch.setattr(EmbeddedDatabase, "_begin_once", begin)
        monkeypatch.setattr(embedded, "_unprivileged", lambda: None)
        made = partial(EmbeddedDatabase, TOOL, tmp_path, tmp_path / "log", None)
        if times == embedded.BEGINNINGS:
            with pytest.raises(StartError, match="ended at once"):
                made()
        else:
            assert made().address.port == tried[-1]
    assert len(set(tried)) == len(tried) == 3


def test_a_server_that_ends_for_another_reason_is_not_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[int] = []

    def begin(self: EmbeddedDatabase) -> None:
        tried.append(self.address.port)
        raise StartError("PostgreSQL ended at once")

    monkeypatch.setattr(EmbeddedDatabase, "_begin_once", begin)
    monkeypatch.setattr(embedded, "_unprivileged", lambda: None)
    with pytest.raises(StartError):
        EmbeddedDatabase(TOOL, tmp_path, tmp_path / "log", None)
    assert len(tried) == 1


@pytest.mark.parametrize("ways", [("its first process", "one of its processes"), ("asked to stop",)])
def test_a_server_that_is_killed_while_it_is_seeded_is_begun_again(
    ways: Sequence[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Each way in its turn, a beginning each; the one after them is left alone."""
    seed, left, begun = embedded.seed, list(ways), list[int]()

    def killing(address: DatabaseAddress) -> None:
        begun.append(address.port)
        if left:
            how = left.pop(0)
            (server,) = (c for c in psutil.Process().children() if c.name() == "postgres" and _listens(c, address.port))
            with contextlib.suppress(psycopg.Error), connect(address, admin=True, name="postgres") as session:
                if how == "one of its processes":
                    server.children()[0].kill()
                else:
                    server.send_signal(signal.SIGKILL if how == "its first process" else signal.SIGINT)
                session.execute("SELECT pg_sleep(20)")
        seed(address)

    monkeypatch.setattr(embedded, "seed", killing)
    tool = toolchain.find("postgres", ">=12")
    if tool is None:
        pytest.skip("PostgreSQL is not on this machine")
    with embedded.embedded(tool, tmp_path / "database.log") as postgres:
        assert count(postgres.address, "SELECT count(*) FROM world") == 10_000
    assert begun == [postgres.address.port] * (len(ways) + 1)


def _listens(process: psutil.Process, port: int) -> bool:
    return any(c.laddr and c.laddr.port == port for c in process.net_connections("tcp"))
