"""Turns signals into a single KeyboardInterrupt, which is raised only where tfb can stop cleanly.

At the first signal, tfb asks all children to stop. After ``KILL_DELAY_SECONDS``, it kills them, so that no thread waits
forever for a server. For 10 s after a signal, further signals have no effect.

During a run, interrupts are ``deferred``: only ``raise_if_pending`` and ``sleep`` raise KeyboardInterrupt. tfb calls
them between steps. Library code is therefore interrupted only if a step takes longer than twice
``KILL_DELAY_SECONDS``.
"""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

KILL_DELAY_SECONDS = 3.0  # how long children may take to stop after the first signal
LOADING_CPU_SECONDS = 30.0  # CPU time limit for loading libraries, which usually takes 3 s

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_held = 0  # number of active ``held`` and ``deferred`` blocks
_deferred = 0  # number of active ``deferred`` blocks
_pending = False
_signalled_at: float | None = None  # time.monotonic() of the last signal that had an effect


def install_handlers(ask: Callable[[], None], kill: Callable[[], None]) -> None:
    """Install signal handlers that stop, and later kill, the children.

    Signals that are already ignored, for example under nohup, stay ignored.
    """

    def handle(_number: int, _frame: FrameType | None) -> None:
        global _signalled_at, _pending  # noqa: PLW0603 - signals concern the whole process
        if _signalled_at is not None and time.monotonic() - _signalled_at < 10.0:
            return
        _signalled_at = time.monotonic()
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
            if time.monotonic() - (_signalled_at or 0.0) > 1.5 * KILL_DELAY_SECONDS:
                raise_if_pending()

    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handle)
    # Let the kernel deliver a SIGINT that arrived while Python was starting.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def hold_until_exit() -> None:
    """Hold back interrupts until the process exits, so that tfb can stop all children."""
    global _held  # noqa: PLW0603
    _held += 1


def disarm() -> None:
    """Ignore all signals and cancel the timer that kills children, because the process is about to exit."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    signal.setitimer(signal.ITIMER_REAL, 0)


@contextmanager
def held_while_loading() -> Iterator[None]:
    """Hold back an interrupt while libraries are loaded, because an interrupted import could leave a library broken.

    If memory is short, OpenBLAS retries an allocation forever, in C code that does not let Python handle signals. The
    kernel therefore ends this process with SIGPROF after ``LOADING_CPU_SECONDS`` of CPU time.
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
    """Hold back an interrupt until the block ends. This has no effect in threads other than the main thread."""
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
    """Hold back an interrupt until the block ends, or calls ``raise_if_pending`` or ``sleep``."""
    global _deferred  # noqa: PLW0603
    _deferred += 1
    try:
        with held():
            yield
    finally:
        _deferred -= 1


def raise_if_pending() -> None:
    """Raise KeyboardInterrupt if an interrupt is pending."""
    global _pending  # noqa: PLW0603
    if _pending and _held == _deferred and threading.current_thread() is threading.main_thread():
        _pending = False
        raise KeyboardInterrupt


def requested() -> bool:
    """Return whether this process has received a signal to stop."""
    return _signalled_at is not None


def sleep(seconds: float) -> None:
    """Sleep for ``seconds``, but raise KeyboardInterrupt soon after a signal."""
    until = time.monotonic() + seconds
    raise_if_pending()
    while (remaining := until - time.monotonic()) > 0:
        time.sleep(min(remaining, 0.1))
        raise_if_pending()
