"""Services that look broken while they start. tfb waits for up to service.start_seconds while the process runs."""

import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from harness.errors import ServerDiedError, StartError
from harness.plan.implementation import Implementation
from harness.plan.requests import PreparedRequest
from harness.plan.service import ServiceFile, service_implementation
from harness.runtime import NO_DATABASE, readiness
from harness.runtime.local import LocalRuntime

SERVER = """
import http.server, os, socket, sys, threading, time, traceback
began, requests = time.monotonic(), 0
STATUS, DELAY, METHOD = (lambda: 200), (lambda: 0.0), "GET"

class Handler(http.server.BaseHTTPRequestHandler):
    def answer(self):
        global requests
        requests += 1
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        time.sleep(DELAY())
        status = STATUS() if self.command == METHOD else 404
        print("request", self.command, self.headers.get("Host"), status, flush=True)
        self.send_response(status)
        self.end_headers()
        self.wfile.write(b"x" * 300_000)
    do_GET = do_POST = answer
    def log_message(self, *_): pass

def since(): return time.monotonic() - began
def serve(port=None, server=http.server.ThreadingHTTPServer, host="127.0.0.1"):
    server((host, port or int(os.environ["PORT"])), Handler).serve_forever()
def fail():
    try: raise ConnectionError("database is not up")
    except ConnectionError: traceback.print_exc(); sys.stderr.flush()
"""

STARTS = {
    "the same traceback four times": "for _ in range(4): fail(); time.sleep(0.3)\nserve()",
    "a traceback and silence": "fail(); time.sleep(2)\nserve()",
    "a restarted worker": (
        "for n in range(4): print(f'worker {n} exited with code 1', flush=True); time.sleep(0.3)\nserve()"
    ),
    "a supervisor that starts a crashing program again": (
        "for n in range(5):\n"
        "  if os.fork() == 0:\n"
        "    if n < 4: raise RuntimeError('not yet')\n"
        "    serve()\n"
        "  os.wait(); time.sleep(0.2)"
    ),
    "status 404": "STATUS = lambda: 404 if since() < 2 else 200\nserve()",
    "a redirect to a waiting page": "STATUS = lambda: 302 if since() < 2 else 200\nserve()",
    "status 503": "STATUS = lambda: 503 if since() < 2 else 200\nserve()",
    "a metrics port": (
        "metrics = socket.create_server(('127.0.0.1', 0))\nprint('metrics', flush=True); time.sleep(2)\nserve()"
    ),
    "a different protocol": (
        "first = socket.create_server(('127.0.0.1', int(os.environ['PORT'])))\n"
        "while since() < 2: line, _ = first.accept(); line.recv(999); line.sendall(b'* OK ready\\r\\n'); line.close()\n"
        "first.close()\nserve()"
    ),
    "closed connections": (
        "first = socket.create_server(('127.0.0.1', int(os.environ['PORT'])))\n"
        "while since() < 2: first.accept()[0].close()\n"
        "first.close()\nserve()"
    ),
    "a connection that is never served": ("DELAY = lambda: 60 if requests == 1 else 0\nserve()"),
    "another address": "time.sleep(1)\nclass Six(http.server.ThreadingHTTPServer): address_family = socket.AF_INET6\n"
    "serve(server=Six, host='::1')",
}


@pytest.fixture(autouse=True)
def _short_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "STUCK_SECONDS", 0.3)
    monkeypatch.setattr(readiness, "REPEAT_SECONDS", 0.5)


def service(tmp_path: Path, code: str, *, seconds: float = 60.0, **values: object) -> Implementation:
    """Return a service that runs the Python code ``SERVER`` and then ``code``."""
    (tmp_path / "app.py").write_text(SERVER + code, encoding="utf-8")
    request = {"name": "root", "path": "/", **values}
    document = {"service": {"start": f"{sys.executable} -u app.py", "start_seconds": seconds}, "request": [request]}
    return service_implementation(ServiceFile.model_validate(document), tmp_path, "x", 1, tmp_path)


def error_of(tmp_path: Path, implementation: Implementation) -> str:
    """Start a service that never becomes ready and return the error message."""
    runtime = LocalRuntime(work=tmp_path)
    with (
        pytest.raises(StartError) as caught,
        runtime.start(implementation, NO_DATABASE, tmp_path / "log", ready_path="/"),
    ):
        pass
    return str(caught.value).splitlines()[0]


@pytest.mark.parametrize("code", STARTS.values(), ids=STARTS.keys())
def test_signs_of_a_failing_start_are_no_proof(code: str, tmp_path: Path) -> None:
    runtime, made = LocalRuntime(work=tmp_path), service(tmp_path, code)
    with runtime.start(made, NO_DATABASE, tmp_path / "log", ready_path="/") as server:
        assert server.startup_time > 0


@pytest.mark.parametrize("kind", ["ThreadingHTTPServer", "HTTPServer"])
def test_no_readiness_request_is_abandoned(kind: str, tmp_path: Path) -> None:
    code = f"DELAY = lambda: 2 - since() if since() < 2 else 0\nserve(server=http.server.{kind})"
    runtime, made = LocalRuntime(work=tmp_path), service(tmp_path, code)
    with runtime.start(made, NO_DATABASE, tmp_path / "log", ready_path="/") as server:
        assert server.startup_time > 1.5
        time.sleep(0.5)
    log = (tmp_path / "log").read_text()
    assert "BrokenPipe" not in log
    assert "Reset" not in log
    assert log.count("request") >= 2  # tfb repeats the request while the first one waits


def test_a_service_without_get_can_be_ready(tmp_path: Path) -> None:
    code = "METHOD = 'POST'\nSTATUS = lambda: 404 if since() < 1 else 201\nserve()"
    made = service(tmp_path, code, method="POST", json={"a": 1}, expect={"status": 201})
    with LocalRuntime(work=tmp_path).start(made, NO_DATABASE, tmp_path / "log", ready_path="/") as server:
        assert server.startup_time > 1


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("fail(); time.sleep(99)", "ConnectionError: database is not up; the server accepted no connection"),
        ("for n in range(99): print(f'worker {n} exited with code 1', flush=True); time.sleep(0.1)", "worker 0 exited"),
        ("STATUS = lambda: 404\nserve()", "the last response to GET / was 404 'xxx"),
        ("DELAY = lambda: 99\nserve()", "the server accepted a connection, but sent no complete response to GET /"),
        ("other = socket.create_server(('127.0.0.1', 0))\ntime.sleep(99)", "but PORT in its environment is"),
    ],
    ids=["crash", "worker", "404", "silence", "other port"],
)
def test_signs_explain_a_start_that_takes_too_long(code: str, expected: str, tmp_path: Path) -> None:
    message = error_of(tmp_path, service(tmp_path, code, seconds=2))
    assert message.startswith("x: no valid response within 2 s: ")
    assert expected in message
    assert "service.start_seconds" in message


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("STATUS = lambda: 404\nserve()", "x is not ready: it responds with status 404 to GET /. tfb waits until 3 s"),
        ("time.sleep(99)", "x is not ready: it accepts no connection. tfb waits until 3 s"),
        (
            "DELAY = lambda: 99\nserve()",
            "x is not ready: it accepted a connection, but has not sent a complete response",
        ),
        ("other = socket.create_server(('127.0.0.1', 0))\ntime.sleep(99)", "x is not ready: it listens on port "),
    ],
    ids=["404", "no connection", "silence", "other port"],
)
def test_the_reason_for_waiting_is_announced_early(
    code: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(readiness, "NOTICE_SECONDS", 1.5)
    message = error_of(tmp_path, service(tmp_path, code, seconds=3))
    assert message.startswith("x: no valid response within 3 s: ")
    announced = [record.getMessage() for record in caplog.records if record.name == "tfb.waits"]
    assert announced[-1].startswith(expected)
    assert "service.start_seconds" in announced[-1]
    assert "press Ctrl-C" in announced[-1]
    assert len(announced) <= 2  # on a slow machine, the program may open its port after the first message


def test_a_service_that_starts_fast_announces_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    runtime, made = LocalRuntime(work=tmp_path), service(tmp_path, "serve()")
    with runtime.start(made, NO_DATABASE, tmp_path / "log", ready_path="/"):
        pass
    assert not [record for record in caplog.records if record.name == "tfb.waits"]


def test_an_exited_process_is_reported_immediately(tmp_path: Path) -> None:
    runtime, implementation = LocalRuntime(work=tmp_path), service(tmp_path, "fail(); sys.exit(3)")
    started_at = time.monotonic()
    with (
        pytest.raises(ServerDiedError, match="database is not up"),
        runtime.start(implementation, NO_DATABASE, tmp_path / "log", ready_path="/"),
    ):
        pass
    assert time.monotonic() - started_at < 20


@pytest.mark.parametrize(
    ("headers", "host"),
    [((), None), ((("Host", "shop.test"),), "shop.test"), ((("host", "a:1"),), "a:1")],
    ids=["default", "declared", "lower case"],
)
def test_readiness_requests_have_the_host_of_the_request(
    headers: tuple[tuple[str, str], ...], host: str | None, tmp_path: Path
) -> None:
    ready = PreparedRequest(target="/", headers=headers)
    made = replace(service(tmp_path, "serve()"), ready_request=ready)
    with LocalRuntime(work=tmp_path).start(made, NO_DATABASE, tmp_path / "log", ready_path="/") as server:
        expected = host or f"127.0.0.1:{server.endpoint.port}"
    assert f"request GET {expected} 200" in (tmp_path / "log").read_text()
