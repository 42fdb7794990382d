"""The server as an HTTP/1.1 peer, whatever the test: closing, pipelining, odd but legal requests, and illegal ones."""

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace

from harness.plan.requests import PreparedRequest
from harness.plan.testtypes import ACCEPT_JSON
from harness.records.outcome import Outcome
from harness.runtime import Endpoint
from harness.verify.checks import SERVER, Check, Finding, check, shown
from harness.verify.checks.evidence import Evidence, Wire
from harness.verify.wire import Connection, Response, WireError

HERE = frozenset({SERVER})
CLOSE_SECONDS = 2.0  # within which a server closes after Connection: close
ILLEGAL_SECONDS = 3.0  # within which an illegal request is answered or the connection closed
SEGMENT_PAUSE = 0.02  # long enough that a segment is read before the next one comes, on most machines
FIRST_PAUSE = 0.2  # behind the first segment: also on a busy one
DEPTH = 16
UNKNOWN = "/tfb-no-such-path"
Segments = Sequence[tuple[bytes, float]]  # what is sent, and the seconds to wait then
OVERSIZED = 1_250_000  # bytes of a header line: more than any server's default limit
GARBAGE = {
    "garbage: bytes of a TLS handshake": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    "garbage: a line that is no request line": b"NONSENSE\r\n\r\n",
    "garbage: random bytes": bytes(range(128, 256)) * 4 + b"\r\n\r\n",
}


def _saw(name: str) -> Callable[[Evidence], bool]:
    return lambda evidence: name in evidence.wire


@check("http.13", HERE, _saw("close"))
def connection_close(evidence: Evidence) -> Iterator[Finding]:
    """``Connection: close`` is answered, and then the server closes."""
    seen = evidence.wire["close"]
    if not seen.responses or not seen.ended:
        yield Finding(
            "a request with Connection: close is not answered and followed by a close",
            expected="the response, then the end of the connection",
            actual=seen.error or "the connection stayed open",
        )


def _alike(rule: str, name: str, sent: str, alone: str, what: str) -> Check:
    """A check that each response has the status, type and length of the one that the same request got alone."""

    def find(evidence: Evidence) -> Iterator[Finding]:
        return _same_as(evidence, sent, alone, what)

    find.__name__ = name
    return check(rule, HERE, _saw(sent))(find)


ALIKE = (
    _alike("http.14", "pipelining", "pipeline", "pipeline-expected", "of 16 pipelined requests"),
    _alike("http.15", "request_across_segments", "halves", "halves-expected", "of 1.5 requests in a segment"),
    _alike("http.16", "request_in_segments", "segments", "plain", "of a request in several segments"),
    _alike("http.18", "absolute_form", "absolute", "plain", "of a request with an absolute-form target"),
    _alike("http.19", "long_query_string", "long-query", "plain", "of a request with a long query string"),
)


@check("http.17", HERE, _saw("names"))
def header_names_any_case(evidence: Evidence) -> Iterator[Finding]:
    """Header names and connection options mean the same in any case."""
    seen = evidence.wire["names"]
    yield from _same_as(evidence, "names", "plain", "of a request with header names in odd case")
    if seen.responses and not seen.ended and evidence.wire["close"].ended:
        yield Finding("'cOnNeCtIoN: ClOsE' does not close", expected="closed", actual="the connection stayed open")


@check("http.20", HERE, _saw("head"))
def head_request(evidence: Evidence) -> Iterator[Finding]:
    """HEAD is GET without the body, and the connection goes on."""
    seen = evidence.wire["head"]
    if len(seen.responses) < 2:
        message = "after HEAD the connection is out of step: a body was sent, or nothing more came"
        yield Finding(message, expected="a header section, then the next response", actual=seen.error)
        return
    head, get = seen.responses[:2]
    if head.status in (404, 405, 501):
        message = f"HEAD is answered with {head.status}: RFC 9110 has every general-purpose server support it"
        yield Finding(message, expected=f"{get.status}", actual=f"{head.status}", outcome=Outcome.WARN)
    elif head.status != get.status:
        yield Finding("HEAD and GET differ in status", expected=f"{get.status}", actual=f"{head.status}")


@check("http.21", HERE, _saw("unknown"))
def unknown_path(evidence: Evidence) -> Iterator[Finding]:
    """A path that is not there is 404."""
    yield from _status(evidence.wire["unknown"], "an unknown path", (404,))


@check("http.22", HERE, _saw("method"))
def unsupported_method(evidence: Evidence) -> Iterator[Finding]:
    """A method that the resource does not have is 405, or 404 or 501."""
    yield from _status(evidence.wire["method"], "DELETE", (404, 405, 501))


@check("http.23", HERE, _saw("oversized"))
def oversized_header(evidence: Evidence) -> Iterator[Finding]:
    """A header of more than a megabyte is refused or the connection closed, and the server lives on."""
    yield from _refused(evidence.wire["oversized"], "a header of 1.25 MB", Outcome.WARN)


@check("http.24", HERE, lambda evidence: any(name in evidence.wire for name in GARBAGE))
def garbage(evidence: Evidence) -> Iterator[Finding]:
    """What is no HTTP is refused with 400 or the connection closed, and the server lives on."""
    for name in sorted(GARBAGE.keys() & evidence.wire.keys()):
        yield from _refused(evidence.wire[name], name.removeprefix("garbage: "), Outcome.FAIL)


def _same_as(evidence: Evidence, name: str, expected: str, what: str) -> Iterator[Finding]:
    """Each response has the status, and the good ones the type, of the one that the same request got alone."""
    seen, wanted = evidence.wire[name], evidence.wire[expected]
    if wanted.error:
        return  # the plain request fails: other checks say so
    if len(seen.responses) < len(wanted.responses):
        message = f"only {len(seen.responses)} responses came {what}"
        yield Finding(message, expected=f"{len(wanted.responses)} responses", actual=seen.error)
        return
    for place, pair in enumerate(zip(seen.responses, wanted.responses, strict=True), 1):
        came, should = ((r.status, r.get("content-type") if r.status == 200 else None) for r in pair)
        if came != should:
            actual, asked = (f"{r.status} {r.get('content-type')}: {shown(r.body, 40)}" for r in pair)
            message = f"response {place} {what} is not the one that was asked for"
            yield Finding(message, expected=asked, actual=actual)
            return


def _status(seen: Wire, what: str, allowed: Sequence[int]) -> Iterator[Finding]:
    if seen.status not in allowed:
        actual = seen.error if seen.status is None else f"{seen.status}"
        yield Finding(f"{what} is not refused", expected=" or ".join(map(str, allowed)), actual=actual)


def _refused(seen: Wire, what: str, accepted: Outcome) -> Iterator[Finding]:
    if not seen.alive:
        yield Finding(f"after {what} the server answers no new connection", expected="200", actual="nothing")
    status = seen.status
    if status is None and seen.failed and seen.failed.kind == "silent":
        yield Finding(f"{what} is neither answered nor is the connection closed", expected="400 or a close")
    elif status is not None and status < 400:
        yield Finding(f"{what} is accepted", expected="4xx or a close", actual=f"{status}", outcome=accepted)
    elif status is not None and status >= 500 and status not in (501, 505):
        yield Finding(f"{what} is answered with {status}", expected="400 or a close", actual=f"{status}")


# ---- asking ----------------------------------------------------------------------------------------------------------


def request(target: str, *headers: tuple[str, str], method: str = "GET") -> bytes:
    """The bytes of a request as a load makes it, but for these headers."""
    return PreparedRequest(target=target, method=method, headers=(("Accept", ACCEPT_JSON), *headers)).head("tfb-server")


def gather(endpoint: Endpoint, urls: Sequence[str], patience: float) -> dict[str, Wire]:
    """What came of all odd requests, the legal ones at once, the harmful ones last.

    ``urls``: the first is the cheapest, the others tell pipelined answers apart.
    """
    url = urls[0]
    targets = [*urls, UNKNOWN]  # answers that differ from their neighbours', so that a swap is seen
    many = [request(targets[n % len(targets)]) for n in range(DEPTH)]
    plain, half = many[0], len(many[1]) // 2
    cuts = [0, 2, len(plain) // 3, len(plain) // 2, len(plain) - 3, len(plain) - 1, len(plain)]
    pauses = [FIRST_PAUSE, *[SEGMENT_PAUSE] * (len(cuts) - 2)]
    parts = [(plain[a:b], pause) for (a, b), pause in zip(itertools.pairwise(cuts), pauses, strict=True)]
    halves = [(many[0] + many[1][:half], 3 * SEGMENT_PAUSE), (many[1][half:], 0.0)]
    long_query = f"{url}{'&' if '?' in url else '?'}padding={'x' * 2000}"
    names = f"GET {url} HTTP/1.1\r\nhOsT: tfb-server\r\nACCEPT: {ACCEPT_JSON}\r\ncOnNeCtIoN: ClOsE\r\n\r\n".encode()
    close = request(url, ("Connection", "close"))

    def alone(*requests: bytes) -> Callable[[], Wire]:
        return lambda: _one_by_one(endpoint, patience, requests)

    def talk(segments: Segments, *methods: str, to_the_end: bool = False) -> Callable[[], Wire]:
        return lambda: _talk(endpoint, patience, segments, methods or ("GET",), to_the_end=to_the_end)

    legal = {
        "plain": alone(plain),
        "close": talk([(close, 0.0)], to_the_end=True),
        "pipeline-expected": alone(*many),
        "pipeline": talk([(b"".join(many), 0.0)], *["GET"] * DEPTH),
        "halves-expected": alone(*many[:2]),
        "halves": talk(halves, "GET", "GET"),
        "segments": talk(parts),
        "names": talk([(names, 0.0)], to_the_end=True),
        "absolute": alone(request(f"http://tfb-server{url}")),
        "long-query": alone(request(long_query)),
        "head": talk([(request(url, method="HEAD"), FIRST_PAUSE), (plain, 0.0)], "HEAD", "GET"),
        "unknown": alone(request(UNKNOWN)),
        "method": alone(request(url, method="DELETE")),
    }
    with ThreadPoolExecutor(len(legal)) as pool:
        found = dict(zip(legal, pool.map(lambda ask: ask(), legal.values()), strict=True))
    oversized = request(url, ("X-Padding", "x" * OVERSIZED))
    for name, data in {"oversized": oversized, **GARBAGE}.items():
        seen = _talk(endpoint, min(ILLEGAL_SECONDS, patience), [(data, 0.0)])
        after = _one_by_one(endpoint, patience, [plain])
        # Answered, if not as HTTP asks: another check says so. Only silence means that nothing serves any more.
        answers = bool(after.responses) or (after.failed is not None and after.failed.kind in ("grammar", "short"))
        found[name] = replace(seen, alive=answers)
    return found


def _talk(
    endpoint: Endpoint,
    patience: float,
    segments: Segments,
    methods: Sequence[str] = ("GET",),
    *,
    to_the_end: bool = False,
) -> Wire:
    """Send segments with pauses on one connection, then read the responses to requests of these methods."""
    responses: list[Response] = []
    failed: WireError | None = None
    ended = None
    try:
        with closing(Connection(endpoint, patience)) as line:
            try:
                for data, pause in segments:
                    line.send(data)
                    time.sleep(pause)
            except WireError as refused:
                failed = refused  # closed while it was being sent; its answer may still be there to read
            responses.extend(map(line.receive, methods))
            ended = line.ended(CLOSE_SECONDS) if to_the_end else None
    except WireError as error:
        failed = failed or error
    return Wire(responses=tuple(responses), failed=failed, ended=ended)


def _one_by_one(endpoint: Endpoint, patience: float, requests: Sequence[bytes]) -> Wire:
    """Each request on a connection of its own, until one fails."""
    found = Wire()
    for data in requests:
        seen = _talk(endpoint, patience, [(data, 0.0)])
        found = replace(seen, responses=found.responses + seen.responses)
        if found.failed:
            break
    return found
