"""Waiting for the first good answer, and telling why there is none."""

import contextlib
import socket
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.errors import StartError
from harness.runtime import Endpoint, Reading, readiness
from harness.runtime.database.embedded import free_port
from harness.runtime.readiness import startup_time
from harness.tests.doubles.implementations import implementation
from harness.tests.doubles.reference import ReferenceServer, Reply, Request, Session


class Grumpy(ReferenceServer):
    """Answers 503 until its third request."""

    asked = 0

    def reply(self, session: Session, request: Request) -> Reply:
        self.asked += 1
        return Reply(status=503, body=b"warming up") if self.asked < 3 else super().reply(session, request)


def up(endpoint: Endpoint, *, cpus: float = 1.0, waited: float = 0.0) -> Any:
    """A server that lives, uses so many CPUs and waits for so many."""
    began = time.monotonic()

    def read() -> Reading:
        at = time.monotonic()
        used = (at - began) * cpus
        return Reading(at=at, cpu_seconds=used, rss=None, run_seconds=used, wait_seconds=(at - began) * waited, pids=())

    return SimpleNamespace(
        implementation=implementation(),
        endpoint=endpoint,
        log=Path("/no/log"),
        meter=SimpleNamespace(read=read),
        require_alive=lambda: None,
    )


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "READY_SECONDS", 0.5)


def test_it_is_the_time_from_the_start_to_the_first_200(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "HOPELESS_SECONDS", 0.01)  # of 404 alone
    with Grumpy() as server:
        began = time.monotonic() - 1
        seconds = startup_time(up(server.endpoint, cpus=0.0), "/json", began)
        assert server.asked == 3
        assert 1 < seconds <= time.monotonic() - began


@pytest.mark.usefixtures("impatient")
def test_a_server_that_answers_wrongly_is_quoted() -> None:
    with ReferenceServer() as server, pytest.raises(StartError) as error:
        startup_time(up(server.endpoint), "/nothing", time.monotonic())
    assert "no valid response within" in str(error.value)
    assert "its last answer to /nothing was 404 'not found'" in str(error.value)


def test_a_route_that_an_idle_server_does_not_have_is_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "HOPELESS_SECONDS", 0.2)
    began = time.monotonic()
    with ReferenceServer() as server, pytest.raises(StartError, match=r"it is idle: .* /nothing was 404.*is the route"):
        startup_time(up(server.endpoint, cpus=0.0), "/nothing", began)
    assert time.monotonic() - began < 20


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(("cpus", "waited"), [(0.5, 0.0), (0.0, 0.5)], ids=["working", "waiting for a CPU"])
def test_one_that_still_has_work_to_do_is_waited_for(
    cpus: float, waited: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "HOPELESS_SECONDS", 0.1)
    with ReferenceServer() as server, pytest.raises(StartError, match="no valid response within"):
        startup_time(up(server.endpoint, cpus=cpus, waited=waited), "/nothing", time.monotonic())


@pytest.mark.usefixtures("impatient")
def test_a_server_that_does_not_listen_is_told_apart() -> None:
    endpoint = Endpoint(host="127.0.0.1", port=free_port())
    with pytest.raises(StartError, match="no connection was accepted; does it listen on the port that PORT names"):
        startup_time(up(endpoint), "/json", time.monotonic())


def test_answers_that_are_no_http_are_not_waited_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "HOPELESS_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def speak() -> None:
            with contextlib.suppress(OSError):
                while True:
                    line, _peer = listener.accept()
                    with line:
                        line.recv(1000)
                        line.sendall(b"SSH-2.0-OpenSSH_9\r\n")

        threading.Thread(target=speak, daemon=True).start()
        endpoint = Endpoint(host="127.0.0.1", port=listener.getsockname()[1])
        with pytest.raises(StartError, match=r"not HTTP as a client can read it: .*SSH-2.0"):
            startup_time(up(endpoint, cpus=0.0), "/", time.monotonic())
