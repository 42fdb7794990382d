"""Waits for a server's first successful response, or explains why the server did not become ready."""

import http.client
import logging
import re
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from queue import Empty, Queue

from harness.errors import ServerDiedError, StartError
from harness.host.metering import Reading
from harness.plan.requests import PreparedRequest
from harness.runtime import Endpoint, Server
from harness.runtime.crashes import find_crashes, find_errors

WAITS = logging.getLogger("tfb.waits")  # receives a message for the user if a service is not ready soon
READY_SECONDS = 60.0
NOTICE_SECONDS = 5.0  # tell the user what tfb waits for if a service is not ready after this time
POLL_SECONDS = 0.01  # interval between connection attempts
RESPONSE_POLL_SECONDS = 0.05  # minimum interval between requests, because each request costs the server CPU time
POLL_SHARE = 0.02  # minimum interval between requests, as a fraction of the time since the start
ALIVE_SECONDS = 0.1  # interval between checks that the server is alive
CONNECT_SECONDS = 2.0  # time limit for a connection attempt
REPEAT_SECONDS = 5.0  # time after which tfb repeats an unanswered request
STUCK_SECONDS = 3.0  # a server with a problem is stuck once it has been idle this long
IDLE_CPUS = 0.1  # a server that uses fewer CPUs than this is idle
BLOCK_BYTES = 64 * 1024  # how much of a body to read at a time


@dataclass(frozen=True, kw_only=True)
class _Response:
    """The result of a readiness request: the status and the beginning of the body, or a problem."""

    endpoint: Endpoint
    status: int = 0
    body: bytes = b""
    problem: str = ""
    malformed: bool = False  # whether the response is not valid HTTP


def _receive(endpoint: Endpoint, connection: socket.socket, request: PreparedRequest) -> _Response | None:
    """Send a request on a new connection. Return the complete response, or None if it does not arrive in time."""
    try:
        with connection:
            connection.sendall(request.head(endpoint.authority, connection="close") + request.body)
            response = http.client.HTTPResponse(connection, method=request.method)
            response.begin()
            body = response.read(BLOCK_BYTES)
            while response.read(BLOCK_BYTES):
                pass
    except TimeoutError:
        return None
    except ConnectionResetError as error:  # harmless: Docker's proxy resets connections until the server listens
        return _Response(endpoint=endpoint, problem=f"could not be read: {error}")
    except http.client.HTTPException as error:
        return _Response(endpoint=endpoint, problem=f"is not valid HTTP: {error!r:.150}", malformed=True)
    except (OSError, ValueError) as error:
        return _Response(endpoint=endpoint, problem=f"could not be read: {error}")
    return _Response(endpoint=endpoint, status=response.status, body=body[:300])


class _ReadinessProber:
    """A client that sends readiness requests.

    It never closes a connection before the response arrives, because servers log that as an error.
    """

    def __init__(self, endpoints: Sequence[Endpoint], request: PreparedRequest, deadline: float) -> None:
        self._endpoints, self._request, self._deadline = endpoints, request, deadline
        self._responses: Queue[_Response] = Queue()
        self.unanswered = 0

    def send(self) -> OSError | None:
        """Send a request to the first address that accepts a connection. Return the error if no address does."""
        failure: OSError | None = None
        for endpoint in self._endpoints:
            try:
                connection = endpoint.connect(CONNECT_SECONDS)
            except OSError as error:
                failure = failure or error
                continue
            connection.settimeout(max(1.0, self._deadline - time.monotonic()))
            self.unanswered += 1
            threading.Thread(target=self._run, args=(endpoint, connection), daemon=True).start()
            return None
        return failure

    def _run(self, endpoint: Endpoint, connection: socket.socket) -> None:
        if response := _receive(endpoint, connection, self._request):
            self._responses.put(response)

    def wait(self, seconds: float) -> _Response | None:
        """Return the next response, or None if none arrives within ``seconds``."""
        try:
            response = self._responses.get(timeout=seconds)
        except Empty:
            return None
        self.unanswered -= 1
        return response


class _StuckDetector:
    """A detector for servers that will never become ready. It examines the log, the listening ports and CPU usage."""

    def __init__(self, server: Server, listens_elsewhere: Callable[[int], str | None]) -> None:
        self._server, self._listens_elsewhere = server, listens_elsewhere
        self._next_check = 0.0  # time.monotonic()
        self._problem = ""
        # The reading when the problem first occurred, or when the server was last busy.
        self._first_reading: Reading | None = None

    def raise_if_stuck(self, response_problem: str, *, refused: bool) -> None:
        """Raise StartError if the server has been idle, with the same problem, for ``STUCK_SECONDS``."""
        if self._server.implementation.is_service or time.monotonic() < self._next_check:
            return
        self._next_check = time.monotonic() + 0.25  # check rarely, because each check takes CPU time from the server
        crashes = find_crashes(self._server.program.log)
        crash = f"it crashed at startup: {crashes[0]}" if crashes else ""
        # A repeated crash means that a supervisor keeps restarting a worker.
        if len({re.sub(r"\d+", "", each) for each in crashes}) < len(crashes):
            raise StartError(crash)
        problem = crash or response_problem or (refused and self._listens_elsewhere(self._server.endpoint.port)) or ""
        try:
            reading = self._server.program.read() if problem else None
        except ServerDiedError:
            return  # the caller checks whether the server is alive
        first_reading = self._first_reading
        if reading is None or first_reading is None or problem != self._problem:
            self._problem, self._first_reading = problem, reading
        elif (seconds := reading.read_at - first_reading.read_at) >= STUCK_SECONDS:
            # Add the time spent waiting for a CPU, because a waiting server is not idle.
            busy_seconds = (
                reading.cpu_seconds
                - first_reading.cpu_seconds
                + (reading.wait_seconds or 0.0)
                - (first_reading.wait_seconds or 0.0)
            )
            if busy_seconds / seconds < IDLE_CPUS:
                raise StartError(problem)
            self._first_reading = reading


@dataclass(kw_only=True)
class _Progress:
    """The results of the readiness requests so far."""

    last_problem: str = (
        "the server accepted no connection. Make it listen on the port in the environment variable PORT and, in a "
        "container, on all addresses (0.0.0.0)"
    )
    responded: bool = False
    refused: bool = False  # whether the latest attempt to connect was refused
    lasting_problem: str = ""  # problem that waiting will not solve; empty if there is none
    waits_for: str = "it accepts no connection"  # why the server is not ready, without details that change

    def note_attempt(self, failure: OSError | None) -> None:
        """Record an attempt to connect."""
        self.refused = isinstance(failure, ConnectionRefusedError | FileNotFoundError)
        if failure and not self.refused:
            self.last_problem = f"tfb cannot connect to the server: {failure}"

    def note_response(self, response: _Response, request: PreparedRequest) -> None:
        """Record an unsuccessful response."""
        self.responded = True
        request_line = f"{request.method} {request.target}"
        if response.problem:
            self.waits_for = f"it sends no readable response to {request_line}"
            self.last_problem = f"the response to {request_line} {response.problem}"
            self.lasting_problem = self.last_problem if response.malformed else ""
            return
        body = response.body.decode(errors="replace")
        self.last_problem = f"the last response to {request_line} was {response.status} {body!r}"
        self.lasting_problem = ""
        self.waits_for = f"it responds with status {response.status} to {request_line}"
        if response.status < 500:
            path = "the path in benchmark_config.json or the service's tfb.toml (a request's path, or service.ready)"
            self.last_problem += f": change {path} to one for which GET returns 200 without a redirect or login"
            self.lasting_problem = f"the server is idle, and {self.last_problem}"


@dataclass(kw_only=True)
class _WaitNotice:
    """Messages that tell the user what tfb waits for. A message is repeated only if the reason changes."""

    server: Server
    limit: float  # time limit for the start, in seconds
    listens_elsewhere: Callable[[int], str | None]
    _announced: set[str] = field(default_factory=set)

    def announce(self, progress: _Progress, *, unanswered: bool) -> None:
        """Log the reason for the wait. ``unanswered`` states whether a request still has no complete response."""
        reason = progress.waits_for
        if unanswered and not progress.responded:
            reason = "it accepted a connection, but has not sent a complete response"
        if reason in self._announced:
            return
        self._announced.add(reason)
        if progress.refused and not self.server.endpoint.unix:
            reason = self.listens_elsewhere(self.server.endpoint.port) or reason
        WAITS.warning(
            "%s is not ready: %s. tfb waits until %.0f s after the start (service.start_seconds). If waiting will not "
            "help, press Ctrl-C, and correct the service or, in tfb.toml, service.ready, the request's path or the "
            "expected status",
            self.server.implementation.name,
            reason,
            self.limit,
        )


def wait_until_ready(
    server: Server,
    path: str,
    started_at: float,
    listens_elsewhere: Callable[[int], str | None] = lambda _port: None,
    *,
    endpoints: Sequence[Endpoint] = (),
) -> float:
    """Wait until the server responds as expected, and set ``server.endpoint``. Return the startup time in seconds.

    Request ``path``, unless the implementation has a ``ready_request``. ``started_at`` is from time.monotonic().
    ``listens_elsewhere`` returns a message if the server listens on the wrong port. Raises ServerDiedError if the
    server exits. Raises StartError at the time limit, or earlier if the server is idle and waiting will not help.
    """
    implementation = server.implementation
    limit = implementation.start_seconds or READY_SECONDS
    request = implementation.ready_request or PreparedRequest(target=path)
    prober = _ReadinessProber(endpoints or (server.endpoint,), request, started_at + limit)
    progress, stuck_detector = _Progress(), _StuckDetector(server, listens_elsewhere)
    notice = _WaitNotice(server=server, limit=limit, listens_elsewhere=listens_elsewhere)
    if server.endpoint.unix:
        progress.last_problem = f"the server accepted no connection at {server.endpoint.place}"
    next_attempt = 0.0
    while (elapsed := time.monotonic() - started_at) < limit:
        server.program.require_alive()
        if elapsed >= NOTICE_SECONDS and implementation.is_service:
            notice.announce(progress, unanswered=prober.unanswered > 0)
        if (now := time.monotonic()) >= next_attempt:
            progress.note_attempt(failure := prober.send())
            next_attempt = _next_poll(now, started_at, progress) if failure else now + REPEAT_SECONDS
        response = prober.wait(max(0.0, min(ALIVE_SECONDS, next_attempt - time.monotonic())))
        if response is not None:
            if response.status in implementation.ready_statuses:
                server.endpoint = response.endpoint
                seconds = time.monotonic() - started_at
                time.sleep(implementation.entry.wait_before_sending_requests or 0)
                return seconds
            progress.note_response(response, request)
            next_attempt = _next_poll(time.monotonic(), started_at, progress)
        stuck_detector.raise_if_stuck(progress.lasting_problem, refused=progress.refused)
    if prober.unanswered and not progress.responded:
        what = f"{request.method} {request.target}"
        progress.last_problem = f"the server accepted a connection, but sent no complete response to {what}"
    raise StartError(_describe_failure(server, limit, progress, listens_elsewhere))


def _next_poll(now: float, started_at: float, progress: _Progress) -> float:
    """Return when to send the next request. Intervals grow, because each request costs the server CPU time."""
    return now + (POLL_SECONDS if progress.refused else max(RESPONSE_POLL_SECONDS, POLL_SHARE * (now - started_at)))


def _describe_failure(
    server: Server, limit: float, progress: _Progress, listens_elsewhere: Callable[[int], str | None]
) -> str:
    """Explain why the server is not ready.

    The message quotes an error from the log, the last response, and the ports on which the server listens.
    """
    log = server.program.log
    parts = [*(find_crashes(log) or find_errors(log, 0))[:1], progress.last_problem]
    elsewhere = listens_elsewhere(server.endpoint.port) if progress.refused and not server.endpoint.unix else None
    parts += [elsewhere] if elsewhere else []
    advice = ". If it needs more time, increase service.start_seconds" if server.implementation.is_service else ""
    return f"no valid response within {limit:.0f} s: {'; '.join(parts)}{advice}"
