"""Signals that ask for an end: one KeyboardInterrupt, held back while a child is being started; then a deadline.

After the first signal further ones change nothing: everything is being stopped already. What runs is asked to stop at
once and killed a little later, so that nobody waits for the answer of a server that will not give one.
"""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

PATIENCE_SECONDS = 3.0  # between asking and killing
DEAF_SECONDS = 10.0  # in which further signals are ignored: by then everything has stopped

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_held = 0
_pending = False
_since: float | None = None


def install(ask: Callable[[], None], kill: Callable[[], None]) -> None:
    """Turn the signals into KeyboardInterrupt; those that the parent had us ignore (nohup) stay ignored."""

    def handle(_number: int, _frame: FrameType | None) -> None:
        global _pending, _since  # noqa: PLW0603 - signals are the process's own
        if _since is not None and time.monotonic() - _since < DEAF_SECONDS:
            return
        _since = time.monotonic()
        ask()
        signal.signal(signal.SIGALRM, lambda _number, _frame: kill())
        signal.setitimer(signal.ITIMER_REAL, PATIENCE_SECONDS)
        if _held:
            _pending = True
        else:
            raise KeyboardInterrupt

    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handle)


def closing() -> None:
    """From now on nothing is interrupted any more, only stopped: what is left to do is to stop everything."""
    global _held  # noqa: PLW0603
    _held += 1


def done() -> None:
    """Everything has stopped: no deadline and no signal reaches this process while it exits."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    signal.setitimer(signal.ITIMER_REAL, 0)


@contextmanager
def held() -> Iterator[None]:
    """Hold an interrupt back until the block has ended; other threads than the main one never get any."""
    global _held, _pending  # noqa: PLW0603
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _held += 1
    try:
        yield
    finally:
        _held -= 1
        if _pending and not _held:
            _pending = False
            raise KeyboardInterrupt
