"""The capacity of an order service: the highest factor of the arrivals at which "create order" meets a goal. Pure."""

import math

from harness.measure.rate_gates import was_late
from harness.measure.testbed import Target
from harness.plan.orders import CREATE
from harness.plan.profile import OrderRules
from harness.records.models import LatencyGoal
from harness.records.orders import OrderCapacity, OrderSample

GROWTH = 2.0  # while every factor meets the goal
LEAST_FACTOR = 0.25  # below it the search gives up


def meets(sample: OrderSample, goal: LatencyGoal) -> bool:
    """Whether no more than the goal's share of "create order" was late, unanswered ones among the late."""
    creates = [one for one in sample.operations if one.operation == CREATE]
    due = sum(one.due for one in creates)
    if due == 0 or sample.restarted or sample.unfinished:
        return False
    in_time = sum(
        count for one in creates if one.latency for seconds, count in one.latency.histogram if seconds <= goal.seconds
    )
    return due - in_time <= goal.late_share * due


class FactorSearch:
    """The search on one process: told of every load, it says which factor is next, and what was found."""

    def __init__(self, rules: OrderRules) -> None:
        self._rules = rules
        self._met: dict[float, bool] = {}
        self._loads = 0

    def add(self, sample: OrderSample) -> None:
        """A load counts, unless the goal was missed while the generator was late itself."""
        self._loads += 1
        met = meets(sample, self._rules.goal)
        if not met and was_late(sample.gates):
            return
        self._met[sample.factor] = met and self._met.get(sample.factor, True)

    def next_factor(self) -> float | None:
        """Of the next load; None when the bracket is narrow enough, or nothing is left to try."""
        low, high = self._bracket()
        if low is None and high is None:
            return None
        if high is None:
            assert low is not None  # noqa: S101 - one of both is there
            return low * GROWTH
        if low is None:
            return high / GROWTH if high / GROWTH >= LEAST_FACTOR else None
        return math.sqrt(low * high) if high / low > 1 + self._rules.bracket else None

    def capacity(self, target: Target) -> OrderCapacity:
        """What was found."""
        low, high = self._bracket()
        return OrderCapacity(
            implementation=target.server.implementation.name,
            block=target.block,
            process=target.process,
            goal=self._rules.goal,
            factor=low,
            above=high,
            decided=low is not None and high is not None and high / low <= 1 + self._rules.bracket,
            loads=self._loads,
        )

    def _bracket(self) -> tuple[float | None, float | None]:
        """The highest factor below the lowest miss, and that miss."""
        high = min((factor for factor, met in self._met.items() if not met), default=None)
        low = max(
            (factor for factor, met in self._met.items() if met and (high is None or factor < high)), default=None
        )
        return low, high
