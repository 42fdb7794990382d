"""A verification says nothing of a server while somebody sets the clock."""

import time
from collections.abc import Callable

import pytest

from harness.verify import verifier


@pytest.mark.parametrize(("jumps", "expected"), [(0, 1), (2, 3), (9, 4)])
def test_what_was_judged_while_the_clock_was_set_is_judged_again(
    jumps: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    real: Callable[[], float] = time.time
    shift, judged = 0.0, 0
    monkeypatch.setattr(time, "time", lambda: real() + shift)

    def judge() -> int:
        nonlocal shift, judged
        judged += 1
        if judged <= jumps:
            shift -= 3600
        return judged

    assert verifier.steadily(judge)() == expected
