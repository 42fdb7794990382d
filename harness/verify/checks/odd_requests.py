"""Sends the odd and the illegal requests that the connection checks look at; several at once, the harmful ones last."""

import itertools
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from harness.plan.testtypes import ACCEPT_JSON
from harness.runtime import Endpoint
from harness.verify import wire
from harness.verify.checks.evidence import Wire
from harness.verify.wire import Connection, Response, WireError

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


class OddRequests:
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
