"""Honest servers with HTTP/2 and WebSocket. They meet the requirements, but differ from the reference server."""

import socket
import time
from collections.abc import Iterator
from typing import Any

from h2.connection import H2Connection
from h2.settings import SettingCodes
from wsproto.events import BytesMessage, Event, Ping, TextMessage

from harness.tests.doubles.honest import Honest, VariantChange
from harness.tests.doubles.http_double import ClientSession, ReceivedRequest, Reply
from harness.tests.doubles.stream_double import Answer
from harness.tests.extras.protocols.stream_server import StreamServer

HTTP2 = ("http2", "http2-cleartext")
WEBSOCKET = ("websocket",)


def variant(name: str, does: str, change: VariantChange, test_types: tuple[str, ...] = HTTP2) -> Honest:
    return Honest(name=name, does=does, change=change, test_types=test_types, base=StreamServer)


def backwards(self: StreamServer, answers: list[Answer]) -> list[Answer]:
    return answers[::-1]


def small_frames(self: StreamServer, peer: H2Connection, bodies: dict[int, bytes]) -> None:
    """Send padded frames of 700 bytes."""
    for stream, body in list(bodies.items()):
        rest = body
        while rest and peer.local_flow_control_window(stream) > 720:
            peer.send_data(stream, rest[:700], end_stream=len(rest) <= 700, pad_length=7)
            rest = rest[700:]
        bodies[stream] = rest
        if not rest:
            del bodies[stream]
    StreamServer.send_bodies(self, peer, bodies)


def with_trailers(self: StreamServer, peer: H2Connection, bodies: dict[int, bytes]) -> None:
    for stream, body in list(bodies.items()):
        if len(body) <= min(peer.local_flow_control_window(stream), 16_384):
            peer.send_data(stream, body)
            peer.send_headers(stream, [("x-check", "1")], end_stream=True)
            del bodies[stream]
    StreamServer.send_bodies(self, peer, bodies)


def with_ping(self: StreamServer, peer: H2Connection) -> bytes:
    peer.ping(b"are you?")
    return StreamServer.frames(self, peer)


def slow(self: StreamServer, session: ClientSession, request: ReceivedRequest) -> Reply:
    time.sleep(0.002)
    return StreamServer.reply(self, session, request)


def fragments(self: StreamServer, session: ClientSession, message: str | bytes) -> Iterator[Event]:
    kind: Any = TextMessage if isinstance(message, str) else BytesMessage
    half = len(message) // 2
    yield kind(data=message[:half], message_finished=False)
    yield Ping(payload=b"between")
    yield kind(data=message[half:])


def with_pings(self: StreamServer, session: ClientSession, message: str | bytes) -> Iterator[Event]:
    yield from StreamServer.echo(self, session, message)
    if session.requests % 10 == 3:
        yield Ping()


def late(self: StreamServer, session: ClientSession, message: str | bytes) -> Iterator[Event]:
    time.sleep(session.dice.expovariate(1 / 0.001))
    yield from StreamServer.echo(self, session, message)


class PieceSocket:
    """A socket that sends data in pieces of 5,000 bytes."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line

    def sendall(self, data: bytes) -> None:
        for start in range(0, len(data), 5_000):
            self._line.sendall(data[start : start + 5_000])

    def __getattr__(self, name: str) -> Any:
        return getattr(self._line, name)


def in_segments(self: StreamServer, line: Any, session: ClientSession) -> None:
    StreamServer.converse_websocket(self, PieceSocket(line), session)  # type: ignore[arg-type]


STREAM_VARIANTS = (
    variant("stream-reference", "is the reference server", {}, (*HTTP2, *WEBSOCKET)),
    variant("streams-backwards", "responds to the latest request first", {"arrange_streams": backwards}),
    variant("stream-settings", "sends other SETTINGS", {"settings": {SettingCodes.MAX_CONCURRENT_STREAMS: 64, SettingCodes.HEADER_TABLE_SIZE: 0}}),
    variant("small-frames", "sends small, padded frames", {"send_bodies": small_frames}),
    variant("stream-trailers", "ends responses with trailers", {"send_bodies": with_trailers}),
    variant("stream-pings", "sends PING frames", {"frames": with_ping}),
    variant("slow-streams", "waits 2 ms before each response", {"reply": slow}),
    variant("echo-fragments", "returns each message in two fragments, with a ping in between", {"echo": fragments}, WEBSOCKET),
    variant("echo-pings", "sends pings", {"echo": with_pings}, WEBSOCKET),
    variant("echo-late", "waits for a random time before each message", {"echo": late}, WEBSOCKET),
    variant("echo-segments", "sends each message in several segments", {"converse_websocket": in_segments}, WEBSOCKET),
)  # fmt: skip
