"""The clock of a run: what measures and waits asks it, so that tests can pass hours in no time."""

import time
from typing import Protocol


class Clock(Protocol):
    """Time as a run sees it, in seconds."""

    def monotonic(self) -> float:
        """Seconds since some moment; never goes back."""

    def time(self) -> float:
        """Seconds since the epoch."""

    def sleep(self, seconds: float) -> None:
        """Wait."""


class SystemClock:
    """The machine's own."""

    def monotonic(self) -> float:
        """``time.monotonic``."""
        return time.monotonic()

    def time(self) -> float:
        """``time.time``."""
        return time.time()

    def sleep(self, seconds: float) -> None:
        """``time.sleep``."""
        time.sleep(seconds)


SYSTEM_CLOCK = SystemClock()
