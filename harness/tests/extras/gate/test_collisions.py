"""If two sides need the same port, file or lock, tfb reports the collision and does not blame one side."""

import os
import re
import socket
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest

from harness.errors import ServerDiedError, StartError
from harness.extras.gate import enclosures, isolation
from harness.extras.gate.cli import prepare
from harness.extras.gate.collisions import CollisionError, require_no_collision
from harness.extras.gate.isolation import IsolatedRuntime
from harness.extras.gate.paired import BASE, HEAD
from harness.plan.implementation import Implementation
from harness.records.run_records import ProcessRecord
from harness.runtime import NO_DATABASE
from harness.runtime.database.embedded import free_port
from harness.tests.doubles.repositories import let_others_enter, repository
from harness.tests.extras.gate.test_side_world import SERVER, TOML

SECOND_PORT = "import socket; second = socket.create_server(({host!r}, {port}))\n"
PID_FILE = "import os; os.close(os.open({path!r}, os.O_CREAT | os.O_EXCL))\nimport atexit, signal, sys; {at_end}\n"
AT_END = "atexit.register(os.unlink, {path!r}); signal.signal(signal.SIGTERM, lambda *_: sys.exit())"
LOCK = "import fcntl; held = open({path!r}, 'w'); fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)\n"
NAMED_LOCK = """
import fcntl
held = open({path!r}, 'a')
try:
    fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    raise SystemExit('cannot get a lock on {path}')
"""
SOCKET = "import socket; s = socket.socket(socket.AF_UNIX); s.bind('\\0{name}')\n"
SILENT = "import os, socket\ntry:\n    second = socket.create_server(('', {port}))\nexcept OSError:\n    os._exit(7)\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(isolation, "shared_programs", dict)
    # As on a kernel that permits no mounts: the sides share temporary folders, which contain ``tmp_path``.
    monkeypatch.setattr(enclosures, "with_private_temporary", lambda accounts, _: (accounts, "EPERM"))
    let_others_enter(tmp_path)
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o777)
    return tmp_path


def runtime_of(folder: Path, server: str, head_server: str = "") -> tuple[IsolatedRuntime, dict[str, Implementation]]:
    text = TOML.format(build="true", check="true", python=sys.executable, env="", more="")
    shop = repository(folder / "shop", tfb__toml=text, server__py=server)
    if head_server:
        (shop / "server.py").write_text(head_server)
    (folder / "place").mkdir(mode=0o755)
    prepared = prepare(shop, "main", None, folder / "place", seed=1)
    prepared.isolation.prepare(separate=os.geteuid() == 0)
    runtime = IsolatedRuntime(
        work=folder / "logs",
        contained_sides={},
        services=prepared.services,
        isolation=prepared.isolation,
        own_scripts=True,
    )
    return runtime, {each.name: each for each in prepared.implementations}


def told(folder: Path, server: str, first: str, second: str, head_server: str = "") -> str:
    """Start two sides, of which the second fails. Return the reported collision, or ""."""
    runtime, sides = runtime_of(folder, server, head_server)
    log = folder / "logs" / second / "p0.log"
    with ExitStack() as stack:
        stack.enter_context(
            runtime.start(sides[first], NO_DATABASE, folder / "logs" / first / "p0.log", ready_path="/")
        )
        with pytest.raises((StartError, ServerDiedError)) as caught:
            stack.enter_context(runtime.start(sides[second], NO_DATABASE, log, ready_path="/"))
    failed = ProcessRecord(
        implementation=second,
        process=0,
        started_at=0.0,
        startup_time=None,
        status="failed",
        reason=str(caught.value),
        log=str(log.relative_to(folder)),
    )
    try:
        require_no_collision(runtime, runtime.watch, list(sides.values()), [failed], folder)
    except CollisionError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(("first", "second"), [(BASE, HEAD), (HEAD, BASE)])
@pytest.mark.parametrize("host", ["127.0.0.1", ""])
def test_a_fixed_port_is_named_with_its_owner(host: str, first: str, second: str, folder: Path) -> None:
    port = free_port()
    said = told(folder, SECOND_PORT.format(host=host, port=port) + SERVER, first, second)
    assert f"the sides collide on port {port} (in use by {first})" in said
    assert f"{second} fails while the other sides run, but works alone" in said


def test_a_port_missing_in_the_log_is_found(folder: Path) -> None:
    port = free_port()
    said = told(folder, SILENT.format(port=port) + SERVER, BASE, HEAD)
    assert f"port {port} (in use by base)" in said


def test_a_shared_file_is_named(folder: Path) -> None:
    path = str(folder / "shared" / "shop.pid")
    said = told(folder, PID_FILE.format(path=path, at_end=AT_END.format(path=path)) + SERVER, BASE, HEAD)
    assert f"the sides collide on {path} (in use by base)" in said
    assert "TMPDIR" in said


@pytest.mark.parametrize("kind", ["lock", "abstract socket"])
def test_locks_and_abstract_sockets_are_collisions(kind: str, folder: Path) -> None:
    path = folder / "shared" / "lock"
    path.touch()
    path.chmod(0o666)
    code = LOCK.format(path=str(path)) if kind == "lock" else SOCKET.format(name=f"tfb-{os.getpid()}")
    assert "the sides collide" in told(folder, code + SERVER, BASE, HEAD)


def test_the_holder_of_an_open_lock_is_named(folder: Path) -> None:
    path = folder / "shared" / "lock"
    path.touch()
    path.chmod(0o666)
    said = told(folder, NAMED_LOCK.format(path=str(path)) + SERVER, BASE, HEAD)
    assert f"the sides collide on {path} (in use by base)" in said


@pytest.mark.skipif(os.geteuid() != 0, reason="private temporary folders of an ordinary user: test_enclosures")
def test_files_in_tmp_do_not_collide(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(isolation, "shared_programs", dict)
    names = [f"{place}/tfb-test-{os.getpid()}.pid" for place in ("/tmp", "/var/tmp", "/dev/shm")]  # noqa: S108
    code = "".join(f"import os; os.close(os.open({name!r}, os.O_CREAT | os.O_EXCL))\n" for name in names)
    runtime, sides = runtime_of(folder, code + SERVER)
    with ExitStack() as stack:
        for name, side in sides.items():
            stack.enter_context(runtime.start(side, NO_DATABASE, folder / "logs" / name / "p0.log", ready_path="/"))
        assert not [name for name in names if Path(name).exists()]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives each side an account")
def test_sockets_in_tmp_stay_usable(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(isolation, "shared_programs", dict)
    with tempfile.TemporaryDirectory() as place, socket.socket(socket.AF_UNIX) as database:
        Path(place).chmod(0o755)
        database.bind(path := f"{place}/database.sock")
        Path(path).chmod(0o777)
        database.listen()
        runtime, sides = runtime_of(folder, f"import socket; socket.socket(socket.AF_UNIX).connect({path!r})\n{SERVER}")
        log = folder / "logs" / HEAD / "p0.log"
        with runtime.start(sides[HEAD], NO_DATABASE, log, ready_path="/") as server:
            server.program.require_alive()


@pytest.mark.parametrize("where", ["~/.shop.lock", "$TMPDIR/shop.pid"])
def test_files_in_own_folders_do_not_collide(where: str, folder: Path) -> None:
    code = f"import os; os.close(os.open(os.path.expanduser(os.path.expandvars({where!r})), os.O_CREAT | os.O_EXCL))\n"
    runtime, sides = runtime_of(folder, code + SERVER)
    with ExitStack() as stack:
        for name, side in sides.items():
            stack.enter_context(runtime.start(side, NO_DATABASE, folder / "logs" / name / "p0.log", ready_path="/"))


@pytest.mark.parametrize("code", ["import nothing_such\n", "raise OSError('address already in use: 9')\n"])
def test_a_side_that_fails_alone_is_no_collision(code: str, folder: Path) -> None:
    assert told(folder, SERVER, BASE, HEAD, head_server=code + SERVER) == ""


def test_a_later_end_needs_signs_of_collision(folder: Path) -> None:
    runtime, sides = runtime_of(folder, SERVER)
    log = folder / "logs" / HEAD / "p0.log"
    log.parent.mkdir(parents=True)
    ended = ProcessRecord(
        implementation=HEAD,
        process=0,
        started_at=0.0,
        startup_time=0.5,
        status="failed",
        reason="the server ended",
        log=str(log.relative_to(folder)),
    )
    log.write_text("panic: index out of range\n")
    require_no_collision(runtime, runtime.watch, list(sides.values()), [ended], folder)
    for line in (
        "Error: listen EADDRINUSE: address already in use :::9464",
        "FATAL: lock file /var/x.pid already exists",
    ):
        log.write_text(f"ready\n{line}\n")
        with pytest.raises(CollisionError, match=re.compile("port 9464|/var/x.pid")):
            require_no_collision(runtime, runtime.watch, list(sides.values()), [ended], folder)
