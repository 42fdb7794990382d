"""HTTP/2 and WebSocket for test servers. Subclasses can override each step."""

import contextlib
import socket
from collections.abc import Iterator
from typing import Any, ClassVar

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import ConnectionTerminated, DataReceived, RequestReceived, StreamReset
from h2.exceptions import ProtocolError
from h2.settings import SettingCodes, Settings
from wsproto import ConnectionType, WSConnection
from wsproto.connection import ConnectionState
from wsproto.events import AcceptConnection, BytesMessage, CloseConnection, Event, Message, Ping, Request, TextMessage
from wsproto.utilities import LocalProtocolError

from harness.tests.doubles.http_double import ClientSession, HttpDouble, ReceivedRequest, Reply

FRAME_BYTES = 16_384
Answer = tuple[int, list[tuple[str, str]], bytes]  # (stream, header fields, body)


class StreamDouble(HttpDouble):
    """A server that also speaks HTTP/2 and WebSocket."""

    settings: ClassVar[dict[SettingCodes, int]] = {SettingCodes.MAX_CONCURRENT_STREAMS: 100}

    def _serve(self, line: socket.socket, session: ClientSession) -> None:
        with contextlib.suppress(ProtocolError, LocalProtocolError):  # a rogue went on after the end of a stream
            super()._serve(line, session)

    def converse_http2(self, line: socket.socket, session: ClientSession) -> None:
        peer = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        peer.local_settings = Settings(client=False, initial_values=self.settings)
        peer.initiate_connection()
        line.sendall(peer.data_to_send())
        bodies: dict[int, bytes] = {}  # stream -> unsent part of its body
        while data := line.recv(262_144):
            try:
                events = peer.receive_data(data)
            except ProtocolError:
                self.end_http2(line, peer)
                return
            requests: list[tuple[int, ReceivedRequest]] = []
            for event in events:
                match event:
                    case RequestReceived(stream_id=int(stream), headers=list(fields)):
                        requests.append((stream, self.convert(dict(fields))))
                    case DataReceived(stream_id=int(stream), flow_controlled_length=int(length)):
                        peer.acknowledge_received_data(length, stream)
                    case StreamReset(stream_id=int(stream)):
                        bodies.pop(stream, None)
                    case ConnectionTerminated():
                        return
            self._count(session, len(requests))
            for answer in self.arrange_streams([self.answer(session, *request) for request in requests]):
                self.begin(peer, *answer)
                bodies |= {answer[0]: answer[2]} if answer[2] else {}
            self.send_bodies(peer, bodies)
            line.sendall(self.frames(peer))
            if self.leaves(peer, line, session):
                return

    def end_http2(self, line: socket.socket, peer: H2Connection) -> None:
        line.sendall(peer.data_to_send())  # GOAWAY

    def convert(self, fields: dict[Any, Any]) -> ReceivedRequest:
        path, _, query = str(fields[":path"]).partition("?")
        headers = {name: value for name, value in fields.items() if not name.startswith(":")}
        return ReceivedRequest(method=fields[":method"], path=path, query=query, headers=headers)

    def answer(self, session: ClientSession, stream: int, request: ReceivedRequest) -> Answer:
        reply: Reply = self.reply(session, request)
        fields = [(name.lower(), value) for name, value in self.headers(reply)]
        return stream, [(":status", f"{reply.status}"), *fields], b"" if request.method == "HEAD" else reply.body

    def arrange_streams(self, answers: list[Answer]) -> list[Answer]:
        """Return the responses in the order in which they start."""
        return answers

    def begin(self, peer: H2Connection, stream: int, fields: list[tuple[str, str]], body: bytes) -> None:
        peer.send_headers(stream, fields, end_stream=not body)

    def send_bodies(self, peer: H2Connection, bodies: dict[int, bytes]) -> None:
        """Send as much of each body as flow control permits, alternating between streams after each frame."""
        progress = True
        while progress:
            progress = False
            for stream, body in list(bodies.items()):
                part = body[: min(peer.local_flow_control_window(stream), FRAME_BYTES)]
                if part:
                    progress = True
                    bodies[stream] = body[len(part) :]
                    peer.send_data(stream, part, end_stream=not bodies[stream])
                if not bodies[stream]:
                    del bodies[stream]

    def frames(self, peer: H2Connection) -> bytes:
        return peer.data_to_send()

    def leaves(self, peer: H2Connection, line: socket.socket, session: ClientSession) -> bool:
        """Return whether the server should close the connection now."""
        return False

    def converse_websocket(self, line: socket.socket, session: ClientSession) -> None:
        peer = WSConnection(ConnectionType.SERVER)
        parts: list[str | bytes] = []
        while data := line.recv(262_144):
            if peer.state is ConnectionState.CONNECTING and b"upgrade: websocket" not in data.lower():
                line.sendall(self.refuse_plain())
                return
            peer.receive_data(data)
            out = b""
            for event in peer.events():
                if isinstance(event, Message):
                    parts.append(event.data)
                    if event.message_finished:
                        self._count(session, 1)
                        out += b"".join(peer.send(reply) for reply in self.echo(session, self.join(parts)))
                        parts = []
                else:
                    out += self.control(peer, event)
            line.sendall(out)
            if peer.state is ConnectionState.CLOSED:
                return

    def refuse_plain(self) -> bytes:
        return self.encode(None, Reply(status=426, headers=[("Upgrade", "websocket")], close=True))

    def join(self, parts: list[str | bytes]) -> str | bytes:
        """Return the message made of these fragments."""
        texts = [part for part in parts if isinstance(part, str)]
        return "".join(texts) if texts else b"".join(part for part in parts if not isinstance(part, str))

    def echo(self, session: ClientSession, message: str | bytes) -> Iterator[Event]:
        yield TextMessage(data=message) if isinstance(message, str) else BytesMessage(data=message)

    def control(self, peer: WSConnection, event: Event) -> bytes:
        match event:
            case Request():
                return peer.send(AcceptConnection())
            case Ping() | CloseConnection():
                return peer.send(event.response())
        return b""
