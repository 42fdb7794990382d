"""In-memory byte streams: a connection that reads a recorded stream, and a function that splits a stream."""

import random
import re
from collections.abc import Iterator, Sequence

from harness.verify.wire import MAX_BODY_BYTES, Connection, Response, WireError

PATIENCE = 60.0  # timeout in seconds; without effect, because reads never block
MOST_RESPONSES = 20
HEAD = re.compile(rb"[A-Z]+ /[!-~]* HTTP/1\.1\r\n(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+: [\t\x20-\x7e\x80-\xff]*\r\n)+\r\n")


class Pieces:
    """A socket whose peer has sent these pieces and then closed the connection."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self._left: Iterator[bytes] = iter(pieces)

    def settimeout(self, seconds: float) -> None:
        """Do nothing, because reads never block."""

    def recv(self, count: int) -> bytes:
        """Return the next piece, or b"" at the end."""
        piece = next(self._left, b"")
        assert len(piece) <= count
        return piece


class RecordedConnection(Connection):
    """A connection that reads a recorded stream piece by piece."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self.timeout = PATIENCE
        self._buffer = bytearray()
        self._ended = False
        self._max_body_bytes = MAX_BODY_BYTES
        self._socket = Pieces(pieces)  # type: ignore[assignment]


def read(pieces: Sequence[bytes], method: str) -> list[Response | str]:
    """Return the responses in a stream. If an error ends the stream, its kind is the last element."""
    connection = RecordedConnection(pieces)
    responses: list[Response | str] = []
    for _ in range(MOST_RESPONSES):
        try:
            responses.append(connection.receive(method))
        except WireError as error:
            return [*responses, error.kind]
    return responses


def cut(stream: bytes, dice: random.Random) -> list[bytes]:
    """Split a stream into pieces of random sizes."""
    most = 2 ** dice.randrange(13)
    segments = []
    at = 0
    while at < len(stream):
        size = dice.randint(1, most)
        segments.append(stream[at : at + size])
        at += size
    return segments


def require_head(head: bytes) -> None:
    """Assert that a request head has a form that all servers parse identically."""
    assert HEAD.fullmatch(head), head
