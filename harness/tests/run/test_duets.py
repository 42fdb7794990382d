"""Two loads at once begin in their order, and an interruption at any moment ends both."""

import threading

import pytest

from harness.run import duets
from harness.tests.doubles.fakes_world import FakeClock


def test_the_works_begin_in_their_order_and_apart() -> None:
    clock = FakeClock()
    began = duets.together(clock, threading.Event(), clock.monotonic, clock.monotonic)
    assert began == [1000.0, 1000.0 + duets.STAGGER_SECONDS]


def test_an_interruption_between_the_two_starts_ends_the_first_load() -> None:
    over = threading.Event()

    class Interrupted(FakeClock):
        def sleep(self, seconds: float) -> None:
            raise KeyboardInterrupt

    ended: list[bool] = []
    with pytest.raises(KeyboardInterrupt):
        duets.together(Interrupted(), over, lambda: ended.append(over.wait(20)), lambda: None)
    assert ended == [True]
