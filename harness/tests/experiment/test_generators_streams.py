"""The loadgen program with HTTP/2 and WebSocket: streams, limits, faulty servers, and comparison of echoes."""

import base64
import json
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from h2.connection import H2Connection
from h2.settings import SettingCodes
from wsproto import WSConnection
from wsproto.events import BytesMessage, CloseConnection, Event, Request, TextMessage

from harness.experiment.generators import RESPONSES_FILE
from harness.experiment.generators.loadgen_output import parse_totals
from harness.provisioning import crates
from harness.tests.doubles.http_double import ClientSession, ReceivedRequest, Reply
from harness.tests.doubles.stream_double import Answer, StreamDouble

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(shutil.which("cargo") is None, reason="cargo is missing")]


@pytest.fixture(scope="module")
def binary() -> str:
    return str(crates.loadgen_program())


def run(binary: str, server: StreamDouble, *options: str, target: str = "") -> dict[str, Any]:
    """Run loadgen for half a second and return the last line of its output."""
    url = server.endpoint.url(target)
    words = [binary, "--start-at-once", "--linger-seconds", "0.3", "--duration", "0.5", *options, url]
    output = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True).stdout
    (total,) = parse_totals(output, url)
    last: dict[str, Any] = json.loads(output.splitlines()[-1])
    errors = last["errors"]
    lost = sum(errors[kind] for kind in ("write", "closed", "timeout", "framing", "dropped", "reset"))
    assert last["sent"] == last["received"] + lost + last["unfinished"]
    assert last["received"] == last["successes"] + errors["status"] + errors["mismatch"]
    assert total.errors.errors(0).total == sum(errors.values())
    return last


HTTP2 = ("--protocol", "http2", "--connections", "4")


class Http2Server(StreamDouble):
    """A server that repeats the path in the body. It responds to concurrent requests in reverse order."""

    largest = 0  # most requests in one batch

    def converse(self, line: socket.socket, session: ClientSession) -> None:
        self.converse_http2(line, session)

    def reply(self, session: ClientSession, request: ReceivedRequest) -> Reply:
        return Reply(body=f"{request.path} ".encode() * 300)

    def arrange_streams(self, answers: list[Answer]) -> list[Answer]:
        self.largest = max(self.largest, len(answers))
        return answers[::-1]


@pytest.fixture
def table(tmp_path: Path) -> tuple[str, ...]:
    head = "GET /{} HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\n\r\n"
    lines = ({"head": head.format(n), "body_base64": "", "status": 200, "weight": 1.0} for n in range(500))
    (tmp_path / "requests.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return ("--requests", str(tmp_path / "requests.jsonl"), "--responses", str(tmp_path / RESPONSES_FILE))


@pytest.mark.parametrize(
    "options",
    [("--depth", "16"), ("--depth", "8", "--rate", "600"), ("--depth", "16", "--window", "500")],
    ids=["closed loop", "open loop", "small windows"],
)
def test_each_stream_gets_its_response(
    binary: str, options: tuple[str, ...], table: tuple[str, ...], tmp_path: Path
) -> None:
    with Http2Server() as server:
        total = run(binary, server, *HTTP2, *options, *table)
    assert total["successes"] == total["received"] == total["sent"] > 100
    assert total["connections_opened"] == 4
    assert (total["protocol"], total["peer_settings"]["max_concurrent_streams"]) == ("http2", 100)
    assert (total["latency"] is None) is ("--rate" not in options)
    answers = [json.loads(line) for line in (tmp_path / RESPONSES_FILE).read_text().splitlines()]
    assert len(answers) == total["received"]
    for answer in answers:
        assert base64.b64decode(answer["body_base64"]).decode() == f"{answer['target']} " * 300
        assert dict(answer["headers"])["content-type"] == "text/plain"


def test_the_stream_limit_of_servers_is_respected(binary: str) -> None:
    class Modest(Http2Server):
        settings: ClassVar = {SettingCodes.MAX_CONCURRENT_STREAMS: 3, SettingCodes.HEADER_TABLE_SIZE: 0}

    with Modest() as server:
        total = run(binary, server, *HTTP2, "--depth", "16")
    assert total["successes"] == total["sent"] > 100
    assert total["peer_settings"] == {"max_concurrent_streams": 3, "header_table_size": 0} | total["peer_settings"]
    assert server.largest == 3


def test_requests_that_goaway_excludes_are_repeated(binary: str, table: tuple[str, ...]) -> None:
    class Leaving(Http2Server):
        """A server that ends the connection with GOAWAY in every twentieth batch, after the batch's first response."""

        def arrange_streams(self, answers: list[Answer]) -> list[Answer]:
            with self.lock:
                self.state["batches"] = self.state.get("batches", 0) + bool(answers)
                leaving = answers and self.state["batches"] % 20 == 0
            if not leaving:
                return answers
            first = min(answers)
            self.state[f"last of {threading.get_ident()}"] = first[0]
            return [first]

        def leaves(self, peer: H2Connection, line: socket.socket, session: ClientSession) -> bool:
            last = self.state.pop(f"last of {threading.get_ident()}", None)
            if last is None:
                return False
            line.sendall(b"\0\0\x08\x07\0\0\0\0\0" + last.to_bytes(4, "big") + bytes(4))
            line.shutdown(socket.SHUT_WR)
            while line.recv(65_536):
                pass
            return True

    with Leaving() as server:
        total = run(binary, server, *HTTP2, "--depth", "8", *table)
    assert total["successes"] == total["received"] == total["sent"] > 100
    assert sum(total["errors"].values()) == 0
    assert total["repeated"] >= total["goaways"] == total["connections_closed_by_peer"] > 3
    assert total["connections_opened"] >= total["goaways"]


def test_reset_streams_are_errors(binary: str) -> None:
    class Resetting(Http2Server):
        def begin(self, peer: H2Connection, stream: int, fields: list[tuple[str, str]], body: bytes) -> None:
            super().begin(peer, stream, fields, body)
            if stream % 10 == 1:
                peer.reset_stream(stream, 7)

        def send_bodies(self, peer: H2Connection, bodies: dict[int, bytes]) -> None:
            super().send_bodies(peer, {stream: body for stream, body in bodies.items() if stream % 10 != 1})
            bodies.clear()

    with Resetting() as server:
        total = run(binary, server, *HTTP2, "--depth", "4")
    assert total["errors"]["reset"] > total["sent"] / 6
    assert total["received"] == total["successes"] > 0


def test_wrong_lengths_are_errors_of_single_streams(binary: str) -> None:
    class Short(Http2Server):
        def begin(self, peer: H2Connection, stream: int, fields: list[tuple[str, str]], body: bytes) -> None:
            wrong = [(name, "5" if name == "content-length" and stream % 4 == 1 else value) for name, value in fields]
            super().begin(peer, stream, wrong, body)

    with Short() as server:
        total = run(binary, server, *HTTP2, "--depth", "4")
    assert total["errors"]["framing"] > total["sent"] / 4
    assert total["received"] == total["successes"] > 0
    assert total["connections_opened"] == 4


def test_a_server_without_http2_is_refused(binary: str) -> None:
    class Http1Only(StreamDouble):
        def reply(self, session: ClientSession, request: ReceivedRequest) -> Reply:
            return Reply()

    with Http1Only() as server:
        words = [binary, "--start-at-once", "--connect-seconds", "0.5", *HTTP2, server.endpoint.url("/")]
        completed = subprocess.run(words, capture_output=True, text=True, timeout=30, check=False)
    assert completed.returncode == 4
    assert "0 of 4 connections" in completed.stderr


WEBSOCKET = ("--protocol", "websocket", "--connections", "4")


class EchoServer(StreamDouble):
    def converse(self, line: socket.socket, session: ClientSession) -> None:
        self.converse_websocket(line, session)


@pytest.mark.parametrize("options", [("--depth", "1"), ("--depth", "16"), ("--rate", "400", "--depth", "4")])
def test_echoes_are_compared_and_connections_close_normally(binary: str, options: tuple[str, ...]) -> None:
    with EchoServer() as server:
        total = run(binary, server, *WEBSOCKET, *options, target="/ws")
    assert total["successes"] == total["sent"] > 100
    assert total["normal_closures"] == total["connections_opened"] == 4
    assert total["connections_closed_by_peer"] == total["unsolicited_bytes"] == 0


def test_fragmented_echoes_are_accepted(binary: str) -> None:
    class Fragmenting(EchoServer):
        def echo(self, session: ClientSession, message: str | bytes) -> Iterator[Event]:
            kind: Any = TextMessage if isinstance(message, str) else BytesMessage
            yield kind(data=message[:3], message_finished=False)
            yield kind(data=message[3:])

    with Fragmenting() as server:
        total = run(binary, server, *WEBSOCKET, "--depth", "4", target="/ws")
    assert total["successes"] == total["sent"] > 100


@pytest.mark.parametrize(
    ("wrong", "kind"),
    [
        (lambda message: [TextMessage(data="constant")], "mismatch"),
        (lambda message: [BytesMessage(data=bytes(message, "ascii") if isinstance(message, str) else message)], "type"),
        (lambda message: [TextMessage(data="first"), BytesMessage(data=b"second")], "unasked"),
    ],
    ids=["constant", "always binary", "two messages"],
)
def test_wrong_echoes_are_counted(binary: str, wrong: Any, kind: str) -> None:
    class Wrong(EchoServer):
        def echo(self, session: ClientSession, message: str | bytes) -> Iterator[Event]:
            yield from wrong(message)

    with Wrong() as server:
        total = run(binary, server, *WEBSOCKET, target="/ws")
    mismatches, received = total["errors"]["mismatch"], total["received"]
    assert received > 50
    if kind == "type":
        assert received / 3 < mismatches < received * 2 / 3
    else:
        assert mismatches == received
    assert (total["unsolicited_responses"] > 0) is (kind == "unasked")


def test_closed_websockets_are_reopened(binary: str) -> None:
    class Leaving(EchoServer):
        def echo(self, session: ClientSession, message: str | bytes) -> Iterator[Event]:
            yield from super().echo(session, message)
            if session.requests == 20:
                yield CloseConnection(code=1001)

    with Leaving() as server:
        total = run(binary, server, *WEBSOCKET, target="/ws")
    reopened = total["connections_opened"] - 4
    assert reopened > 4
    # When the load ends, up to four connections may be closed and not yet reopened.
    assert reopened <= total["connections_closed_by_peer"] <= reopened + 4
    assert total["errors"]["closed"] <= total["connections_closed_by_peer"]
    assert total["errors"]["mismatch"] == 0


def test_a_wrong_accept_hash_is_refused(binary: str) -> None:
    class Wrong(EchoServer):
        def control(self, peer: WSConnection, event: Event) -> bytes:
            sent = super().control(peer, event)
            return sent.replace(b"Accept: ", b"Accept: x", 1) if isinstance(event, Request) else sent

    with Wrong() as server:
        words = [binary, "--start-at-once", "--connect-seconds", "0.5", *WEBSOCKET, server.endpoint.url("/ws")]
        completed = subprocess.run(words, capture_output=True, text=True, timeout=30, check=False)
    assert completed.returncode == 4
