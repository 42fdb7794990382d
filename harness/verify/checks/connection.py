"""The server as an HTTP/1.1 peer, whatever the test: closing, pipelining, odd but legal requests, and illegal ones."""

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from harness.plan.testtypes import ACCEPT_JSON
from harness.records.models import Outcome
from harness.runtime import Endpoint
from harness.verify import wire
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
OVERSIZED = 1_250_000  # bytes of a header line: more than any server's default limit

GARBAGE = {
    "garbage: bytes of a TLS handshake": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    "garbage: a line that is no request line": b"NONSENSE\r\n\r\n",
    "garbage: random bytes": bytes(range(128, 256)) * 4 + b"\r\n\r\n",
}


def _saw(name: str) -> Callable[[Evidence], bool]:
    return lambda evidence: name in evidence.wire


def _alike(rule: str, name: str, sent: str, alone: str, what: str) -> Check:
    """A check that each response has the status, type and length of the one that the same request got alone."""

    def find(evidence: Evidence) -> Iterator[Finding]:
        return _same_as(evidence, sent, alone, what)

    find.__name__ = name
    return check(rule, HERE, _saw(sent))(find)


ALIKE = (
    _alike("http.14", "pipelining", "pipeline", "pipeline-expected", "of 16 pipelined requests"),
    _alike(
        "http.15", "request_across_segments", "halves", "halves-expected", "of one and a half requests in a segment"
    ),
    _alike("http.16", "request_in_segments", "segments", "plain", "of a request in several segments"),
    _alike("http.18", "absolute_form", "absolute", "plain", "of a request with an absolute-form target"),
    _alike("http.19", "long_query_string", "long-query", "plain", "of a request with a long query string"),
)


@check("http.13", HERE, _saw("close"))
def connection_close(evidence: Evidence) -> Iterator[Finding]:
    """``Connection: close`` is answered, and then the server closes."""
    seen = evidence.wire["close"]
    if not seen.responses or not seen.ended:
        yield Finding(
            message="a request with Connection: close is not answered and followed by a close",
            expected="the response, then the end of the connection",
            actual=seen.error or "the connection stayed open",
        )


@check("http.17", HERE, _saw("names"))
def header_names_any_case(evidence: Evidence) -> Iterator[Finding]:
    """Header names and connection options mean the same in any case."""
    seen = evidence.wire["names"]
    yield from _same_as(evidence, "names", "plain", "of a request with header names in odd case")
    if seen.responses and not seen.ended and evidence.wire["close"].ended:
        yield Finding(
            message="'cOnNeCtIoN: ClOsE' does not close",
            expected="closed",
            actual="the connection stayed open",
        )


@check("http.20", HERE, _saw("head"))
def head_request(evidence: Evidence) -> Iterator[Finding]:
    """HEAD is GET without the body, and the connection goes on."""
    seen = evidence.wire["head"]
    if len(seen.responses) < 2 or seen.stray:
        yield Finding(
            message="after HEAD the connection is out of step: a body was sent, or nothing more came",
            expected="a header section, then the next response",
            actual=seen.error or shown(seen.stray, 60),
        )
        return
    head, get = seen.responses[:2]
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
    seen, wanted = evidence.wire[name], evidence.wire[expected]
    if wanted.error:
        return  # the plain request fails: other checks say so
    if len(seen.responses) < len(wanted.responses):
        yield Finding(
            message=f"only {len(seen.responses)} responses came {what}",
            expected=f"{len(wanted.responses)} responses",
            actual=seen.error,
        )
        return
    for place, (came, should) in enumerate(zip(seen.responses, wanted.responses, strict=True), 1):
        if _signature(seen, place - 1) != _signature(wanted, place - 1):
            yield Finding(
                message=f"response {place} {what} is not the one that was asked for",
                expected=f"{should.status} {should.get('content-type')}: {shown(should.body, 40)}",
                actual=f"{came.status} {came.get('content-type')}: {shown(came.body, 40)}",
            )
            return


def _signature(seen: Wire, place: int) -> tuple[int, str | None]:
    response = seen.responses[place]
    return response.status, response.get("content-type") if response.status == 200 else None


def _status(evidence: Evidence, name: str, allowed: set[int]) -> Iterator[Finding]:
    seen = evidence.wire[name]
    status = seen.responses[0].status if seen.responses else None
    if status not in allowed:
        yield Finding(
            message=f"{name.replace('unknown', 'an unknown path').replace('method', 'DELETE')} is not refused",
            expected=" or ".join(str(code) for code in sorted(allowed)),
            actual=seen.error if status is None else f"{status}",
        )


def _refused(evidence: Evidence, name: str, what: str, accepted: Outcome) -> Iterator[Finding]:
    seen = evidence.wire[name]
    if not seen.alive:
        yield Finding(
            message=f"after {what} the server answers no new connection",
            expected="200",
            actual="nothing",
        )
    status = seen.responses[0].status if seen.responses else None
    if status is not None and status >= 500 and status not in (501, 505):
        yield Finding(message=f"{what} is answered with {status}", expected="400 or a close", actual=f"{status}")
    elif status is not None and status < 400:
        yield Finding(message=f"{what} is accepted", expected="4xx or a close", actual=f"{status}", outcome=accepted)
    elif status is None and seen.error_kind == "silent":
        yield Finding(message=f"{what} is neither answered nor is the connection closed", expected="400 or a close")


# ---- asking ----------------------------------------------------------------------------------------------------------


def gather(endpoint: Endpoint, urls: Sequence[str], patience: float) -> dict[str, Wire]:
    """What came of all odd requests, several at once, the harmful ones last."""
    return _OddRequests(endpoint, urls, patience).gather()


class _OddRequests:
    """One server and the cheapest of its URLs, with the others for telling pipelined answers apart."""

    def __init__(self, endpoint: Endpoint, urls: Sequence[str], patience: float = wire.PATIENCE) -> None:
        self._endpoint = endpoint
        self._urls = urls
        self._url = urls[0]
        self._patience = patience
        self._keep_alive = wire.generator_headers(ACCEPT_JSON)

    def gather(self) -> dict[str, Wire]:
        """What came of each."""
        legal: dict[str, Callable[[], Wire]] = {
            "plain": lambda: self._one_by_one([self._get(self._url)]),
            "close": self._close,
            "pipeline-expected": lambda: self._one_by_one([self._get(target) for target in self._mixture(DEPTH)]),
            "pipeline": lambda: self._at_once([self._get(target) for target in self._mixture(DEPTH)]),
            "halves-expected": lambda: self._one_by_one([self._get(target) for target in self._mixture(2)]),
            "halves": self._halves,
            "segments": self._segments,
            "names": self._names,
            "absolute": lambda: self._one_by_one([self._get(f"http://tfb-server{self._url}")]),
            "long-query": lambda: self._one_by_one([self._get(self._long_query())]),
            "head": self._head,
            "unknown": lambda: self._one_by_one([self._get(UNKNOWN)]),
            "method": lambda: self._one_by_one([wire.request(self._url, self._keep_alive, method="DELETE")]),
        }
        with ThreadPoolExecutor(len(legal)) as pool:
            seen = {name: pool.submit(ask) for name, ask in legal.items()}
        wires = {name: future.result() for name, future in seen.items()}
        illegal = {"oversized": self._oversized(), **GARBAGE}
        return wires | {name: self._illegal(data) for name, data in illegal.items()}

    # ---- legal -------------------------------------------------------------------------------------------------------

    def _get(self, target: str) -> bytes:
        return wire.request(target, self._keep_alive)

    def _mixture(self, count: int) -> list[str]:
        """Targets whose answers differ from their neighbours', so that a swap is seen."""
        targets = [*self._urls, UNKNOWN]
        return [targets[n % len(targets)] for n in range(count)]

    def _long_query(self) -> str:
        return f"{self._url}{'&' if '?' in self._url else '?'}padding={'x' * 2000}"

    def _one_by_one(self, requests: Sequence[bytes]) -> Wire:
        """Each request on a connection of its own."""
        responses = []
        try:
            for request in requests:
                with Connection(self._endpoint, self._patience) as line:
                    line.send(request)
                    responses.append(line.receive())
        except WireError as error:
            return Wire(responses=tuple(responses), error=str(error), error_kind=error.kind)
        return Wire(responses=tuple(responses))

    def _at_once(self, requests: Sequence[bytes]) -> Wire:
        return self._talk([(b"".join(requests), 0.0)], len(requests))

    def _halves(self) -> Wire:
        first, second = (self._get(target) for target in self._mixture(2))
        middle = len(second) // 2
        return self._talk([(first + second[:middle], 3 * SEGMENT_PAUSE), (second[middle:], 0.0)], 2)

    def _segments(self) -> Wire:
        data = self._get(self._url)
        cuts = [0, 2, len(data) // 3, len(data) // 2, len(data) - 3, len(data) - 1, len(data)]
        pauses = [FIRST_PAUSE, *[SEGMENT_PAUSE] * (len(cuts) - 2)]
        parts = zip(itertools.pairwise(cuts), pauses, strict=True)
        return self._talk([(data[begin:end], pause) for (begin, end), pause in parts], 1)

    def _close(self) -> Wire:
        request = wire.request(self._url, (("Accept", ACCEPT_JSON), ("Connection", "close")))
        return self._talk([(request, 0.0)], 1, look_for_end=True)

    def _names(self) -> Wire:
        data = f"GET {self._url} HTTP/1.1\r\nhOsT: tfb-server\r\nACCEPT: {ACCEPT_JSON}\r\ncOnNeCtIoN: ClOsE\r\n\r\n"
        return self._talk([(data.encode(), 0.0)], 1, look_for_end=True)

    def _head(self) -> Wire:
        responses: list[Response] = []
        try:
            with Connection(self._endpoint, self._patience) as line:
                line.send(wire.request(self._url, self._keep_alive, method="HEAD"))
                responses.append(line.receive("HEAD"))
                if stray := line.stray(SEGMENT_PAUSE):
                    return Wire(responses=tuple(responses), stray=stray)
                line.send(self._get(self._url))
                responses.append(line.receive())
        except WireError as error:
            return Wire(responses=tuple(responses), error=str(error), error_kind=error.kind)
        return Wire(responses=tuple(responses))

    def _talk(self, segments: Sequence[tuple[bytes, float]], count: int, *, look_for_end: bool = False) -> Wire:
        """Send segments with pauses on one connection, then read so many responses."""
        responses: list[Response] = []
        try:
            with Connection(self._endpoint, self._patience) as line:
                for data, pause in segments:
                    line.send(data)
                    time.sleep(pause)
                while len(responses) < count:
                    responses.append(line.receive())
                ended = line.ended(CLOSE_SECONDS) if look_for_end else None
        except WireError as error:
            return Wire(responses=tuple(responses), error=str(error), error_kind=error.kind)
        return Wire(responses=tuple(responses), ended=ended)

    # ---- illegal -----------------------------------------------------------------------------------------------------

    def _oversized(self) -> bytes:
        return wire.request(self._url, (*self._keep_alive, ("X-Padding", "x" * OVERSIZED)))

    def _illegal(self, data: bytes) -> Wire:
        """Send what no server may take, then see whether a new connection is served."""
        responses: tuple[Response, ...] = ()
        error: WireError | None = None
        try:
            with Connection(self._endpoint, min(ILLEGAL_SECONDS, self._patience)) as line:
                try:
                    line.send(data)
                except WireError as refused:
                    error = refused  # closed while it was being sent; its answer may still be there to read
                responses = (line.receive(),)
        except WireError as refused:
            error = error or refused
        plain = self._one_by_one([self._get(self._url)])
        return Wire(
            responses=responses,
            error=str(error) if error else None,
            error_kind=error.kind if error else None,
            # Answered, if not as HTTP asks: another check says so. Only silence means that nothing serves any more.
            alive=bool(plain.responses) or plain.error_kind in ("grammar", "short"),
        )
