"""Tests for waiting until a server responds, and for the messages if it never does."""

import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.errors import ServerDiedError, StartError
from harness.host.metering import Reading
from harness.plan.requests import Expect, PreparedRequest
from harness.runtime import Endpoint, readiness
from harness.runtime.crashes import find_crashes
from harness.runtime.local import LocalRuntime
from harness.runtime.readiness import wait_until_ready
from harness.tests.doubles.http_double import ClientSession, ReceivedRequest, Reply
from harness.tests.doubles.implementations import implementation
from harness.tests.doubles.reference import ReferenceServer
from harness.tests.runtime.test_local import DATABASE, running


class Grumpy(ReferenceServer):
    """A server that responds to its first two requests with status 503."""

    requests = 0

    def reply(self, session: ClientSession, request: ReceivedRequest) -> Reply:
        self.requests += 1
        return Reply(status=503, body=b"warming up") if self.requests < 3 else super().reply(session, request)


def up(endpoint: Endpoint, *, cpus: float = 1.0, waited: float = 0.0) -> Any:
    """Return a server whose threads use ``cpus`` CPUs and wait for ``waited`` more."""
    started_at = time.monotonic()

    def read() -> Reading:
        at = time.monotonic()
        used = (at - started_at) * cpus
        return Reading(
            read_at=at, cpu_seconds=used, rss=None, run_seconds=used, wait_seconds=(at - started_at) * waited, pids=()
        )

    return SimpleNamespace(
        implementation=implementation(),
        endpoint=endpoint,
        program=SimpleNamespace(read=read, log=Path("/no/log"), require_alive=lambda: None),
    )


def test_startup_time_ends_at_first_success(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "STUCK_SECONDS", 0.01)  # applies to status 404, but must not apply to 503
    with Grumpy() as server:
        started_at = time.monotonic() - 1
        seconds = wait_until_ready(up(server.endpoint, cpus=0.0), "/json", started_at)
        assert server.requests == 3
        assert 1 < seconds <= time.monotonic() - started_at


def test_service_declares_the_status_that_shows_readiness() -> None:
    with Grumpy() as server:
        startup_seconds = up(server.endpoint)
        expected = PreparedRequest(target="/nothing", expect=Expect(status=404))
        startup_seconds.implementation = replace(
            startup_seconds.implementation, ready_request=expected, ready_statuses=(404,)
        )
        assert wait_until_ready(startup_seconds, "", time.monotonic()) < 30
        assert server.requests == 3  # two responses had status 503


def test_missing_route_of_idle_server_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "STUCK_SECONDS", 0.2)
    started_at = time.monotonic()
    with ReferenceServer() as server, pytest.raises(StartError, match=r"GET /nothing was 404.*change the path"):
        wait_until_ready(up(server.endpoint, cpus=0.0), "/nothing", started_at)
    assert time.monotonic() - started_at < 20


@pytest.mark.parametrize(("cpus", "waited"), [(0.5, 0.0), (0.0, 0.5)], ids=["working", "waiting for a CPU"])
def test_busy_server_is_waited_for(cpus: float, waited: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "READY_SECONDS", 0.5)
    monkeypatch.setattr(readiness, "STUCK_SECONDS", 0.1)
    with ReferenceServer() as server, pytest.raises(StartError, match="no valid response within"):
        wait_until_ready(up(server.endpoint, cpus=cpus, waited=waited), "/nothing", time.monotonic())


WORKER = "import sys\ntry:\n  import no_such_module\nfinally:\n  sys.stderr.flush()\n"
# Supervisors that survive a crash of their worker: one does nothing, one restarts it forever, one logs the crash.
FORKS = f"import os, time\nif os.fork() == 0:\n  exec({WORKER!r})\nos.wait()\ntime.sleep(100)"
STARTS_ANEW = f"import subprocess, sys\nwhile True: subprocess.run([sys.executable, '-c', {WORKER!r}])"
SAYS = (
    "import time\nfor n in range(100):\n  print('worker', 4711 + n, 'exited with code 1', flush=True); time.sleep(0.3)"
)
DAEMON = "the server must stay in the foreground and not daemonize"
# A server that recovers from an error, but logs its traceback before it listens.
RECOVERS = """
import os, runpy, time, traceback
try:
    import no_such_module
except ImportError:
    traceback.print_exc()
runpy.run_module("harness.tests.doubles.fake", run_name="__main__")
"""


@pytest.mark.parametrize(
    ("code", "headline"),
    [
        (FORKS, "x: it crashed at startup: ModuleNotFoundError: No module named 'no_such_module'"),
        (STARTS_ANEW, "x: it crashed at startup: ModuleNotFoundError: No module named 'no_such_module'"),
        (SAYS, "x: it crashed at startup: worker 4711 exited with code 1"),
        (WORKER, "x: ModuleNotFoundError: No module named 'no_such_module': the server ended (exit status 1)"),
        ("print('ready')", f"x: the server ended (exit status 0; {DAEMON}); the last line of its log is: ready"),
    ],
    ids=[
        "a worker that is left dead",
        "a worker that is started anew",
        "no traceback",
        "the server itself",
        "a daemon",
    ],
)
def test_crash_at_start_is_reported_immediately(code: str, headline: str, tmp_path: Path) -> None:
    started_at = time.monotonic()
    runtime, service = LocalRuntime(work=tmp_path), running(sys.executable, "-c", code)
    with pytest.raises((StartError, ServerDiedError)) as error:
        runtime.start(service, DATABASE, tmp_path / "log", ready_path="/json").__enter__()
    assert str(error.value).splitlines()[0] == headline
    assert time.monotonic() - started_at < 20


def test_clean_exit_suggests_the_foreground(tmp_path: Path) -> None:
    runtime, service = LocalRuntime(work=tmp_path), running("true")
    with pytest.raises((StartError, ServerDiedError)) as error:
        runtime.start(service, DATABASE, tmp_path / "log", ready_path="/json").__enter__()
    message = "x: the server ended (exit status 0; the server must stay in the foreground"
    assert str(error.value).startswith(message)


def test_server_that_survives_exception_is_waited_for(tmp_path: Path) -> None:
    service = running(sys.executable, "-c", RECOVERS)
    with LocalRuntime(work=tmp_path).start(service, DATABASE, tmp_path / "log", ready_path="/json") as server:
        assert server.startup_time > 0
    assert find_crashes(tmp_path / "log") == ["ModuleNotFoundError: No module named 'no_such_module'"]


CRASHES: Mapping[str, str | None] = {  # log -> reported crash
    "INFO x\nERROR:    Traceback (most recent call last):\n  File 'a'\n    b\nKeyError: 'x'\nend": "KeyError: 'x'",
    "panic: runtime error: index out of range\n\ngoroutine 1 [running]:": "panic: runtime error: index out",
    "thread 'main' panicked at src/main.rs:5:9:\nno port\nnote: run": "thread 'main' panicked at src/main.rs:5:9: no",
    'Exception in thread "main" java.lang.NoClassDefFoundError: x\n\tat y': 'Exception in thread "main" java.lang',
    "/app.js:3\nthrow x\n^\n\nError: Cannot find module 'pg'\n    at Module._load": "Error: Cannot find module 'pg'",
    "/pg/client.js:5\n    throw e\n          ^\n\nerror: denied\n    at Parser {\n  length: 98": "error: denied",
    "app.rb:1:in `require': cannot load such file -- puma (LoadError)\n": "app.rb:1:in `require': cannot load such",
    "Can't locate Mojo/Pg.pm in @INC (x) at app.pl line 3.\nBEGIN failed--compilation aborted at app.pl line 3.\n": (
        "Can't locate Mojo/Pg.pm in @INC"
    ),
    "Missing right curly at app.pl line 6, at end of line\nsyntax error at app.pl line 6, at EOF\n"
    "Execution of app.pl aborted due to compilation errors.\n": "Missing right curly at app.pl line 6",
    "Use of uninitialized value $x in addition (+) at app.pl line 3.\nlistening\n": None,
    "Unhandled exception:\nFormatException: bad port\n#0 main (a.dart:3)": "FormatException: bad port",
    "Unhandled exception: Connection refused (Socket::ConnectError)\n  from a.cr:3": "Unhandled exception: Connection",
    "a.nim(3) a\nError: unhandled exception: no port [ValueError]": "Error: unhandled exception: no port",
    "Sources/App/main.swift:3: Fatal error: no port\n": "Sources/App/main.swift:3: Fatal error: no port",
    'Fatal error: exception Failure("no port")\n': "Fatal error: exception Failure",
    "thread 77 panic: index out of bounds\n/a.zig:3:1": "thread 77 panic: index out of bounds",
    "ERROR: LoadError: ArgumentError: Package HTTP not found\nStacktrace:": "ERROR: LoadError: ArgumentError",
    "lua5.4: app.lua:3: module 'pg' not found:\nstack traceback:": "lua5.4: app.lua:3: module 'pg' not found",
    "server: Prelude.read: no parse\nCallStack (from HasCallStack):\n  error": "server: Prelude.read: no parse",
    "Error in library(plumber) : there is no package\nExecution halted\n": "Error in library(plumber) :",
    "core.exception.RangeError@app.d(3): Range violation\n": "core.exception.RangeError@app.d(3)",
    '{"init terminating in do_boot",{undef,[{app,start,[],[]}]}}\n': '{"init terminating in do_boot"',
    "[2025-01-01] [ERROR] Worker (pid:12) exited with code 3": "[2025-01-01] [ERROR] Worker (pid:12) exited",
    "[7] Early termination of worker\n": "[7] Early termination of worker",
    "[ERROR] Unexpected exit from worker-1\n": "[ERROR] Unexpected exit from worker-1",
    "worker 12 exited with code 0\nworker 3 terminated gracefully\n0 errors\njava.lang.Error: x\n\tat y": None,
    "Listening on 8080\nWARN: 3 workers\n": None,
}


@pytest.mark.parametrize(("text", "headline"), CRASHES.items())
def test_crashes_are_found_in_logs(text: str, headline: str | None, tmp_path: Path) -> None:
    (tmp_path / "log").write_text(text)
    found = find_crashes(tmp_path / "log")
    assert found[0].startswith(headline) if headline else found == []
