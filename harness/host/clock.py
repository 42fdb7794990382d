"""The clock of a run: what measures and waits asks it, so that tests can pass hours in no time."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from harness.errors import StoreError
from harness.host import interruption

CLOCK_JUMP_SECONDS = 0.25  # a clock that is only steered moves by less than a thousandth of the time
MAX_CLOCK_JUMPS = 3  # after which what was done while somebody set the clock is taken as it comes


class Clock:
    """Time as a run sees it, in seconds: the machine's own."""

    def monotonic(self) -> float:
        """Seconds since some moment; never goes back."""
        return time.monotonic()

    def time(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    def sleep(self, seconds: float) -> None:
        """Wait; an interruption ends it at once."""
        interruption.sleep(seconds)


def wall_clock_offset(clock: Clock) -> float:
    """Seconds by which the time of day is ahead of the monotonic one: they change when somebody sets it."""
    return clock.time() - clock.monotonic()


SYSTEM_CLOCK = Clock()


@contextmanager
def heartbeat(tell: Callable[[float], None], every: float = 5.0) -> Iterator[None]:
    """Call ``tell`` with the seconds so far, every few seconds until the block ends."""
    over = threading.Event()

    def beat() -> None:
        count = 1
        while not over.wait(every):
            with suppress(StoreError):  # of a full disk: told by the next thing that is written
                tell(count * every)
            count += 1

    thread = threading.Thread(target=beat, name="heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
