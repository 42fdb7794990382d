"""The clock that a run uses. Tests replace it with a clock that does not wait."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from harness.errors import StoreError
from harness.host import interruption

CLOCK_JUMP_SECONDS = 0.25  # larger changes of the wall clock count as jumps; NTP slews the clock by at most 0.5 ms/s
MAX_CLOCK_JUMPS = 3  # if the clock jumps during a step, tfb repeats the step at most this many times


class Clock:
    """The system clock, in seconds."""

    def monotonic(self) -> float:
        """Return the monotonic time in seconds."""
        return time.monotonic()

    def time(self) -> float:
        """Return the seconds since the epoch."""
        return time.time()

    def sleep(self, seconds: float) -> None:
        """Wait. Raises KeyboardInterrupt if a signal interrupts the run."""
        interruption.sleep(seconds)


def wall_clock_offset(clock: Clock) -> float:
    """Return the wall clock minus monotonic time. This difference changes only if the wall clock is set."""
    return clock.time() - clock.monotonic()


SYSTEM_CLOCK = Clock()


@contextmanager
def heartbeat(notify: Callable[[float], None], interval: float = 5.0) -> Iterator[None]:
    """Call ``notify`` with the elapsed seconds, every ``interval`` seconds until the block ends."""
    ended = threading.Event()

    def beat() -> None:
        count = 1
        while not ended.wait(interval):
            with suppress(StoreError):  # the disk may be full; the next attempt to write a record reports it
                notify(count * interval)
            count += 1

    thread = threading.Thread(target=beat, name="heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
