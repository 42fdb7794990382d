"""Services on absolute Unix socket paths: each side has its own socket at the same path."""

import os
import pwd
import sys
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.cli.scans import NOT_JUDGED
from harness.errors import UsageError
from harness.extras.gate.cli import prepare
from harness.extras.gate.isolation import Isolation
from harness.extras.gate.paired import BASE, COPY, HEAD, SIDES
from harness.extras.gate.socket_folders import SocketFolder, socket_folders
from harness.host import process
from harness.host.process import Account
from harness.paths import REPOSITORY
from harness.plan.service import Service
from harness.records.remove_tree import remove_tree_if_possible
from harness.tests.doubles.repositories import give, let_others_enter, repository

IS_ROOT = os.geteuid() == 0
# A server that leaves its socket behind when it stops. It responds with its working folder and the files beside the
# socket.
SERVER = """
import os, socketserver
from http.server import BaseHTTPRequestHandler
path = os.environ["SOCKET"]
os.makedirs(os.path.dirname(path), exist_ok=True)

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(" ".join([os.getcwd(), *sorted(os.listdir(os.path.dirname(path)))]).encode())
    def address_string(self): return "client"
    def log_message(self, *_): pass

open(path + ".pid", "x").close()
socketserver.UnixStreamServer(path, Handler).serve_forever()
"""
TOML = """
[service]
start = "rm -f $SOCKET.pid; exec {python} -u server.py"
listen = "unix:{socket}"
env = {{ SOCKET = "{socket}" }}
[[request]]
name = "a"
path = "/"
"""
# A program that starts all sides at the same time, twice, and prints their responses.
PROGRAM = """
import os, sys
from contextlib import ExitStack
from pathlib import Path
from harness.errors import UsageError
from harness.extras.gate import isolation
from harness.extras.gate.cli import prepare
from harness.host import ownership
from harness.runtime import NO_DATABASE
isolation.shared_programs = dict
folder = Path(sys.argv[1])
with ownership.make_scratch_folder("gate") as place, ExitStack() as stack:
    if os.geteuid():
        stack.enter_context(ownership.scratch_within(place))
    prepared = prepare(folder / "shop", "main", None, place, seed=1)
    try:
        prepared.isolation.prepare(separate=os.geteuid() == 0)
    except UsageError as error:
        print("SKIP", error)
        sys.exit()
    runtime = isolation.IsolatedRuntime(
        work=folder, contained_sides={}, services=prepared.services, isolation=prepared.isolation, own_scripts=True
    )
    for turn in range(2):
        with ExitStack() as running:
            for side in prepared.implementations:
                log = folder / "logs" / side.name
                server = running.enter_context(runtime.start(side, NO_DATABASE, log, ready_path="/"))
                with server.endpoint.connect(5.0) as connection:
                    connection.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n")
                    text = b"".join(iter(lambda: connection.recv(4096), b""))
                print(side.name, text.decode().rpartition("\\r\\n\\r\\n")[2])
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """Yield a folder in /tmp that other accounts can enter. In pytest's folder, socket paths would be too long."""
    made = Path(tempfile.mkdtemp(prefix="tfb-", dir="/tmp"))
    let_others_enter(made)
    yield made
    remove_tree_if_possible(made)


def responses(folder: Path, socket: str, account: Account | None) -> list[tuple[str, str, set[str]]]:
    """Return the side and the working folder of each started server, and the files beside its socket."""
    repository(folder / "shop", tfb__toml=TOML.format(python="/usr/bin/python3", socket=socket), server__py=SERVER)
    (folder / "program.py").write_text(PROGRAM)
    (folder / "home").mkdir()
    if account:
        give(folder, account.uid)
    env = {
        "PYTHONPATH": str(REPOSITORY),
        "HOME": str(folder / "home"),
        "TMPDIR": str(folder),
        "PATH": os.environ["PATH"],
    }
    env |= {"PYTHONDONTWRITEBYTECODE": "1", "TFB_STATE": str(folder / "state")}
    command = [sys.executable, "-P", str(folder / "program.py"), str(folder)]
    done = process.run(command, seconds=120, env=env, cwd=folder, account=account)
    if "SKIP" in done.stdout:
        pytest.skip(f"{NOT_JUDGED}{done.stdout.strip()}")
    assert done.status == 0, done.stdout
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith((BASE, HEAD))]
    return [(side, own, set(names)) for side, own, *names in lines]


@pytest.mark.parametrize(
    "user", [pytest.param("root", marks=pytest.mark.skipif(not IS_ROOT, reason="as root")), "nobody"]
)
@pytest.mark.parametrize("place", ["/run", "/var/run/{new}/web", "/tmp", "{folder}", "/dev/shm/{new}"])  # noqa: S108
def test_each_side_has_a_socket_of_its_own(user: str, place: str, folder: Path) -> None:
    (folder / "beside").write_text("seen by all")
    rights = ("dac_read_search",)  # the Python interpreter may be in a folder that only root can enter
    known = pwd.getpwnam(user)
    account = (
        None if not IS_ROOT or user == "root" else Account(name=user, uid=known.pw_uid, gid=known.pw_gid, rights=rights)
    )
    socket = Path(place.format(folder=folder, new=f"tfb{uuid.uuid4().hex[:6]}")) / f"{uuid.uuid4().hex[:6]}.sock"
    found = responses(folder, str(socket), account)
    assert [side for side, _, _ in found] == [side for _ in range(2) for side in (BASE, COPY, HEAD)]
    assert all(Path(own).name == side for side, own, _ in found)
    written = {socket.name, f"{socket.name}.pid"}
    usual = {"beside", "shop"} if socket.parent == folder else set()
    assert all(written | usual <= names for _, _, names in found)
    assert not socket.exists()
    assert not (socket.parent / f"{socket.name}.pid").exists()


def made(folder: Path, listen: str) -> Isolation:
    text = TOML.format(python="python3", socket=listen)
    top = repository(folder / "shop", tfb__toml=text)
    (folder / "place").mkdir()
    return prepare(top, "main", None, folder / "place", seed=1).isolation


@pytest.mark.parametrize(
    ("listen", "said"),
    [
        ("/tfb-no-such-folder/app.sock", ["tfb cannot replace the folder /", "Create the socket's folder"]),
    ],
)
def test_unusable_paths_of_sockets_are_refused(listen: str, said: list[str], folder: Path) -> None:
    with pytest.raises(UsageError) as caught:
        made(folder, listen)
    assert all(words in str(caught.value) for words in ["service.listen", listen, *said])


def test_sockets_may_be_below_unreadable_folders(folder: Path) -> None:
    closed = folder / "closed"
    closed.mkdir(mode=0)
    sides = {BASE: (Service(start="x", listen=f"unix:{closed}/sub/app.sock"), folder)}
    own = os.geteuid()
    os.seteuid(own or 54321)  # root could read the folder
    try:
        found = socket_folders(sides, folder / "sockets")[BASE]
    finally:
        os.seteuid(own)
    assert (found.place, found.name) == (closed, "sub/app.sock")


def test_sides_without_namespaces_may_not_share_a_socket(folder: Path) -> None:
    own = {side: SocketFolder(listen="unix:/run/a", own=folder / side, place=Path("/run"), name="a") for side in SIDES}
    isolation = Isolation(roots={}, homes=folder / "homes", sockets=own)
    with pytest.raises(UsageError, match=r"would share this socket.*private mount namespaces.*Run tfb as root"):
        isolation.prepare(separate=True)  # the sides have no separate accounts
