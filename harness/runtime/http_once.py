"""One GET on a connection of its own, bounded in time and bytes: enough HTTP to know that a server is up.

The library's client waits anew with each byte that comes and reads headers without end; a broken server would hold it.
"""

import re
import socket
import time

from harness.runtime import Endpoint

MOST_BYTES = 64 * 1024
_STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})[ \r\n]")


class AnswerError(Exception):
    """What came is no HTTP/1.1 response: says what it was."""


def get(endpoint: Endpoint, path: str, *, seconds: float) -> tuple[int, bytes]:
    """Status and the body's beginning; raises OSError, TimeoutError when it takes longer in all, and AnswerError."""
    until = time.monotonic() + seconds
    with socket.create_connection((endpoint.host, endpoint.port), timeout=seconds) as line:
        line.sendall(f"GET {path} HTTP/1.1\r\nHost: {endpoint.host}\r\nConnection: close\r\n\r\n".encode())
        data = b""
        while len(data) < MOST_BYTES:
            if b"\r\n\r\n" in data and _whole(data):
                break
            left = until - time.monotonic()
            if left <= 0:
                raise TimeoutError
            line.settimeout(left)
            chunk = line.recv(MOST_BYTES)
            if not chunk:
                break
            data += chunk
    if not data:  # as a container's proxy does while nothing listens behind it
        raise ConnectionResetError("the connection was closed without an answer")
    match = _STATUS.match(data)
    if match is None:
        raise AnswerError(repr(data[:120]))
    return int(match[1]), data.partition(b"\r\n\r\n")[2]


def _whole(data: bytes) -> bool:
    """Whether the body that Content-Length promises has come; other framings end with the connection."""
    head, _, body = data.partition(b"\r\n\r\n")
    match = re.search(rb"\r\ncontent-length: *(\d{1,9})", head, re.IGNORECASE)
    return match is not None and len(body) >= int(match[1])
