"""A service with a slow and a fast request. The regression gate compares versions in its repository."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from harness.extras.gate.cli import PreparedComparison, prepare
from harness.paths import REPOSITORY
from harness.tests.doubles.repositories import let_others_enter, repository

START = f"{sys.executable} -u server.py"
TOML = """
[service]
build = "{build}"
start = "{start}"
connections = {connections}
{more}
"""
REQUEST = """
[[request]]
name = "{name}"
path = "{path}"
weight = {weight}
[request.expect]
json = {{ ok = true }}
"""
SERVER = """
import hashlib, os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ROUNDS = 300

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1

    def do_GET(self):
        text = b"x"
        for _ in range(ROUNDS if self.path.startswith("/slow") else 1):
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


def toml(
    *requests: tuple[str, str],
    build: str = "true",
    start: str = START,
    connections: int = 4,
    keys: str = "",
    weight: float = 1,
) -> str:
    asked = "".join(REQUEST.format(name=name, path=path, weight=weight) for name, path in requests)
    return TOML.format(build=build, start=start, connections=connections, more=keys) + asked


BOTH = (("slow", "/slow"), ("quick", "/quick"))


def shop_repository(folder: Path) -> Path:
    """Create the service's repository below ``folder``. Its main branch declares both requests."""
    let_others_enter(folder)
    return repository(folder / "shop", tfb__toml=toml(*BOTH), server__py=SERVER)


def session(shop: Path, place: Path) -> PreparedComparison:
    place.mkdir()
    return prepare(shop, "main", None, place, seed=1)


def compare(
    folder: Path, *words: str, shared_account: bool = False, seconds: int = 20
) -> tuple[int, dict[str, Any], str]:
    """Run ``./tfb compare`` and return the exit code, the JSON result and the output.

    With ``shared_account``, all sides run under the same account.
    """
    lines = "import sys; from harness.host import accounts; from harness import cli"
    lines += "; accounts.server_accounts = lambda port: None" if shared_account else ""
    command = [sys.executable, "-c", f"{lines}; sys.exit(cli.main(sys.argv[1:]))", "compare", *words]
    command += ["--time", f"{seconds}s", "--yes", "--quiet", "--json"]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    completed = subprocess.run(
        command, check=False, capture_output=True, text=True, cwd=folder, env=environment, timeout=280
    )
    found = json.loads(completed.stdout) if completed.stdout.startswith("{") else {}
    return completed.returncode, found, completed.stdout + completed.stderr
