"""./tfb compare for a service of one's own: real git, real processes, a server of the standard library."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.errors import Exit
from harness.paths import REPOSITORY

pytestmark = [pytest.mark.e2e, pytest.mark.needs("cargo", ">=1.85")]

SERVER = """
import hashlib, os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ROUNDS = 20

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

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
TOML = f"""
[service]
start = "{sys.executable} -u server.py"
connections = 4
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
    """A repository with one commit."""
    folder = tmp_path / "shop"
    folder.mkdir()
    tmp_path.chmod(0o755)
    (folder / "server.py").write_text(SERVER, encoding="utf-8")
    (folder / "tfb.toml").write_text(TOML, encoding="utf-8")
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "a shop")
    return folder


def compare(folder: Path, *words: str, seconds: int = 25) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "harness", "compare", *words, "--time", f"{seconds}s", "--yes", "--quiet"]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    return subprocess.run(
        command, check=False, capture_output=True, text=True, cwd=folder, env=environment, timeout=240
    )


def test_a_change_that_triples_the_work_is_found_and_named_and_leaves_nothing_behind(shop: Path) -> None:
    text = (shop / "server.py").read_text(encoding="utf-8")
    (shop / "server.py").write_text(text.replace("ROUNDS = 20", "ROUNDS = 2000"), encoding="utf-8")
    done = compare(shop, "--base", "main", "--json", "--history", str(shop.parent / "history"), seconds=60)
    assert done.returncode == Exit.FAILED, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert found["verdict"] == "slower"
    (root,) = found["requests"]
    assert root["request"] == "root"
    assert root["ratio"]["low"] > 1.2
    assert any("not committed" in note for note in found["notes"])
    assert (shop.parent / "history").read_text(encoding="utf-8").count("\n") == 1
    assert sorted(path.name for path in shop.iterdir()) == [".git", "server.py", "tfb.toml"]


@pytest.mark.parametrize(
    ("old", "new", "status", "said"),
    [
        ('{"ok": true}', '{"ok": false}', Exit.FAILED, "expected True, got False"),
        ("import hashlib, os", "import hashlib, os, nothing_such", Exit.FAILED, "nothing_such"),
        ("self.send_response(200)", "self.send_response(401)", Exit.FAILED, "401"),
    ],
)
def test_a_head_that_does_not_work_is_a_failure_that_says_how(
    shop: Path, old: str, new: str, status: Exit, said: str
) -> None:
    text = (shop / "server.py").read_text(encoding="utf-8")
    (shop / "server.py").write_text(text.replace(old, new), encoding="utf-8")
    done = compare(shop, "--base", "main")
    assert done.returncode == status, done.stdout + done.stderr
    assert said in done.stdout + done.stderr


def test_a_base_that_no_longer_builds_leaves_it_open(shop: Path) -> None:
    broken = TOML.replace("[service]", '[service]\nbuild = "exit 3"')
    (shop / "tfb.toml").write_text(broken, encoding="utf-8")
    git(shop, "commit", "-q", "-am", "broken")
    (shop / "tfb.toml").write_text(TOML, encoding="utf-8")
    done = compare(shop, "--base", "main")
    assert done.returncode == Exit.CANNOT_TELL, done.stdout + done.stderr
    assert "base could not be built" in done.stderr


def test_what_git_lacks_is_said_with_what_brings_it(shop: Path, tmp_path: Path) -> None:
    done = compare(shop, "--base", "v1")
    assert done.returncode == Exit.USAGE
    assert "'v1' is no commit" in done.stderr
    git(shop, "commit", "-q", "--allow-empty", "-m", "second")
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{shop}", "shallow")
    done = compare(tmp_path / "shallow", "--base", "HEAD~1")
    assert done.returncode == Exit.USAGE
    assert "shallow" in done.stderr
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "tfb.toml").write_text(TOML, encoding="utf-8")
    done = compare(tmp_path / "none", "--base", "main")
    assert done.returncode == Exit.USAGE
    assert "dir:" in done.stderr
