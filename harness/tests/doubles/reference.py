"""The reference server: all tests as docs/requirements.md has them, slow and plain, every step overridable.

A thread a connection, a raw socket, PostgreSQL through psycopg. A rogue is this server with one method replaced, so the
methods are cut where implementations go wrong: how ids are drawn, how a row is written as JSON, how bytes are framed.
"""

import contextlib
import html
import http.client
import json
import queue
import random
import re
import socket
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from email.utils import formatdate
from typing import Any, ClassVar, Self
from urllib.parse import urlsplit

import psycopg

from harness.runtime import DatabaseAddress, Endpoint

URLS = {
    "json": "/json",
    "plaintext": "/plaintext",
    "hello": "/hello",
    "delay": "/delay?ms=",
    "fan-out": "/fan-out?calls=",
    "db": "/db",
    "query": "/queries?queries=",
    "cached-query": "/cached-queries?queries=",
    "fortune": "/fortunes",
    "update": "/updates?queries=",
}
TEST_TYPES = {url.partition("?")[0]: name for name, url in URLS.items()}
CONTENT_TYPES = {**dict.fromkeys(("plaintext", "hello", "delay"), "text/plain"), "fortune": "text/html; charset=utf-8"}
ROWS = 10_000
HEADER_LIMIT = 65_536
POOL = 8
PASSING = 2  # requests of a connection that only looks in

_REQUEST_LINE = re.compile(rb"([A-Z]+) (?:http://[^/ ]+)?(/[^ ]*) HTTP/1\.1\Z")

WorldRow = tuple[int, int]
WorldRows = list[WorldRow]
Ids = Sequence[int]
DatabaseConnection = psycopg.Connection


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
    """One connection: rogues keep what they remember of it in ``state``."""

    number: int
    asked: int = 0  # requests
    dice: random.Random = field(default_factory=random.Random)
    state: dict[str, Any] = field(default_factory=dict)


class ReferenceServer:
    """Listens on a loopback port of its own while the context is open."""

    reasons: ClassVar = {
        200: "OK",
        400: "Bad ReceivedRequest",
        404: "Not Found",
        405: "Method Not Allowed",
        414: "Too Long",
    }
    pool_size: ClassVar = POOL
    urls: ClassVar[Mapping[str, str]] = URLS

    def __init__(self, database: DatabaseAddress | None = None, upstream: str | None = None) -> None:
        self.database = database
        self.upstream = upstream  # what UPSTREAM_URL holds
        self.state: dict[str, Any] = {}
        self.lock = threading.Lock()
        self._lines = threading.local()  # to the upstream
        self.open_connections = 0
        self.lasting_connections = 0  # open ones that were asked more than once or twice, as those of a load are
        self._pool: queue.LifoQueue[psycopg.Connection] = queue.LifoQueue()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self._sockets: set[socket.socket] = set()
        self.stopped = False

    @property
    def endpoint(self) -> Endpoint:
        host, port = self._listener.getsockname()[:2]
        return Endpoint(host=host, port=port)

    def __enter__(self) -> Self:
        for _ in range(self.pool_size if self.database else 0):
            self._pool.put(self.connect())
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        for line in list(self._sockets):
            with contextlib.suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)
        while not self._pool.empty():
            self._pool.get().close()

    def stop(self) -> None:
        self.stopped = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    # ---- connections -------------------------------------------------------------------------------------------------

    def _accept(self) -> None:
        number = 0
        while not self.stopped:
            try:
                line, _ = self._listener.accept()
            except OSError:
                return
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            number += 1
            threading.Thread(target=self._converse, args=(line, ClientSession(number=number)), daemon=True).start()

    def _converse(self, line: socket.socket, session: ClientSession) -> None:
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
                self.lasting_connections -= session.asked > PASSING

    def converse(self, line: socket.socket, session: ClientSession) -> None:
        """Answer the requests of one connection until one side closes it."""
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
        lasted = session.asked > PASSING
        session.asked += requests
        if not lasted and session.asked > PASSING:
            with self.lock:
                self.lasting_connections += 1

    def split(self, data: bytes) -> tuple[list[ReceivedRequest], bytes, int | None]:
        """Whole requests, the bytes left over, and the status of an error that ends the connection."""
        requests: list[ReceivedRequest] = []
        while (end := data.find(b"\r\n\r\n")) >= 0:
            if end > HEADER_LIMIT:
                return requests, b"", 431
            request = self.parse(data[:end])
            if request is None:
                return requests, b"", 400
            after = end + 4 + int(request.headers.get("content-length", "0"))
            if len(data) < after:
                break
            requests.append(replace(request, body=data[end + 4 : after]))
            data = data[after:]
        return requests, data, 431 if len(data) > HEADER_LIMIT else None

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
        return answers

    def refuse(self, line: socket.socket, status: int) -> None:
        line.sendall(self.encode(None, Reply(status=status, close=True)))

    # ---- responses ---------------------------------------------------------------------------------------------------

    def encode(self, request: ReceivedRequest | None, reply: Reply) -> bytes:
        lines = [self.status_line(reply), *(f"{name}: {value}" for name, value in self.headers(reply))]
        body = b"" if request is not None and request.method == "HEAD" else reply.body
        return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body

    def status_line(self, reply: Reply) -> str:
        return f"HTTP/1.1 {reply.status} {self.reasons.get(reply.status, 'Other')}"

    def headers(self, reply: Reply) -> list[tuple[str, str]]:
        """Without a type and a length where there is no body."""
        of_the_body = [("Content-Type", reply.content_type), ("Content-Length", f"{len(reply.body)}")]
        return [
            ("Server", "reference"),
            ("Date", self.date()),
            *(of_the_body if reply.status != 204 else []),
            *reply.headers,
            *([("Connection", "close")] if reply.close else []),
        ]

    def date(self) -> str:
        return formatdate(time.time(), usegmt=True)

    def reply(self, session: ClientSession, request: ReceivedRequest) -> Reply:
        test_type = TEST_TYPES.get(request.path)
        if test_type is None:
            return self.unknown(request)
        if request.method not in ("GET", "HEAD"):
            return self.unsupported(request)
        if test_type == "fan-out" and self.upstream is None:
            return Reply(status=503, body=b"no UPSTREAM_URL")
        content_type = CONTENT_TYPES.get(test_type, "application/json")
        return Reply(content_type=content_type, body=self.body(session, test_type, request))

    def unknown(self, request: ReceivedRequest) -> Reply:
        return Reply(status=404, body=b"not found")

    def unsupported(self, request: ReceivedRequest) -> Reply:
        return Reply(status=405, headers=[("Allow", "GET, HEAD")])

    def body(self, session: ClientSession, test_type: str, request: ReceivedRequest) -> bytes:
        match test_type:
            case "json":
                return self.json_body()
            case "plaintext" | "hello":
                return self.plaintext_body()
            case "delay":
                self.wait(self.milliseconds(self.parameter(request.query, "ms")) / 1000)
                return self.plaintext_body()
            case "fan-out":
                return self.fan_out_body(self.calls(self.parameter(request.query, "calls")))
            case "fortune":
                with self.connection() as connection:
                    return self.page(self.order(self.fortunes(connection)))
            case "db":
                with self.connection() as connection:
                    (row,) = self.rows(session, connection, self.draw(session, 1))
                return self.encode_json(self.row(*row))
            case "update":
                count = self.count(self.parameter(request.query))
                with self.connection() as connection:
                    return self.encode_json(self.array(self.update(session, connection, count)))
            case _:
                count = self.count(self.parameter(request.query))
                with self.connection() as connection:
                    rows = self.rows(session, connection, self.draw(session, count))
                return self.encode_json(self.array(rows))

    # ---- json and plaintext ------------------------------------------------------------------------------------------

    def json_body(self) -> bytes:
        return self.encode_json({"message": "Hello, World!"})

    def plaintext_body(self) -> bytes:
        return b"Hello, World!"

    def encode_json(self, document: object) -> bytes:
        return json.dumps(document, separators=(",", ":")).encode()

    # ---- delay and fan-out -------------------------------------------------------------------------------------------

    def milliseconds(self, text: str | None) -> int:
        return min(max(int(text), 0), 1000) if text and re.fullmatch(r"-?[0-9]+", text) else 0

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)

    def calls(self, text: str | None) -> int:
        return min(max(int(text), 1), 100) if text and re.fullmatch(r"-?[0-9]+", text) else 1

    def fan_out_body(self, count: int) -> bytes:
        return self.encode_json({"calls": count, "sum": sum(self.call() for _ in range(count))})

    def call(self) -> int:
        """One call of the upstream, over a connection that this thread keeps."""
        address = urlsplit(self.upstream or "")
        line: http.client.HTTPConnection | None = getattr(self._lines, "upstream", None)
        if line is None:
            self._lines.upstream = line = http.client.HTTPConnection(f"{address.hostname}", address.port, timeout=10)
        line.request("GET", address.path)
        return int(line.getresponse().read())

    # ---- rows --------------------------------------------------------------------------------------------------------

    def parameter(self, text: str, wanted: str = "queries") -> str | None:
        pairs = (pair.partition("=") for pair in text.split("&"))
        return next((value for name, _, value in pairs if name == wanted), None)

    def count(self, text: str | None) -> int:
        return min(max(int(text), 1), 500) if text and re.fullmatch(r"-?[0-9]+", text) else 1

    def draw(self, session: ClientSession, count: int) -> list[int]:
        return [session.dice.randint(1, ROWS) for _ in range(count)]

    def rows(self, session: ClientSession, connection: psycopg.Connection, ids: Sequence[int]) -> list[WorldRow]:
        with connection.cursor() as cursor:
            cursor.executemany("SELECT id, randomnumber FROM world WHERE id = %s", [(i,) for i in ids], returning=True)
            return [cursor.fetchall()[0] for _ in cursor.results()]

    def row(self, identifier: int, number: int) -> object:
        return {"id": identifier, "randomNumber": number}

    def array(self, rows: Sequence[WorldRow]) -> object:
        return [self.row(*row) for row in rows]

    # ---- update ------------------------------------------------------------------------------------------------------

    def update(self, session: ClientSession, connection: psycopg.Connection, count: int) -> list[WorldRow]:
        ids = sorted(self.draw_different(session, count))
        old = self.rows(session, connection, ids)
        new = [(identifier, self.new_number(session, number)) for identifier, number in old]
        self.write(session, connection, new)
        return new

    def draw_different(self, session: ClientSession, count: int) -> list[int]:
        return session.dice.sample(range(1, ROWS + 1), count)

    def new_number(self, session: ClientSession, old: int) -> int:
        drawn = session.dice.randint(1, ROWS - 1)
        return drawn if drawn < old else drawn + 1

    def write(self, session: ClientSession, connection: psycopg.Connection, rows: Sequence[WorldRow]) -> None:
        connection.execute(
            "UPDATE world SET randomnumber = new.number "
            "FROM unnest(%s::int[], %s::int[]) AS new (id, number) WHERE world.id = new.id",
            ([identifier for identifier, _ in rows], [number for _, number in rows]),
        )

    # ---- fortunes ----------------------------------------------------------------------------------------------------

    def fortunes(self, connection: psycopg.Connection) -> list[tuple[int, str]]:
        return connection.execute("SELECT id, message FROM fortune").fetchall()

    def order(self, fortunes: list[tuple[int, str]]) -> list[tuple[int, str]]:
        return sorted([*fortunes, (0, "Additional fortune added at request time.")], key=lambda row: row[1])

    def page(self, fortunes: Sequence[tuple[int, str]]) -> bytes:
        rows = "".join(f"<tr><td>{i}</td><td>{self.escape(message)}</td></tr>" for i, message in fortunes)
        return (
            "<!DOCTYPE html><html><head><title>Fortunes</title></head><body><table>"
            f"<tr><th>id</th><th>message</th></tr>{rows}</table></body></html>"
        ).encode()

    def escape(self, message: str) -> str:
        return html.escape(message)

    # ---- database ----------------------------------------------------------------------------------------------------

    def connect(self) -> psycopg.Connection:
        if self.database is None:
            raise RuntimeError("this test needs a database")
        address = self.database
        return psycopg.connect(
            host=address.host,
            port=address.port,
            dbname=address.name,
            user=address.user,
            password=address.password,
            autocommit=True,
            prepare_threshold=0,
        )

    @contextmanager
    def connection(self) -> Iterator[psycopg.Connection]:
        connection = self._pool.get()
        try:
            yield connection
        finally:
            self._pool.put(connection)
