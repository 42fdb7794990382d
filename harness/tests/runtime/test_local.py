"""Tests for the local runtime: ports, environment variables and builds."""

import os
import sys
from pathlib import Path

import psutil
import pytest

from harness.errors import StartError
from harness.plan.implementation import Implementation
from harness.runtime import DatabaseAddress, readiness
from harness.runtime.database.embedded import free_port
from harness.runtime.local import LocalRuntime
from harness.tests.doubles.implementations import implementation

DATABASE = DatabaseAddress(host="10.0.0.1", port=5433)


def test_build_commands_run_in_order(tmp_path: Path) -> None:
    server_folder = implementation(
        tmp_path, local={"run": ["x"], "build": [["sh", "-c", "echo 1 > a"], ["cp", "a", "b"]]}
    )
    build = LocalRuntime(work=tmp_path).build(server_folder, tmp_path / "logs" / "build.log")
    assert (build.status, build.commands) == ("ok", ("sh -c 'echo 1 > a'", "cp a b"))
    assert (tmp_path / "b").read_text() == "1\n"
    assert "$ cp a b\n" in (tmp_path / "logs" / "build.log").read_text()
    failing = implementation(tmp_path, local={"run": ["x"], "build": [["false"], ["touch", "never"]]})
    assert LocalRuntime(work=tmp_path).build(failing, tmp_path / "log").status == "failed"
    assert not (tmp_path / "never").exists()


ENVIRONMENT = {"PYTHONPATH": os.pathsep.join([str(Path.cwd()), *sys.path])}


def running(*command: str) -> Implementation:
    return implementation(Path.cwd(), local={"run": [*command], "env": ENVIRONMENT})


DAEMON = """
import os, sys, time
if os.fork():
    time.sleep(60)  # the parent process is idle
os.setsid()
if os.fork():
    os._exit(0)
os.execve(sys.executable, [sys.executable, "-m", "harness.tests.doubles.fake"], {
    name: os.environ[name] for name in ("HOST", "PORT", "PYTHONPATH")
})
"""


def test_daemon_of_server_is_metered(tmp_path: Path) -> None:
    """The server forks twice and leaves the port to a daemon.

    Readings must include the daemon's CPU time and memory.
    """
    server_folder = running(sys.executable, "-c", DAEMON)
    with LocalRuntime(work=tmp_path).start(server_folder, DATABASE, tmp_path / "log", ready_path="/json") as server:
        assert 0 < server.startup_time < 60
        first = psutil.Process(int(server.program.identity().partition("@")[0]))
        (daemon,) = [psutil.Process(pid) for pid in server.program.read().pids if pid != first.pid]
        assert daemon not in first.children(recursive=True)
    assert not daemon.is_running()


@pytest.mark.parametrize(
    ("variable", "message"), [("PORT={}", "listens on port {}, but PORT"), ("HOST=127.0.0.2", "on a different address")]
)
def test_wrong_port_is_reported_immediately(
    variable: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "STUCK_SECONDS", 0.3)
    other = free_port()
    server_folder = running("env", variable.format(other), sys.executable, "-m", "harness.tests.doubles.fake")
    runtime = LocalRuntime(work=tmp_path)
    with pytest.raises(StartError, match=message.format(other)):
        runtime.start(server_folder, DATABASE, tmp_path / "log", ready_path="/json").__enter__()
