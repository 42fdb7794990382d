"""The rule that decides when a server is warm: its conditions, its error rates with noise, and its records."""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from harness.experiment.steps import Cell, Done, Process, Rest, Warm, WarmUpResult
from harness.experiment.warm_up import WarmUpTracker, warm_up_all
from harness.plan import profile
from harness.plan.profile import WarmUpLimits
from harness.records.loads import ClosedLoop
from harness.records.measurements import Window

CELL = Cell(process=Process("a", 0), test_type="json", load=ClosedLoop(connections=64))
RULE = WarmUpLimits(span=5)
QUICK, STANDARD = WarmUpLimits(span=3, cap_seconds=6.0, jit_cap_seconds=24.0), WarmUpLimits()


def window(cost: float | None, responses: float | None = 50_000.0) -> Window:
    cpu = None if cost is None or responses is None else cost * responses
    return Window(
        start=0.0, duration=1.0, responses=responses, server_cpu=cpu, wait_share=None, rss=None, connections=None
    )


def feed(route: WarmUpTracker, costs: Sequence[float | None]) -> int | None:
    """Feed windows to a tracker. Return the number of windows after which it is steady, or None."""
    return next((count for count, cost in enumerate(costs, start=1) if route.add_window(window(cost))), None)


def decays(excess: float, seconds: float) -> Callable[[int], float]:
    """Return the relative cost as a function of time in seconds. It falls exponentially to 1."""
    return lambda second: 1 + excess * math.exp(-(second + 0.5) / seconds)


@pytest.mark.parametrize(
    ("costs", "windows", "since"),
    [
        ([20e-6] * 30, 10, 5.0),  # the rule compares two spans of five windows; the later span starts at 5 s
        ([20e-6 * 1.1**second for second in range(40)], 10, 5.0),
        ([20e-6] * 2 + [90e-6] + [20e-6] * 10, 10, 5.0),
        ([80e-6] * 6 + [20e-6] * 20, 14, 9.0),  # steady once most windows of the earlier span come after the fall
        ([20e-6, None] * 12, 19, 10.0),
        ([None] * 20, None, None),
        ([0.0] * 20, None, None),
        ([400e-6 * 0.97**second for second in range(40)], None, None),
    ],
    ids=[
        "flat",
        "rising",
        "one wild",
        "fell before",
        "some not read",
        "none read",
        "too short for a tick of CPU",
        "falling",
    ],
)
def test_steady_needs_two_spans_without_decline(
    costs: Sequence[float | None], windows: int | None, since: float | None
) -> None:
    route = WarmUpTracker(CELL, RULE, jit=False)
    assert feed(route, costs) == windows
    assert (route.steady, route.seconds_to_steady) == (windows is not None, since)
    assert route.seconds == (windows or len(costs))


def test_a_stalled_window_resets_the_spans() -> None:
    route = WarmUpTracker(CELL, RULE, jit=False)
    feed(route, [20e-6] * 9)
    assert not route.add_window(window(20e-6, responses=0.0))
    assert feed(route, [20e-6] * 10) == 10


@pytest.mark.parametrize(
    ("rule", "truth", "steady", "cold"),
    [
        (STANDARD, decays(0, 1), 0.99, 0.0),
        (STANDARD, decays(15, 2.5), 0.99, 0.01),
        (STANDARD, decays(3, 6), 0.99, 0.02),
        (STANDARD, lambda second: 1.5 if second < 10 else 1.0, 0.99, 0.01),  # the second-tier compiler finishes late
        (QUICK, decays(0, 1), 0.99, 0.0),
        (QUICK, decays(15, 2.5), 0.9, 0.02),
        (QUICK, decays(2, 4), 0.9, 0.25),
    ],
)
def test_the_rule_separates_warm_from_cold_with_noise(
    rule: WarmUpLimits, truth: Callable[[int], float], steady: float, cold: float
) -> None:
    """Simulate servers with noisy windows.

    At least the share ``steady`` of the servers must count as warm. At most the share ``cold`` may count as warm while
    their true cost is more than 20 % too high. A few windows cannot reveal a slow decline. Comparing the first and
    second half of a cell's trials does.
    """
    dice, passed, early = random.Random(1), 0, 0
    for _ in range(1_000):
        route = WarmUpTracker(CELL, rule, jit=True)
        for second in range(int(rule.jit_cap_seconds)):
            route.add_window(window(truth(second) * math.exp(dice.gauss(0, 0.18)) * 20e-6))
            if route.steady and second % 2:  # checked after each burst of two windows
                passed += 1
                early += truth(second) > 1.2
                break
    assert passed / 1_000 >= steady
    assert early / 1_000 <= cold


def test_a_server_that_compiles_is_not_steady() -> None:
    def compiling(share: float) -> Window:
        return window(20e-6).model_copy(update={"compiler_cpu": share * 20e-6 * 50_000})

    route = WarmUpTracker(CELL, RULE, jit=True)
    assert not any(route.add_window(compiling(0.2)) for _ in range(30))
    assert route.is_compiling
    assert [route.add_window(compiling(0.0)) for _ in range(3)] == [False, False, True]
    assert route.seconds_to_steady == 28.0


def test_compiling_cells_get_the_later_bursts() -> None:
    shares = {"busy": 0.3, "quiet": 0.0, "unknown": None}
    cells = {replace(CELL, process=Process(name, 0)): True for name in shares}
    warming = warm_up_all(cells, profile.load_profile("quick"), until=1.0, seed="any")
    order, step = list[str](), next(warming)
    while len(order) < 6:
        if isinstance(step, Rest):  # compilers catch up between bursts
            step = warming.send(Done())
        assert isinstance(step, Warm)
        order.append(step.cell.process.implementation)
        windows = [window(20e-6).model_copy(update={"compiler_cpu": shares[order[-1]]})] * 2
        step = warming.send(WarmUpResult(windows=windows, seconds=2.0))
    assert set(order[:3]) == set(shares)
    assert order[3:] == ["busy"] * 3


def test_later_rounds_begin_with_declining_jit_platforms() -> None:
    falls = {"calm": 1.0, "cold": 9.0, "late": 1.5, "slow": 2.0, "native": 9.0}
    cells = {replace(CELL, process=Process(name, 0)): name != "native" for name in falls}
    warming = warm_up_all(cells, profile.load_profile("quick"), until=1.0, seed="any")
    order, step = list[str](), next(warming)
    while len(order) < 2 * len(falls) - 1:
        assert isinstance(step, Warm)
        name = step.cell.process.implementation
        order.append(name)
        step = warming.send(WarmUpResult(windows=[window(falls[name] * 20e-6), window(20e-6)], seconds=2.0))
    assert set(order[:5]) == set(falls)
    assert order[5:] == ["cold", "slow", "late", "native"]  # "calm" gets no more bursts before the others are steady
