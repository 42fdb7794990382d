"""The steady rule: what it waits for, what resets it, and what it records."""

import math
from collections.abc import Sequence

import pytest

from harness.experiment.warm_up import SteadyDetector
from harness.plan.profile import WarmUpRule
from harness.records.models import Window

RULE = WarmUpRule(span=5, tolerance=0.05, times=3, minimum_requests=200_000, patience_seconds=20.0, minimum_seconds=3.0)


def window(cost: float | None, responses: float | None = 50_000.0, duration: float = 1.0) -> Window:
    cpu = None if cost is None or responses is None else cost * responses
    return Window(
        start=0.0,
        duration=duration,
        responses=responses,
        server_cpu=cpu,
        wait_share=None,
        rss=None,
        connections=None,
    )


def feed(detector: SteadyDetector, costs: Sequence[float | None], responses: float = 50_000.0) -> int | None:
    """Windows until steady, or None."""
    for count, cost in enumerate(costs, start=1):
        if detector.observe(window(cost, responses)):
            return count
    return None


def test_a_flat_server_is_steady_after_two_spans_and_three_agreeing_looks() -> None:
    detector = SteadyDetector(RULE, jit=False)
    assert feed(detector, [20e-6] * 30) == 12
    assert detector.steady is True
    assert detector.seconds_to_steady == 5.0  # the newest span of the first agreeing look began after five windows
    assert detector.requests_to_steady == 250_000


def test_a_jvm_is_steady_only_when_its_cost_has_settled() -> None:
    costs = [20e-6 * (1 + 15 * math.exp(-second / 2.5)) for second in range(60)]
    detector = SteadyDetector(RULE, jit=True)
    stopped = feed(detector, costs)
    assert stopped is not None
    assert costs[stopped - 1] < 20e-6 * 1.05
    assert detector.seconds_to_steady is not None
    assert costs[int(detector.seconds_to_steady)] < 20e-6 * 1.10


def test_a_plateau_of_throughput_with_falling_cost_is_not_steady() -> None:
    detector = SteadyDetector(RULE, jit=True)
    assert feed(detector, [400e-6 * 0.97**second for second in range(40)]) is None
    assert detector.steady is False
    assert detector.seconds_to_steady is None


def test_few_requests_are_not_enough_until_patience_runs_out() -> None:
    detector = SteadyDetector(RULE, jit=True)
    assert feed(detector, [20e-6] * 40, responses=1_000.0) == 20
    assert detector.requests_to_steady == 5_000


def test_a_jump_in_cost_starts_the_count_again() -> None:
    detector = SteadyDetector(RULE, jit=False)
    assert feed(detector, [20e-6] * 8 + [40e-6] * 30) == 18
    assert detector.seconds_to_steady == 11.0


def test_one_wild_window_does_not_matter_to_medians() -> None:
    assert feed(SteadyDetector(RULE, jit=False), [20e-6] * 7 + [90e-6] + [20e-6] * 10) == 12


def test_windows_that_could_not_be_read_neither_count_nor_disturb() -> None:
    detector = SteadyDetector(RULE, jit=False)
    costs: list[float | None] = [20e-6, None] * 12
    assert feed(detector, costs) == 23
    assert detector.seconds == 23.0


def test_without_any_readable_window_nothing_is_steady_and_the_cap_is_reached() -> None:
    detector = SteadyDetector(RULE, jit=False)
    assert feed(detector, [None] * 20) is None
    assert detector.steady is False


def test_a_stalled_window_is_the_opposite_of_steady() -> None:
    detector = SteadyDetector(RULE, jit=False)
    feed(detector, [20e-6] * 11)
    assert not detector.observe(window(20e-6, responses=0.0))
    assert feed(detector, [20e-6] * 10) == 3


@pytest.mark.parametrize(("jit", "cap"), [(False, 20.0), (True, 60.0)])
def test_the_cap_is_longer_for_jit_runtimes(jit: bool, cap: float) -> None:
    assert SteadyDetector(RULE, jit=jit).cap_seconds == cap


def test_windows_of_other_lengths_count_by_their_seconds() -> None:
    detector = SteadyDetector(RULE.model_copy(update={"minimum_requests": 0}), jit=False)
    for _ in range(12):
        detector.observe(window(20e-6, duration=0.2))
    assert not detector.steady  # 2.4 s are below minimum_seconds
    assert detector.seconds == pytest.approx(2.4)


def test_windows_too_short_for_a_tick_of_cpu_agree_with_nothing() -> None:
    detector = SteadyDetector(RULE, jit=False)
    assert feed(detector, [0.0] * 20) is None
    assert detector.steady is False
