"""Attack: responses try to crash, block or exhaust verification. It must reject them in bounded time."""

import gzip
import json
import socket
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from harness.plan.requests import Expect, PreparedRequest
from harness.plan.testtypes.registry import TEST_TYPES
from harness.records.verification_record import Outcome
from harness.runtime import Endpoint
from harness.runtime.crashes import find_crashes
from harness.tests.verify.subjects import exchange
from harness.verify.checks import expectations
from harness.verify.checks.evidence import Evidence, TableVersion
from harness.verify.verification import PLAIN, rows_variant, run_checks
from harness.verify.wire import Connection, WireError

SECONDS = 20.0  # limit for one response's checks on a busy machine; an idle machine needs a fraction of a second
MIB = 1 << 20


def quine() -> bytes:
    """Return data compressed with gzip 500 times."""
    data = b"{}"
    for _ in range(500):
        data = gzip.compress(data)
    return data


BODIES: dict[str, bytes] = {
    "nested arrays": b"[" * 20_000 + b"]" * 20_000,
    "nested objects": b'{"a":' * 20_000 + b"1" + b"}" * 20_000,
    "unclosed arrays": b"[" * MIB,
    "a huge integer": b'{"message":' + b"9" * 100_000 + b"}",
    "a huge integer as a row": b'{"id":' + b"1" * 4_301 + b',"randomNumber":1}',
    "a huge exponent": b'{"id":1e999999999,"randomNumber":1}',
    "a large float": b'{"id":1e308,"randomNumber":1e308}',
    "duplicate keys": b'{"message":"a","message":"Hello, World!"}',
    "duplicate keys by the thousand": b"{" + b",".join(b'"a":1' for _ in range(100_000)) + b"}",
    "NaN": b'{"message":NaN}',
    "infinity": b'[{"id":Infinity,"randomNumber":-Infinity}]',
    "a huge string": b'{"message":"' + b"x" * (MIB - 100) + b'"}',
    "very many values": b"[" + b"0," * 500_000 + b"0]",
    "very many rows": b"[" + b",".join(b'{"id":1,"randomNumber":1}' for _ in range(30_000)) + b"]",
    "rows of anything": b'[null,true,[],{},"x",1.5,{"id":null,"randomNumber":[]},{"id":{},"randomNumber":{}}]',
    "keys alike": b'[{"id":1,"ID":2,"randomNumber":3},{"Id":"1","RANDOMNUMBER":"0x10"}]',
    "an unpaired surrogate": b'{"message":"\\ud800"}',
    "no UTF-8": b'{"message":"\xff\xfe"}',
    "NUL": b'{"message":"\\u0000"}\0',
    "a byte order mark": b'\xef\xbb\xbf{"message":"Hello, World!"}',
    "terminal controls": b'{"message":"\x1b[2J\x1b]0;x\x07"}',
    "nested tables": b"<!doctype html><title>Fortunes</title>" + b"<table><tr><td>" * 60_000,
    "nested elements": b"<!doctype html><title>Fortunes</title>" + b"<div>" * 200_000,
    "some nested tables": b"<!doctype html><title>Fortunes</title>" + b"<table><tr><td>" * 320,
    "very many attributes": b"<!doctype html><p " + b" ".join(b"a%d" % number for number in range(100_000)) + b">",
    "many attributes": (b"<!doctype html><p " + b" ".join(b"a%d" % number for number in range(3_000)))[:16_000] + b">",
    "very many rows of a table": b"<!doctype html><table>" + b"<tr>" * 200_000,
    "unclosed comments": b"<!--" * 200_000,
    "closed comments": b"<!---->" * 140_000 + b"<!doctype html>",
    "unclosed script": b"<!doctype html><title>Fortunes</title><script>" + b"</" * 5_000,
    "nested templates": b"<!doctype html>" + b"<template><table><tr><td>" * 240,
    "spaces before a colon": b"<!doctype html><p style='" + b"display " * 1_500 + b"'>",
    "entities": b"<!doctype html><title>Fortunes</title>" + b"&lt" * 5_000,
    "empty": b"",
}
HEADERS: dict[str, list[tuple[str, str]]] = {
    "dates": [("Date", value) for value in ("Mon, 99 Xyz 99999999999 99:99:99 GMT", "0", ",", ", ,", "-" * 5_000)],
    "a far date": [("Date", "Fri, 31 Dec 9999 23:59:59 -9999")],
    "a date of digits": [("Date", "1" * 10_000)],
    "a date with a zone": [("Date", "Sun, 06 Nov 1994 08:49:37 +99999999999999999999")],
    "types": [("Content-Type", "a" * 60_000 + ";" + "a=b;" * 10_000)],
    "a quoted type": [("Content-Type", "text/html; charset=" + '"\\' * 30_000)],
    "many headers": [(f"X-{number}", "x") for number in range(20_000)],
    "lengths": [("Content-Length", "9" * 20_000)],
    "cookies": [("Set-Cookie", "x" * 100_000)] * 2,
    "codings": [("Content-Encoding", "gzip," * 20_000)],
}
KINDS = [
    name for name, kind in TEST_TYPES.items() if kind.response_shape not in ("orders", "declared") and not kind.group
]


def judged(evidence: Evidence) -> set[Outcome]:
    """Run all checks, assert that they finish within SECONDS, and return their outcomes."""
    started_at = time.monotonic()
    found = {result.outcome for result in run_checks(evidence)}
    assert time.monotonic() - started_at < SECONDS
    return found


@pytest.mark.parametrize("body", BODIES)
def test_every_test_type_survives_a_hostile_body(body: str) -> None:
    for kind in KINDS:
        case = rows_variant(20) if TEST_TYPES[kind].counts_rows else PLAIN
        evidence = Evidence(test_type=kind, thorough=True, exchanges=[exchange(BODIES[body], case)])
        if TEST_TYPES[kind].response_shape == "page":
            evidence.fortunes = [TableVersion(rows={1: "one"})]
        elif TEST_TYPES[kind].has_rows:
            evidence.history = {"world": [TableVersion(rows={1: 1})], "World": [TableVersion(rows={1: 1})]}
        assert Outcome.FAIL in judged(evidence), kind


@pytest.mark.parametrize("headers", HEADERS)
def test_every_test_type_survives_hostile_headers(headers: str) -> None:
    for kind in KINDS:
        for one in HEADERS[headers] if headers == "dates" else [HEADERS[headers]]:
            fields = [one] if isinstance(one, tuple) else one
            evidence = Evidence(test_type=kind, thorough=True, exchanges=[exchange(b"{}", headers=fields)])
            assert Outcome.FAIL in judged(evidence), kind


SCHEMAS: list[dict[str, Any]] = [
    {"json_schema": {"type": "object", "required": ["no such key"], "properties": {"message": {"type": "integer"}}}},
    {"json": {"a": {"b": [1, {"c": None}]}}},
    {"body": "other"},
    {"content_type": "text/csv"},
]


@pytest.mark.parametrize("body", BODIES)
def test_a_declared_answer_survives_a_hostile_body(body: str) -> None:
    for expectation in SCHEMAS:
        request = PreparedRequest(request="item", target="/", expect=Expect.model_validate(expectation))
        evidence = Evidence(
            test_type="declared",
            thorough=True,
            exchanges=[exchange(BODIES[body], expectations.declared_variant(request))],
        )
        assert Outcome.FAIL in judged(evidence), expectation


BOMBS: dict[str, tuple[str, Callable[[], bytes]]] = {
    "a gigabyte": ("gzip", lambda: gzip.compress(bytes(100 * MIB))),
    "values": ("gzip", lambda: gzip.compress(b"[" + b"0," * (6 * MIB) + b"0]")),
    "arrays": ("gzip", lambda: gzip.compress(b"[" * (6 * MIB))),
    "layers": (",".join(["gzip"] * 500), quine),
    "cut": ("gzip", lambda: gzip.compress(b"{}")[:-4]),
    "no gzip": ("gzip", lambda: b"{}"),
    "raw deflate": ("deflate", lambda: zlib.compress(b"{}", wbits=-15)),
    "an unknown one": ("br", lambda: b"{}"),
}


@pytest.mark.parametrize("kind", BOMBS)
def test_a_compressed_body_is_bounded(kind: str) -> None:
    coding, make = BOMBS[kind]
    asked = PreparedRequest(request="item", target="/", expect=Expect.model_validate({"json": {"a": 1}}))
    answer = exchange(make(), expectations.declared_variant(asked), [("Content-Encoding", coding)])
    assert Outcome.FAIL in judged(Evidence(test_type="declared", thorough=True, exchanges=[answer]))


OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


def drip(data: bytes, pause: float = 0.02) -> Iterator[bytes]:
    for number in range(100_000):
        time.sleep(pause)
        yield data[number : number + 1] or b"x"


STREAMS: dict[str, Callable[[], Iterator[bytes]]] = {
    "a head byte by byte": lambda: drip(OK + b"X-A: "),
    "a body byte by byte": lambda: drip(OK + b"Content-Length: 1000000\r\n\r\n"),
    "a body without end": lambda: iter([OK + b"\r\n", *[b"x" * 65_536] * 1_000]),
    "chunks without end": lambda: iter([CHUNKED, *[b"1\r\nx\r\n" * 10_000] * 1_000]),
    "a chunk's size without end": lambda: iter([CHUNKED, *[b"0" * 65_536] * 100]),
    "trailers without end": lambda: iter([CHUNKED + b"0\r\n", *[b"A: b\r\n" * 9_000] * 100]),
    "headers without end": lambda: iter([OK, *[b"A: b\r\n" * 10_000] * 100]),
    "a header without end": lambda: iter([OK + b"A: ", *[b"x" * 65_536] * 100]),
    "interim answers without end": lambda: iter([b"HTTP/1.1 100 Continue\r\n\r\n" * 1_000] * 100),
    "a petabyte promised": lambda: iter([OK + b"Content-Length: 999999999999999\r\n\r\n"]),
    "a length of digits": lambda: iter([OK + b"Content-Length: " + b"9" * 5_000 + b"\r\n\r\n"]),
    "a huge chunk": lambda: iter([CHUNKED + b"fffffffffffffff\r\n"]),
    "nothing": lambda: iter([]),
}


@contextmanager
def serving(stream: Iterator[bytes]) -> Iterator[Endpoint]:
    """Start a server that sends ``stream`` to its first client and then stays silent."""
    over = threading.Event()

    def serve(listener: socket.socket) -> None:
        client, _ = listener.accept()
        with client:
            for data in stream:
                try:
                    client.sendall(data)
                except OSError:
                    return
                if over.is_set():
                    return
            over.wait()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        host, port = listener.getsockname()
        yield Endpoint(host=host, port=port)
        over.set()
        thread.join()


@pytest.mark.parametrize("kind", STREAMS)
def test_a_stream_without_end_is_given_up(kind: str) -> None:
    with serving(STREAMS[kind]()) as endpoint:
        started_at = time.monotonic()
        line = Connection(endpoint, timeout=1.0)
        with pytest.raises(WireError):
            line.receive()
        line.close()
        assert time.monotonic() - started_at < SECONDS


LINES = {
    "ruby": ":1:in " * 150_000,
    "workers": "worker " * 150_000,
    "rust": "thread '" + "' (1) " * 150_000,
    "long words": "a" * MIB,
    "traces": "Traceback (most recent call last):\n" * 30_000,
    "carets": (" " * 400 + "^\n") * 2_500,
    "perl": "a at b line 1." + " at b line 1." * 80_000,
    "perl, many lines": "a at b line 1. BEGIN\n" * 50_000,
    "errors": "Error: a:\n  b\n" * 70_000,
}


@pytest.mark.parametrize("kind", LINES)
def test_searching_a_log_takes_bounded_time(kind: str, tmp_path: Path) -> None:
    (tmp_path / "log").write_text(LINES[kind])
    started_at = time.monotonic()
    find_crashes(tmp_path / "log")
    assert time.monotonic() - started_at < SECONDS


def test_a_complete_fortunes_page_passes_the_limits() -> None:
    """Verification limits the number of tags, because it parses thousands of pages. A normal page has 80 tags."""
    table = "".join(f"<tr><td>{number}</td><td>{'&lt;' * 20}</td></tr>\n" for number in range(100))
    page = f"<!doctype html><html><head><title>Fortunes</title></head><body><table>{table}</table></body></html>"
    evidence = Evidence(test_type="fortune", thorough=True, exchanges=[exchange(page)])
    assert not [
        result for result in run_checks(evidence) if result.rule == "fortune.1" and result.outcome is Outcome.FAIL
    ]
    assert json.dumps(page)
