"""Honest servers, which meet all requirements but differ from the reference server.

Any finding about them is a defect of verification, as serious as a rogue that passes.
"""

import contextlib
import json
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import formatdate
from typing import Any

import psycopg

from harness.runtime import DatabaseAddress
from harness.tests.doubles import reference
from harness.tests.doubles.http_double import ClientSession, ReceivedRequest, Reply
from harness.tests.doubles.reference import ROWS, DatabaseConnection, Ids, ReferenceServer, WorldRows

WORLD = ("db", "query", "update")
READS = ("db", "query")
CHEAP = ("json", "plaintext")
EVERY = ("json", "plaintext", "db", "query", "cached-query", "update", "fortune")

SELECT = "SELECT id, randomnumber FROM world WHERE id = %s"
UPDATE = "UPDATE world SET randomnumber = %s WHERE id = %s"

VariantChange = Mapping[str, Any]
Fields = list[tuple[str, str]]


@dataclass(frozen=True, kw_only=True)
class Honest:
    """A permitted variant of the reference server."""

    name: str
    does: str
    change: VariantChange
    test_types: tuple[str, ...]
    pool: int = reference.POOL_SIZE
    base: type[ReferenceServer] = ReferenceServer

    def server(self, database: DatabaseAddress | None) -> ReferenceServer:
        made: ReferenceServer = type("HonestServer", (self.base,), {**self.change, "pool_size": self.pool})(database)
        return made


def headed(change: Callable[[Fields], Fields], base: type[ReferenceServer] = ReferenceServer) -> VariantChange:
    return {"headers": lambda self, reply: change(base.headers(self, reply))}


def chunked(size: int, *, extension: str = "", trailer: str = "", upper: bool = False) -> VariantChange:
    """Send bodies in chunks of ``size`` bytes."""

    def encode(self: ReferenceServer, request: ReceivedRequest | None, reply: Reply) -> bytes:
        if request is None or request.method == "HEAD":
            return ReferenceServer.encode(self, request, reply)
        fields = [(n, v) for n, v in self.headers(reply) if n != "Content-Length"] + [("Transfer-Encoding", "chunked")]
        lines = [self.status_line(reply), *(f"{name}: {value}" for name, value in fields)]
        body = b""
        for start in range(0, len(reply.body), size):
            part = reply.body[start : start + size]
            length = f"{len(part):X}" if upper else f"{len(part):x}"
            body += f"{length}{extension}\r\n".encode() + part + b"\r\n"
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + body + f"0\r\n{trailer}\r\n".encode()

    return {"encode": encode}


def in_pieces(self: ReferenceServer, line: socket.socket, answer: bytes) -> None:
    head, separator, body = answer.partition(b"\r\n\r\n")
    for piece in (head[:20], head[20:] + separator, body):
        if piece:
            line.sendall(piece)


def cached_date(self: ReferenceServer) -> str:
    now = int(time.time())
    cached: tuple[int, str] | None = self.state.get("date")
    if cached is None or cached[0] != now:
        cached = (now, formatdate(now, usegmt=True))
        self.state["date"] = cached
    return cached[1]


def dumped(**options: Any) -> VariantChange:
    return {"encode_json": lambda self, document: json.dumps(document, **options).encode()}


def head_without_length(self: ReferenceServer, request: ReceivedRequest | None, reply: Reply) -> bytes:
    answer = ReferenceServer.encode(self, request, reply)
    if request is None or request.method != "HEAD":
        return answer
    return b"\r\n".join(line for line in answer.split(b"\r\n") if not line.startswith(b"Content-Length"))


def not_found_page(self: ReferenceServer, request: ReceivedRequest) -> Reply:
    return Reply(status=404, content_type="text/html; charset=utf-8", body=b"<!DOCTYPE html><title>404</title>")


def slow(seconds: float) -> VariantChange:

    def reply(self: ReferenceServer, session: ClientSession, request: ReceivedRequest) -> Reply:
        time.sleep(seconds)
        return ReferenceServer.reply(self, session, request)

    return {"reply": reply}


def selected(text: str) -> VariantChange:

    def rows(self: ReferenceServer, session: ClientSession, connection: DatabaseConnection, ids: Ids) -> WorldRows:
        with connection.cursor() as cursor:
            cursor.executemany(text.encode(), [(i,) for i in ids], returning=True)
            found = [cursor.fetchall()[0] for _ in cursor.results()]
        return [(row[0], row[1]) for row in found]

    return {"rows": rows}


def simple_protocol(
    self: ReferenceServer, session: ClientSession, connection: DatabaseConnection, ids: Ids
) -> WorldRows:
    cursor = psycopg.ClientCursor(connection)
    return [cursor.execute(SELECT, (i,)).fetchall()[0] for i in ids]


def within(begin: str, end: str) -> VariantChange:

    @contextmanager
    def connection(self: ReferenceServer) -> Iterator[psycopg.Connection]:
        with ReferenceServer.connection(self) as line:
            line.execute(begin.encode())
            try:
                yield line
            finally:
                line.execute(end.encode())

    return {"connection": connection}


@contextmanager
def committed_by_the_next(self: ReferenceServer) -> Iterator[psycopg.Connection]:
    """Disable autocommit. The next request on the connection commits a request's transaction."""
    with ReferenceServer.connection(self) as line:
        line.commit()
        line.autocommit = False
        yield line


@contextmanager
def a_connection_each(self: ReferenceServer) -> Iterator[psycopg.Connection]:
    with self.connect() as line:
        yield line


def out_of_the_cache(self: ReferenceServer, session: ClientSession, request: ReceivedRequest) -> bytes:
    cache: dict[int, int] = self.state["cache"]
    ids = self.draw(session, self.count(self.parameter(request.query)))
    return self.encode_json(self.array([(i, cache[i]) for i in ids]))


def refreshed(self: ReferenceServer, session: ClientSession, test_type: str, request: ReceivedRequest) -> bytes:
    """Serve cached-query from a cache that a thread refreshes every half second."""
    if test_type != "cached-query":
        return ReferenceServer.body(self, session, test_type, request)
    with self.lock:
        if "cache" not in self.state:
            refresh(self)
            threading.Thread(target=refreshing, args=(self,), daemon=True).start()
    return out_of_the_cache(self, session, request)


def refreshed_by_others(
    self: ReferenceServer, session: ClientSession, test_type: str, request: ReceivedRequest
) -> bytes:
    """Serve cached-query from a cache. Only requests for other test types refresh it."""
    if test_type == "cached-query":
        return out_of_the_cache(self, session, request)
    if time.time() > self.state.get("refreshed", 0.0) + 0.05:
        self.state["refreshed"] = time.time()
        refresh(self)
    return ReferenceServer.body(self, session, test_type, request)


def refresh(self: ReferenceServer) -> None:
    with ReferenceServer.connection(self) as line:
        self.state["cache"] = dict(line.execute("SELECT id, randomnumber FROM world").fetchall())


def refreshing(self: ReferenceServer) -> None:
    while not self.stopped:
        time.sleep(0.5)
        try:
            refresh(self)
        except (psycopg.Error, queue.Empty):
            return


def written(write: Callable[[DatabaseConnection, WorldRows], object]) -> VariantChange:

    def method(self: ReferenceServer, session: ClientSession, connection: DatabaseConnection, rows: WorldRows) -> None:
        write(connection, rows)

    return {"write": method}


def in_a_transaction(connection: DatabaseConnection, rows: Iterable[tuple[int, int]]) -> None:
    with connection.transaction():
        for identifier, number in rows:
            connection.execute(UPDATE, (number, identifier))


def prepared_by_sql(connection: DatabaseConnection, texts: Sequence[str]) -> None:
    """Run PREPARE statements. PostgreSQL counts each EXECUTE as the statement that PREPARE named."""
    with contextlib.suppress(psycopg.errors.DuplicatePreparedStatement):
        for text in texts:
            connection.execute(text.encode(), prepare=False)


def selected_by_execute(
    self: ReferenceServer, session: ClientSession, connection: DatabaseConnection, ids: Ids
) -> WorldRows:
    prepared_by_sql(connection, ["PREPARE one (int) AS SELECT id, randomnumber FROM world WHERE id = $1"])
    return [connection.execute(f"EXECUTE one({i})".encode(), prepare=False).fetchall()[0] for i in ids]


def written_by_execute(connection: DatabaseConnection, rows: WorldRows) -> None:
    prepared_by_sql(connection, ["PREPARE two(int,int) AS UPDATE world SET randomnumber = $1 WHERE id = $2"])
    with connection.transaction():
        for identifier, number in rows:
            connection.execute(f"EXECUTE two({number}, {identifier})".encode(), prepare=False)


def written_again(
    self: ReferenceServer, session: ClientSession, connection: DatabaseConnection, rows: WorldRows
) -> None:
    """Write rows in reverse order to provoke a deadlock, then repeat the write."""
    with self.lock:
        backwards = len(rows) == 500 and self.open_connections > 4 and "backwards" not in self.state
        if backwards:
            self.state["backwards"] = "going"

    def from_the_last() -> Iterator[tuple[int, int]]:
        for row in reversed(rows):
            if self.state["backwards"] == "met":  # avoid more deadlocks, which take a second each
                raise psycopg.errors.DeadlockDetected
            yield row

    while True:
        try:
            return in_a_transaction(connection, from_the_last() if backwards else rows)
        except psycopg.errors.DeadlockDetected:
            self.state["backwards"] = "met"
            backwards = False


def by_values(connection: DatabaseConnection, rows: WorldRows) -> None:
    values = ", ".join(["(%s::int, %s::int)"] * len(rows))
    text = f"UPDATE world SET randomnumber = v.number FROM (VALUES {values} ORDER BY 1) AS v (id, number) WHERE world.id = v.id"
    connection.execute(text.encode(), [value for row in rows for value in row])


def locking_update(
    self: ReferenceServer, session: ClientSession, connection: DatabaseConnection, count: int
) -> WorldRows:
    with connection.transaction():
        ids = sorted(self.draw_different(session, count))
        old = [connection.execute(f"{SELECT} FOR UPDATE".encode(), (i,)).fetchall()[0] for i in ids]
        new = [(identifier, self.new_number(session, number)) for identifier, number in old]
        self.write(session, connection, new)
    return new


def dressed(self: ReferenceServer, fortunes: Sequence[tuple[int, str]]) -> bytes:
    rows = "".join(f'<tr class="r">\n  <td>{i}</td>\n  <td>{self.escape(m)}</td>\n</tr>\n' for i, m in fortunes)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8"><title>Fortunes</title></head>\n<body>\n<table class="t">\n'
        f"<thead><tr><th>id</th><th>message</th></tr></thead>\n<tbody>\n{rows}</tbody>\n</table></body></html>"
    ).encode()


def one(name: str, does: str, change: VariantChange, *test_types: str, pool: int = reference.POOL_SIZE) -> Honest:
    return Honest(name=name, does=does, change=change, test_types=test_types, pool=pool)


HONEST: tuple[Honest, ...] = (
    one("reference", "is the reference server", {}, *EVERY),
    one("framed", "sends chunks with extensions, upper-case sizes and a trailer", chunked(13, extension=";a=b", trailer="Expires: 0\r\n", upper=True), *EVERY),
    one("segments", "sends head and body in separate segments", {"send": in_pieces}, *CHEAP, "db"),
    one("other-headers", "sends padded, lower-case fields in reverse order, additional fields, and no reason phrase", {
        **headed(lambda f: [(n.lower(), f" {v}\t") for n, v in (*f[::-1], ("Vary", "Accept"), ("ETag", '"1"'), ("Keep-Alive", "timeout=60"))]),
        "status_line": lambda self, reply: f"HTTP/1.1 {reply.status} "}, *CHEAP, "db", "fortune"),
    one("otherwise", "omits the length after HEAD, refuses DELETE with 501, sends a 404 page, and refreshes Date every second", {
        "encode": head_without_length, "unsupported": lambda *_: Reply(status=501), "unknown": not_found_page, "date": cached_date}, *CHEAP),
    one("json", "indents JSON, reverses keys and escapes characters needlessly", {
        **dumped(indent=2), "row": lambda self, i, n: {"randomNumber": n, "id": i}, "json_body": lambda self: b'{"message":"Hello\\u002c World\\u0021"}'}, "json", *WORLD),
    one("slow", "waits 150 ms before each response", slow(0.15), "fortune"),
    one("pool-of-one", "uses a single connection", {}, *WORLD, "fortune", pool=1),
    one("connection-each", "opens a connection for each request", {"connection": a_connection_each}, "db", "fortune"),
    one("transactions", "commits each request", within("BEGIN", "COMMIT"), *WORLD, "fortune"),
    one("rolls-reads-back", "ends reads with ROLLBACK", within("BEGIN", "ROLLBACK"), *READS, "fortune"),
    one("open-transactions", "leaves transactions open after a read", {"connection": committed_by_the_next}, *READS, "fortune"),
    one("simple-protocol", "sends literals by the simple query protocol", {"rows": simple_protocol}, *READS),
    one("object-mapper", "selects like Hibernate, with a lock and a comment", selected("select w1_0.id,w1_0.randomnumber from world w1_0 where w1_0.id=%s for update /* insert */"), "db"),
    one("refreshes-a-cache", "refreshes the cached-query cache in a thread", {"body": refreshed}, "db", "query", "cached-query"),
    one("refreshes-a-cache-seldom", "refreshes the cached-query cache only during other test types", {"body": refreshed_by_others}, "db", "query", "cached-query"),
    one("prepares-by-sql", "prepares and executes statements in SQL", {"rows": selected_by_execute, **written(written_by_execute)}, *WORLD),
    one("writes-in-a-transaction", "writes row by row in a single transaction", written(in_a_transaction), "update"),
    one("writes-again", "repeats writes after a deadlock", {"write": written_again}, "update"),
    one("writes-values", "updates through a join with VALUES", written(by_values), "update"),
    one("locking-update", "locks rows before updating them", {"update": locking_update}, "update"),
    one("may-keep-numbers", "draws new numbers regardless of the old numbers", {"new_number": lambda self, session, old: session.dice.randint(1, ROWS)}, "update"),
    one("utf-16", "sorts fortunes by UTF-16 code units", {"order": lambda self, fortunes: sorted(ReferenceServer.order(self, fortunes), key=lambda row: row[1].encode("utf-16-be"))}, "fortune"),
    one("plus-sign", "accepts a plus sign; draws distinct ids in ascending order", {
        "count": lambda self, text: ReferenceServer.count(self, (text or "").removeprefix("+")),
        "draw": lambda self, session, count: sorted(self.draw_different(session, count))}, "query", "cached-query", "update"),
    one("dressed-page", "adds thead, tbody, classes and a meta element", {"page": dressed}, "fortune"),
)  # fmt: skip
