"""The same on Docker: containers killed or out of memory, an engine that hangs or is gone, a harness that is killed."""

import contextlib
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.tests.faults.scene import Answer, Scene, docker

pytestmark = [pytest.mark.fault, pytest.mark.timeout(600)]
needs_engine = pytest.mark.docker

RUN = ("--test", "one", "--type", "json")
SOCKET = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock").removeprefix("unix://")


@pytest.fixture
def containers(scene: Scene) -> Scene:
    """One implementation with an image of its own."""
    scene.image("one")
    return scene


def service(scene: Scene, name: str) -> str:
    return next(iter(scene.containers("--filter", f"label=com.docker.compose.service={name}")))


def struck(scene: Scene, strike: "Callable[[subprocess.Popen[bytes]], object]") -> Answer:
    """A run in which something happens under load; no container of it is left."""
    answer = scene.struck(RUN, scene.at("measure"), strike)
    assert scene.containers() == []
    return answer


@needs_engine
def test_a_server_s_container_that_is_killed_is_named_with_its_signal(containers: Scene) -> None:
    """Exit status 1; nothing is left."""
    struck(containers, lambda _: docker("kill", service(containers, "tfb-server"))).ends(1).says("killed by SIGKILL")


@needs_engine
def test_what_the_end_of_postgres_s_container_took_is_measured_again(containers: Scene) -> None:
    """Named; exit status 0."""
    answer = struck(containers, lambda _: docker("kill", service(containers, "tfb-database")))
    answer.ends(0).says("PostgreSQL", "measured again")
    assert containers.measured() == {"one"}


@needs_engine
def test_a_server_beyond_its_memory_is_named_with_its_limit(scene: Scene) -> None:
    """As out of memory, not as a crash."""
    scene.image("one", "out-of-memory")
    scene.measure(*RUN, "--test-container-memory", "64m").ends(1).says("out of memory")


@needs_engine
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_leaves_no_container(containers: Scene, number: signal.Signals) -> None:
    """Exit status 130."""
    struck(containers, lambda run: run.send_signal(number)).ends(130)


@needs_engine
def test_containers_of_a_killed_run_are_named_by_doctor_and_removed_by_clean(containers: Scene) -> None:
    """A killed harness cannot remove them itself."""
    containers.struck(RUN, containers.at("measure"), lambda run: run.kill())
    containers.tfb("doctor").says("left by a run that was killed: container")
    containers.tfb("clean", "--leftovers", "--yes").ends(0)
    assert containers.containers() == []


class Relay:
    """A socket before the engine's: it hangs or is gone as the engine would be, and the engine itself goes on."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._flows = threading.Event()
        self._flows.set()
        self._ends: list[socket.socket] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen(128)
        threading.Thread(target=self._accept, daemon=True).start()

    def hang(self) -> None:
        self._flows.clear()

    def stop(self) -> None:
        self.path.unlink(missing_ok=True)
        for end in (self._listener, *self._ends):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, far = self._listener.accept()[0], socket.socket(socket.AF_UNIX)
                far.connect(SOCKET)
                self._ends += [near, far]
                for source, target in ((near, far), (far, near)):
                    threading.Thread(target=self._pass, args=(source, target), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                self._flows.wait()
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)


@needs_engine
@pytest.mark.parametrize("how", [Relay.hang, Relay.stop])
def test_an_engine_that_goes_away_in_a_run_is_named(containers: Scene, how: Callable[[Relay], None]) -> None:
    """An exit status of its own in bounded time, with a line that names the engine."""
    relay = Relay(containers.root / "engine.sock")
    containers.environment["DOCKER_HOST"] = f"unix://{relay.path}"
    try:
        began = time.monotonic()
        answer = containers.struck(RUN, containers.at("measure"), lambda _: how(relay)).ends(1, 3)
        assert "engine" in answer.text.lower()
        assert time.monotonic() - began < 300
    finally:
        relay.stop()
        if left := containers.containers():
            docker("rm", "--force", *left)


COMPOSE = 'case "$1 $2" in "compose version") echo 2.30; exit 0;; esac'
CLIENTS = {
    "does not answer within": "sleep 600",
    "no Docker engine answers": "echo Cannot connect; exit 1",
    "group docker": "echo permission denied; exit 1",
}


@pytest.mark.parametrize("says", CLIENTS)
def test_an_engine_that_is_of_no_use_is_told_apart_before_a_run(containers: Scene, says: str) -> None:
    """Hanging, stopped or forbidden: exit status 3, and a line that says what to do; nothing is written."""
    path = containers.program("docker", f"{COMPOSE}; {CLIENTS[says]}")
    containers.measure(*RUN, env=path).ends(3).says(says)
    assert list(containers.results.iterdir()) == []
