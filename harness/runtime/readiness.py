"""Waits for a server's first good answer: the same for processes and containers."""

import time
from collections.abc import Callable

from harness.errors import ServerDiedError, StartError
from harness.runtime import Endpoint, Reading
from harness.runtime.http_once import AnswerError, get

READY_SECONDS = 60.0
INTERVAL = 0.01
ANSWERED_INTERVAL = 0.05  # where it answers, but not yet 200: asking is none of its work
NOT_FOUND = 404
MISSING_SECONDS = 3.0  # of 404 from a server that uses less than ``IDLE_CPUS``: its routes are all there
IDLE_CPUS = 0.1  # beside what the questions cost
ASK_SECONDS = 5.0  # for one whole answer, whatever keeps coming
LOOK_SECONDS = 0.25  # between two looks at where it listens: each reads /proc, on the CPUs that it starts on
ELSEWHERE_SECONDS = 3.0  # a server that has listened on another port for so long will not change its mind
UNREADABLE = 20  # answers in a row that are no HTTP: waiting does not mend them


class _Elsewhere:
    """Looks now and then whether a server listens on another port."""

    def __init__(self, look: Callable[[], str | None]) -> None:
        self._look = look
        self._next = 0.0  # time.monotonic
        self._since: float | None = None

    def require_not(self) -> None:
        """Raises StartError when it has done so for too long."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + LOOK_SECONDS
        if wrong := self._look():
            self._since = self._since or now
            if now - self._since > ELSEWHERE_SECONDS:
                raise StartError(wrong)


class _Missing:
    """Looks whether a server that answers 404 still has something to do before its routes are there."""

    def __init__(self, path: str, read: Callable[[], Reading] | None) -> None:
        self._path, self._read = path, read
        self._since: Reading | None = None
        self._next = 0.0  # time.monotonic here: a reading's own clock may be another machine's

    def require_not(self, status: int) -> None:
        """Raises StartError once it has answered 404 for some seconds and used hardly any CPU in them."""
        if status != NOT_FOUND or self._read is None:
            self._since = None
            return
        if self._since is not None and time.monotonic() < self._next:
            return
        self._next = time.monotonic() + MISSING_SECONDS
        try:
            now = self._read()
        except ServerDiedError:
            return  # which the next look at it tells
        if self._since is None:
            self._since = now
        elif _cpus(self._since, now) < IDLE_CPUS:
            idle = f"{now.at - self._since.at:.0f} s in which the server was idle"
            raise StartError(
                f"{self._path} is answered with 404, for {idle}: is the route there, under the path of "
                "benchmark_config.json?"
            )
        else:
            self._since = now


def _cpus(before: Reading, after: Reading) -> float:
    """CPUs that were used or waited for: one that waits for a busy CPU is not idle."""
    waited = (after.wait_seconds or 0.0) - (before.wait_seconds or 0.0)
    return (after.used_since(before) + waited) / (after.at - before.at)


def first_answer(
    endpoint: Endpoint,
    path: str,
    began: float,
    require_alive: Callable[[], None],
    listens_elsewhere: Callable[[], str | None] = lambda: None,
    read: Callable[[], Reading] | None = None,
) -> float:
    """Seconds from ``began`` (time.monotonic) to the first 200 on ``path``.

    Raises what ``require_alive`` raises when the server is gone, and StartError, with its last answer, when it does not
    answer 200 in time, answers something that is not HTTP, listens on another port (``listens_elsewhere`` says so), or
    answers 404 while its meter, read by ``read``, shows that it is idle.
    """
    last = "no connection was accepted; does it listen on the port that PORT names?"
    refused = True
    unreadable = 0
    elsewhere, missing = _Elsewhere(listens_elsewhere), _Missing(path, read)
    while time.monotonic() - began < READY_SECONDS:
        require_alive()
        interval = INTERVAL
        try:
            status, body = get(endpoint, path, seconds=ASK_SECONDS)
            if status == 200:
                return time.monotonic() - began
            refused, unreadable = False, 0
            last = f"its last answer to {path} was {status} {body[:300].decode(errors='replace')!r}"
            interval = ANSWERED_INTERVAL
            missing.require_not(status)
        except ConnectionRefusedError:
            refused = True
        except AnswerError as error:
            refused = False
            last = f"its answer to {path} is not HTTP as a client can read it: {error}"
            unreadable += 1
            if unreadable >= UNREADABLE:
                raise StartError(f"no valid response: {last}") from error
        except TimeoutError:
            refused = False
            last = f"it accepted a connection but gave no whole answer to {path} within {ASK_SECONDS:.0f} s"
        except OSError as error:
            last = f"its answer to {path} could not be read: {error}"
        if refused:
            elsewhere.require_not()
        time.sleep(interval)
    raise StartError(f"no valid response within {READY_SECONDS:.0f} s: {last}")
