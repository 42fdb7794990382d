"""The search for a rate between one that met the goal and one that missed it."""

import math

import numpy as np
import pytest

from harness.measure.goal_search import Tried, bracket, next_rate, requests_to_decide

LATE = 0.01


def tried(rate: float, *, met: bool, due: int = 10_000) -> Tried:
    return Tried(rate=rate, due=due, late=0 if met else due // 2)


def test_the_bracket_lies_between_the_last_met_and_the_first_missed() -> None:
    found = bracket([tried(r, met=r < 55) for r in (90, 10, 50, 60)], LATE)
    assert found.low is not None
    assert found.high is not None
    assert (found.low.rate, found.high.rate, found.contradictions) == (50, 60, 0)


def test_one_stall_at_a_low_rate_is_a_contradiction_and_not_the_capacity() -> None:
    found = bracket([tried(10, met=False), *(tried(r, met=r < 85) for r in (25, 50, 70, 80, 90))], LATE)
    assert found.low is not None
    assert (found.low.rate, found.contradictions) == (80, 1)


def test_of_two_cuts_that_contradict_as_many_loads_the_lower_one_counts() -> None:
    found = bracket([tried(10, met=True), tried(20, met=False), tried(30, met=True)], LATE)
    assert found.low is not None
    assert (found.low.rate, found.contradictions) == (10, 1)


@pytest.mark.parametrize(
    ("late", "due", "decided"),
    [(0, 100, False), (0, 400, True), (10, 1000, False), (60, 10_000, True), (140, 10_000, True), (100, 100, True)],
)
def test_a_load_decides_when_the_interval_of_its_late_share_is_on_one_side(late: int, due: int, decided: bool) -> None:
    assert Tried(rate=1, due=due, late=late).decided(LATE, 0.95) is decided


def test_with_nothing_tried_half_of_the_capacity_comes_first() -> None:
    assert next_rate(bracket([], LATE), 1000, late_share=LATE, width=0.05, confidence=0.95) == 500


def test_it_goes_up_while_all_met_down_while_none_did_and_gives_up_at_a_hundredth() -> None:
    def following(*loads: Tried) -> float | None:
        return next_rate(bracket(loads, LATE), 1000, late_share=LATE, width=0.05, confidence=0.95)

    assert following(tried(950, met=True)) == pytest.approx(1045)
    assert following(tried(100, met=False)) == 50
    assert following(tried(15, met=False)) == 10
    assert following(tried(10, met=False)) is None
    assert following(tried(100, met=True), tried(400, met=False)) == pytest.approx(200)
    assert following(tried(100, met=True), tried(104, met=False)) is None
    assert following(tried(100, met=True, due=50), tried(104, met=False)) == 100  # too short to decide: again


def test_no_rate_is_asked_for_at_which_a_load_could_not_show_that_the_goal_was_met() -> None:
    assert requests_to_decide(LATE, 0.95) == 368
    assert Tried(rate=1, due=368, late=0).decided(LATE, 0.95)
    assert not Tried(rate=1, due=366, late=0).decided(LATE, 0.95)
    found = bracket([tried(600, met=False)], LATE)
    assert next_rate(found, 1000, late_share=LATE, width=0.05, confidence=0.95, seconds=1.0) == 368
    found = bracket([tried(368, met=False)], LATE)
    assert next_rate(found, 1000, late_share=LATE, width=0.05, confidence=0.95, seconds=1.0) is None


@pytest.mark.parametrize("truth", [120.0, 480.0, 930.0, 990.0])
def test_it_finds_a_known_capacity_within_its_bracket(truth: float) -> None:
    """Late shares of a queue M/M/1 whose p99 is within the goal just up to the truth."""
    drawn, seconds, goal = np.random.default_rng(5), 200, 0.010
    mu = truth - math.log(LATE) / goal

    def load(rate: float) -> Tried:
        share = min(1.0, math.exp(-max(0.0, mu - rate) * goal))
        due = round(rate * seconds)
        return Tried(rate=rate, due=due, late=int(drawn.binomial(due, share)))

    loads = [load(share * 1000) for share in (0.1, 0.25, 0.5, 0.7, 0.8, 0.9, 0.95)]
    for _ in range(12):
        rate = next_rate(bracket(loads, LATE), 1000, late_share=LATE, width=0.02, confidence=0.95)
        if rate is None:
            break
        loads.append(load(rate))
    found = bracket(loads, LATE)
    assert found.low is not None
    assert found.high is not None
    # What a load cannot tell: the share of late requests by chance, over the slope of its logarithm (the goal).
    unseen = 3 / math.sqrt(LATE * truth * seconds) / goal
    assert found.low.rate - unseen <= truth <= found.high.rate + unseen
    assert found.high.rate <= found.low.rate * 1.03
