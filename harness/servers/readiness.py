"""Waits for a server's first good answer: the same for processes and containers."""

import time
from collections.abc import Callable

from harness.errors import StartError
from harness.servers import Endpoint
from harness.servers.http_once import AnswerError, get

READY_SECONDS = 60.0
INTERVAL = 0.01
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


def first_answer(
    endpoint: Endpoint,
    path: str,
    began: float,
    require_alive: Callable[[], None],
    listens_elsewhere: Callable[[], str | None] = lambda: None,
) -> float:
    """Seconds from ``began`` (time.monotonic) to the first 200 on ``path``.

    Raises what ``require_alive`` raises when the server is gone, and StartError, with its last answer, when it does not
    answer 200 in time, answers something that is not HTTP, or listens on another port (``listens_elsewhere`` says so).
    """
    last = "no connection was accepted; does it listen on the port that PORT names?"
    refused = True
    unreadable = 0
    elsewhere = _Elsewhere(listens_elsewhere)
    while time.monotonic() - began < READY_SECONDS:
        require_alive()
        try:
            status, body = get(endpoint, path, seconds=ASK_SECONDS)
            if status == 200:
                return time.monotonic() - began
            refused, unreadable = False, 0
            last = f"its last answer to {path} was {status} {body[:300].decode(errors='replace')!r}"
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
        time.sleep(INTERVAL)
    raise StartError(f"no valid response within {READY_SECONDS:.0f} s: {last}")
