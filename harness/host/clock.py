"""The clock that a run uses. Tests replace it with a clock that does not wait."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from harness.errors import StoreError
from harness.host import interruption

CLOCK_JUMP_SECONDS = 0.25  # smallest change of the wall clock that counts as a jump; NTP slews by at most 0.5 ms/s
MAX_CLOCK_JUMPS = 3  # maximum number of times that tfb repeats a step because the clock jumped


class Clock:
    """The system clock, in seconds."""

    def monotonic(self) -> float:
        """Return the monotonic time in seconds."""
        return time.monotonic()

    def time(self) -> float:
        """Return the seconds since the epoch."""
        return time.time()

    def sleep(self, seconds: float) -> None:
        """Sleep for ``seconds``. Raises KeyboardInterrupt if a signal interrupts the run."""
        interruption.sleep(seconds)


def wall_clock_offset(clock: Clock) -> float:
    """Return wall-clock time minus monotonic time, in seconds. The offset changes only if the wall clock is set."""
    return clock.time() - clock.monotonic()


SYSTEM_CLOCK = Clock()


@contextmanager
def heartbeat(notify: Callable[[float], None], interval: float = 5.0) -> Iterator[None]:
    """Until the block ends, call ``notify`` every ``interval`` seconds with the seconds elapsed so far."""
    ended = threading.Event()

    def beat() -> None:
        count = 1
        while not ended.wait(interval):
            with suppress(StoreError):  # if the disk is full, the next write of a record reports it
                notify(count * interval)
            count += 1

    thread = threading.Thread(target=beat, name="heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
