"""Waits for a server's first good answer, and says why there is none: the same for processes and containers."""

import contextlib
import re
import socket
import time
from collections.abc import Callable
from pathlib import Path

from harness.errors import ServerDiedError, StartError
from harness.host import process
from harness.plain_text import printable
from harness.runtime import Endpoint, Reading, Server

READY_SECONDS = 60.0
INTERVAL = 0.01
ANSWERED_INTERVAL = 0.05  # where it answers, but not yet 200: asking is none of its work
MISSING_SECONDS = 3.0  # of a refusal from a server that uses less than ``IDLE_CPUS``: its routes are all there
REDIRECT = "it redirects, perhaps to a login; name a path that answers 200 itself"
REFUSALS = {
    **dict.fromkeys((301, 302, 303, 307, 308), REDIRECT),
    401: "it wants a login; name a path that needs none",
    403: "it wants a login; name a path that needs none",
    404: "is the route there, under the path of benchmark_config.json or tfb.toml?",
    405: "the route takes another method; name a path that takes GET",
}
IDLE_CPUS = 0.1  # beside what the questions cost
ASK_SECONDS = 5.0  # for one whole answer, whatever keeps coming
ELSEWHERE_SECONDS = 3.0  # a server that has listened on another port for so long will not change its mind
UNREADABLE = 20  # answers in a row that are no HTTP: waiting does not mend them
MOST_BYTES = 64 * 1024  # of an answer
LOG_BYTES = 1 << 20  # of a log that are searched
NOTHING = "no connection was accepted; does it listen on the port that PORT names?"

_STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})[ \r\n]")
# How programs say that they have crashed, the exception itself in a group: Python (what stands behind the indented
# frames), Go, Rust, the JVM, JavaScript and Ruby; then a supervisor of one of its workers.
_EXCEPTIONS = re.compile(
    r"Traceback \(most recent call last\):\n(?:[ \t|+].*\n|\n){0,300}(?P<python>[^\s|+].*)"
    r"|^(?P<go>(?:panic|fatal error): .+)"
    r"|^(?P<rust>thread '.+' (?:\(\d+\) )?panicked at .+(?:\n(?!note:|stack).+)?)"
    r"|^(?P<jvm>Exception in thread \".+)"
    r"|^(?P<javascript>(?:Uncaught )?\w*(?:Error|Exception): .+)(?=\n(?:.*\n){0,5}?\s+at )"
    r"|^(?P<ruby>.+:\d+:in .+ \(\w+(?:Error|Exception)\))",
    re.MULTILINE,
)
_WORKERS = re.compile(
    r"^(?!.*(?:(?:code|status)\W*0\b|clean|normal|graceful))(?:"
    r".*\b(?:worker|child)\b.{0,80}\b(?:died|crashed|exited|terminated|killed|failed to boot)\b.*"
    r"|.*\b(?:unexpected exit|early termination) (?:from|of) worker.*)",
    re.MULTILINE | re.IGNORECASE,
)


class AnswerError(Exception):
    """What came is no HTTP/1.1 response: says what it was."""


def crashes(log: Path) -> list[str]:
    """What a log says of crashes, one line each, exceptions before workers that ended because of them."""
    try:
        with log.open("rb") as file:
            text = file.read(LOG_BYTES).decode(errors="replace").replace("\r\n", "\n")
    except OSError:
        return []
    exceptions = [next(filter(None, match.groups())) for match in _EXCEPTIONS.finditer(text)]
    workers = [match[0] for match in _WORKERS.finditer(text)]
    return [printable(" ".join(said.split()))[:500] for said in (*exceptions, *workers)]


def crash_reason(name: str, how: str, log: Path) -> str:
    """Name, crash, end, last lines and log of a server that is gone."""
    said = next(iter(crashes(log)), "")
    return f"{name}: {f'{said}: {how}' if said else how}\n{process.tail(log)}\nlog: {log}"


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
    """Whether a server has used hardly any CPU for some seconds."""

    def __init__(self, read: Callable[[], Reading], seconds: float) -> None:
        self._read, self._seconds = read, seconds
        self._since: Reading | None = None
        self._next = 0.0  # time.monotonic here: a reading's own clock may be another machine's

    def forget(self) -> None:
        """From now on again."""
        self._since = None

    def seconds(self) -> float:
        """For how long, once that is long enough; otherwise 0."""
        if self._since is not None and time.monotonic() < self._next:
            return 0.0
        self._next = time.monotonic() + self._seconds
        try:
            before, now = self._since, self._read()
        except ServerDiedError:
            return 0.0  # which the next look at it tells
        self._since = now
        if before is None:
            return 0.0
        # One that waits for a busy CPU is not idle.
        used = now.used_since(before) + (now.wait_seconds or 0.0) - (before.wait_seconds or 0.0)
        return now.at - before.at if used / (now.at - before.at) < IDLE_CPUS else 0.0


class _Looks:
    """What a server that has not yet answered shows of itself, looked at now and then."""

    def __init__(self, server: Server, listens_elsewhere: Callable[[], str | None]) -> None:
        self._log, self._listens_elsewhere = server.log, listens_elsewhere
        # Idle behind a crash in its log: some log one and go on.
        self._crashed = _Idleness(server.meter.read, 1.5)
        self._next = 0.0  # time.monotonic
        self._elsewhere_since: float | None = None

    def require_hope(self, *, refused: bool) -> None:
        """Raises StartError with why there will be no answer."""
        now = time.monotonic()
        if now < self._next:
            return
        # Its log and where it listens are looked at on the CPUs that it starts on.
        self._next = now + 0.25
        if said := crashes(self._log):
            # The same again: somebody starts what crashes anew, and will not tire of it.
            repeated = len({re.sub(r"\d+", "", each) for each in said}) < len(said)
            if repeated or self._crashed.seconds():
                raise StartError(f"it crashed as it started: {said[0]}")
        if refused and (wrong := self._listens_elsewhere()):
            self._elsewhere_since = self._elsewhere_since or now
            if now - self._elsewhere_since > ELSEWHERE_SECONDS:
                raise StartError(wrong)


def startup_time(
    server: Server, path: str, began: float, listens_elsewhere: Callable[[], str | None] = lambda: None
) -> float:
    """Seconds from ``began`` (time.monotonic) to the first 200 on ``path``.

    Returns once the server has had the time that its benchmark_config.json asks for beside. Raises ServerDiedError when
    it is gone, and StartError, with its last answer, when it does not answer 200 in time, has crashed by what its log
    says, answers something that is not HTTP, listens on another port (``listens_elsewhere`` says so), or refuses while
    its meter shows that it is idle.
    """
    last, refused, unreadable = NOTHING, True, 0
    looks, missing = _Looks(server, listens_elsewhere), _Idleness(server.meter.read, MISSING_SECONDS)
    while time.monotonic() - began < READY_SECONDS:
        server.require_alive()
        interval, status = INTERVAL, 0
        try:
            status, body = get(server.endpoint, path, seconds=ASK_SECONDS)
            if status == 200:
                seconds = time.monotonic() - began
                time.sleep(server.implementation.entry.wait_before_sending_requests or 0)
                return seconds
            refused, unreadable, interval = False, 0, ANSWERED_INTERVAL
            last = f"its last answer to {path} was {status} {body[:300].decode(errors='replace')!r}"
        except ConnectionRefusedError:
            refused = True
        except AnswerError as error:
            refused, unreadable = False, unreadable + 1
            last = f"its answer to {path} is not HTTP as a client can read it: {error}"
            if unreadable >= UNREADABLE:
                raise StartError(f"no valid response: {last}") from error
        except TimeoutError:
            refused = False
            last = f"it accepted a connection but gave no whole answer to {path} within {ASK_SECONDS:.0f} s"
        except OSError as error:
            last = f"its answer to {path} could not be read: {error}"
        if status not in REFUSALS:
            missing.forget()
        elif idle := missing.seconds():
            raise StartError(
                f"{path} is answered with {status}, for {idle:.0f} s in which the server was idle: {REFUSALS[status]}"
            )
        looks.require_hope(refused=refused)
        time.sleep(interval)
    with contextlib.suppress(IndexError):
        last = f"{crashes(server.log)[0]}; {last}"
    raise StartError(f"no valid response within {READY_SECONDS:.0f} s: {last}")
