"""The rogues' gallery: servers that break one requirement each, as a table of changes to the reference server.

Each entry names the check that is meant to catch it. ``harness/tests/checks/test_rogues.py`` holds that every one is
caught by that check, and that no check could be removed without one of them getting through.
"""

import gzip
import json
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from email.utils import formatdate
from functools import partial
from typing import Any

import psycopg

from harness.runtime import DatabaseAddress
from harness.testing.reference import ROWS, TEST_TYPES, ReferenceServer, Reply, Request, Row, Session
from harness.testing.rogue_pages import PAGES

Server = ReferenceServer


@dataclass(frozen=True, kw_only=True)
class Rogue:
    """A reference server with some methods replaced."""

    name: str
    test_type: str  # the test in which it misbehaves; "http" where it is the server as a whole
    caught_by: str  # the check meant for it
    does: str  # what it does wrong, in a few words
    change: Mapping[str, Callable[..., Any]]
    after_load: bool = False  # misbehaves only while many connections are open

    def server(self, database: DatabaseAddress | None = None) -> ReferenceServer:
        """A new server of this kind."""
        return type(f"Rogue_{self.name}", (ReferenceServer,), dict(self.change))(database)


def rogues(
    test_type: str, *entries: tuple[str, str, str, Mapping[str, Callable[..., Any]]], after_load: bool = False
) -> Iterator[Rogue]:
    """Several rogues of one test: (name, caught by, does, change)."""
    for name, caught_by, does, change in entries:
        yield Rogue(
            name=name, test_type=test_type, caught_by=caught_by, does=does, change=change, after_load=after_load
        )


# ---- the connection --------------------------------------------------------------------------------------------------


def every(count: int, self: Server) -> bool:
    """True at each ``count``-th call."""
    with self.lock:
        self.state["calls"] = self.state.get("calls", 0) + 1
        return bool(self.state["calls"] % count == 0)


def swallow_some(self: Server, answers: list[tuple[Request, Reply]]) -> list[tuple[Request, Reply]]:
    return [] if every(20, self) else answers


def fail_some(self: Server, session: Session, request: Request) -> Reply:
    return Reply(status=500) if every(20, self) else Server.reply(self, session, request)


def header(name: str, value: str | None) -> dict[str, Callable[..., Any]]:
    """Replace, add or (None) leave out a header field."""

    def headers(self: Server, reply: Reply) -> list[tuple[str, str]]:
        kept = [pair for pair in Server.headers(self, reply) if pair[0] != name]
        return kept if value is None else [*kept, (name, value)]

    return {"headers": headers}


def encode_with(change: Callable[[bytes], bytes]) -> dict[str, Callable[..., Any]]:
    """Change the bytes of every good response."""

    def encode(self: Server, request: Request | None, reply: Reply) -> bytes:
        data = Server.encode(self, request, reply)
        return change(data) if reply.status == 200 else data

    return {"encode": encode}


def close_delimited(self: Server, session: Session, request: Request) -> Reply:
    reply = Server.reply(self, session, request)
    reply.close = True
    return reply


def without_length(self: Server, reply: Reply) -> list[tuple[str, str]]:
    return [pair for pair in Server.headers(self, reply) if pair[0] not in ("Content-Length", "Connection")]


def length_off_by(offset: int, self: Server, reply: Reply) -> list[tuple[str, str]]:
    return [(n, f"{int(v) + offset}" if n == "Content-Length" else v) for n, v in Server.headers(self, reply)]


def close_after_ten(self: Server, session: Session, request: Request) -> Reply:
    reply = Server.reply(self, session, request)
    session.state["served"] = session.state.get("served", 0) + 1
    reply.close = session.state["served"] == 10
    return reply


def date_at_start(self: Server) -> str:
    return str(self.state.setdefault("date", formatdate(time.time(), usegmt=True)))


def compress(self: Server, session: Session, request: Request) -> Reply:
    reply = Server.reply(self, session, request)
    if reply.status == 200:
        reply.body = gzip.compress(reply.body)
        reply.headers.append(("Content-Encoding", "gzip"))
    return reply


def case_sensitive(self: Server, lines: Sequence[str]) -> dict[str, str]:
    pairs = {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return {name.lower(): value for name, value in pairs.items() if name == name.title() or name.lower() == "host"}


def reverse(self: Server, answers: list[tuple[Request, Reply]]) -> list[tuple[Request, Reply]]:
    return answers[::-1]


def first_of_many(self: Server, data: bytes) -> tuple[list[Request], bytes, int | None]:
    requests, _, error = Server.split(self, data)
    return requests[:1], b"" if requests else data, error


def drop_the_rest(self: Server, data: bytes) -> tuple[list[Request], bytes, int | None]:
    requests, rest, error = Server.split(self, data)
    return requests, b"" if requests else rest, error


def whole_first_line(self: Server, data: bytes) -> tuple[list[Request], bytes, int | None]:
    return Server.split(self, data) if b"\r\n" in data else ([], b"", 400)


def no_absolute_form(self: Server, head: bytes) -> Request | None:
    return None if b" http://" in head.split(b"\r\n")[0] else Server.parse(self, head)


def short_targets(self: Server, session: Session, request: Request) -> Reply:
    return Reply(status=414) if len(request.query) > 1000 else Server.reply(self, session, request)


def body_of_head(self: Server, request: Request | None, reply: Reply) -> bytes:
    return Server.encode(self, None, reply)


def head_fails(self: Server, session: Session, request: Request) -> Reply:
    return Reply(status=500) if request.method == "HEAD" else Server.reply(self, session, request)


def refuse_with(status: int, only: int, self: Server, line: socket.socket, error: int) -> None:
    line.sendall(self.encode(None, Reply(status=status if error == only else error, close=True)))


def die(only: int, self: Server, line: socket.socket, error: int) -> None:
    if error == only:
        self.stop()
    else:
        Server.refuse(self, line, error)


HTTP = (
    *rogues(
        "json",
        ("swallows-requests", "answered", "leaves every 20th request unanswered", {"arrange": swallow_some}),
        ("fails-sometimes", "status-ok", "answers every 20th request with 500", {"reply": fail_some}),
        (
            "lengths-too-long",
            "length-exact",
            "Content-Length is two more than the body has",
            {"headers": lambda self, reply: length_off_by(2, self, reply)},
        ),
        (
            "json-as-text",
            "content-type",
            "says text/plain of JSON",
            {"headers": lambda self, reply: [("Content-Type", "text/plain"), *without(self, reply, "Content-Type")]},
        ),
        ("json-in-latin-1", "content-type", "charset=iso-8859-1", header("Content-Type", "application/json;charset=iso-8859-1")),
        ("closes-after-ten", "keep-alive", "closes each connection after ten requests", {"reply": close_after_ten}),
    ),
    *rogues(
        "http",
        ("speaks-http-1.0", "message-grammar", "answers as HTTP/1.0", encode_with(lambda d: d.replace(b"1.1", b"1.0", 1))),
        (
            "header-without-colon",
            "message-grammar",
            "sends a header line without a colon",
            encode_with(lambda d: d.replace(b"\r\n", b"\r\nX-Powered-By rogue\r\n", 1)),
        ),
        (
            "length-and-chunked",
            "message-grammar",
            "declares Content-Length and chunked at once",
            encode_with(lambda d: chunked(d, keep_length=True)),
        ),
        (
            "ends-bodies-by-closing",
            "length-declared",
            "declares no length and closes",
            {"reply": close_delimited, "headers": without_length},
        ),
        ("stray-line-end", "length-exact", "sends two bytes more than declared", encode_with(lambda d: d + b"\r\n")),
        ("nameless", "server-header", "sends no Server header", header("Server", None)),
        ("dateless", "date-form", "sends no Date", header("Date", None)),
        (
            "date-in-rfc-850-form",
            "date-form",
            "writes Date as 'Sunday, 06-Nov-94 08:49:37 GMT'",
            {"date": lambda self: time.strftime("%A, %d-%b-%y %H:%M:%S GMT", time.gmtime())},
        ),
        (
            "date-an-hour-off",
            "date-now",
            "writes local time as GMT",
            {"date": lambda self: formatdate(time.time() + 3600, usegmt=True)},
        ),
        (
            "date-ten-seconds-old",
            "date-now",
            "refreshes Date every 20 s",
            {"date": lambda self: formatdate(time.time() - 10, usegmt=True)},
        ),
        ("fixed-date", "date-moves", "makes Date once", {"date": date_at_start}),
        ("compresses-unasked", "no-compression", "sends gzip to clients that did not ask", {"reply": compress}),
        ("sets-cookies", "no-state", "starts a session", header("Set-Cookie", "session=1; Path=/")),
        (
            "keeps-connections",
            "connection-close",
            "ignores Connection: close",
            {"honours_close": lambda self, request: False},
        ),
        (
            "case-sensitive-names",
            "header-names-any-case",
            "knows header names in one spelling only",
            {"parse_headers": case_sensitive},
        ),
        ("answers-one-of-many", "pipelining", "drops pipelined requests after the first", {"split": first_of_many}),
        ("answers-out-of-order", "pipelining", "answers pipelined requests last first", {"arrange": reverse}),
        ("forgets-half-requests", "request-across-segments", "drops what follows a request", {"split": drop_the_rest}),
        (
            "one-segment-only",
            "request-in-segments",
            "takes the first segment for the whole request line",
            {"split": whole_first_line},
        ),
        ("no-absolute-form", "absolute-form", "refuses a target in absolute form", {"parse": no_absolute_form}),
        ("short-targets-only", "long-query-string", "414 above 1,000 characters", {"reply": short_targets}),
        ("head-with-body", "head-request", "sends a body after HEAD", {"encode": body_of_head}),
        ("head-fails", "head-request", "500 on HEAD", {"reply": head_fails}),
        ("everything-exists", "unknown-path", "200 on every path", {"unknown": lambda self, request: Reply(body=b"hi")}),
        (
            "redirects-strangers",
            "unknown-path",
            "302 on unknown paths",
            {"unknown": lambda self, request: Reply(status=302, headers=[("Location", "/")])},
        ),
        (
            "any-method",
            "unsupported-method",
            "DELETE is as good as GET",
            {"unsupported": lambda self, request: Reply(content_type="application/json", body=self.json_body())},
        ),
        (
            "error-on-oversized-header",
            "oversized-header",
            "500 on a header of a megabyte",
            {"refuse": partial_method(refuse_with, 500, 431)} if False else {},
        ),
    ),
)
