"""Waits for a server's first good answer, and says why there is none: the same for processes and containers."""

import re
import socket
import time
from collections.abc import Callable

from harness.errors import ServerDiedError, StartError
from harness.host.metering import Reading
from harness.runtime import Endpoint, Server
from harness.runtime.crashes import find_crashes, find_errors

READY_SECONDS = 60.0
INTERVAL, ANSWERED_INTERVAL = 0.01, 0.05  # seconds between questions: asking one that answers is none of its work
HOPELESS_SECONDS = 3.0  # in which a server that shows why it will not answer uses less than ``IDLE_CPUS``
IDLE_CPUS = 0.1  # beside what the questions cost
ASK_SECONDS = 5.0  # for one whole answer, whatever keeps coming
MOST_BYTES = 64 * 1024  # of an answer

_STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})[ \r\n]")


class MalformedResponseError(Exception):
    """What came is no HTTP/1.1 response: says what it was."""


def http_get(endpoint: Endpoint, path: str, *, seconds: float) -> tuple[int, bytes]:
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
        raise MalformedResponseError(repr(data[:120]))
    return int(match[1]), data.partition(b"\r\n\r\n")[2]


def _is_whole(data: bytes) -> bool:
    """Whether the body that Content-Length promises has come; other framings end with the connection."""
    head, end, body = data.partition(b"\r\n\r\n")
    match = re.search(rb"\r\ncontent-length: *(\d{1,9})", head, re.IGNORECASE)
    return bool(end) and match is not None and len(body) >= int(match[1])


class _Watch:
    """What a server that has not yet answered well shows of itself, looked at now and then."""

    def __init__(self, server: Server, listens_elsewhere: Callable[[int], str | None]) -> None:
        self._server, self._listens_elsewhere = server, listens_elsewhere
        self._next = 0.0  # time.monotonic
        self._wrong = ""
        self._since: Reading | None = None  # what it had used when that was first seen

    def require_hope(self, answer: str, *, refused: bool) -> None:
        """Raises StartError with why there will be no good answer, once the server has been idle with that for a while.

        ``answer``: what is wrong with its answers, by which another one is not to be expected; ``refused``: it accepts
        no connections.
        """
        if time.monotonic() < self._next:
            return
        # Its log and where it listens are looked at on the CPUs that it starts on.
        self._next = time.monotonic() + 0.25
        said = find_crashes(self._server.meter.log)
        crash = f"it crashed as it started: {said[0]}" if said else ""
        # The same again: somebody starts what crashes anew, and will not tire of it. Others log a crash and go on.
        if len({re.sub(r"\d+", "", each) for each in said}) < len(said):
            raise StartError(crash)
        wrong = crash or answer or (refused and self._listens_elsewhere(self._server.endpoint.port)) or ""
        try:
            now = self._server.meter.read() if wrong else None
        except ServerDiedError:
            return  # which the next look at it tells
        before = self._since
        if now is None or before is None or wrong != self._wrong:
            self._wrong, self._since = wrong, now
        elif (seconds := now.at - before.at) >= HOPELESS_SECONDS:
            # One that waits for a busy CPU is not idle.
            used = now.cpu_seconds - before.cpu_seconds + (now.wait_seconds or 0.0) - (before.wait_seconds or 0.0)
            if used / seconds < IDLE_CPUS:
                raise StartError(wrong)
            self._since = now


def wait_until_ready(
    server: Server, path: str, began: float, listens_elsewhere: Callable[[int], str | None] = lambda _port: None
) -> float:
    """Seconds from ``began`` (time.monotonic) to the first 200 on ``path``, or what the service has in its place.

    Returns once the server has had the time that its benchmark_config.json asks for beside. Raises ServerDiedError when
    it is gone, and StartError, with its last answer, when it does not answer 200 in time; or, as soon as its meter
    shows that it is idle, when it has crashed by what its log says, refuses, answers something that is not HTTP, or
    listens on another port (``listens_elsewhere`` says so).
    """
    last = "no connection was accepted; does it listen on the port that PORT names? In a container: on 0.0.0.0"
    watch = _Watch(server, listens_elsewhere)
    while time.monotonic() - began < READY_SECONDS:
        server.meter.require_alive()
        refused, wrong = False, ""
        try:
            status, body = http_get(server.endpoint, path, seconds=ASK_SECONDS)
            if status == 200 or (status < 500 and not server.implementation.ready_at_200):
                seconds = time.monotonic() - began
                time.sleep(server.implementation.entry.wait_before_sending_requests or 0)
                return seconds
            last = f"its last answer to {path} was {status} {body[:300].decode(errors='replace')!r}"
            if status < 500:
                wrong = (
                    f"{path} is answered with {status}, and the server is idle: name a path in benchmark_config.json "
                    "or tfb.toml that takes GET and answers 200, without a redirect or a login"
                )
        except ConnectionRefusedError:
            refused = True
        except MalformedResponseError as error:
            last = wrong = f"its answer to {path} is not HTTP as a client can read it: {error}"
        except TimeoutError:
            last = f"it accepted a connection but gave no whole answer to {path} within {ASK_SECONDS:.0f} s"
        except OSError as error:
            last = f"its answer to {path} could not be read: {error}"
        watch.require_hope(wrong, refused=refused)
        time.sleep(INTERVAL if refused else ANSWERED_INTERVAL)
    said = (find_crashes(server.meter.log) or find_errors(server.meter.log, 0))[:1]
    raise StartError(f"no valid response within {READY_SECONDS:.0f} s: {'; '.join([*said, last])}")
