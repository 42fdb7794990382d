"""Waits for a server's first successful response, and explains why there is none."""

import re
import socket
import time
from collections.abc import Callable

from harness.errors import ServerDiedError, StartError
from harness.host.metering import Reading
from harness.runtime import Endpoint, Server
from harness.runtime.crashes import find_crashes, find_errors

READY_SECONDS = 60.0
POLL_SECONDS = 0.01  # interval between connection attempts
RESPONSE_POLL_SECONDS = 0.05  # interval between requests, which is longer because requests cost the server CPU time
STUCK_SECONDS = 3.0  # a server with a problem is stuck if it has been idle for this time
IDLE_CPUS = 0.1  # a server that uses fewer CPUs is idle
REQUEST_SECONDS = 5.0  # time limit for a complete response
MAX_BYTES = 64 * 1024  # number of bytes that are read from a response

_STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})[ \r\n]")


class MalformedResponseError(Exception):
    """The response is not valid HTTP/1.1. The message quotes it."""


def http_get(endpoint: Endpoint, path: str, *, seconds: float) -> tuple[int, bytes]:
    """Send a GET request on a new connection. Return the status and the beginning of the body.

    The standard library's client limits neither total time nor size, so a broken server could block it forever.

    Raises:
        OSError: The request failed, or took longer than ``seconds`` (TimeoutError).
        MalformedResponseError: The response is not valid HTTP/1.1.
    """
    deadline = time.monotonic() + seconds
    with socket.create_connection((endpoint.host, endpoint.port), timeout=seconds) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {endpoint.host}\r\nConnection: close\r\n\r\n".encode())
        data = b""
        while len(data) < MAX_BYTES and not _is_complete(data):
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                raise TimeoutError
            connection.settimeout(remaining)
            if not (chunk := connection.recv(MAX_BYTES)):
                break
            data += chunk
    if not data:  # Docker's proxy closes connections while the server does not listen
        raise ConnectionResetError("the connection was closed without a response")
    match = _STATUS.match(data)
    if match is None:
        raise MalformedResponseError(repr(data[:120]))
    return int(match[1]), data.partition(b"\r\n\r\n")[2]


def _is_complete(data: bytes) -> bool:
    """Return whether the body has the length in Content-Length.

    Without this header, the body ends with the connection.
    """
    head, end, body = data.partition(b"\r\n\r\n")
    match = re.search(rb"\r\ncontent-length: *(\d{1,9})", head, re.IGNORECASE)
    return bool(end) and match is not None and len(body) >= int(match[1])


class _StuckDetector:
    """Detects servers that will not become ready, by their log, ports and CPU usage."""

    def __init__(self, server: Server, listens_elsewhere: Callable[[int], str | None]) -> None:
        self._server, self._listens_elsewhere = server, listens_elsewhere
        self._next_check = 0.0  # time.monotonic()
        self._problem = ""
        # Usage when the problem first occurred, or when the server last used CPU time.
        self._first_reading: Reading | None = None

    def raise_if_stuck(self, response_problem: str, *, refused: bool) -> None:
        """Raise StartError if the server has had the same problem for a while and is idle.

        Args:
            response_problem: A lasting problem with the server's responses, or an empty string.
            refused: Whether the server refuses connections.
        """
        if time.monotonic() < self._next_check:
            return
        self._next_check = time.monotonic() + 0.25  # rarely, because the check competes with the server for CPU time
        crashes = find_crashes(self._server.program.log)
        crash = f"it crashed as it started: {crashes[0]}" if crashes else ""
        # A supervisor that restarts a crashing worker logs the same crash again.
        if len({re.sub(r"\d+", "", each) for each in crashes}) < len(crashes):
            raise StartError(crash)
        problem = crash or response_problem or (refused and self._listens_elsewhere(self._server.endpoint.port)) or ""
        try:
            now = self._server.program.read() if problem else None
        except ServerDiedError:
            return  # the caller checks whether the server is alive
        before = self._first_reading
        if now is None or before is None or problem != self._problem:
            self._problem, self._first_reading = problem, now
        elif (seconds := now.at - before.at) >= STUCK_SECONDS:
            # A server that waits for a busy CPU is not idle.
            used = now.cpu_seconds - before.cpu_seconds + (now.wait_seconds or 0.0) - (before.wait_seconds or 0.0)
            if used / seconds < IDLE_CPUS:
                raise StartError(problem)
            self._first_reading = now


def wait_until_ready(
    server: Server, path: str, began: float, listens_elsewhere: Callable[[int], str | None] = lambda _port: None
) -> float:
    """Wait until the server responds to ``path`` with status 200 or a different accepted status.

    Then wait for the additional time in benchmark_config.json, if any.

    Args:
        server: The started server.
        path: The path to request.
        began: time.monotonic() at the start of the server.
        listens_elsewhere: Returns a message if the server listens only on ports other than the given port.

    Returns:
        The startup time in seconds.

    Raises:
        ServerDiedError: The server has exited.
        StartError: The server is not ready within ``READY_SECONDS``, or is idle after a crash or with a wrong port,
            protocol or status.
    """
    last_problem = "no connection was accepted; does it listen on the port that PORT names? In a container: on 0.0.0.0"
    stuck_detector = _StuckDetector(server, listens_elsewhere)
    while time.monotonic() - began < READY_SECONDS:
        server.program.require_alive()
        refused, lasting_problem = False, ""
        try:
            status, body = http_get(server.endpoint, path, seconds=REQUEST_SECONDS)
            if status == 200 or (status < 500 and not server.implementation.ready_at_200):
                seconds = time.monotonic() - began
                time.sleep(server.implementation.entry.wait_before_sending_requests or 0)
                return seconds
            last_problem = f"its last response to {path} was {status} {body[:300].decode(errors='replace')!r}"
            if status < 500:
                lasting_problem = (
                    f"its response to {path} has status {status}, and the server is idle: use a path in "
                    "benchmark_config.json or tfb.toml to which GET returns 200, without a redirect or a login"
                )
        except ConnectionRefusedError:
            refused = True
        except MalformedResponseError as error:
            last_problem = lasting_problem = f"its response to {path} is not valid HTTP: {error}"
        except TimeoutError:
            last_problem = (
                f"it accepted a connection, but sent no complete response to {path} within {REQUEST_SECONDS:.0f} s"
            )
        except OSError as error:
            last_problem = f"its response to {path} could not be read: {error}"
        stuck_detector.raise_if_stuck(lasting_problem, refused=refused)
        time.sleep(POLL_SECONDS if refused else RESPONSE_POLL_SECONDS)
    errors = (find_crashes(server.program.log) or find_errors(server.program.log, 0))[:1]
    raise StartError(f"no valid response within {READY_SECONDS:.0f} s: {'; '.join([*errors, last_problem])}")
