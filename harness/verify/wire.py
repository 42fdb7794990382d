"""A strict HTTP/1.1 client on a raw socket, which accounts for every byte of a response and can send any bytes.

HTTP libraries repair, hide or reject violations that verification must detect. Examples are a body longer than
Content-Length, a second response in the same segment, and a header line without a colon. The client parses grammar and
framing as specified in RFC 9112.
"""

import re
import select
import ssl
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal

from harness.runtime import Endpoint

# TechEmpower's time limit in seconds, from a request to the last byte of the response. It also applies to loads.
TIMEOUT_SECONDS = 8

# These limits far exceed the size of any correct response. The client stops reading at a limit.
MAX_BODY_BYTES = 1024 * 1024  # 500 rows take 20 kB, and a fortunes page takes 1.5 kB
MAX_HEAD_BYTES = 256 * 1024  # bytes of the status line and the header section
MAX_LINE_BYTES = 8 * 1024  # bytes of a chunk's size line, or of a trailer line
MAX_INTERIM_RESPONSES = 8  # maximum number of 1xx responses before the final response
MAX_SERVICE_BODY_BYTES = 16 * 1024 * 1024  # maximum size of a service's responses
MAX_UNSOLICITED_BYTES = 64 * 1024  # further unsolicited bytes are discarded

_STATUS_LINE = re.compile(rb"HTTP/(\d\.\d) (\d{3})(?: ([\t\x20-\x7e\x80-\xff]*))?\Z")
_HEADER_LINE = re.compile(
    rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*((?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)[ \t]*\Z"
)
_CHUNK_LINE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;.*)?\Z")
_NO_BODY_STATUS = frozenset({204, 304})

Framing = Literal["content-length", "chunked", "close", "none", "unknown"]


class WireError(Exception):
    """A failed connection, or a response that violates HTTP/1.1. ``kind`` is the type of failure."""

    def __init__(self, kind: Literal["refused", "closed", "silent", "short", "grammar"], message: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class Response:
    """A response: the headers in order, the body without framing, and the size on the wire."""

    status: int
    reason: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    size: int  # total number of bytes on the wire: head, framing and body
    framing: Framing
    violations: tuple[str, ...] = ()  # grammar violations that do not prevent parsing

    def get_all(self, name: str) -> list[str]:
        """Return all values of a header in order, given the lower-case name."""
        return [value for key, value in self.headers if key.lower() == name]

    def get(self, name: str) -> str | None:
        """Return the first value of a header, or None."""
        return next((value for key, value in self.headers if key.lower() == name), None)


class Connection:
    """A connection to a server. This class is not thread-safe."""

    def __init__(
        self, endpoint: Endpoint, timeout: float = TIMEOUT_SECONDS, *, max_body_bytes: int = MAX_BODY_BYTES
    ) -> None:
        self.timeout = timeout
        self._max_body_bytes = max_body_bytes
        self._buffer = bytearray()
        self._ended = False
        try:
            self._socket = endpoint.connect(timeout)
        except OSError as error:
            raise WireError("refused", f"cannot connect to {endpoint.place}: {error}") from error

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def send(self, data: bytes) -> None:
        """Send bytes, in a single segment if possible.

        Raises WireError if the server closes the connection or stops reading.
        """
        try:
            self._socket.sendall(data)
        except TimeoutError as error:
            raise WireError("silent", "the server stopped reading the request") from error
        except OSError as error:
            raise WireError("closed", f"the server closed the connection during the request: {error}") from error

    def receive(self, method: str = "GET") -> Response:
        """Read the next response completely and return it. Raises WireError if it is incomplete or malformed."""
        deadline = time.monotonic() + self.timeout
        for _ in range(MAX_INTERIM_RESPONSES + 1):
            head = self._head(deadline)
            if not 100 <= head.status < 200 or head.status == 101:
                break
        else:
            raise WireError(
                "grammar",
                f"more than {MAX_INTERIM_RESPONSES} interim responses ({head.status}) without a final response",
            )
        framing, length, violations = _framing(head, method)
        if framing == "chunked":
            body, framed = self._chunks(deadline)
        else:
            expectation = f"Content-Length declares {length} bytes of body"
            body = self._read_to_end(deadline) if framing == "close" else self._take(length, deadline, expectation)
            framed = len(body)
        violations = (*head.violations, *violations)
        return replace(head, body=body, size=head.size + framed, framing=framing, violations=violations)

    def read_unsolicited(self) -> bytes:
        """Return bytes that the server has sent without a request."""
        # Read with a time limit, because a readable TLS connection may contain only session tickets, and no data.
        if not self._ended and (self._pending() or select.select([self._socket], [], [], 0.0)[0]):
            with suppress(WireError):
                self._fill(time.monotonic() + 0.01)  # reads only bytes that have already arrived
        return bytes(self._buffer[:MAX_UNSOLICITED_BYTES])

    def wait_for_close(self, wait: float) -> bool:
        """Wait up to ``wait`` seconds. Return whether the server has closed the connection."""
        deadline = time.monotonic() + wait
        while not self._ended and time.monotonic() < deadline:
            if select.select([self._socket], [], [], max(0.0, deadline - time.monotonic()))[0]:
                try:
                    self._fill(deadline)
                except WireError:
                    break
                del self._buffer[MAX_UNSOLICITED_BYTES:]
        return self._ended

    def _pending(self) -> bool:
        return isinstance(self._socket, ssl.SSLSocket) and self._socket.pending() > 0

    # ---- reading -----------------------------------------------------------------------------------------------------

    def _fill(self, deadline: float) -> bool:
        """Read some bytes into the buffer. Return False at the end of the stream.

        Raises WireError if no bytes arrive before the deadline.
        """
        remaining = deadline - time.monotonic()
        if remaining <= 0 and self._buffer:
            raise WireError("silent", f"the response is incomplete after {self.timeout:g} s")
        self._socket.settimeout(max(0.001, remaining))
        try:
            data = self._socket.recv(262_144)
        except TimeoutError as error:
            raise WireError("silent", f"no further bytes within {self.timeout:g} s") from error
        except OSError:
            data = b""
        if not data:
            self._ended = True
            return False
        self._buffer += data
        return True

    def _head(self, deadline: float) -> Response:
        """Read the head of a response, which may be spread over several segments."""
        while True:
            end = self._buffer.find(b"\r\n\r\n")
            size = len(self._buffer) if end < 0 else end + 4
            if size > MAX_HEAD_BYTES:
                raise WireError("grammar", f"the header section exceeds {MAX_HEAD_BYTES // 1024} kB")
            if self._buffer.find(b"\n\n", 0, size) >= 0:
                raise WireError("grammar", "header lines end with LF. RFC 9112 section 2.2 requires CR LF")
            if not self._buffer.startswith(b"HTTP/"[:size]):
                raise WireError("grammar", f"invalid status line: {bytes(self._buffer[:60])!r}")
            if end >= 0:
                return _parse_head(self._take_from_buffer(size)[:-4])
            if not self._fill(deadline):
                if self._buffer:
                    raise WireError(
                        "short",
                        f"the server closed the connection while sending headers, after {bytes(self._buffer[-60:])!r}",
                    )
                raise WireError("closed", "the server closed the connection without a response")

    def _fill_body(self, deadline: float, expectation: str) -> None:
        """Read more bytes of a body. If no bytes arrive, raise a WireError that starts with ``expectation``."""
        try:
            more = self._fill(deadline)
        except WireError as error:
            raise WireError(
                "short", f"{expectation}; only {len(self._buffer)} bytes arrived within the time limit"
            ) from error
        if not more:
            raise WireError("short", f"{expectation}; the server closed the connection after {len(self._buffer)} bytes")

    def _take_from_buffer(self, count: int) -> bytes:
        data = bytes(self._buffer[:count])
        del self._buffer[:count]
        return data

    def _take(self, count: int, deadline: float, expectation: str, before: int = 0) -> bytes:
        """Return the next ``count`` bytes of a body. ``before`` is the number of body bytes already read."""
        if before + count > self._max_body_bytes:
            raise WireError("grammar", f"{expectation}, which exceeds the limit of {self._max_body_bytes >> 20} MiB")
        while len(self._buffer) < count:
            self._fill_body(deadline, expectation)
        return self._take_from_buffer(count)

    def _line(self, deadline: float) -> bytes:
        """Read a line of a chunked body, without CR LF."""
        while True:
            end = self._buffer.find(b"\r\n")
            size = len(self._buffer) if end < 0 else end + 2
            if size > MAX_LINE_BYTES:
                raise WireError("grammar", f"a line within a chunked body exceeds {MAX_LINE_BYTES // 1024} kB")
            if end >= 0:
                return self._take_from_buffer(size)[:-2]
            self._fill_body(deadline, "the chunked body is incomplete")

    def _chunks(self, deadline: float) -> tuple[bytes, int]:
        body, framed = bytearray(), 0
        while True:
            line = self._line(deadline)
            match = _CHUNK_LINE.match(line)
            if not match:
                raise WireError("grammar", f"invalid chunk size: {line[:60]!r}")
            size = int(match[1], 16)
            framed += len(line) + 2
            if size == 0:
                break
            body += self._take(size, deadline, f"a chunk declares {size} bytes", before=len(body))
            if (end := self._take(2, deadline, "a chunk has no CR LF at its end")) != b"\r\n":
                raise WireError("grammar", f"a chunk of {size} bytes continues with {end!r} instead of CR LF")
            framed += size + 2
        trailer = 2
        while line := self._line(deadline):  # trailer section
            trailer += len(line) + 2
            if trailer > MAX_HEAD_BYTES:
                raise WireError("grammar", f"the trailer section exceeds {MAX_HEAD_BYTES // 1024} kB")
        return bytes(body), framed + trailer

    def _read_to_end(self, deadline: float) -> bytes:
        while self._fill(deadline):
            if len(self._buffer) > (limit := self._max_body_bytes):
                raise WireError("grammar", f"a body without a declared length exceeds {limit >> 20} MiB")
        return self._take_from_buffer(len(self._buffer))


def _parse_head(data: bytes) -> Response:
    """Parse the head of a response, without the empty line at the end."""
    status_line, *header_lines = data.split(b"\r\n")
    match = _STATUS_LINE.match(status_line)
    if not match:
        raise WireError("grammar", f"invalid status line: {status_line[:60]!r}")
    headers: list[tuple[str, str]] = []
    violations = [] if match[1] == b"1.1" else [f"the version is HTTP/{match[1].decode()}. Respond with HTTP/1.1"]
    violations += [] if match[3] is not None else [f"there is no space after the status code in {status_line!r}"]
    for line in header_lines:
        if header := _HEADER_LINE.match(line):
            headers.append((header[1].decode("ascii"), header[2].decode("latin-1")))
            continue
        violations.append(f"invalid header line: {line[:60]!r}")
        name, colon, value = line.partition(b":")
        if colon:
            headers.append((name.strip().decode("latin-1"), value.strip().decode("latin-1")))
    reason = (match[3] or b"").decode("latin-1")
    status, size = int(match[2]), len(data) + 4
    return Response(status, reason, tuple(headers), b"", size, "none", tuple(violations))


def _framing(head: Response, method: str) -> tuple[Framing, int, Sequence[str]]:
    """Return how the body is delimited (RFC 9112 section 6.3), the declared length, and violations of the RFC."""
    lengths, codings = head.get_all("content-length"), head.get_all("transfer-encoding")
    violations = ["the response has both Content-Length and Transfer-Encoding"] if lengths and codings else []
    violations += ["Content-Length is repeated"] if len(lengths) > 1 else []
    if method == "HEAD" or head.status in _NO_BODY_STATUS or head.status < 200:
        return "none", 0, violations
    if codings:
        if [coding.strip().lower() for coding in ",".join(codings).split(",")] != ["chunked"]:
            raise WireError("grammar", f"unsupported Transfer-Encoding: {', '.join(codings)}. Use chunked")
        return "chunked", 0, violations
    if lengths:
        if not re.fullmatch(r"[0-9]{1,15}", lengths[0]) or any(length != lengths[0] for length in lengths):
            raise WireError("grammar", f"invalid Content-Length: {', '.join(lengths)}")
        return "content-length", int(lengths[0]), violations
    return "close", 0, violations
