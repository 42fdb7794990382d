"""Rogues with HTTP/2 and WebSocket, and the check that must catch each rogue."""

import socket
import ssl
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from h2.connection import H2Connection
from h2.settings import SettingCodes
from wsproto import WSConnection
from wsproto.events import CloseConnection, Event, Ping, Request

from harness.extras.protocols.data_set import make_items
from harness.tests.doubles.http_double import ClientSession, Reply
from harness.tests.doubles.rogues import Change, Rogue, every
from harness.tests.doubles.rogues.busy import while_busy
from harness.tests.doubles.stream_double import Answer
from harness.tests.extras.protocols.cheats import by_count
from harness.tests.extras.protocols.stream_server import StreamServer

busy_too = partial(while_busy, base=StreamServer)
FieldList = list[tuple[str, str]]


def both(name: str, caught_by: str, does: str, **change: Any) -> tuple[Rogue, Rogue]:
    """Return two rogues: without and with TLS."""
    return (
        Rogue(name, "http2-cleartext", caught_by, does, change, base=StreamServer),
        Rogue(f"{name}-tls", "http2", caught_by, f"{does}, over TLS", change, base=StreamServer),
    )


def rogue(name: str, test_type: str, caught_by: str, does: str, **change: Any) -> Rogue:
    return Rogue(name, test_type, caught_by, does, change, base=StreamServer)


def loaded(name: str, test_type: str, caught_by: str, does: str, change: Change) -> Rogue:
    return Rogue(name, test_type, caught_by, does, busy_too(change), base=StreamServer, under_load=True)


def swapped(self: StreamServer, answers: list[Answer]) -> list[Answer]:
    """Swap the responses of the last two streams."""
    if len(answers) < 2:
        return answers
    (first, *one), (second, *other) = answers[-2:]
    return [*answers[:-2], (first, *other), (second, *one)]  # type: ignore[list-item]


def one_after_the_other(self: StreamServer, peer: H2Connection, bodies: dict[int, bytes]) -> None:
    """Start a body only after all bodies of earlier streams are complete."""
    while bodies:
        stream = min(bodies)
        earliest = {stream: bodies[stream]}
        StreamServer.send_bodies(self, peer, earliest)
        if earliest:
            bodies[stream] = earliest[stream]
            return
        del bodies[stream]


def without_pong(self: StreamServer, peer: H2Connection) -> bytes:
    rest, kept = StreamServer.frames(self, peer), b""
    while rest:
        end = 9 + int.from_bytes(rest[:3], "big")
        kept += b"" if rest[3] == 6 else rest[:end]
        rest = rest[end:]
    return kept


def stays(self: StreamServer, line: socket.socket, peer: H2Connection) -> None:
    while line.recv(65_536):
        pass


def some_reset(self: StreamServer, peer: H2Connection, stream: int, fields: FieldList, body: bytes) -> None:
    if every(self, 20):
        peer.reset_stream(stream, 7)
    else:
        StreamServer.begin(self, peer, stream, fields, body)


def of_open_streams(self: StreamServer, peer: H2Connection, bodies: dict[int, bytes]) -> None:
    """Drop the bodies of closed streams."""
    for stream in [stream for stream in bodies if peer.streams[stream].closed]:
        del bodies[stream]
    StreamServer.send_bodies(self, peer, bodies)


def cut_short(self: StreamServer, session: ClientSession, stream: int, request: Any) -> Answer:
    stream, fields, body = StreamServer.answer(self, session, stream, request)
    return stream, fields, body[:-3] if every(self, 20) else body


def leaves_after(requests: int) -> Callable[..., bool]:
    return lambda self, peer, line, session: session.requests >= requests


def unnamed(self: StreamServer, reply: Reply) -> FieldList:
    return [field for field in StreamServer.headers(self, reply) if field[0] != "Server"]


def http1_only(self: StreamServer) -> ssl.SSLContext:
    context = StreamServer.tls_context(self)
    context.set_alpn_protocols(["http/1.1"])
    return context


RESETS: dict[str, Any] = {"begin": some_reset, "send_bodies": of_open_streams}
STREAMS = (
    *both("precomputed-streams", "items-exact", "serves a data set that is built in", read_items=lambda _: make_items(1)),
    *both("cached-streams", "items-exact", "caches bodies by path, without the multiplier", items_reply=by_count),
    *both("swapped-streams", "items-exact", "swaps the responses of two streams", arrange_streams=swapped),
    *both("serial-streams", "streams-independent", "sends one response after the other", send_bodies=one_after_the_other),
    *both("few-streams", "stream-limit", "permits only 8 concurrent streams", settings={SettingCodes.MAX_CONCURRENT_STREAMS: 8}),
    *both("without-pong", "ping-acknowledged", "does not acknowledge PING", frames=without_pong),
    *both("tolerant", "violations-refused", "keeps connections open after violations", end_http2=stays),
    *both("resets-streams", "answered", "resets some streams", **RESETS),
    *both("streams-cut-short", "answered", "sends bodies shorter than Content-Length", answer=cut_short),
    *both("leaves-early", "answered", "closes connections after 12 requests", leaves=leaves_after(12)),
    *both("unnamed-streams", "server-header", "omits the Server header", headers=unnamed),
    rogue("http1-only", "http2", "answered", "does not select h2", tls_context=http1_only),
    loaded("swapped-when-busy", "http2-cleartext", "items-exact", "swaps the responses of two streams, under load", {"arrange_streams": swapped}),
    loaded("resets-when-busy", "http2-cleartext", "one-answer-a-request", "resets some streams, under load", RESETS),
    loaded("leaves-when-busy", "http2-cleartext", "one-answer-a-request", "closes connections after 60 requests, under load", {"leaves": leaves_after(60)}),
    loaded("cached-when-busy-tls", "http2", "items-exact", "caches bodies by path, under load", {"items_reply": by_count}),
    loaded("cut-short-when-busy-tls", "http2", "one-answer-a-request", "sends bodies shorter than Content-Length, under load", {"answer": cut_short}),
)  # fmt: skip

Echo = Callable[..., Iterator[Event]]


def changed(change: Callable[[str | bytes], str | bytes], share: int = 1) -> Echo:
    """Return an echo that changes one in ``share`` messages."""

    def echo(self: StreamServer, session: ClientSession, message: str | bytes) -> Iterator[Event]:
        yield from StreamServer.echo(self, session, change(message) if every(self, share) else message)

    return echo


def as_bytes(message: str | bytes) -> bytes:
    return message.encode() if isinstance(message, str) else message


def previous(self: StreamServer, session: ClientSession, message: str | bytes) -> Iterator[Event]:
    yield from StreamServer.echo(self, session, session.state.get("previous", message))
    session.state["previous"] = message


def reordered(self: StreamServer, session: ClientSession, message: str | bytes) -> Iterator[Event]:
    """Occasionally swap two messages that arrive together."""
    held = session.state.pop("held", None)
    if held is None and session.requests % 16 == 4:
        session.state["held"] = message
        return
    yield from StreamServer.echo(self, session, message)
    if held is not None:
        yield from StreamServer.echo(self, session, held)


def twice(self: StreamServer, session: ClientSession, message: str | bytes) -> Iterator[Event]:
    for _ in range(2 if every(self, 20) else 1):
        yield from StreamServer.echo(self, session, message)


def first_fragment(self: StreamServer, parts: list[str | bytes]) -> str | bytes:
    return parts[0]


def closing(after: int) -> Echo:
    def echo(self: StreamServer, session: ClientSession, message: str | bytes) -> Iterator[Event]:
        yield from StreamServer.echo(self, session, message)
        if session.requests == after:
            yield CloseConnection(code=1001)

    return echo


def wrong_hash(self: StreamServer, peer: WSConnection, event: Event) -> bytes:
    sent = StreamServer.control(self, peer, event)
    return sent.replace(b"Accept: ", b"Accept: x", 1) if isinstance(event, Request) else sent


def ignoring(*kinds: type[Event]) -> Callable[..., bytes]:
    return lambda self, peer, event: b"" if isinstance(event, kinds) else StreamServer.control(self, peer, event)


def going_away(self: StreamServer, peer: WSConnection, event: Event) -> bytes:
    if isinstance(event, CloseConnection):
        return peer.send(CloseConnection(code=1001))
    return StreamServer.control(self, peer, event)


def socket_rogue(name: str, caught_by: str, does: str, **change: Any) -> Rogue:
    return rogue(name, "websocket", caught_by, does, **change)


def constant(message: str | bytes) -> str | bytes:
    return "hello" if isinstance(message, str) else b"hello"


SOCKETS = (
    socket_rogue("constant-echo", "echoes-exact", "always returns the same message", echo=changed(constant)),
    socket_rogue("binary-echo", "echoes-exact", "returns text messages as binary messages", echo=changed(as_bytes)),
    socket_rogue("cut-echo", "echoes-exact", "truncates messages to 125 bytes", echo=changed(lambda message: message[:125])),
    socket_rogue("rare-wrong-echo", "echoes-exact", "sometimes returns a wrong message", echo=changed(constant, 50)),
    socket_rogue("previous-echo", "echoes-exact", "returns the previous message", echo=previous),
    socket_rogue("reordered-echo", "echoes-exact", "returns messages in the wrong order", echo=reordered),
    socket_rogue("double-echo", "echoes-exact", "returns some messages twice", echo=twice),
    socket_rogue("first-fragment", "fragments-joined", "returns only the first fragment", join=first_fragment),
    socket_rogue("wrong-hash", "upgrade-accepted", "sends a wrong Sec-WebSocket-Accept", control=wrong_hash),
    socket_rogue("plain-get-accepted", "plain-get-refused", "responds to a plain GET with 200", refuse_plain=lambda self: self.encode(None, Reply(close=True))),
    socket_rogue("no-pong", "ping-answered", "ignores pings", control=ignoring(Ping)),
    socket_rogue("no-close", "close-answered", "ignores close frames", control=ignoring(CloseConnection)),
    socket_rogue("going-away", "close-answered", "closes with a different status code", control=going_away),
    loaded("constant-echo-when-busy", "websocket", "one-answer-a-request", "sometimes returns a constant, under load", {"echo": changed(constant, 30)}),
    loaded("reordered-when-busy", "websocket", "one-answer-a-request", "returns messages in the wrong order, under load", {"echo": reordered}),
    loaded("double-echo-when-busy", "websocket", "one-answer-a-request", "returns some messages twice, under load", {"echo": twice}),
    loaded("closes-when-busy", "websocket", "one-answer-a-request", "closes connections after 60 messages, under load", {"echo": closing(60)}),
)  # fmt: skip

STREAM_CHEATS = {each.name: each for each in (*STREAMS, *SOCKETS)}
