"""Signals that ask for an end: one KeyboardInterrupt, held back while a child is being started; then a deadline.

After the first signal further ones change nothing: everything is being stopped already. What runs is asked to stop at
once and killed a little later, so that nobody waits for the answer of a server that will not give one.

A run is ``deferred``: a signal stops what was started, and is raised by ``raise_if_pending`` between two steps, or by ``sleep``:
no library sees it halfway. What does not come to such a place in ``KILL_DELAY_SECONDS`` twice over is interrupted.
"""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

KILL_DELAY_SECONDS = 3.0  # between asking and killing
LOADING_CPU_SECONDS = 30.0  # ten times what all libraries take

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_held = 0
_deferred = 0  # of those held: may be raised where it is asked for, and in the end everywhere
_pending = False
_since: float | None = None


def install_handlers(ask: Callable[[], None], kill: Callable[[], None]) -> None:
    """Turn the signals into KeyboardInterrupt; those that the parent had us ignore (nohup) stay ignored."""

    def handle(_number: int, _frame: FrameType | None) -> None:
        global _since, _pending  # noqa: PLW0603 - signals are the process's own
        # Further signals are ignored for so long: by then everything has stopped.
        if _since is not None and time.monotonic() - _since < 10.0:
            return
        _since = time.monotonic()
        signal.signal(signal.SIGALRM, overdue)
        signal.setitimer(signal.ITIMER_REAL, KILL_DELAY_SECONDS)
        ask()
        if not _held:
            raise KeyboardInterrupt
        _pending = True

    def overdue(_number: int, _frame: FrameType | None) -> None:
        kill()
        if _pending:
            signal.setitimer(signal.ITIMER_REAL, KILL_DELAY_SECONDS)
            if time.monotonic() - (_since or 0.0) > 1.5 * KILL_DELAY_SECONDS:
                raise_if_pending()

    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handle)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # one that came while Python started is heard now


def hold_until_exit() -> None:
    """From now on nothing is interrupted any more, only stopped: what is left to do is to stop everything."""
    global _held  # noqa: PLW0603
    _held += 1


def disarm() -> None:
    """Everything has stopped: no deadline and no signal reaches this process while it exits."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    signal.setitimer(signal.ITIMER_REAL, 0)


@contextmanager
def held_while_loading() -> Iterator[None]:
    """Hold an interrupt back while libraries are loaded: interrupted, they break, or swallow it.

    A library that loads for ever in C code, as OpenBLAS does without memory, hears no signal. The kernel ends this
    process by SIGPROF when loading takes more CPU time than it ever does.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before, _ = signal.setitimer(signal.ITIMER_PROF, LOADING_CPU_SECONDS)
    try:
        with held():
            yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, before)


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


@contextmanager
def deferred() -> Iterator[None]:
    """Hold an interrupt back until ``raise_if_pending``, ``sleep`` or the end of the block."""
    global _deferred  # noqa: PLW0603
    _deferred += 1
    try:
        with held():
            yield
    finally:
        _deferred -= 1


def raise_if_pending() -> None:
    """Raise the interrupt that was held back, if there is one: here is a place between two steps."""
    global _pending  # noqa: PLW0603
    if _pending and _held == _deferred and threading.current_thread() is threading.main_thread():
        _pending = False
        raise KeyboardInterrupt


def requested() -> bool:
    """Whether a signal has asked this process to end, whatever became of it."""
    return _since is not None


def sleep(seconds: float) -> None:
    """Wait; raises KeyboardInterrupt as soon as a signal has asked for the end."""
    until = time.monotonic() + seconds
    raise_if_pending()
    while (left := until - time.monotonic()) > 0:
        # Between two looks at whether it is to end.
        time.sleep(min(left, 0.1))
        raise_if_pending()
