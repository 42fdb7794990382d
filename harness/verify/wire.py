"""HTTP/1.1 on a raw socket: every byte of a response is accounted for, and requests may be as odd as a check needs.

An HTTP library mends, hides or refuses what verification has to see (a body longer than its Content-Length, a second
answer in the same segment, a header line without a colon), so this one place speaks the protocol itself. Grammar and
framing follow RFC 9112.
"""

import re
import select
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from harness.runtime import Endpoint

PATIENCE = 8.0  # seconds from asking to the last byte of the answer, as wrk's --timeout

# No answer of any test comes near these; a server that goes beyond them is stopped being read, not waited for.
BODY_LIMIT = 1024 * 1024  # bytes, of dozens of connections at once; 500 rows are 20 kB, a page of fortunes 1.5 kB
HEAD_LIMIT = 256 * 1024  # bytes of status line and header section
LINE_LIMIT = 8 * 1024  # bytes of a chunk's size line or a trailer
INTERIM_LIMIT = 8  # 1xx responses before the final one
STRAY_LIMIT = 64 * 1024  # bytes kept of what nobody asked for

_STATUS_LINE = re.compile(rb"HTTP/(\d\.\d) (\d{3})(?: ([\t\x20-\x7e\x80-\xff]*))?\Z")
_HEADER_LINE = re.compile(
    rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*((?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)[ \t]*\Z"
)
_CHUNK_LINE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;.*)?\Z")
_NO_BODY_STATUS = frozenset({204, 304})

Framing = Literal["content-length", "chunked", "close", "none"]


class WireError(Exception):
    """The peer did not answer as HTTP/1.1 asks: ``kind`` says how."""

    def __init__(self, kind: Literal["refused", "closed", "silent", "short", "grammar"], message: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class Response:
    """One response as it came: headers in order, the body unframed, and its size on the wire."""

    status: int
    reason: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    size: int  # bytes on the wire: head, framing and body
    framing: Framing
    violations: tuple[str, ...] = ()  # of the grammar, where the response could still be read

    def all(self, name: str) -> list[str]:
        """All values of a header, in order."""
        return [value for key, value in self.headers if key.lower() == name]

    def get(self, name: str) -> str | None:
        """The first value of a header, or None."""
        return next((value for key, value in self.headers if key.lower() == name), None)


class Connection:
    """One TCP connection to a server; not for use by several threads at once."""

    def __init__(self, endpoint: Endpoint, patience: float = PATIENCE) -> None:
        self.patience = patience
        self._buffer = bytearray()
        self._ended = False
        try:
            self._socket = socket.create_connection((endpoint.host, endpoint.port), timeout=patience)
        except OSError as error:
            raise WireError("refused", f"no connection to {endpoint.host}:{endpoint.port}: {error}") from error
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def close(self) -> None:
        """Close this side."""
        self._socket.close()

    def send(self, data: bytes) -> None:
        """Send bytes as they are; in one segment when they fit."""
        try:
            self._socket.sendall(data)
        except TimeoutError as error:
            raise WireError("silent", "the server stopped reading") from error
        except OSError as error:
            raise WireError("closed", f"the connection was closed while sending: {error}") from error

    def receive(self, method: str = "GET") -> Response:
        """The next response, read to its last byte; raises WireError."""
        deadline = time.monotonic() + self.patience
        for _ in range(INTERIM_LIMIT + 1):
            head = self._head(deadline)
            if not 100 <= head.status < 200 or head.status == 101:
                break
        else:
            raise WireError("grammar", f"more than {INTERIM_LIMIT} interim responses ({head.status}) and no answer")
        framing, length, violations = _framing(head, method)
        if framing == "chunked":
            body, framed = self._chunks(deadline)
        else:
            promise = f"Content-Length promised {length} bytes of body"
            body = self._rest(deadline) if framing == "close" else self._take(length, deadline, promise)
            framed = len(body)
        violations = (*head.violations, *violations)
        return replace(head, body=body, size=head.size + framed, framing=framing, violations=violations)

    def stray(self) -> bytes:
        """Bytes that have come although nothing was asked for."""
        if not self._ended and select.select([self._socket], [], [], 0.0)[0]:
            self._fill(time.monotonic() + self.patience)
        return bytes(self._buffer[:STRAY_LIMIT])

    def ended(self, wait: float) -> bool:
        """True when the server closes the connection within ``wait`` seconds."""
        deadline = time.monotonic() + wait
        while not self._ended and time.monotonic() < deadline:
            if select.select([self._socket], [], [], max(0.0, deadline - time.monotonic()))[0]:
                try:
                    self._fill(deadline)
                except WireError:
                    break
                del self._buffer[STRAY_LIMIT:]
        return self._ended

    # ---- reading -----------------------------------------------------------------------------------------------------

    def _fill(self, deadline: float) -> bool:
        """More bytes into the buffer; False at the end of the stream; never waits or reads beyond the deadline."""
        left = deadline - time.monotonic()
        if left <= 0 and self._buffer:
            raise WireError("silent", f"bytes kept coming, but no whole answer within {self.patience:g} s")
        self._socket.settimeout(max(0.001, left))
        try:
            data = self._socket.recv(262_144)
        except TimeoutError as error:
            raise WireError("silent", f"no further byte within {self.patience:g} s") from error
        except OSError:
            data = b""
        if not data:
            self._ended = True
            return False
        self._buffer += data
        return True

    def _head(self, deadline: float) -> Response:
        """Read a head; judge its bytes alike however they were cut into segments."""
        while True:
            end = self._buffer.find(b"\r\n\r\n")
            known = len(self._buffer) if end < 0 else end + 4
            if known > HEAD_LIMIT:
                raise WireError("grammar", f"no end of the header section within {HEAD_LIMIT // 1024} kB")
            if self._buffer.find(b"\n\n", 0, known) >= 0:
                raise WireError("grammar", "header lines end with a bare LF; RFC 9112 section 2.2 asks for CR LF")
            if not self._buffer.startswith(b"HTTP/"[:known]):
                raise WireError("grammar", f"not a status line: {bytes(self._buffer[:60])!r}")
            if end >= 0:
                return _parse_head(self._taken(known)[:-4])
            if not self._fill(deadline):
                if self._buffer:
                    raise WireError("short", f"closed in the header section after {bytes(self._buffer[-60:])!r}")
                raise WireError("closed", "the connection was closed without an answer")

    def _more(self, deadline: float, what: str) -> None:
        """More bytes of a body; a WireError says ``what`` is wrong where none come."""
        try:
            more = self._fill(deadline)
        except WireError as error:
            raise WireError("short", f"{what}: {len(self._buffer)} bytes came, then nothing") from error
        if not more:
            raise WireError("short", f"{what}: {len(self._buffer)} bytes came, then the connection was closed")

    def _taken(self, count: int) -> bytes:
        data = bytes(self._buffer[:count])
        del self._buffer[:count]
        return data

    def _take(self, count: int, deadline: float, promise: str, before: int = 0) -> bytes:
        if before + count > BODY_LIMIT:
            raise WireError("grammar", f"{promise}: no more than {BODY_LIMIT >> 20} MiB is looked at")
        while len(self._buffer) < count:
            self._more(deadline, promise)
        return self._taken(count)

    def _line(self, deadline: float) -> bytes:
        """Read a line of a chunked body, without its end."""
        while True:
            end = self._buffer.find(b"\r\n")
            known = len(self._buffer) if end < 0 else end + 2
            if known > LINE_LIMIT:
                raise WireError("grammar", f"a line within a chunked body has no end within {LINE_LIMIT // 1024} kB")
            if end >= 0:
                return self._taken(known)[:-2]
            self._more(deadline, "the chunked body has no end")

    def _chunks(self, deadline: float) -> tuple[bytes, int]:
        body, framed = bytearray(), 0
        while True:
            line = self._line(deadline)
            match = _CHUNK_LINE.match(line)
            if not match:
                raise WireError("grammar", f"not a chunk size: {line[:60]!r}")
            size = int(match[1], 16)
            framed += len(line) + 2
            if size == 0:
                break
            body += self._take(size, deadline, f"a chunk of {size} bytes was promised", before=len(body))
            if (end := self._take(2, deadline, "a chunk's end was due")) != b"\r\n":
                raise WireError("grammar", f"a chunk of {size} bytes does not end there but goes on with {end!r}")
            framed += size + 2
        trailer = 2
        while line := self._line(deadline):  # trailer section
            trailer += len(line) + 2
            if trailer > HEAD_LIMIT:
                raise WireError("grammar", f"a trailer section of more than {HEAD_LIMIT // 1024} kB")
        return bytes(body), framed + trailer

    def _rest(self, deadline: float) -> bytes:
        while self._fill(deadline):
            if len(self._buffer) > BODY_LIMIT:
                raise WireError("grammar", f"a body of more than {BODY_LIMIT >> 20} MiB that ends with the connection")
        return self._taken(len(self._buffer))


def _parse_head(data: bytes) -> Response:
    """A response without its body; ``data`` ends before the empty line."""
    first, *rest = data.split(b"\r\n")
    match = _STATUS_LINE.match(first)
    if not match:
        raise WireError("grammar", f"not a status line: {first[:60]!r}")
    headers: list[tuple[str, str]] = []
    violations = [] if match[1] == b"1.1" else [f"the version is HTTP/{match[1].decode()}"]
    violations += [] if match[3] is not None else [f"no space after the status code in {first!r}"]
    for line in rest:
        if header := _HEADER_LINE.match(line):
            headers.append((header[1].decode("ascii"), header[2].decode("latin-1")))
            continue
        violations.append(f"not a header line: {line[:60]!r}")
        name, colon, value = line.partition(b":")
        if colon:
            headers.append((name.strip().decode("latin-1"), value.strip().decode("latin-1")))
    reason = (match[3] or b"").decode("latin-1")
    status, size = int(match[2]), len(data) + 4
    return Response(status, reason, tuple(headers), b"", size, "none", tuple(violations))


def _framing(head: Response, method: str) -> tuple[Framing, int, Sequence[str]]:
    """How the body is delimited, by RFC 9112 section 6.3, its declared length, and what is wrong with that."""
    lengths, codings = head.all("content-length"), head.all("transfer-encoding")
    violations = ["both Content-Length and Transfer-Encoding"] if lengths and codings else []
    violations += ["Content-Length more than once"] if len(lengths) > 1 else []
    if method == "HEAD" or head.status in _NO_BODY_STATUS or head.status < 200:
        return "none", 0, violations
    if codings:
        if [coding.strip().lower() for coding in ",".join(codings).split(",")] != ["chunked"]:
            raise WireError("grammar", f"a Transfer-Encoding that was not asked for: {', '.join(codings)}")
        return "chunked", 0, violations
    if lengths:
        if not re.fullmatch(r"[0-9]{1,15}", lengths[0]) or any(length != lengths[0] for length in lengths):
            raise WireError("grammar", f"not a Content-Length: {', '.join(lengths)}")
        return "content-length", int(lengths[0]), violations
    return "close", 0, violations
