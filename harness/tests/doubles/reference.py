"""The reference server: a plain implementation of all test types in docs/requirements.md.

It uses raw sockets, psycopg and a thread per connection. Each step that implementations get wrong is a method that
rogues can replace, for example drawing ids, encoding a row as JSON, or framing bytes.
"""

import html
import http.client
import json
import queue
import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import ClassVar, Self
from urllib.parse import urlsplit

import psycopg

from harness.runtime import DatabaseAddress
from harness.tests.doubles.http_double import ClientSession, HttpDouble, ReceivedRequest, Reply

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
POOL_SIZE = 8

WorldRow = tuple[int, int]
WorldRows = list[WorldRow]
Ids = Sequence[int]
DatabaseConnection = psycopg.Connection


class ReferenceServer(HttpDouble):
    """A server for all test types. Test types that return rows need ``database``, and fan-out needs ``upstream``."""

    pool_size: ClassVar = POOL_SIZE
    urls: ClassVar[Mapping[str, str]] = URLS

    def __init__(self, database: DatabaseAddress | None = None, upstream: str | None = None) -> None:
        super().__init__()
        self.database = database
        self.upstream = upstream  # value of UPSTREAM_URL
        self._upstream_connections = threading.local()
        self._pool: queue.LifoQueue[psycopg.Connection] = queue.LifoQueue()

    def __enter__(self) -> Self:
        for _ in range(self.pool_size if self.database else 0):
            self._pool.put(self.connect())
        return super().__enter__()

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        while not self._pool.empty():
            self._pool.get().close()

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

    def json_body(self) -> bytes:
        return self.encode_json({"message": "Hello, World!"})

    def plaintext_body(self) -> bytes:
        return b"Hello, World!"

    def encode_json(self, document: object) -> bytes:
        return json.dumps(document, separators=(",", ":")).encode()

    def milliseconds(self, text: str | None) -> int:
        return min(max(int(text), 0), 1000) if text and re.fullmatch(r"-?[0-9]+", text) else 0

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)

    def calls(self, text: str | None) -> int:
        return min(max(int(text), 1), 100) if text and re.fullmatch(r"-?[0-9]+", text) else 1

    def fan_out_body(self, count: int) -> bytes:
        return self.encode_json({"calls": count, "sum": sum(self.call() for _ in range(count))})

    def call(self) -> int:
        """Call the upstream server once, on this thread's keep-alive connection."""
        address = urlsplit(self.upstream or "")
        connection: http.client.HTTPConnection | None = getattr(self._upstream_connections, "connection", None)
        if connection is None:
            connection = http.client.HTTPConnection(f"{address.hostname}", address.port, timeout=10)
            self._upstream_connections.connection = connection
        connection.request("GET", address.path)
        return int(connection.getresponse().read())

    def parameter(self, text: str, name: str = "queries") -> str | None:
        pairs = (pair.partition("=") for pair in text.split("&"))
        return next((value for key, _, value in pairs if key == name), None)

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
