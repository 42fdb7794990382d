"""Waiting for the first good answer."""

import socket
import threading
import time
from collections.abc import Callable

import pytest

from harness.errors import ServerDiedError, StartError
from harness.runtime import Endpoint, Reading, readiness
from harness.runtime.database.embedded import free_port
from harness.runtime.readiness import first_answer
from harness.tests.doubles.reference import ReferenceServer, Reply, Request, Session


class Grumpy(ReferenceServer):
    """Answers 503 until its third request."""

    asked = 0

    def reply(self, session: Session, request: Request) -> Reply:
        self.asked += 1
        return Reply(status=503, body=b"warming up") if self.asked < 3 else super().reply(session, request)


def alive() -> None:
    """The server lives."""


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "READY_SECONDS", 0.5)


def test_it_is_the_time_from_the_start_to_the_first_200(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "READY_SECONDS", 30)
    with Grumpy() as server:
        began = time.monotonic() - 1
        seconds = first_answer(server.endpoint, "/json", began, alive)
        assert server.asked == 3
        assert 1 < seconds <= time.monotonic() - began


def test_a_server_that_answers_wrongly_is_quoted() -> None:
    with ReferenceServer() as server, pytest.raises(StartError) as error:
        first_answer(server.endpoint, "/nothing", time.monotonic(), alive)
    assert "no valid response within" in str(error.value)
    assert "its last answer to /nothing was 404 'not found'" in str(error.value)


def _meter(cpus: float, waited: float = 0.0) -> Callable[[], Reading]:
    """Of a process tree that uses so many CPUs, and waits for so many."""
    began = time.monotonic()

    def read() -> Reading:
        at = time.monotonic()
        used = (at - began) * cpus
        return Reading(at=at, cpu_seconds=used, rss=None, run_seconds=used, wait_seconds=(at - began) * waited, pids=())

    return read


def test_a_route_that_an_idle_server_does_not_have_is_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "READY_SECONDS", 30)
    monkeypatch.setattr(readiness, "MISSING_SECONDS", 0.2)
    began = time.monotonic()
    with ReferenceServer() as server, pytest.raises(StartError, match=r"/nothing is answered with 404.*is the route"):
        first_answer(server.endpoint, "/nothing", began, alive, read=_meter(0.0))
    assert time.monotonic() - began < 20


@pytest.mark.parametrize(("cpus", "waited"), [(0.5, 0.0), (0.0, 0.5)], ids=["working", "waiting for a CPU"])
def test_one_that_still_has_work_to_do_is_waited_for(
    cpus: float, waited: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "MISSING_SECONDS", 0.1)
    with ReferenceServer() as server, pytest.raises(StartError, match="no valid response within"):
        first_answer(server.endpoint, "/nothing", time.monotonic(), alive, read=_meter(cpus, waited))


def test_one_that_answers_anything_else_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "READY_SECONDS", 30)
    monkeypatch.setattr(readiness, "MISSING_SECONDS", 0.01)
    with Grumpy() as server:
        assert first_answer(server.endpoint, "/json", time.monotonic(), alive, read=_meter(0.0)) > 0
        assert server.asked == 3


def test_a_server_that_does_not_listen_is_told_apart() -> None:
    endpoint = Endpoint(host="127.0.0.1", port=free_port())
    with pytest.raises(StartError, match="no connection was accepted; does it listen on the port that PORT names"):
        first_answer(endpoint, "/json", time.monotonic(), alive)


def test_a_server_that_died_is_not_waited_for() -> None:
    def dead() -> None:
        raise ServerDiedError("exit status 1")

    endpoint = Endpoint(host="127.0.0.1", port=free_port())
    with pytest.raises(ServerDiedError, match="exit status 1"):
        first_answer(endpoint, "/json", time.monotonic(), dead)


def test_a_server_on_another_port_is_told_so_long_before_the_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "ELSEWHERE_SECONDS", 0.05)
    endpoint = Endpoint(host="127.0.0.1", port=free_port())
    with pytest.raises(StartError, match="it listens on port 8080"):
        first_answer(endpoint, "/", time.monotonic(), lambda: None, lambda: "it listens on port 8080 and not on 1")


def test_where_a_starting_server_listens_is_looked_at_seldom() -> None:
    looks: list[float] = []
    endpoint = Endpoint(host="127.0.0.1", port=free_port())
    began = time.monotonic()
    with pytest.raises(StartError):
        first_answer(endpoint, "/", began, alive, lambda: looks.append(time.monotonic()))
    assert 1 <= len(looks) <= 1 + (time.monotonic() - began) / readiness.LOOK_SECONDS


def test_answers_that_are_no_http_are_not_waited_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "UNREADABLE", 3)
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def speak() -> None:
            for _ in range(3):
                line, _peer = listener.accept()
                with line:
                    line.recv(1000)
                    line.sendall(b"SSH-2.0-OpenSSH_9\r\n")

        thread = threading.Thread(target=speak, daemon=True)
        thread.start()
        endpoint = Endpoint(host="127.0.0.1", port=listener.getsockname()[1])
        with pytest.raises(StartError, match=r"not HTTP as a client can read it: .*SSH-2.0"):
            first_answer(endpoint, "/", time.monotonic(), lambda: None)
        thread.join()
