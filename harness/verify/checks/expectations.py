"""What a service has declared of its own answers: each is judged by what its request expects."""

import itertools
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import cast

from pydantic import JsonValue

from harness.plan.requests import Expect, PreparedRequest
from harness.plan.testtypes import DECLARED
from harness.records import safe_read
from harness.records.outcome import Outcome
from harness.verify import response_schemas
from harness.verify.checks import Check, Finding, check, everywhere, shown
from harness.verify.checks.asking import KEPT_BYTES, Asking, Client
from harness.verify.checks.evidence import Evidence, Exchange, QueryVariant
from harness.verify.checks.http import parse_media_type

ONE_BY_ONE = {True: 40, False: 3}  # of each declared request, with the values drawn first; thorough, and brief
AT_ONCE = {True: 160, False: 8}  # of each, with the values drawn after them, on several connections
CONNECTIONS = 8
RULE = "declared.1"
DECODED_BYTES = 16 << 20  # of a compressed body, at most
MOST_CODINGS = 4
MOST_OPENED, MOST_VALUES = 200_000, 2_000_000  # arrays and objects, and values, of one answer

ExpectationCheck = Callable[[Expect, Exchange], Iterator[Finding]]


def case(asked: PreparedRequest) -> QueryVariant:
    """One request of a service."""
    return QueryVariant(name=asked.request, asked=asked)


def gather(asking: Asking, evidence: Evidence) -> None:
    """Ask each declared request with several values, one after the other and at once, as long as it answers."""
    tables: dict[str, list[QueryVariant]] = {}
    for asked in asking.test_type.requests:
        tables.setdefault(asked.request, []).append(case(asked))
    for table in tables.values():
        _ask(asking.plain(), table, evidence)


def _ask(client: Client, table: Sequence[QueryVariant], evidence: Evidence) -> None:
    first = client.ask(table[:1])
    evidence.exchanges += first
    if first[0].response is None:
        return
    room = KEPT_BYTES // 2 // first[0].response.size
    alone, together = (min(number[evidence.thorough], room) for number in (ONE_BY_ONE, AT_ONCE))
    cases = list(itertools.islice(itertools.cycle(table), 1, alone + together))
    # One by one; a slow service is not asked all.
    until = time.monotonic() + 3.0
    evidence.exchanges += client.ask(itertools.takewhile(lambda _: time.monotonic() < until, cases[:alone]))
    if time.monotonic() < until:
        evidence.crowd += client.crowd(cases[alone:], CONNECTIONS)


def right(function: ExpectationCheck) -> Check:
    """Make a check of a function of what a request expects and what came; messages begin with the request.

    A ValueError of the function says why the body cannot be read.
    """

    def find(evidence: Evidence) -> Iterator[Finding]:
        for asked, exchange in _declared(evidence):
            begin = f"request {asked.request} ({asked.method} {shown(asked.target, 100)})"
            try:
                for finding in function(asked.expect, exchange):
                    yield replace(finding, message=f"{begin}: {finding.message}")
            except ValueError as error:
                yield Finding(f"{begin}: {error}", expected="a body that can be read", actual=shown(exchange.body))

    find.__name__ = getattr(function, "__name__", "")
    return check(RULE, lambda name: name == DECLARED or everywhere(name), lambda evidence: any(_declared(evidence)))(
        find
    )


def _declared(evidence: Evidence) -> Iterator[tuple[PreparedRequest, Exchange]]:
    """Requests that say what a right answer is, and what came."""
    exchanges = itertools.chain(evidence.all, evidence.declared)
    return ((exchange.case.asked, exchange) for exchange in exchanges if exchange.case.asked)


@right
def declared_answer(_: Expect, exchange: Exchange) -> Iterator[Finding]:
    """Every request is answered by one whole HTTP message."""
    if exchange.response is None:
        yield Finding(f"no whole answer: {exchange.error}", expected="an answer", actual=exchange.error)
    elif exchange.stray:
        yield Finding("bytes follow after the answer", expected="nothing", actual=shown(exchange.stray, 60))
    for violation in exchange.response.violations if exchange.response else ():
        yield Finding(violation, expected="an HTTP/1.1 message", outcome=Outcome.WARN)


@right
def declared_status(expect: Expect, exchange: Exchange) -> Iterator[Finding]:
    """The status is the one that the request expects."""
    response = exchange.response
    if response and response.status != expect.status:
        actual = f"{response.status} {response.reason}: {shown(response.body, 80)}"
        yield Finding("another status", expected=f"{expect.status}", actual=actual)


@right
def declared_content_type(expect: Expect, exchange: Exchange) -> Iterator[Finding]:
    """The media type is the expected one, and so is each parameter that is named with it."""
    if expect.content_type is None or not _comparable(expect, exchange):
        return
    came = exchange.headers("content-type")
    wanted, parameters = parse_media_type(expect.content_type)
    media, found = parse_media_type(came[0]) if len(came) == 1 else (None, {})
    same = all(found.get(name, "").lower() == value.lower() for name, value in parameters.items())
    if media != wanted or not same:
        yield Finding("another content type", expected=expect.content_type, actual="; ".join(came) or "none")


@right
def declared_body(expect: Expect, exchange: Exchange) -> Iterator[Finding]:
    """The body is as long as expected and, where it is given, the expected one to the byte."""
    if not _comparable(expect, exchange):
        return
    size = len(exchange.body)
    if expect.size and not expect.size[0] <= size <= expect.size[1]:
        yield Finding("another size", expected=f"{expect.size[0]} to {expect.size[1]} bytes", actual=f"{size} bytes")
    if expect.body is not None and (body := _decoded(exchange)) != expect.body.encode():
        yield Finding("another body", expected=shown(expect.body), actual=shown(body))


@right
def declared_json(expect: Expect, exchange: Exchange) -> Iterator[Finding]:
    """The body is JSON that fits the schema and holds the members that are expected, each with its value."""
    if (expect.subset is None and expect.json_schema is None) or not _comparable(expect, exchange):
        return
    body = _decoded(exchange)
    document = cast("JsonValue", safe_read.parse_json(body, MOST_OPENED, MOST_VALUES))
    if expect.schema_text is not None and (wrong := response_schemas.JUDGE.misfit(expect.schema_text, body)):
        yield Finding(wrong.message, expected=wrong.expected, actual=wrong.found)
    for path, wanted, came in _missing(expect.subset, document, "$") if expect.subset is not None else ():
        yield Finding(f"{path} is another", expected=shown(repr(wanted)), actual=came)


def _comparable(expect: Expect, exchange: Exchange) -> bool:
    """Whether there is an answer of the right status: what others carry is the status check's business."""
    return exchange.response is not None and exchange.response.status == expect.status


def _decoded(exchange: Exchange) -> bytes:
    """The body without its content codings (RFC 9110 section 8.4.1), gzip or deflate; raises ValueError."""
    body = exchange.body
    codings = ",".join(exchange.headers("content-encoding")).lower().replace(" ", "").split(",")
    if len(codings) > MOST_CODINGS:
        raise ValueError(f"the body has {len(codings)} content codings: more than {MOST_CODINGS} are not read")
    for coding in reversed(codings):
        if coding in ("", "identity") or not body:
            continue
        if coding not in ("gzip", "x-gzip", "deflate"):
            raise ValueError(f"Content-Encoding {coding} is not read here: have the request's Accept-Encoding say gzip")
        reader = zlib.decompressobj(zlib.MAX_WBITS | 32)  # by its beginning gzip's or zlib's
        try:
            body = reader.decompress(body, DECODED_BYTES)
        except zlib.error as error:
            raise ValueError(f"the body is not what Content-Encoding {coding} says: {error}") from error
        if not reader.eof:
            raise ValueError(f"the body of Content-Encoding {coding} has no end within {DECODED_BYTES >> 20} MiB")
    return body


def _missing(wanted: JsonValue, came: object, path: str) -> Iterator[tuple[str, JsonValue, str]]:
    """Where a document lacks what is wanted: the place, what should be there, and what is."""
    if isinstance(wanted, dict) and isinstance(came, dict):
        for key, value in wanted.items():
            if key not in came:
                yield f"{path}.{key}", value, "nothing"
            else:
                yield from _missing(value, came[key], f"{path}.{key}")
    elif isinstance(wanted, list) and isinstance(came, list) and len(wanted) == len(came):
        for place, (one, other) in enumerate(zip(wanted, came, strict=True)):
            yield from _missing(one, other, f"{path}[{place}]")
    elif wanted != came or isinstance(wanted, bool) != isinstance(came, bool):
        yield path, wanted, shown(repr(came))
