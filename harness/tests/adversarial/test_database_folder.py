"""Attack: a program runs under PostgreSQL's account, or listens on PostgreSQL's port while PostgreSQL is down."""

import os
import socket
import stat
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.errors import StartError
from harness.host import environment, ownership
from harness.provisioning.toolchain import Tool
from harness.runtime import DatabaseAddress
from harness.runtime.database import ADMIN_ROLE, connect
from harness.runtime.database.embedded import EmbeddedDatabase

PRECIOUS = "root's own"
# A fake initdb that creates a cluster whose configuration files are symbolic links.
INITDB = """#!/bin/sh
mkdir "$2"
ln -s "{mine}" "$2/postgresql.conf"
ln -s "{mine}" "$2/pg_hba.conf"
"""
SHOWS_ENVIRONMENT = """#!/bin/sh
env > "$2.env"; cat "$2.env"; exit 1
"""
MOVED = """#!/bin/sh
ln -s "{folder}" "$2"
"""


@pytest.fixture
def place() -> Iterator[Path]:
    """Yield a folder that all accounts can enter. It contains a root-owned file that must not change."""
    with tempfile.TemporaryDirectory(prefix="tfb-test-") as folder:
        Path(folder).chmod(0o755)
        mine = Path(folder, "mine")
        mine.write_text(PRECIOUS, encoding="utf-8")
        mine.chmod(0o600)
        yield Path(folder)


def begin(place: Path, initdb: str, *, link: str = "") -> None:
    for name, text in {"initdb": initdb, "postgres": "#!/bin/sh\nexit 1\n"}.items():
        program = place / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(text.format(mine=place / "mine", folder=place), encoding="utf-8")
        program.chmod(0o755)
    tool = Tool(kind="postgres", version=(15,), program=place / "bin" / "postgres")
    with ownership.make_scratch_folder("postgres") as scratch:
        database = EmbeddedDatabase(tool, scratch, place / "log", None)
        if link:
            (scratch / link).symlink_to(place / "mine")
        with pytest.raises(StartError):
            database.start_server()
        database.close()


def require_unchanged(place: Path) -> None:
    found = (place / "mine").stat()
    assert (found.st_uid, stat.S_IMODE(found.st_mode)) == (os.geteuid(), 0o600)
    assert (place / "mine").read_text(encoding="utf-8") == PRECIOUS


def test_a_linked_password_file_is_not_followed(place: Path) -> None:
    begin(place, INITDB, link="password")
    require_unchanged(place)


def test_a_linked_configuration_is_not_written(place: Path) -> None:
    begin(place, INITDB)
    require_unchanged(place)


def test_a_linked_cluster_is_not_entered(place: Path) -> None:
    begin(place, MOVED)
    assert not (place / "pg_hba.conf").exists()


def test_postgresql_s_environment_holds_no_secret(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "ghp_1")
    monkeypatch.setenv("PGOPTIONS", "-c log_statement=all")
    begin(place, SHOWS_ENVIRONMENT)
    seen = (place / "log").read_text(encoding="utf-8")
    assert "PATH=" in seen
    assert "ghp_1" not in seen
    assert "PGOPTIONS" not in seen


def impostor(listener: socket.socket, heard: list[bytes]) -> None:
    """Act as a PostgreSQL server that asks for the password in plain text."""
    connection, _ = listener.accept()
    with connection:
        connection.settimeout(5)
        start = connection.recv(4096)
        if start[4:8] == b"\x04\xd2\x16\x2f":  # an SSLRequest message
            connection.sendall(b"N")
            connection.recv(4096)
        connection.sendall(b"R\0\0\0\x08\0\0\0\x03")
        heard.append(connection.recv(4096))


def test_the_administrator_s_password_is_sent_to_nobody() -> None:
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = threading.Thread(target=impostor, args=(listener, heard), daemon=True)
        server.start()
        address = DatabaseAddress(
            host="127.0.0.1",
            port=listener.getsockname()[1],
            admin_user=ADMIN_ROLE,
            admin_password="made up",  # noqa: S106
        )
        with pytest.raises(StartError, match="refused 'tfb_admin'"), connect(address, admin=True):
            pass
        server.join(10)
    assert b"made up" not in b"".join(heard)


def test_libpq_variables_do_not_redirect_the_database(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PGHOSTADDR", "PGSERVICE", "PGOPTIONS", "PGPASSFILE", "PGUSER"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv(environment.PASS_VARIABLE, "PGUSER")
    monkeypatch.setenv("PATH", os.environ["PATH"])
    monkeypatch.setenv("PYTHONSAFEPATH", "1")
    environment.secure_process()
    assert {name for name in os.environ if name.startswith("PG")} == {"PGUSER"}
