"""Attack: a side replaces its Unix socket with a link, so that tfb connects to another process's socket."""

import os
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from harness.errors import StartError
from harness.extras.gate.runtime import ServiceRuntime
from harness.host import accounts
from harness.plan.service import ServiceFile, service_implementation
from harness.records.remove_tree import remove_tree_if_possible
from harness.runtime import NO_DATABASE, Endpoint
from harness.tests.doubles.repositories import let_others_enter

REPLY = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n"
# Arguments: response body, socket path, and which process binds the socket, listens and accepts.
SERVER = f"""
import os, signal, socket, sys
reply, path, how = sys.argv[1:]
server = socket.socket(socket.AF_UNIX)
if how == "child binds" and os.fork(): os.wait()
server.bind(path)
if how == "child listens" and os.fork(): os.wait()
server.listen()
if how == "child accepts" and os.fork(): os.wait()
while True:
    connection = server.accept()[0]
    if connection.recv(4096): connection.sendall({REPLY!r} + reply.encode())
    connection.close()
"""
SOCKET = "app.sock"


@pytest.fixture
def folder() -> Iterator[Path]:
    """Yield a folder that other accounts can enter and write to."""
    made = Path(tempfile.mkdtemp(prefix="tfb-"))
    let_others_enter(made)
    yield made
    remove_tree_if_possible(made)


@contextmanager
def started(folder: Path, command: str, listen: str = SOCKET, *, own_account: bool = False) -> Iterator[Endpoint]:
    """Start a side with a shell command, in which the word SERVER expands to the server's command line."""
    folder.mkdir(exist_ok=True)
    folder.chmod(0o777)
    (folder / "server.py").write_text(SERVER)
    program = f"/usr/bin/python3 -u {folder / 'server.py'}" if own_account else f"{sys.executable} -u server.py"
    document = {
        "service": {"start": command.replace("SERVER", program), "listen": f"unix:{listen}", "start_seconds": 10},
        "request": [{"name": "root", "path": "/"}],
    }
    file = ServiceFile.model_validate(document)
    side = service_implementation(file, folder, folder.name, 1, folder)
    pool = accounts.AccountPool(()) if own_account else None
    runtime = ServiceRuntime(work=folder, services={side.name: (file.service, folder)}, contained_sides={}, pool=pool)
    with runtime.start(side, NO_DATABASE, folder.parent / f"{folder.name}.log", ready_path="/") as server:
        yield server.endpoint


@contextmanager
def foreign(path: Path) -> Iterator[list[bytes]]:
    """Run a server that belongs to neither side on a Unix socket. Yield the bytes that it receives."""
    received: list[bytes] = []

    def serve() -> None:
        with suppress(OSError):
            while True:
                with closing(listener.accept()[0]) as connection:
                    received.append(data := connection.recv(4096))
                    connection.sendall(REPLY + b"evil" if data else b"")

    with closing(socket.socket(socket.AF_UNIX)) as listener:
        listener.bind(str(path))
        path.chmod(0o777)
        listener.listen()
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield received
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def ask(endpoint: Endpoint, path: str = "") -> bytes:
    """Send a request, directly to the socket ``path`` or as tfb's client would. Return the response body."""
    connection = socket.socket(socket.AF_UNIX) if path else endpoint.connect(5.0)
    with connection:
        if path:
            connection.connect(path)
        connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
        return b"".join(iter(lambda: connection.recv(4096), b"")).rpartition(b"\r\n\r\n")[2]


REPLACEMENTS: dict[str, Callable[[Path, Path], object]] = {
    "link": lambda own, foreign: own.symlink_to(foreign),
    "hard link": lambda own, foreign: own.hardlink_to(foreign),
    "file": lambda own, _: own.write_text("not a socket"),
}
SAID = {"link": "is a link", "hard link": "belongs to a different process", "file": "is not a socket"}


@pytest.mark.parametrize("own_account", [False, True])
@pytest.mark.parametrize("kind", REPLACEMENTS)
def test_a_replaced_socket_is_refused(kind: str, own_account: bool, folder: Path) -> None:
    if own_account and os.geteuid():
        pytest.skip("only root can give a side its own account")
    with (
        started(folder / "base", f"SERVER base {SOCKET} usual", own_account=own_account) as base,
        started(folder / "head", f"SERVER head {SOCKET} usual", own_account=own_account) as head,
    ):
        assert base.unix is not None
        assert head.unix is not None
        checked = head.unix.checked_path()
        (folder / "head" / SOCKET).unlink()
        REPLACEMENTS[kind](folder / "head" / SOCKET, folder / "base" / SOCKET)
        for attempt in (lambda: head.connect(5.0), head.unix.checked_path):
            with pytest.raises(StartError, match=rf"head/app.sock.*{SAID[kind]}.*tfb connects only.*Let the server"):
                attempt()
        assert ask(head, checked) == b"head"  # a running load generator still reaches head's original socket
        assert ask(base, base.unix.checked_path()) == b"base"


@pytest.mark.parametrize(
    ("command", "listen", "said"),
    [
        ("ln -s {foreign} app.sock; sleep 99", SOCKET, "is a link"),
        ("ln {foreign} app.sock; sleep 99", SOCKET, "belongs to a different process"),
        ("ln -s {folder} run; sleep 99", "run/foreign.sock", "run is a link"),
        ("echo > app.sock; sleep 99", SOCKET, "is not a socket"),
    ],
)
def test_nothing_is_sent_to_a_foreign_socket(command: str, listen: str, said: str, folder: Path) -> None:
    place = folder / "foreign.sock"
    with (
        foreign(place) as received,
        pytest.raises(StartError, match=said),
        started(folder / "head", f"sh -c '{command.format(foreign=place, folder=folder)}'", listen),
    ):
        pytest.fail("the side started")
    assert not b"".join(received)


@pytest.mark.parametrize("own_account", [False, True])
@pytest.mark.parametrize("how", ["usual", "child binds", "child listens", "child accepts"])
def test_any_process_of_a_server_may_listen(how: str, own_account: bool, folder: Path) -> None:
    if own_account and os.geteuid():
        pytest.skip("only root can give a side its own account")
    with started(folder / ("long" * 30), f"SERVER head {SOCKET} '{how}'", own_account=own_account) as head:
        assert head.unix is not None
        assert ask(head) == ask(head, head.unix.checked_path()) == b"head"


def test_a_server_may_create_its_socket_again(folder: Path) -> None:
    restart = f"sh -c 'SERVER one {SOCKET} usual & sleep 1; kill $!; wait; rm {SOCKET}; SERVER two {SOCKET} usual'"
    with started(folder / "head", restart) as head:
        assert ask(head) == b"one"
        answers, until = b"", time.monotonic() + 10
        while answers != b"two" and time.monotonic() < until:
            time.sleep(0.05)
            with suppress(OSError):
                answers = ask(head)
        assert head.unix is not None
        assert ask(head, head.unix.checked_path()) == b"two"
