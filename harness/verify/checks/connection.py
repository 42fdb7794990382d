"""Checks for HTTP/1.1 behaviour: closing connections, pipelining, unusual but valid requests, and invalid requests."""

import itertools
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace

from harness.plan.requests import PreparedRequest
from harness.plan.testtypes import ACCEPT_JSON, PIPELINE_DEPTH
from harness.records.verification_record import WHOLE_SERVER, Outcome
from harness.runtime import Endpoint
from harness.verify.checks import Check, Finding, check, excerpt
from harness.verify.checks.evidence import Evidence, ProbeResult
from harness.verify.wire import Connection, Response, WireError

SERVER_ONLY = frozenset({WHOLE_SERVER})
ILLEGAL_SECONDS = 3.0  # time limit for rejecting an invalid request or closing the connection
SEGMENT_PAUSE_SECONDS = 0.02  # usually long enough for the server to read a segment before the next arrives
FIRST_PAUSE_SECONDS = 0.2  # pause after the first segment; long enough even on a busy machine
UNKNOWN_PATH = "/tfb-no-such-path"
Segments = Sequence[tuple[bytes, float]]  # (bytes to send, seconds to wait afterwards)
GARBAGE = {
    "garbage: bytes of a TLS handshake": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    "garbage: a line that is not a request line": b"NONSENSE\r\n\r\n",
    "garbage: random bytes": bytes(range(128, 256)) * 4 + b"\r\n\r\n",
}


def _probed(name: str) -> Callable[[Evidence], bool]:
    return lambda evidence: name in evidence.probes


@check("http.13", SERVER_ONLY, _probed("close"))
def connection_close(evidence: Evidence) -> Iterator[Finding]:
    """Require that the server responds to ``Connection: close`` and then closes the connection."""
    probe = evidence.probes["close"]
    if not probe.responses or not probe.closed:
        yield Finding(
            "the server does not honour Connection: close. Respond to the request, then close the connection",
            expected="the response, then a closed connection",
            actual=probe.error or "the connection stayed open",
        )


def _same_response_check(rule: str, name: str, probe: str, reference: str, description: str) -> Check:
    """Return a check that compares a probe's statuses and media types with those of a reference probe."""

    def find(evidence: Evidence) -> Iterator[Finding]:
        return _compare_responses(evidence, probe, reference, description)

    find.__name__ = name
    return check(rule, SERVER_ONLY, _probed(probe))(find)


SAME_RESPONSE_CHECKS = (
    _same_response_check("http.14", "pipelining", "pipeline", "pipeline-expected", "16 pipelined requests"),
    _same_response_check(
        "http.15", "request_across_segments", "halves", "halves-expected", "one and a half requests in one segment"
    ),
    _same_response_check("http.16", "request_in_segments", "segments", "plain", "a request in several segments"),
    _same_response_check("http.18", "absolute_form", "absolute", "plain", "a request with an absolute-form target"),
    _same_response_check("http.19", "long_query_string", "long-query", "plain", "a request with a long query string"),
)


@check("http.17", SERVER_ONLY, _probed("names"))
def header_names_any_case(evidence: Evidence) -> Iterator[Finding]:
    """Require that the server ignores the case of header names and connection options."""
    probe = evidence.probes["names"]
    yield from _compare_responses(evidence, "names", "plain", "a request with header names in mixed case")
    if probe.responses and not probe.closed and evidence.probes["close"].closed:
        yield Finding(
            "the server ignores 'cOnNeCtIoN: ClOsE'. Compare header names and options case-insensitively",
            expected="closed",
            actual="the connection stayed open",
        )


@check("http.20", SERVER_ONLY, _probed("head"))
def head_request(evidence: Evidence) -> Iterator[Finding]:
    """Require that HEAD gets the same response as GET but no body, and that the connection remains usable."""
    probe = evidence.probes["head"]
    if len(probe.responses) < 2:
        yield Finding(
            "the connection is unusable after HEAD. Send no body in response to HEAD",
            expected="a header section, then the next response",
            actual=probe.error,
        )
        return
    head, get = probe.responses[:2]
    if head.status in (404, 405, 501):
        yield Finding(
            f"HEAD returned status {head.status}. Support HEAD, because RFC 9110 requires it",
            expected=f"{get.status}",
            actual=f"{head.status}",
            outcome=Outcome.WARN,
        )
    elif head.status != get.status:
        yield Finding(
            "HEAD and GET have different statuses. Handle HEAD like GET",
            expected=f"{get.status}",
            actual=f"{head.status}",
        )


@check("http.21", SERVER_ONLY, _probed("unknown"))
def unknown_path(evidence: Evidence) -> Iterator[Finding]:
    """Require 404 for unknown paths, including a declared path with a suffix."""
    yield from _require_status(evidence.probes["unknown"], "an unknown path", (404,))
    if "suffix" in evidence.probes:
        yield from _require_status(evidence.probes["suffix"], "a declared path with a suffix", (404,))


@check("http.22", SERVER_ONLY, _probed("method"))
def unsupported_method(evidence: Evidence) -> Iterator[Finding]:
    """Require 405, 404 or 501 for a method that the resource does not support."""
    yield from _require_status(evidence.probes["method"], "DELETE", (404, 405, 501))


@check("http.23", SERVER_ONLY, _probed("oversized"))
def oversized_header(evidence: Evidence) -> Iterator[Finding]:
    """Require that the server rejects a header of more than a megabyte, and then accepts new connections."""
    yield from _require_refusal(evidence.probes["oversized"], "a header of 1.25 MB", Outcome.WARN)


@check("http.24", SERVER_ONLY, lambda evidence: any(name in evidence.probes for name in GARBAGE))
def garbage(evidence: Evidence) -> Iterator[Finding]:
    """Require that the server rejects bytes that are not HTTP, and then accepts new connections."""
    for name in sorted(GARBAGE.keys() & evidence.probes.keys()):
        yield from _require_refusal(evidence.probes[name], name.removeprefix("garbage: "), Outcome.FAIL)


def _compare_responses(evidence: Evidence, name: str, reference: str, description: str) -> Iterator[Finding]:
    """Find the first response with a different status than the reference or, for status 200, a different media type."""
    probe, plain = evidence.probes[name], evidence.probes[reference]
    if plain.error:
        return  # other checks report the failed reference request
    if len(probe.responses) < len(plain.responses):
        yield Finding(
            f"only {len(probe.responses)} responses to {description}. Respond to every request, in order",
            expected=f"{len(plain.responses)} responses",
            actual=probe.error,
        )
        return
    for number, pair in enumerate(zip(probe.responses, plain.responses, strict=True), 1):
        actual, expected = ((r.status, r.get("content-type") if r.status == 200 else None) for r in pair)
        if actual != expected:
            got, wanted = (f"{r.status} {r.get('content-type')}: {excerpt(r.body, 40)}" for r in pair)
            yield Finding(
                f"response {number} to {description} is wrong. Respond as if each request were sent alone",
                expected=wanted,
                actual=got,
            )
            return


def _require_status(probe: ProbeResult, description: str, allowed: Sequence[int]) -> Iterator[Finding]:
    if probe.status not in allowed:
        yield Finding(
            f"wrong status for {description}. Respond with the expected status",
            expected=" or ".join(map(str, allowed)),
            actual=probe.error if probe.status is None else f"{probe.status}",
        )


def _require_refusal(probe: ProbeResult, description: str, if_accepted: Outcome) -> Iterator[Finding]:
    if not probe.alive:
        yield Finding(
            f"after {description}, the server does not respond on a new connection. Close only the affected connection",
            expected="200",
            actual="no response",
        )
    status = probe.status
    if status is None and probe.failure and probe.failure.kind == "silent":
        yield Finding(
            f"no response to {description}, and the connection stays open. Respond with 400 or close the connection",
            expected="400, or a closed connection",
        )
    elif status is not None and status < 400:
        yield Finding(
            f"the server accepts {description}. Limit the size of headers, and reject malformed requests",
            expected="4xx, or a closed connection",
            actual=f"{status}",
            outcome=if_accepted,
        )
    elif status is not None and status >= 500 and status not in (501, 505):
        yield Finding(
            f"wrong status for {description}. Respond with 400 or close the connection",
            expected="400, or a closed connection",
            actual=f"{status}",
        )


# ---- probes ----------------------------------------------------------------------------------------------------------


def build_request(target: str, *headers: tuple[str, str], method: str = "GET") -> bytes:
    """Return the bytes of a request with the load generator's headers, followed by ``headers``."""
    return PreparedRequest(target=target, method=method, headers=(("Accept", ACCEPT_JSON), *headers)).head("tfb-server")


@dataclass(frozen=True, kw_only=True)
class _ConnectionProber:
    """A client that opens a new connection for each probe."""

    endpoint: Endpoint
    timeout: float  # seconds

    def send(self, segments: Segments, methods: Sequence[str] = ("GET",), *, until_closed: bool = False) -> ProbeResult:
        """Send segments on a new connection, with a pause after each. Then read a response for each of ``methods``.

        If ``until_closed`` is set, also observe whether the server then closes the connection.
        """
        responses: list[Response] = []
        failure: WireError | None = None
        closed = None
        try:
            with closing(Connection(self.endpoint, self.timeout)) as connection:
                try:
                    for data, pause in segments:
                        connection.send(data)
                        time.sleep(pause)
                except WireError as error:
                    failure = error  # the server has closed the connection, but a response may still be readable
                responses.extend(map(connection.receive, methods))
                closed = connection.wait_for_close(2.0) if until_closed else None
        except WireError as error:
            failure = failure or error
        return ProbeResult(responses=tuple(responses), failure=failure, closed=closed)

    def send_separately(self, *requests: bytes) -> ProbeResult:
        """Send each request on a separate connection, and stop at the first failure."""
        result = ProbeResult()
        for data in requests:
            probe = self.send([(data, 0.0)])
            result = replace(probe, responses=result.responses + probe.responses)
            if result.failure:
                break
        return result


def gather(endpoint: Endpoint, urls: Sequence[str], timeout: float) -> dict[str, ProbeResult]:
    """Send all valid probes concurrently. Then send invalid probes sequentially, because they may crash the server.

    The responses to ``urls`` must differ, so that swapped responses are detected. The cheapest URL is first.
    """
    prober = _ConnectionProber(endpoint=endpoint, timeout=timeout)
    legal = _legal_probes(prober, urls)
    with ThreadPoolExecutor(len(legal)) as pool:
        results = dict(zip(legal, pool.map(lambda send: send(), legal.values()), strict=True))
    # Every server's default limit is lower than the length of this header line.
    oversized = build_request(urls[0], ("X-Padding", "x" * 1_250_000))
    impatient = _ConnectionProber(endpoint=endpoint, timeout=min(ILLEGAL_SECONDS, timeout))
    for name, data in {"oversized": oversized, **GARBAGE}.items():
        probe = impatient.send([(data, 0.0)])
        after = prober.send_separately(build_request(urls[0]))
        # A malformed response also shows that the server is alive. Other checks report the response.
        alive = bool(after.responses) or (after.failure is not None and after.failure.kind in ("grammar", "short"))
        results[name] = replace(probe, alive=alive)
    return results


def _legal_probes(prober: _ConnectionProber, urls: Sequence[str]) -> dict[str, Callable[[], ProbeResult]]:
    url = urls[0]
    targets = [*urls, UNKNOWN_PATH]  # alternate between URLs with different responses, to detect swapped responses
    pipeline = [build_request(targets[n % len(targets)]) for n in range(PIPELINE_DEPTH)]
    plain, half = pipeline[0], len(pipeline[1]) // 2
    cuts = [0, 2, len(plain) // 3, len(plain) // 2, len(plain) - 3, len(plain) - 1, len(plain)]
    pauses = [FIRST_PAUSE_SECONDS, *[SEGMENT_PAUSE_SECONDS] * (len(cuts) - 2)]
    segments = [(plain[a:b], pause) for (a, b), pause in zip(itertools.pairwise(cuts), pauses, strict=True)]
    halves = [(plain + pipeline[1][:half], 3 * SEGMENT_PAUSE_SECONDS), (pipeline[1][half:], 0.0)]
    long_query = f"{url}{'&' if '?' in url else '?'}padding={'x' * 2000}"
    names = f"GET {url} HTTP/1.1\r\nhOsT: tfb-server\r\nACCEPT: {ACCEPT_JSON}\r\ncOnNeCtIoN: ClOsE\r\n\r\n".encode()
    close = build_request(url, ("Connection", "close"))
    head = build_request(url, method="HEAD")

    def separately(*requests: bytes) -> Callable[[], ProbeResult]:
        return lambda: prober.send_separately(*requests)

    # Add no suffix to a path that ends in a digit. The number may be a parameter, so the new path may be valid.
    path = url.partition("?")[0].rstrip("/")
    suffix = (
        {}
        if not path or path[-1].isdigit()
        else {"suffix": separately(build_request(f"{path}-{secrets.token_hex(4)}"))}
    )
    return suffix | {
        "plain": separately(plain),
        "close": lambda: prober.send([(close, 0.0)], until_closed=True),
        "pipeline-expected": separately(*pipeline),
        "pipeline": lambda: prober.send([(b"".join(pipeline), 0.0)], ["GET"] * PIPELINE_DEPTH),
        "halves-expected": separately(*pipeline[:2]),
        "halves": lambda: prober.send(halves, ["GET", "GET"]),
        "segments": lambda: prober.send(segments),
        "names": lambda: prober.send([(names, 0.0)], until_closed=True),
        "absolute": separately(build_request(f"http://tfb-server{url}")),
        "long-query": separately(build_request(long_query)),
        "head": lambda: prober.send([(head, FIRST_PAUSE_SECONDS), (plain, 0.0)], ["HEAD", "GET"]),
        "unknown": separately(build_request(UNKNOWN_PATH)),
        "method": separately(build_request(url, method="DELETE")),
    }
