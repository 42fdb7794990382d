"""Honest variants: servers that keep every requirement in another way than the reference server does.

An objection to one of them is a defect of verification, as bad as a rogue that passes.
"""

import json
import queue
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import formatdate
from functools import partial
from typing import Any

import psycopg

from harness.runtime import DatabaseAddress
from harness.tests.doubles import reference
from harness.tests.doubles.reference import ROWS, Ids, Line, ReferenceServer, Reply, Request, Rows, Session

WORLD = ("db", "query", "update")
READS = ("db", "query")
CHEAP = ("json", "plaintext")
EVERY = ("json", "plaintext", "db", "query", "cached-query", "update", "fortune")

SELECT = "SELECT id, randomnumber FROM world WHERE id = %s"
UPDATE = "UPDATE world SET randomnumber = %s WHERE id = %s"

Change = Mapping[str, Any]
Fields = list[tuple[str, str]]


@dataclass(frozen=True, kw_only=True)
class Honest:
    """The reference server done otherwise, in ways that the requirements leave open."""

    name: str
    does: str
    change: Change
    test_types: tuple[str, ...]
    pool: int = reference.POOL
    base: type[ReferenceServer] = ReferenceServer

    def server(self, database: DatabaseAddress | None) -> ReferenceServer:
        made: ReferenceServer = type("HonestServer", (self.base,), {**self.change, "pool_size": self.pool})(database)
        return made


# ---- messages --------------------------------------------------------------------------------------------------------


def headed(change: Callable[[Fields], Fields], base: type[ReferenceServer] = ReferenceServer) -> Change:
    return {"headers": lambda self, reply: change(base.headers(self, reply))}


def typed(json_type: str, text_type: str = "text/plain") -> Change:
    """Content-Type spelt otherwise."""
    other = {"application/json": json_type, "text/plain": text_type}

    def change(fields: Fields) -> Fields:
        return [(name, other.get(value, value) if name == "Content-Type" else value) for name, value in fields]

    return headed(change)


def chunked(size: int, *, extension: str = "", trailer: str = "", upper: bool = False) -> Change:
    """Bodies in chunks of this size."""

    def encode(self: ReferenceServer, request: Request | None, reply: Reply) -> bytes:
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
    kept: tuple[int, str] | None = self.state.get("date")
    if kept is None or kept[0] != now:
        kept = (now, formatdate(now, usegmt=True))
        self.state["date"] = kept
    return kept[1]


def dumped(**options: Any) -> Change:
    return {"encode_json": lambda self, document: json.dumps(document, **options).encode()}


def head_without_length(self: ReferenceServer, request: Request | None, reply: Reply) -> bytes:
    answer = ReferenceServer.encode(self, request, reply)
    if request is None or request.method != "HEAD":
        return answer
    return b"\r\n".join(line for line in answer.split(b"\r\n") if not line.startswith(b"Content-Length"))


def not_found_page(self: ReferenceServer, request: Request) -> Reply:
    return Reply(status=404, content_type="text/html; charset=utf-8", body=b"<!DOCTYPE html><title>404</title>")


def slow(seconds: float, base: type[ReferenceServer] = ReferenceServer) -> Change:

    def reply(self: ReferenceServer, session: Session, request: Request) -> Reply:
        time.sleep(seconds)
        return base.reply(self, session, request)

    return {"reply": reply}


# ---- rows ------------------------------------------------------------------------------------------------------------


def selected(text: str) -> Change:

    def rows(self: ReferenceServer, session: Session, connection: Line, ids: Ids) -> Rows:
        with connection.cursor() as cursor:
            cursor.executemany(text.encode(), [(i,) for i in ids], returning=True)
            found = [cursor.fetchall()[0] for _ in cursor.results()]
        return [(row[0], row[1]) for row in found]

    return {"rows": rows}


def one_by_one(self: ReferenceServer, session: Session, connection: Line, ids: Ids) -> Rows:
    return [connection.execute(SELECT, (i,)).fetchall()[0] for i in ids]


def simple_protocol(self: ReferenceServer, session: Session, connection: Line, ids: Ids) -> Rows:
    cursor = psycopg.ClientCursor(connection)
    return [cursor.execute(SELECT, (i,)).fetchall()[0] for i in ids]


def commented(self: ReferenceServer, session: Session, connection: Line, ids: Ids) -> Rows:
    """sqlcommenter's habit: where the statement came from, in a comment that differs each time."""
    found = []
    for i in ids:
        text = f"{SELECT} /*action='update',traceparent='{random.getrandbits(64):x}'*/"
        found += connection.execute(text.encode(), (i,)).fetchall()
    return found


def within(begin: str, end: str) -> Change:

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
    """Autocommit off, and the end of a read left to the next request on the connection."""
    with ReferenceServer.connection(self) as line:
        line.commit()
        line.autocommit = False
        yield line


@contextmanager
def a_connection_each(self: ReferenceServer) -> Iterator[psycopg.Connection]:
    with self.connect() as line:
        yield line


def refreshed(self: ReferenceServer, session: Session, test_type: str, request: Request) -> bytes:
    """cached-query out of a cache that a thread of the server refreshes each half second."""
    if test_type != "cached-query":
        return ReferenceServer.body(self, session, test_type, request)
    with self.lock:
        first = "cache" not in self.state
        self.state.setdefault("cache", {})
    if first:
        refresh(self)
        threading.Thread(target=refreshing, args=(self,), daemon=True).start()
    while not self.state["cache"]:
        time.sleep(0.005)
    cache: dict[int, int] = self.state["cache"]
    ids = self.draw(session, self.count(self.parameter(request.query)))
    return self.encode_json(self.array([(i, cache[i]) for i in ids]))


def refreshed_by_others(self: ReferenceServer, session: Session, test_type: str, request: Request) -> bytes:
    """A cache that is refreshed while other tests are asked, as one is that a timer refreshes every few seconds."""
    if test_type != "cached-query" and time.time() > self.state.get("refreshed", 0.0) + 0.05:
        self.state["refreshed"] = time.time()
        refresh(self)
    if test_type != "cached-query":
        return ReferenceServer.body(self, session, test_type, request)
    cache: dict[int, int] = self.state["cache"]
    ids = self.draw(session, self.count(self.parameter(request.query)))
    return self.encode_json(self.array([(i, cache[i]) for i in ids]))


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


# ---- updates ---------------------------------------------------------------------------------------------------------


def written(write: Callable[[Line, Rows], object]) -> Change:

    def method(self: ReferenceServer, session: Session, connection: Line, rows: Rows) -> None:
        write(connection, rows)

    return {"write": method}


def each_alone(connection: Line, rows: Rows, text: str = UPDATE) -> None:
    for identifier, number in rows:
        connection.execute(text.encode(), (number, identifier))


def in_a_transaction(connection: Line, rows: Rows) -> None:
    with connection.transaction():
        each_alone(connection, rows)


def written_again(self: ReferenceServer, session: Session, connection: Line, rows: Rows) -> None:
    """Once from the last row to the first, which meets others that come the other way; who is ended tries again."""
    with self.lock:
        backwards = len(rows) == 500 and self.open_connections > 4 and "backwards" not in self.state
        if backwards:
            self.state["backwards"] = True
    while True:
        try:
            return in_a_transaction(connection, rows[::-1] if backwards else rows)
        except psycopg.errors.DeadlockDetected:
            backwards = False


def batched(connection: Line, rows: Rows, text: str = UPDATE) -> None:
    with connection.cursor() as cursor:
        cursor.executemany(text.encode(), [(number, identifier) for identifier, number in rows])


def by_values(connection: Line, rows: Rows) -> None:
    values = ", ".join(["(%s::int, %s::int)"] * len(rows))
    text = f"UPDATE world SET randomnumber = v.number FROM (VALUES {values} ORDER BY 1) AS v (id, number) WHERE world.id = v.id"
    connection.execute(text.encode(), [value for row in rows for value in row])


def by_case(connection: Line, rows: Rows) -> None:
    cases = " ".join(["WHEN %s THEN %s"] * len(rows))
    text = f"UPDATE world SET randomnumber = CASE id {cases} END WHERE id = ANY(%s)"
    connection.execute(text.encode(), [*(value for row in rows for value in row), [i for i, _ in rows]])


def locking_update(self: ReferenceServer, session: Session, connection: Line, count: int) -> Rows:
    with connection.transaction():
        ids = sorted(self.draw_different(session, count))
        old = [connection.execute(f"{SELECT} FOR UPDATE".encode(), (i,)).fetchall()[0] for i in ids]
        new = [(identifier, self.new_number(session, number)) for identifier, number in old]
        self.write(session, connection, new)
    return new


# ---- fortunes --------------------------------------------------------------------------------------------------------


def page(before: str, row: str, after: str) -> Change:

    def method(self: ReferenceServer, fortunes: Sequence[tuple[int, str]]) -> bytes:
        return (before + "".join(row.format(i, self.escape(m)) for i, m in fortunes) + after).encode()

    return {"page": method}


HEAD = "<!DOCTYPE html><html><head><title>Fortunes</title></head><body><table>"
TITLES = "<tr><th>id</th><th>message</th></tr>"
ROW = "<tr><td>{}</td><td>{}</td></tr>"
END = "</table></body></html>"


def one(name: str, does: str, change: Change, *test_types: str, pool: int = reference.POOL) -> Honest:
    return Honest(name=name, does=does, change=change, test_types=test_types, pool=pool)


HONEST: tuple[Honest, ...] = (
    one("reference", "is the reference server", {}, *EVERY),
    # framing and header fields
    one("chunked", "sends bodies in one chunk", chunked(100_000), *EVERY),
    one("small-chunks", "sends bodies in chunks of 7 bytes", chunked(7), "json", "db", "fortune"),
    one("chunk-extensions", "has extensions behind the sizes of chunks", chunked(64, extension=";a=b"), *CHEAP),
    one("upper-case-chunks", "writes sizes of chunks in upper case", chunked(171, upper=True), "query"),
    one("trailers", "has a trailer section", chunked(64, trailer="Expires: 0\r\n"), "json"),
    one("segments", "sends head and body in segments of their own", {"send": in_pieces}, *CHEAP, "db"),
    one("lower-case-names", "writes header names in lower case", headed(lambda f: [(n.lower(), v) for n, v in f]), *CHEAP),
    one("upper-case-names", "writes header names in upper case", headed(lambda f: [(n.upper(), v) for n, v in f]), *CHEAP),
    one("reversed-headers", "orders header fields otherwise", headed(lambda f: f[::-1]), *CHEAP, "fortune"),
    one("says-keep-alive", "says Connection: keep-alive", headed(lambda f: [*f, ("Connection", "keep-alive")]), *CHEAP),
    one("keep-alive-timeout", "says Keep-Alive: timeout=60", headed(lambda f: [*f, ("Keep-Alive", "timeout=60")]), *CHEAP),
    one("frameworks-headers", "has Vary, ETag and others", headed(lambda f: [*f, ("Vary", "Accept"), ("ETag", '"1"'), ("Cache-Control", "no-cache"), ("X-Powered-By", "it")]), *CHEAP, "db"),
    one("padded-values", "puts blanks around values", headed(lambda f: [(n, f" {v}\t") for n, v in f]), *CHEAP),
    one("empty-reason", "leaves the reason phrase empty", {"status_line": lambda self, reply: f"HTTP/1.1 {reply.status} "}, *CHEAP),
    one("other-reason", "has a reason phrase of its own", {"status_line": lambda self, reply: f"HTTP/1.1 {reply.status} Fine"}, *CHEAP),
    one("cached-date", "refreshes Date once a second", {"date": cached_date}, *CHEAP, "db"),
    one("charset", "says charset=utf-8", typed("application/json; charset=utf-8", "text/plain; charset=utf-8"), *CHEAP, "db"),
    one("quoted-charset", 'says charset="UTF-8"', typed('application/json;charset="UTF-8"', 'text/plain;charset="UTF-8"'), *CHEAP),
    one("upper-case-charset", "says charset=UTF-8", typed("application/json;charset=UTF-8", "Text/Plain; charset=UTF-8"), *CHEAP),
    one("head-without-length", "answers HEAD without Content-Length", {"encode": head_without_length}, *CHEAP),
    one("not-implemented", "answers DELETE with 501", {"unsupported": lambda *_: Reply(status=501)}, *CHEAP),
    one("page-for-404", "answers 404 with a page", {"unknown": not_found_page}, *CHEAP),
    # JSON
    one("json-with-blanks", "puts blanks into JSON", dumped(), "json", "db", "query", "update"),
    one("indented-json", "indents JSON", dumped(indent=2), "json", "query"),
    one("sorted-keys", "sorts keys backwards", {"row": lambda self, i, n: {"randomNumber": n, "id": i}}, "db", "query"),
    one("escaped-json", "escapes characters that need not be", {"json_body": lambda self: b'{"message":"Hello\\u002c World\\u0021"}'}, "json"),
    # single tests
    *(one(f"only-{name}", f"declares {name} alone", {}, name) for name in EVERY),
    # slow ones
    one("slow", "takes 20 ms an answer", slow(0.02), "json", "db"),
    one("very-slow", "takes 150 ms an answer", slow(0.15), "fortune"),
    # pools and connections
    one("pool-of-one", "has one connection", {}, *WORLD, "fortune", pool=1),
    one("pool-of-two", "has two connections", {}, *WORLD, pool=2),
    one("pool-of-fifty", "has fifty connections", {}, *WORLD, pool=50),
    one("pool-of-two-hundred", "has two hundred connections", {}, "db", "query", pool=200),
    one("connection-each", "connects for each request", {"connection": a_connection_each}, "db", "fortune"),
    # transactions
    one("transactions", "commits each request", within("BEGIN", "COMMIT"), *WORLD, "fortune"),
    one("read-only-transactions", "reads in READ ONLY transactions", within("BEGIN READ ONLY", "COMMIT"), *READS, "fortune"),
    one("repeatable-read", "reads in REPEATABLE READ", within("BEGIN ISOLATION LEVEL REPEATABLE READ", "COMMIT"), *READS),
    one("rolls-reads-back", "ends reads with ROLLBACK", within("BEGIN", "ROLLBACK"), *READS, "fortune"),
    one("open-transactions", "leaves a read's transaction open", {"connection": committed_by_the_next}, *READS, "fortune"),
    # statements that read
    one("one-by-one", "makes a round trip a row", {"rows": one_by_one}, *WORLD),
    one("simple-protocol", "sends literals in the simple protocol", {"rows": simple_protocol}, *READS),
    one("twin", "reads the quoted table", selected('SELECT id, randomnumber FROM "World" WHERE id = %s'), *READS),
    one("qualified", "names the schema", selected("SELECT w.id, w.randomnumber FROM public.world AS w WHERE w.id = %s"), *READS),
    one("object-mapper", "selects as Hibernate does", selected("select w1_0.id,w1_0.randomnumber from world w1_0 where w1_0.id=%s"), *READS),
    one("django", "selects as Django does", selected('SELECT "world"."id", "world"."randomnumber" FROM "world" WHERE "world"."id" = %s LIMIT 21'), *READS),
    one("select-star", "selects *", selected("SELECT * FROM world WHERE id = %s"), *READS),
    one("limited", "says LIMIT 1", selected(f"{SELECT} LIMIT 1"), *READS),
    one("locks-rows", "reads FOR UPDATE", selected(f"{SELECT} FOR UPDATE"), "db"),
    one("locks-keys", "reads FOR NO KEY UPDATE", selected(f"{SELECT} FOR NO KEY UPDATE"), "db"),
    one("comments", "has a comment with the word update", selected(f"{SELECT} -- update, insert, delete"), *READS),
    one("sqlcommenter", "has comments that differ each time", {"rows": commented}, "db"),
    one("different-ids", "draws no id twice in a request", {"draw": lambda self, session, count: session.dice.sample(range(1, ROWS + 1), count)}, "query"),
    one("refreshes-a-cache", "refreshes the cache of cached-query", {"body": refreshed}, "db", "query", "cached-query"),
    one("refreshes-a-cache-seldom", "refreshes the cache of cached-query while other tests are asked", {"body": refreshed_by_others}, "db", "query", "cached-query"),
    # statements that write
    one("writes-each-alone", "writes row by row", written(each_alone), "update"),
    one("writes-in-a-transaction", "writes row by row in one transaction", written(in_a_transaction), "update"),
    one("writes-again", "writes again after a deadlock", {"write": written_again}, "update"),
    one("writes-a-batch", "writes a batch", written(batched), "update"),
    one("writes-values", "writes by a join with VALUES", written(by_values), "update"),
    one("writes-by-case", "writes by CASE", written(by_case), "update"),
    one("writes-returning", "writes with RETURNING", written(partial(each_alone, text=f"{UPDATE} RETURNING id")), "update"),
    one("commented-update", "has a comment with the word select", written(partial(batched, text="/* select for world */ UPDATE public.world AS w SET randomnumber = %s WHERE w.id = %s -- done")), "update"),
    one("locking-update", "locks what it updates", {"update": locking_update}, "update"),
    one("may-keep-numbers", "draws new numbers without a look at the old", {"new_number": lambda self, session, old: session.dice.randint(1, ROWS)}, "update"),
    # pages
    one("bare-page", "leaves out what HTML lets one leave out", page("<!doctype html><title>Fortunes</title><table>" + TITLES, ROW, END), "fortune"),
    one("dressed-page", "has thead, tbody, classes and meta", page(
        '<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8"><title>Fortunes</title></head>\n<body>\n<table class="t">\n'
        "<thead><tr><th>id</th><th>message</th></tr></thead>\n<tbody>\n",
        '<tr class="r">\n  <td>{}</td>\n  <td>{}</td>\n</tr>\n', "</tbody>\n" + END), "fortune"),
    one("upper-case-page", "writes tags in upper case", page(
        "<!DOCTYPE HTML><HTML><HEAD><TITLE>Fortunes</TITLE></HEAD><BODY><TABLE><TR><TH>id</TH><TH>message</TH></TR>",
        "<TR><TD>{}</TD><TD>{}</TD></TR>", "</TABLE></BODY></HTML>"), "fortune"),
    one("unclosed-rows", "leaves end tags of rows and cells out", page(HEAD + "<tr><th>id<th>message", "<tr><td>{}<td>{}", END), "fortune"),
    one("escapes-by-number", "escapes by numbers", {"escape": lambda self, message: "".join(f"&#{ord(c)};" if c in "<>&\"'/" else c for c in message)}, "fortune"),
    one("escapes-what-must", "escapes no quotes", {"escape": lambda self, message: message.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")}, "fortune"),
    one("chunked-page", "sends the page in chunks of 100 bytes", chunked(100), "fortune"),
)  # fmt: skip
