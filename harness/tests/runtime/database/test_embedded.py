"""The PostgreSQL of a run: seeded, restored, on the loopback address alone, and gone afterwards."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil
import psycopg
import pytest

from harness.errors import StartError
from harness.host import leftovers, toolchain
from harness.host.toolchain import Tool
from harness.paths import REPOSITORY
from harness.runtime import DatabaseAddress
from harness.runtime.database import connect, embedded
from harness.runtime.database.embedded import EmbeddedDatabase


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for scratch that PostgreSQL's account may enter, as it may not those of the tests."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o1777)
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield Path(folder)


@pytest.fixture
def tool() -> Tool:
    found = toolchain.find("postgres", ">=12")
    if found is None:
        pytest.skip("PostgreSQL is not on this machine")
    return found


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


@pytest.mark.e2e
def test_a_port_that_another_program_has_taken_meanwhile_is_given_up(
    tool: Tool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        ports = [other.getsockname()[1], embedded.free_port()]
        monkeypatch.setattr(embedded, "free_port", lambda: ports.pop(0))
        last = ports[-1]
        with embedded.embedded(tool, tmp_path / "database.log") as postgres:
            assert postgres.address.port == last
            assert count(postgres.address, "SELECT count(*) FROM fortune") == 12


def test_one_that_does_not_come_up_is_told_with_its_last_lines_and_leaves_no_folder(place: Path) -> None:
    for program, code in (("initdb", "mkdir data"), ("postgres", "echo no shared memory; exit 7")):
        (place / program).write_text(f"#!/bin/sh\n{code}\n")
        (place / program).chmod(0o755)
    broken = Tool(kind="postgres", version=(15,), program=place / "postgres")
    with (
        pytest.raises(StartError, match=r"PostgreSQL ended at once \(exit status 7\):\n(.|\n)*no shared memory"),
        embedded.embedded(broken, place / "database.log"),
    ):
        pass
    assert sorted(path.name for path in place.iterdir()) == ["database.log", "initdb", "postgres"]


KILLED = """
import sys, time
from pathlib import Path
from harness.host import process, toolchain
from harness.runtime.database.embedded import embedded
process.start_guardian = lambda: None  # a machine that takes all down at once, the guardian too
with embedded(toolchain.find("postgres", ">=12"), Path(sys.argv[1])) as database:
    print(database.address.port, flush=True)
    time.sleep(100)
"""


@pytest.mark.e2e
def test_the_next_run_removes_the_folder_of_one_that_was_killed(tool: Tool, place: Path, tmp_path: Path) -> None:
    """With everything that it had started, as when a container is killed: nobody is left to remove it but the next."""
    environment = {**os.environ, "TMPDIR": str(place)}
    command = [sys.executable, "-c", KILLED, str(tmp_path / "log")]
    with subprocess.Popen(command, cwd=REPOSITORY, env=environment, stdout=subprocess.PIPE) as harness:
        assert harness.stdout is not None
        assert int(harness.stdout.readline()) > 0
        (folder,) = place.glob("tfb-scratch-postgres-*")
        for child in psutil.Process(harness.pid).children(recursive=True):
            child.kill()
        harness.kill()
    assert (folder / "data" / "PG_VERSION").exists()
    assert [leftover.name for leftover in leftovers.folders()] == [str(folder)]
    with embedded.embedded(tool, tmp_path / "database.log"):
        assert not folder.exists()


@pytest.mark.e2e
@pytest.mark.parametrize("ways", [("its first process", "one of its processes"), ("asked to stop",)])
def test_a_server_that_is_killed_while_it_is_seeded_is_begun_again(
    tool: Tool, ways: Sequence[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
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
    with embedded.embedded(tool, tmp_path / "database.log") as postgres:
        assert count(postgres.address, "SELECT count(*) FROM world") == 10_000
    assert len(begun) == len(ways) + 1
    assert begun[-1] == postgres.address.port


def _listens(process: psutil.Process, port: int) -> bool:
    return any(c.laddr and c.laddr.port == port for c in process.net_connections("tcp"))
