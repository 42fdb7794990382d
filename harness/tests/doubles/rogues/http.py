"""Rogues that violate HTTP."""

import gzip
import re
import socket
import time
from collections.abc import Callable, Sequence
from email.utils import formatdate
from functools import partialmethod

from harness.tests.doubles.http_double import ClientSession, ReceivedRequest, Reply
from harness.tests.doubles.reference import ReferenceServer
from harness.tests.doubles.rogues import Change, Rogue, every

Answers = list[tuple[ReceivedRequest, Reply]]
Split = tuple[list[ReceivedRequest], bytes, int | None]


def field(name: str, value: str | None) -> Change:
    """Add or replace a header field. The value None removes it."""

    def headers(self: ReferenceServer, reply: Reply) -> list[tuple[str, str]]:
        kept = [pair for pair in ReferenceServer.headers(self, reply) if pair[0] != name]
        return kept if value is None or reply.status != 200 else [*kept, (name, value)]

    return {"headers": headers}


def bytes_changed(change: Callable[[bytes], bytes]) -> Change:

    def encode(self: ReferenceServer, request: ReceivedRequest | None, reply: Reply) -> bytes:
        data = ReferenceServer.encode(self, request, reply)
        return change(data) if reply.status == 200 else data

    return {"encode": encode}


def close_each(self: ReferenceServer, session: ClientSession, request: ReceivedRequest) -> Reply:
    reply = ReferenceServer.reply(self, session, request)
    reply.close = True
    return reply


def close_after(requests: int, beside: int = 0) -> Callable[[ReferenceServer, ClientSession, ReceivedRequest], Reply]:
    """Return a method that closes each connection after ``requests`` requests.

    It closes none until more than ``beside`` connections have each sent at least two requests.
    """

    def reply(self: ReferenceServer, session: ClientSession, request: ReceivedRequest) -> Reply:
        response = ReferenceServer.reply(self, session, request)
        with self.lock:
            counts = self.state.setdefault("asked", {})
            counts[session.number] = counts.get(session.number, 0) + 1
            busy = sum(number > 1 for number in counts.values()) > beside
            response.close = response.close or (busy and counts[session.number] >= requests)
        return response

    return reply


def without_length(self: ReferenceServer, reply: Reply) -> list[tuple[str, str]]:
    dropped = ("Content-Length", "Connection")
    return [pair for pair in ReferenceServer.headers(self, reply) if pair[0] not in dropped]


def longer(data: bytes) -> bytes:
    return re.sub(rb"Content-Length: (\d+)", lambda match: b"Content-Length: %d" % (int(match[1]) + 2), data)


def date_off(self: ReferenceServer, seconds: float) -> str:
    return formatdate(time.time() + seconds, usegmt=True)


def compress(self: ReferenceServer, session: ClientSession, request: ReceivedRequest) -> Reply:
    reply = ReferenceServer.reply(self, session, request)
    if reply.status == 200:
        reply.body = gzip.compress(reply.body)
        reply.headers.append(("Content-Encoding", "gzip"))
    return reply


def one_spelling(self: ReferenceServer, lines: Sequence[str]) -> dict[str, str]:
    known = [line for line in lines if (name := line.partition(":")[0]) == name.title() or name.lower() == "host"]
    return ReferenceServer.parse_headers(self, known)


def first_of_many(self: ReferenceServer, data: bytes) -> Split:
    requests, rest, error = ReferenceServer.split(self, data)
    return requests[:1], rest, error


def drop_the_rest(self: ReferenceServer, data: bytes) -> Split:
    requests, rest, error = ReferenceServer.split(self, data)
    return requests, b"" if requests else rest, error


def die_of(self: ReferenceServer, only: int, line: socket.socket, error: int) -> None:
    if error == only:
        self.stop()
    else:
        ReferenceServer.refuse(self, line, error)


def say_nothing(self: ReferenceServer, line: socket.socket, error: int) -> None:
    if error == 400:
        time.sleep(5)


ROGUES = (
    Rogue("swallows-requests", "json", "answered", "leaves every 20th request unanswered", {"arrange": lambda self, answers: [] if every(self, 20) else answers}),
    Rogue("fails-sometimes", "json", "status-ok", "responds to every 20th request with status 500", {"reply": lambda self, session, request: Reply(status=500) if every(self, 20) else ReferenceServer.reply(self, session, request)}),
    Rogue("speaks-http-1.0", "http", "message-grammar", "responds with HTTP/1.0", bytes_changed(lambda data: data.replace(b"HTTP/1.1", b"HTTP/1.0", 1))),
    Rogue("ends-bodies-by-closing", "json", "length-exact", "omits Content-Length and closes the connection", {"reply": close_each, "headers": without_length}),
    Rogue("length-too-long", "json", "length-exact", "declares two bytes more than it sends", bytes_changed(longer)),
    Rogue("stray-line-end", "json", "length-exact", "sends a line break after the body", bytes_changed(lambda data: data + b"\r\n")),
    Rogue("closes-each-time", "json", "keep-alive", "closes the connection after each response", {"reply": close_each}),
    Rogue("closes-after-hundred", "http", "keep-alive", "closes each connection after 100 requests", {"reply": close_after(100)}),
    Rogue("closes-for-others", "http", "keep-alive", "closes connections after 10 requests if more than 8 are in use", {"reply": close_after(10, beside=8)}),
    Rogue("nameless", "http", "server-header", "sends no Server header", field("Server", None)),
    Rogue("dateless", "http", "date-form", "sends no Date header", field("Date", None)),
    Rogue("date-in-local-time", "json", "date-now", "sends local time as GMT in Date", {"date": partialmethod(date_off, 3600)}),
    Rogue("date-fixed", "http", "date-moves", "never updates the Date header", {"date": lambda self: str(self.state.setdefault("date", formatdate(time.time(), usegmt=True)))}),
    Rogue("json-as-text", "json", "content-type", "declares JSON as text/plain", field("Content-Type", "text/plain")),
    Rogue("compresses-unasked", "http", "no-compression", "sends gzip without Accept-Encoding", {"reply": compress}),
    Rogue("sets-cookies", "http", "no-state", "sets a session cookie", field("Set-Cookie", "session=1; Path=/")),
    Rogue("never-closes", "http", "connection-close", "ignores Connection: close", {"honours_close": lambda *_: False}),
    Rogue("one-spelling", "http", "header-names-any-case", "accepts header names only in title case", {"parse_headers": one_spelling}),
    Rogue("one-of-many", "http", "pipelining", "responds only to the first of several pipelined requests", {"split": first_of_many}),
    Rogue("last-come-first-served", "http", "pipelining", "responds to pipelined requests in reverse order", {"arrange": lambda self, answers: answers[::-1]}),
    Rogue("forgets-halves", "http", "request-across-segments", "discards the incomplete request after a complete one", {"split": drop_the_rest}),
    Rogue("one-segment-only", "http", "request-in-segments", "requires each request line to arrive in one segment", {"split": lambda self, data: ReferenceServer.split(self, data) if b"\r\n" in data else ([], b"", 400)}),
    Rogue("no-absolute-form", "http", "absolute-form", "refuses absolute-form targets", {"parse": lambda self, head: None if b" http://" in head.split(b"\r\n")[0] else ReferenceServer.parse(self, head)}),
    Rogue("short-targets-only", "http", "long-query-string", "responds with 414 to targets above 1,000 characters", {"reply": lambda self, session, request: Reply(status=414) if len(request.query) > 1000 else ReferenceServer.reply(self, session, request)}),
    Rogue("head-with-body", "http", "head-request", "sends a body in response to HEAD", {"encode": lambda self, request, reply: ReferenceServer.encode(self, None, reply)}),
    Rogue("head-fails", "http", "head-request", "responds to HEAD with status 500", {"reply": lambda self, session, request: Reply(status=500) if request.method == "HEAD" else ReferenceServer.reply(self, session, request)}),
    Rogue("everything-exists", "http", "unknown-path", "responds to every path with status 200", {"unknown": lambda *_: Reply(body=b"welcome")}),
    Rogue("prefixes-suffice", "http", "unknown-path", "serves any path that starts with a declared path", {"parse": lambda self, head: ReferenceServer.parse(self, re.sub(rb"\A(GET /[a-z]+)-\w+", rb"\1", head))}),
    Rogue("any-method", "http", "unsupported-method", "accepts DELETE", {"unsupported": lambda *_: Reply(content_type="application/json", body=b'{"deleted":true}')}),
    Rogue("dies-of-oversized", "http", "oversized-header", "exits after a 1 MB header", {"refuse": partialmethod(die_of, 431)}),
    Rogue("dies-of-garbage", "http", "garbage", "exits after bytes that are not HTTP", {"refuse": partialmethod(die_of, 400)}),
    Rogue("hangs-on-garbage", "http", "garbage", "neither responds to bytes that are not HTTP nor closes", {"refuse": say_nothing}),
)  # fmt: skip
