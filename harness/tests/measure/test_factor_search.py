"""The search for the highest factor of the arrivals at which "create order" meets its goal, over known servers."""

import pytest

from harness.measure.factor_search import FactorSearch, meets
from harness.plan.profile import OrderRules
from harness.records.models import Errors, Gate, Latency, LatencyGoal, Outcome
from harness.records.orders import OperationTimes, OrderSample

GOAL = LatencyGoal(percentile=99.0, seconds=0.1)
RULES = OrderRules(goal=GOAL, bracket=0.1)


def load(factor: float, *, late: int = 0, unanswered: int = 0, gates: tuple[Gate, ...] = ()) -> OrderSample:
    """A thousand orders, so many of them beyond the goal."""
    in_time = 1000 - late - unanswered
    latency = Latency(
        basis="open-loop, intended send time",
        mean=0.01,
        stdev=0.0,
        min=0.01,
        max=0.5,
        percentiles={},
        histogram=((0.01, in_time), (0.5, late)),
    )
    create = OperationTimes(
        use_case="online shop order",
        operation="create order",
        due=1000,
        answered=1000 - unanswered,
        errors=Errors(),
        latency=latency,
    )
    return OrderSample(
        id="a/order",
        implementation="a",
        block=0,
        process=0,
        factor=factor,
        started_at=0.0,
        duration=8.0,
        due=1000,
        done=1000 - unanswered,
        failed=unanswered,
        unfinished=0,
        operations=(create,),
        gates=gates,
    )


@pytest.mark.parametrize(("late", "unanswered", "met"), [(10, 0, True), (11, 0, False), (0, 11, False), (5, 5, True)])
def test_an_order_without_an_answer_is_late(late: int, unanswered: int, met: bool) -> None:
    assert meets(load(1.0, late=late, unanswered=unanswered), GOAL) is met


def found(true_capacity: float, planned: tuple[float, ...] = (1.0, 8.0, 32.0)) -> list[float]:
    """The factors that the search asks for on a server that holds up to its capacity."""
    search = FactorSearch(RULES)
    asked: list[float] = []
    for factor in planned:
        search.add(load(factor, late=0 if factor <= true_capacity else 500))
    while (further := search.next_factor()) is not None and len(asked) < 20:
        asked.append(further)
        search.add(load(further, late=0 if further <= true_capacity else 500))
    return asked


def test_the_search_goes_up_by_doubling_and_then_halves_what_is_left() -> None:
    asked = found(100.0)
    assert asked[:2] == [64.0, 128.0]
    held, missed = max(f for f in asked if f <= 100.0), min(f for f in asked if f > 100.0)
    assert missed / held <= 1.1
    assert len(asked) == 5


def test_a_server_that_holds_nothing_is_asked_down_to_a_quarter_and_no_further() -> None:
    assert found(0.0) == [0.5, 0.25]


def test_a_miss_while_the_generator_was_late_itself_says_nothing_of_the_server() -> None:
    lag = (Gate(name="generator-lag", outcome=Outcome.FAIL, value=1.0, threshold=0.2, word="generator lag"),)
    search = FactorSearch(RULES)
    search.add(load(8.0))
    search.add(load(16.0, late=500, gates=lag))
    assert search.next_factor() == 16.0
