"""Rates that a latency run asks for, the goal as a command line writes it, and how long a process takes. Pure."""

import re
from dataclasses import dataclass
from typing import Literal

from harness.errors import UsageError
from harness.plan.profile import LatencyRules
from harness.records.models import LatencyGoal

GOAL = re.compile(r"p(?P<percentile>\d{1,2}(?:\.\d+)?)=(?P<time>\d+(?:\.\d+)?)(?P<unit>us|ms|s)")
UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
LEAST_PERCENTILE = 50.0
PERCENTILES = ("50", "75", "90", "95", "99", "99.9", "99.99")  # that the generator's distribution can be held against
MOST_SHARE = 0.95  # of a capacity: a common rate above it is left out
OVERHEAD_SECONDS = 1.0  # a load's start and the readings around it, for the estimate alone


@dataclass(frozen=True, kw_only=True)
class Rate:
    """A rate to load with, and why."""

    rate: float  # requests/s
    purpose: Literal["share", "common"]
    share: float | None = None


def parse_goal(text: str) -> LatencyGoal:
    """``p99=10ms``, ``p99.9=500us``, ``p50=1s``; raises UsageError that says what is wrong."""
    found = GOAL.fullmatch(text.strip().lower())
    if not found:
        raise UsageError(f"--latency-goal: {text!r} is not a goal such as p99=10ms (units: us, ms, s)")
    percentile, seconds = float(found["percentile"]), float(found["time"]) * UNITS[found["unit"]]
    if not LEAST_PERCENTILE <= percentile < 100:
        raise UsageError(f"--latency-goal: the percentile of {text!r} must be at least 50 and below 100")
    if seconds <= 0:
        raise UsageError(f"--latency-goal: the time of {text!r} must be above 0")
    return LatencyGoal(percentile=percentile, seconds=seconds)


def asked_rates(rules: LatencyRules, capacity: float) -> list[Rate]:
    """Shares of a capacity (requests/s), and the common rates that lie below it."""
    shares = [Rate(rate=share * capacity, purpose="share", share=share) for share in rules.shares]
    return shares + [Rate(rate=rate, purpose="common") for rate in rules.common_rates if rate <= MOST_SHARE * capacity]


def cell_seconds(rules: LatencyRules, *, worst: bool) -> float:
    """What the loads at given rates take on one process and test type; ``worst``: every one waits for late answers."""
    loads = len(rules.shares) + len(rules.common_rates) + rules.search_loads
    drained = loads if worst else (2 + rules.search_loads) / 2  # of loads near the capacity, about half
    return loads * (rules.seconds + OVERHEAD_SECONDS) + drained * rules.drain_seconds
