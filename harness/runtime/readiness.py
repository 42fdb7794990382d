"""Waits for a server's first good answer, and says why there is none: the same for processes and containers."""

import re
import socket
import time
from collections.abc import Callable
from pathlib import Path

from harness.errors import ServerDiedError, StartError
from harness.host import process
from harness.runtime import Endpoint, Meter, Reading, Server

READY_SECONDS = 60.0
INTERVAL = 0.01
ANSWERED_INTERVAL = 0.05  # where it answers, but not yet 200: asking is none of its work
HOPELESS_SECONDS = 5.0  # in which a server that answers wrongly, or listens elsewhere, uses less than ``IDLE_CPUS``
IDLE_CPUS = 0.1  # beside what the questions cost
REDIRECT = "it redirects, perhaps to a login; name a path that answers 200 itself"
LOGIN = "it wants a login; name a path that needs none"
HINTS = {
    **dict.fromkeys((301, 302, 303, 307, 308), REDIRECT),
    **dict.fromkeys((401, 403), LOGIN),
    404: "is the route there, under the path of benchmark_config.json or tfb.toml?",
    405: "the route takes another method; name a path that takes GET",
}
ASK_SECONDS = 5.0  # for one whole answer, whatever keeps coming
MOST_BYTES = 64 * 1024  # of an answer

_STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})[ \r\n]")


class AnswerError(Exception):
    """What came is no HTTP/1.1 response: says what it was."""


def crash_reason(name: str, how: str, log: Path) -> str:
    """Name, end, last lines and log of a server that is gone."""
    return f"{name}: {how}\n{process.tail(log)}\nlog: {log}"


def get(endpoint: Endpoint, path: str, *, seconds: float) -> tuple[int, bytes]:
    """One GET on a connection of its own: status and the body's beginning.

    Raises OSError, TimeoutError when it takes longer in all, and AnswerError. The library's client waits anew with each
    byte that comes and reads headers without end; a broken server would hold it.
    """
    until = time.monotonic() + seconds
    with socket.create_connection((endpoint.host, endpoint.port), timeout=seconds) as line:
        line.sendall(f"GET {path} HTTP/1.1\r\nHost: {endpoint.host}\r\nConnection: close\r\n\r\n".encode())
        data = b""
        while len(data) < MOST_BYTES and not _is_whole(data):
            left = until - time.monotonic()
            if left <= 0:
                raise TimeoutError
            line.settimeout(left)
            if not (chunk := line.recv(MOST_BYTES)):
                break
            data += chunk
    if not data:  # as a container's proxy does while nothing listens behind it
        raise ConnectionResetError("the connection was closed without an answer")
    match = _STATUS.match(data)
    if match is None:
        raise AnswerError(repr(data[:120]))
    return int(match[1]), data.partition(b"\r\n\r\n")[2]


def _is_whole(data: bytes) -> bool:
    """Whether the body that Content-Length promises has come; other framings end with the connection."""
    head, end, body = data.partition(b"\r\n\r\n")
    match = re.search(rb"\r\ncontent-length: *(\d{1,9})", head, re.IGNORECASE)
    return bool(end) and match is not None and len(body) >= int(match[1])


class _Idleness:
    """Whether a server has been idle for as long as it was asked about."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._next = 0.0  # time.monotonic here: a reading's own clock may be another machine's
        self._since: Reading | None = None

    def forget(self) -> None:
        """From now on again."""
        self._since = None

    def is_long(self) -> bool:
        """Whether it has been for ``HOPELESS_SECONDS``; read seldom, on the CPUs that it starts on."""
        if self._since is not None and time.monotonic() < self._next:
            return False
        self._next = time.monotonic() + HOPELESS_SECONDS
        try:
            before, self._since = self._since, self._meter.read()
        except ServerDiedError:
            return False  # which the next look at it tells
        if before is None:
            return False
        # One that waits for a busy CPU is not idle.
        waited = (self._since.wait_seconds or 0.0) - (before.wait_seconds or 0.0)
        return (self._since.used_since(before) + waited) / (self._since.at - before.at) < IDLE_CPUS


def startup_time(
    server: Server, path: str, began: float, listens_elsewhere: Callable[[int], str | None] = lambda _port: None
) -> float:
    """Seconds from ``began`` (time.monotonic) to the first 200 on ``path``.

    Returns once the server has had the time that its benchmark_config.json asks for beside. Raises ServerDiedError when
    it is gone, and StartError, with its last answer, when it does not answer 200 in time. One that gives other answers,
    something that is not HTTP, or listens on another port (``listens_elsewhere`` says so) is not waited for once its
    meter shows that it is idle.
    """
    last = "no connection was accepted; does it listen on the port that PORT names?"
    idleness, next_look, elsewhere = _Idleness(server.meter), 0.0, None
    while time.monotonic() - began < READY_SECONDS:
        server.require_alive()
        interval, hopeless = ANSWERED_INTERVAL, False
        try:
            status, body = get(server.endpoint, path, seconds=ASK_SECONDS)
            if status == 200:
                seconds = time.monotonic() - began
                time.sleep(server.implementation.entry.wait_before_sending_requests or 0)
                return seconds
            last = f"its last answer to {path} was {status} {body[:300].decode(errors='replace')!r}"
            last += f"; {HINTS[status]}" if status in HINTS else ""
            hopeless = status in HINTS
        except ConnectionRefusedError:
            interval = INTERVAL
            if time.monotonic() > next_look:
                next_look, elsewhere = time.monotonic() + 0.5, listens_elsewhere(server.endpoint.port)
                last = elsewhere or last
            hopeless = elsewhere is not None
        except AnswerError as error:
            last, hopeless = f"its answer to {path} is not HTTP as a client can read it: {error}", True
        except TimeoutError:
            last = f"it accepted a connection but gave no whole answer to {path} within {ASK_SECONDS:.0f} s"
        except OSError as error:
            last = f"its answer to {path} could not be read: {error}"
        if not hopeless:
            idleness.forget()
        elif idleness.is_long():
            raise StartError(f"no valid response, and it is idle: {last}")
        time.sleep(interval)
    raise StartError(f"no valid response within {READY_SECONDS:.0f} s: {last}")
