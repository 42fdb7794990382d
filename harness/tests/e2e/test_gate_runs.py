"""``./tfb compare`` on a real service in a git repository, with real processes and a small Python server."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from harness.errors import Exit
from harness.paths import REPOSITORY
from harness.tests.e2e.conftest import tfb

pytestmark = [pytest.mark.e2e, pytest.mark.needs("cargo", ">=1.85")]

SERVER = """
import hashlib, os, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ROUNDS = 20
ASKED = 0

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one write: two would wait for each other (Nagle)

    def do_GET(self):
        text = b"x"
        for _ in range(ROUNDS):
            text = hashlib.sha256(text).digest()
        body = b'{"ok": true}'
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass

ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
"""
TABLE = """
import psycopg
names = {"host": "DBHOST", "port": "DBPORT", "dbname": "DBNAME", "user": "DBUSER", "password": "DBPASS"}
with psycopg.connect(**{key: os.environ[name] for key, name in names.items()}) as own:
    own.execute("CREATE TABLE shop (id int)")
"""
TOML = f"""
[service]
build = "test -f ../needed"
start = "{sys.executable} -u server.py"
connections = 4
start_seconds = 8
[[request]]
name = "root"
path = "/"
[request.expect]
json = {{ ok = true }}
"""


def git(folder: Path, *words: str) -> None:
    own = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "safe.directory=*"]
    subprocess.run(["git", *own, "-C", folder, *words], check=True, capture_output=True, timeout=30)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """Create a service folder in a repository. Its build needs a file from the parent folder."""
    folder = tmp_path / "all" / "shop"
    folder.mkdir(parents=True)
    tmp_path.chmod(0o755)
    (folder.parent / "needed").touch()
    (folder / "server.py").write_text(SERVER, encoding="utf-8")
    marked = TOML.replace("connections", f'env = {{ SHOP = "{folder}" }}\nconnections')
    (folder / "tfb.toml").write_text(marked, encoding="utf-8")
    git(folder.parent, "init", "-q", "-b", "main")
    git(folder.parent, "add", "-A")
    git(folder.parent, "commit", "-q", "-m", "a shop")
    return folder


def compare(folder: Path, *words: str, seconds: int = 25) -> subprocess.CompletedProcess[str]:
    return tfb("compare", *words, "--time", f"{seconds}s", "--yes", "--quiet", seconds=240, cwd=folder)


@pytest.mark.needs("postgres", ">=12")
def test_a_threefold_slowdown_is_found_and_named(shop: Path) -> None:
    """On start, the service also creates a table in its database."""
    text = (shop / "server.py").read_text(encoding="utf-8").replace("\nROUNDS", f"{TABLE}\nROUNDS")
    (shop / "server.py").write_text(text, encoding="utf-8")
    file = shop / "tfb.toml"
    file.write_text(file.read_text(encoding="utf-8").replace("env =", "postgres = true\nenv ="), encoding="utf-8")
    git(shop, "commit", "-q", "-a", "-m", "a shop with a database")
    (shop / "server.py").write_text(text.replace("ROUNDS = 20", "ROUNDS = 2000"), encoding="utf-8")
    done = compare(shop, "--base", "main", "--json", "--history", str(shop.parent / "history"), seconds=60)
    assert done.returncode == Exit.FAILED, done.stdout + done.stderr
    document = json.loads(done.stdout)
    assert document["verdict"] == "slower"
    (root,) = document["requests"]
    assert root["request"] == "root"
    assert root["ratio"]["low"] > 1.2
    assert any("uncommitted files" in note for note in document["notes"])
    assert (shop.parent / "history").read_text(encoding="utf-8").count("\n") == 1
    assert sorted(path.name for path in shop.iterdir()) == ["server.py", "tfb.toml"]


WORK = "        text = b"
# Verification sends 200 requests, so the server exits only during the measurement.
COUNTED = "        global ASKED\n        ASKED += 1\n        if ASKED > 250: os._exit(3)\n"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param("import hashlib", "import nothing_such, hashlib", "nothing_such", id="no start"),
        pytest.param('{"ok": true}', '{"ok": false}', "expected True, got False", id="wrong answer"),
        pytest.param("self.send_response(200)", "self.send_response(401)", "login", id="401"),
        pytest.param("self.send_response(200)", "self.send_response(302)", "redirect", id="302"),
        pytest.param(WORK, COUNTED + WORK, "the server ended (exit status 3)", id="ends"),
        pytest.param('int(os.environ["PORT"])', "TAKEN", "already in use", id="port in use"),
    ],
)
def test_a_broken_head_is_explained_and_cleaned_up(shop: Path, old: str, new: str, expected: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        text = (shop / "server.py").read_text(encoding="utf-8")
        changed = text.replace(old, new.replace("TAKEN", str(taken.getsockname()[1])))
        assert changed != text
        (shop / "server.py").write_text(changed, encoding="utf-8")
        done = compare(shop, "--base", "main", seconds=60)
    assert done.returncode == Exit.FAILED, done.stdout + done.stderr
    assert expected in done.stdout + done.stderr
    assert not [process for process in psutil.process_iter() if _of(process) == str(shop)]


def _of(process: psutil.Process) -> str | None:
    """Return the variable SHOP of a process, which names the service folder, or None."""
    try:
        return process.environ().get("SHOP")
    except psutil.Error:
        return None


def test_a_base_that_fails_to_build_cannot_tell(shop: Path) -> None:
    broken = TOML.replace("test -f ../needed", "exit 3")
    (shop / "tfb.toml").write_text(broken, encoding="utf-8")
    git(shop, "commit", "-q", "-am", "broken")
    (shop / "tfb.toml").write_text(TOML, encoding="utf-8")
    done = compare(shop, "--base", "main")
    assert done.returncode == Exit.CANNOT_TELL, done.stdout + done.stderr
    assert "cannot tell: base could not be built" in done.stdout


@pytest.mark.parametrize("loads", [0, 8], ids=["before the first load", "during loads"])
def test_ctrl_c_prints_the_verdict_so_far(shop: Path, tmp_path: Path, loads: int) -> None:
    command = [sys.executable, "-m", "harness", "compare", "--base", "main", "--yes", "--quiet", "--json"]
    with subprocess.Popen(
        [*command, "--time", "2m", "--results", str(tmp_path / "results")],
        cwd=shop,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        until = time.monotonic() + 200
        while time.monotonic() < until and running.poll() is None:
            found = [path.read_bytes().count(b"\n") for path in tmp_path.glob("results/*/trials.jsonl")]
            if any(tmp_path.glob("results/*/logs")) if loads == 0 else sum(found) >= loads:
                break
            time.sleep(0.2)
        running.send_signal(signal.SIGTERM)  # background jobs ignore SIGINT; tfb handles both signals alike
        out, err = running.communicate(timeout=100)
    assert running.returncode == Exit.INTERRUPTED, out + err
    assert not [process for process in psutil.process_iter() if _of(process) == str(shop)]
    if loads:
        result = json.loads(out)
        assert result["interrupted"] is True
        assert result["requests"][0]["request"] == "root"
        assert any(note.startswith("interrupted") for note in result["notes"])
    else:
        assert (out, "interrupted" in err) == ("", True)


LOGIN = """
    def do_POST(self):
        global ASKED
        ASKED += 1
        self.reply(b'{"data": {"t": "%d-%d"}}' % (os.getpid(), ASKED))

    def reply(self, body, status=200):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.headers["Authorization"] != f"Bearer {os.getpid()}-1":
            return self.reply(b"no", 401)
"""


@pytest.mark.parametrize("works", [True, False])
def test_each_process_is_logged_in_once(shop: Path, works: bool) -> None:
    text = (shop / "server.py").read_text(encoding="utf-8")
    (shop / "server.py").write_text(text.replace("\n    def do_GET(self):\n", LOGIN), encoding="utf-8")
    login = f'[service.login]\npath = "/login"\nfield = "data.{"t" if works else "token"}"\n'
    file = (shop / "tfb.toml").read_text(encoding="utf-8").replace("[[request]]", f"{login}[[request]]")
    file = file.replace('path = "/"\n', 'path = "/"\nheaders = { Authorization = "Bearer {token}" }\n')
    (shop / "tfb.toml").write_text(file, encoding="utf-8")
    git(shop, "commit", "-q", "-am", "login")
    done = compare(shop, "--base", "main", "--json", seconds=60)
    result = json.loads(done.stdout)
    if works:
        assert result["requests"][0]["values"], done.stdout + done.stderr
    else:
        assert done.returncode == Exit.CANNOT_TELL
        assert "login failed: POST /login: the response has no field" in done.stdout


CONTAINED = """
[service]
{way}
connections = 4
[[request]]
name = "json"
path = "/json"
expect = {{ json = {{ message = "Hello, World!" }} }}
"""
IMAGE = 'FROM debian:trixie-slim\nCOPY fake_server.pl /\nCMD ["perl", "/fake_server.pl"]\n'
COMPOSE = """
services:
  web:
    {build: ., image: tfb-shop, environment: {HOST: 0.0.0.0, PORT: "8080"}, ports: ["18080:8080"], depends_on: [store]}
  store: {image: "debian:trixie-slim", command: [sleep, "600"], container_name: tfb-shop-store}
"""


def of_engine() -> list[str]:
    """Return the ids of the engine's containers and of the images built for sides."""
    listings = (["ps", "--all"], ["image", "ls", "--filter", "reference=tfb-*-base*"])
    return [subprocess.check_output(["docker", *each, "--quiet"], text=True) for each in listings]


@pytest.mark.docker
@pytest.mark.parametrize("way", ['dockerfile = "Dockerfile"', 'compose = "compose.yaml"\nservice = "web"'])
def test_containers_are_metered_and_removed(tmp_path: Path, way: str) -> None:
    for name, text in (("tfb.toml", CONTAINED.format(way=way)), ("Dockerfile", IMAGE), ("compose.yaml", COMPOSE)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    shutil.copy(Path(__file__).parent / "fake_server.pl", tmp_path)
    side, before = f"dir:{tmp_path}", of_engine()
    done = compare(tmp_path, "--base", side, "--head", side, "--json", seconds=60)
    (found,) = json.loads(done.stdout)["requests"]
    assert found["metric"] == "CPU per request", done.stderr
    assert found["values"], found
    assert of_engine() == before


def test_running_services_are_compared_by_response_time(shop: Path) -> None:
    sides, running = [], []
    for _ in range(2):
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        command = [sys.executable, str(shop / "server.py")]
        running.append(subprocess.Popen(command, env={**os.environ, "PORT": str(port)}))
        sides.append(f"http://127.0.0.1:{port}")
    try:
        done = compare(shop, "--base", sides[0], "--head", sides[1], "--json", seconds=60)
        assert all(each.poll() is None for each in running)
    finally:
        for each in running:
            each.kill()
            each.wait()
    found = json.loads(done.stdout)
    assert found["requests"][0]["metric"] == "response time", done.stderr
    assert any("CPU time is unknown" in note for note in found["notes"])
    done = compare(shop, "--base", "http://example.org")
    assert (done.returncode, "public address" in done.stderr or "cannot resolve" in done.stderr) == (
        Exit.USAGE,
        True,
    )


def test_a_missing_revision_is_explained(shop: Path, tmp_path: Path) -> None:
    git(shop, "commit", "-q", "--allow-empty", "-m", "second")
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{shop.parent}", "shallow")
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "tfb.toml").write_text(TOML, encoding="utf-8")
    lacking = (
        ("all/shop", "v1", "'v1' is not a commit"),
        ("shallow/shop", "HEAD~1", "shallow"),
        ("none", "main", "dir:"),
    )
    for folder, base, said in lacking:
        done = compare(tmp_path / folder, "--base", base)
        assert (done.returncode, said in done.stderr) == (Exit.USAGE, True), done.stderr
