"""A small threaded HTTP server for tests. Subclasses can override each step."""

import contextlib
import random
import re
import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from email.utils import formatdate
from typing import Any, ClassVar, Self

from harness.runtime import Endpoint

MAX_HEADER_BYTES = 65_536
BRIEF_REQUESTS = 2  # a connection with more requests counts as lasting

_REQUEST_LINE = re.compile(rb"([A-Z]+) (?:http://[^/ ]+)?(/[^ ]*) HTTP/1\.1\Z")


@dataclass(frozen=True, kw_only=True)
class ReceivedRequest:
    method: str
    path: str
    query: str
    headers: dict[str, str]  # names in lower case
    body: bytes = b""

    @property
    def closes(self) -> bool:
        return self.headers.get("connection", "").lower() == "close"


@dataclass(kw_only=True)
class Reply:
    status: int = 200
    content_type: str = "text/plain"
    body: bytes = b""
    headers: list[tuple[str, str]] = field(default_factory=list)
    close: bool = False


@dataclass(kw_only=True)
class ClientSession:
    """A client's connection. Subclasses of the server can store data in ``state``."""

    number: int
    requests: int = 0
    dice: random.Random = field(default_factory=random.Random)
    state: dict[str, Any] = field(default_factory=dict)


class HttpDouble:
    """A server on a free loopback port while its context is open. Subclasses define ``reply``."""

    reasons: ClassVar = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed", 414: "Too Long"}

    def __init__(self) -> None:
        self.state: dict[str, Any] = {}
        self.lock = threading.Lock()
        self.open_connections = 0
        self.lasting_connections = 0  # connections with more than BRIEF_REQUESTS requests, probably from a load
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self._sockets: set[socket.socket] = set()
        self.stopped = False

    @property
    def endpoint(self) -> Endpoint:
        host, port = self._listener.getsockname()[:2]
        return Endpoint(host=host, port=port)

    def listen(self, host: str, port: int) -> None:
        """Listen on ``host`` and ``port`` instead of a free loopback port."""
        self._listener.close()
        self._listener = socket.create_server((host, port), backlog=4096)

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        for connection in list(self._sockets):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def stop(self) -> None:
        self.stopped = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        number = 0
        while not self.stopped:
            try:
                line, _ = self._listener.accept()
            except OSError:
                return
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            number += 1
            threading.Thread(target=self._serve, args=(line, ClientSession(number=number)), daemon=True).start()

    def _serve(self, line: socket.socket, session: ClientSession) -> None:
        with self.lock:
            self._sockets.add(line)
            self.open_connections += 1
        try:
            with line, contextlib.suppress(OSError):
                self.converse(line, session)
        finally:
            with self.lock:
                self._sockets.discard(line)
                self.open_connections -= 1
                self.lasting_connections -= session.requests > BRIEF_REQUESTS

    def converse(self, line: socket.socket, session: ClientSession) -> None:
        """Respond to a connection's requests until either side closes it."""
        data = b""
        while chunk := line.recv(262_144):
            data += chunk
            requests, data, error = self.split(data)
            self._count(session, len(requests))
            answers = [(request, self.reply(session, request)) for request in requests]
            for request, reply in self.arrange(answers):
                self.send(line, self.encode(request, reply))
                if reply.close or (request.closes and self.honours_close(request)):
                    return
            if error is not None:
                self.refuse(line, error)
                return

    def _count(self, session: ClientSession, requests: int) -> None:
        was_brief = session.requests <= BRIEF_REQUESTS
        session.requests += requests
        if was_brief and session.requests > BRIEF_REQUESTS:
            with self.lock:
                self.lasting_connections += 1

    def split(self, data: bytes) -> tuple[list[ReceivedRequest], bytes, int | None]:
        """Return the complete requests, the remaining bytes, and an error status if the connection must end."""
        requests: list[ReceivedRequest] = []
        while (end := data.find(b"\r\n\r\n")) >= 0:
            if end > MAX_HEADER_BYTES:
                return requests, b"", 431
            request = self.parse(data[:end])
            if request is None:
                return requests, b"", 400
            after = end + 4 + int(request.headers.get("content-length", "0"))
            if len(data) < after:
                break
            requests.append(replace(request, body=data[end + 4 : after]))
            data = data[after:]
        return requests, data, 431 if len(data) > MAX_HEADER_BYTES else None

    def parse(self, head: bytes) -> ReceivedRequest | None:
        first, *lines = head.split(b"\r\n")
        match = _REQUEST_LINE.match(first)
        headers = self.parse_headers([line.decode("latin-1") for line in lines])
        if not match or "host" not in headers:
            return None
        path, _, text = match[2].decode("latin-1").partition("?")
        return ReceivedRequest(method=match[1].decode(), path=path, query=text, headers=headers)

    def parse_headers(self, lines: Sequence[str]) -> dict[str, str]:
        pairs = (line.partition(":") for line in lines)
        return {name.lower(): value.strip() for name, _, value in pairs}

    def send(self, line: socket.socket, answer: bytes) -> None:
        line.sendall(answer)

    def honours_close(self, request: ReceivedRequest) -> bool:
        return True

    def arrange(self, answers: list[tuple[ReceivedRequest, Reply]]) -> list[tuple[ReceivedRequest, Reply]]:
        """Return the replies in sending order."""
        return answers

    def refuse(self, line: socket.socket, status: int) -> None:
        line.sendall(self.encode(None, Reply(status=status, close=True)))

    def reply(self, session: ClientSession, request: ReceivedRequest) -> Reply:
        return self.unknown(request)

    def unknown(self, request: ReceivedRequest) -> Reply:
        return Reply(status=404, body=b"not found")

    def unsupported(self, request: ReceivedRequest) -> Reply:
        return Reply(status=405, headers=[("Allow", "GET, HEAD")])

    def encode(self, request: ReceivedRequest | None, reply: Reply) -> bytes:
        lines = [self.status_line(reply), *(f"{name}: {value}" for name, value in self.headers(reply))]
        body = b"" if request is not None and request.method == "HEAD" else reply.body
        return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body

    def status_line(self, reply: Reply) -> str:
        return f"HTTP/1.1 {reply.status} {self.reasons.get(reply.status, 'Other')}"

    def headers(self, reply: Reply) -> list[tuple[str, str]]:
        """Return a reply's header fields. A 204 response has no Content-Type and no Content-Length."""
        describe_body = [("Content-Type", reply.content_type), ("Content-Length", f"{len(reply.body)}")]
        return [
            ("Server", "reference"),
            ("Date", self.date()),
            *(describe_body if reply.status != 204 else []),
            *reply.headers,
            *([("Connection", "close")] if reply.close else []),
        ]

    def date(self) -> str:
        return formatdate(time.time(), usegmt=True)
