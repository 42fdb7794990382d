"""The server as an HTTP/1.1 peer, whatever the test: closing, pipelining, odd but legal requests, and illegal ones."""

from collections.abc import Callable, Iterator

from harness.records.models import Outcome
from harness.verify.checks import SERVER, Finding, check, shown
from harness.verify.checks.evidence import Evidence, Wire

HERE = frozenset({SERVER})


def _saw(name: str) -> Callable[[Evidence], bool]:
    return lambda evidence: name in evidence.wire


@check("http.13", HERE, _saw("close"))
def connection_close(evidence: Evidence) -> Iterator[Finding]:
    """``Connection: close`` is answered, and then the server closes."""
    wire = evidence.wire["close"]
    if not wire.responses or not wire.ended:
        yield Finding(
            message="a request with Connection: close is not answered and followed by a close",
            expected="the response, then the end of the connection",
            actual=wire.error or "the connection stayed open",
        )


@check("http.14", HERE, _saw("pipeline"))
def pipelining(evidence: Evidence) -> Iterator[Finding]:
    """Requests in one segment are all answered, in their order."""
    yield from _same_as(evidence, "pipeline", "pipeline-expected", "of 16 pipelined requests")


@check("http.15", HERE, _saw("halves"))
def request_across_segments(evidence: Evidence) -> Iterator[Finding]:
    """One and a half requests in a segment, the rest in the next: both are answered."""
    yield from _same_as(evidence, "halves", "halves-expected", "of one and a half requests in a segment")


@check("http.16", HERE, _saw("segments"))
def request_in_segments(evidence: Evidence) -> Iterator[Finding]:
    """A request that comes in several TCP segments is one request."""
    yield from _same_as(evidence, "segments", "plain", "of a request in several segments")


@check("http.17", HERE, _saw("names"))
def header_names_any_case(evidence: Evidence) -> Iterator[Finding]:
    """Header names and connection options mean the same in any case."""
    wire = evidence.wire["names"]
    yield from _same_as(evidence, "names", "plain", "of a request with header names in odd case")
    if wire.responses and not wire.ended and evidence.wire["close"].ended:
        yield Finding(
            message="'cOnNeCtIoN: ClOsE' does not close",
            expected="closed",
            actual="the connection stayed open",
        )


@check("http.18", HERE, _saw("absolute"))
def absolute_form(evidence: Evidence) -> Iterator[Finding]:
    """A request target in absolute form is the same resource."""
    yield from _same_as(evidence, "absolute", "plain", "of a request with an absolute-form target")


@check("http.19", HERE, _saw("long-query"))
def long_query_string(evidence: Evidence) -> Iterator[Finding]:
    """A query string of 2,000 characters is harmless."""
    yield from _same_as(evidence, "long-query", "plain", "of a request with a long query string")


@check("http.20", HERE, _saw("head"))
def head_request(evidence: Evidence) -> Iterator[Finding]:
    """HEAD is GET without the body, and the connection goes on."""
    wire = evidence.wire["head"]
    if len(wire.responses) < 2 or wire.stray:
        yield Finding(
            message="after HEAD the connection is out of step: a body was sent, or nothing more came",
            expected="a header section, then the next response",
            actual=wire.error or shown(wire.stray, 60),
        )
        return
    head, get = wire.responses[:2]
    if head.status in (404, 405, 501):
        yield Finding(
            message=f"HEAD is answered with {head.status}: RFC 9110 has every general-purpose server support it",
            expected=f"{get.status}",
            actual=f"{head.status}",
            outcome=Outcome.WARN,
        )
    elif head.status != get.status:
        yield Finding(message="HEAD and GET differ in status", expected=f"{get.status}", actual=f"{head.status}")
    elif _constant(evidence) and head.get("content-length") not in (None, f"{len(get.body)}"):
        yield Finding(
            message="HEAD and GET differ in Content-Length",
            expected=f"Content-Length {len(get.body)}, or none (RFC 9110 section 8.6)",
            actual=f"Content-Length {head.get('content-length')}",
        )


@check("http.21", HERE, _saw("unknown"))
def unknown_path(evidence: Evidence) -> Iterator[Finding]:
    """A path that is not there is 404."""
    yield from _status(evidence, "unknown", {404})


@check("http.22", HERE, _saw("method"))
def unsupported_method(evidence: Evidence) -> Iterator[Finding]:
    """A method that the resource does not have is 405, or 404 or 501."""
    yield from _status(evidence, "method", {404, 405, 501})


@check("http.23", HERE, _saw("oversized"))
def oversized_header(evidence: Evidence) -> Iterator[Finding]:
    """A header of more than a megabyte is refused or the connection closed, and the server lives on."""
    yield from _refused(evidence, "oversized", "a header of 1.25 MB", Outcome.WARN)


@check("http.24", HERE, lambda evidence: any(name.startswith("garbage") for name in evidence.wire))
def garbage(evidence: Evidence) -> Iterator[Finding]:
    """What is no HTTP is refused with 400 or the connection closed, and the server lives on."""
    for name in sorted(name for name in evidence.wire if name.startswith("garbage")):
        yield from _refused(evidence, name, name.removeprefix("garbage: "), Outcome.FAIL)


def _constant(evidence: Evidence) -> bool:
    """Whether the URL answers the same each time: HEAD and GET of a random row may well differ in length."""
    bodies = {exchange.response.body for exchange in evidence.exchanges if exchange.response}
    return len(bodies) == 1 and len(evidence.exchanges) > 1


def _same_as(evidence: Evidence, name: str, expected: str, what: str) -> Iterator[Finding]:
    """Each response has the status, type and length of the one that the same request got alone."""
    wire, wanted = evidence.wire[name], evidence.wire[expected]
    if wanted.error:
        return  # the plain request fails: other checks say so
    if len(wire.responses) < len(wanted.responses):
        yield Finding(
            message=f"only {len(wire.responses)} responses came {what}",
            expected=f"{len(wanted.responses)} responses",
            actual=wire.error,
        )
        return
    for place, (came, should) in enumerate(zip(wire.responses, wanted.responses, strict=True), 1):
        if _signature(wire, place - 1) != _signature(wanted, place - 1):
            yield Finding(
                message=f"response {place} {what} is not the one that was asked for",
                expected=f"{should.status} {should.get('content-type')}: {shown(should.body, 40)}",
                actual=f"{came.status} {came.get('content-type')}: {shown(came.body, 40)}",
            )
            return


def _signature(wire: Wire, place: int) -> tuple[int, str | None]:
    response = wire.responses[place]
    return response.status, response.get("content-type") if response.status == 200 else None


def _status(evidence: Evidence, name: str, allowed: set[int]) -> Iterator[Finding]:
    wire = evidence.wire[name]
    status = wire.responses[0].status if wire.responses else None
    if status not in allowed:
        yield Finding(
            message=f"{name.replace('unknown', 'an unknown path').replace('method', 'DELETE')} is not refused",
            expected=" or ".join(str(code) for code in sorted(allowed)),
            actual=wire.error if status is None else f"{status}",
        )


def _refused(evidence: Evidence, name: str, what: str, accepted: Outcome) -> Iterator[Finding]:
    wire = evidence.wire[name]
    if not wire.alive:
        yield Finding(
            message=f"after {what} the server answers no new connection",
            expected="200",
            actual="nothing",
        )
    status = wire.responses[0].status if wire.responses else None
    if status is not None and status >= 500 and status not in (501, 505):
        yield Finding(message=f"{what} is answered with {status}", expected="400 or a close", actual=f"{status}")
    elif status is not None and status < 400:
        yield Finding(message=f"{what} is accepted", expected="4xx or a close", actual=f"{status}", outcome=accepted)
    elif status is None and wire.error_kind == "silent":
        yield Finding(message=f"{what} is neither answered nor is the connection closed", expected="400 or a close")
