"""Loads at given rates by arithmetic: every server is a queue M/M/1, whose latency at every rate is known.

Sojourn times are exponential with rate mu - lambda, so that a share exp(-(mu - lambda) t) is later than t, and p99 is
within G just up to lambda = mu - ln(100) / G.
"""

import json
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from harness.measure.loadgen import AtRate, Load, LoadGenerator, LoadResult
from harness.plan.profile import LatencyRules
from harness.records.models import Errors, Latency

POINTS = ("50", "75", "90", "95", "99", "99.9", "99.99")


def true_capacity(capacity: float, seconds: float, percentile: float = 99.0) -> float:
    """Requests/s up to which a server of this capacity keeps the percentile within ``seconds``."""
    return capacity + math.log(1 - percentile / 100) / seconds


@dataclass
class FakeRates:
    """What every load shows beside the queue's own latency."""

    lag_share: float = 0.01  # of the latency p99
    errors: int = 0  # of the server, a load
    unfinished: int = 0
    stalls: Callable[[float], bool] = lambda _rate: False  # loads in which every tenth request waits a second longer
    loads: int = 0

    def generator(self, rules: LatencyRules, rate: float, seed: int) -> LoadGenerator:
        self.loads += 1
        return FakeRateGenerator(self, rate, seed)


@dataclass
class FakeRateGenerator:
    """One load at a rate."""

    shows: FakeRates
    rate: float
    seed: int
    program: str = "fake-rates"
    waits_for_go: bool = True
    folder: Path | None = None
    timeout_seconds: float = 8.0

    def arguments(self, load: Load) -> Sequence[str]:
        return [json.dumps(asdict(load)), json.dumps({"rate": self.rate, "seed": self.seed})]

    def result(self, load: Load, output: str) -> LoadResult:
        values = json.loads(output)
        shows, seconds, drawn = self.shows, values["duration"], random.Random(self.seed)
        mean = self.rate * seconds
        due = max(1, round(drawn.gauss(mean, math.sqrt(mean))))
        spare = values["capacity"] - self.rate
        saturated = spare <= 0
        received = round(values["capacity"] * seconds) if saturated else due - shows.unfinished
        lost = shows.unfinished + shows.errors
        stalled = 0.1 if shows.stalls(self.rate) else 0.0
        decay = max(spare, 1e-3)

        def share_later(t: float) -> float:
            return 1.0 if saturated else min(1.0, math.exp(-decay * t) + stalled)

        def late(t: float) -> int:
            n, p = due - lost, share_later(t)
            return min(n, max(0, round(drawn.gauss(n * p, math.sqrt(n * p * (1 - p))))))

        def at(point: str) -> float:
            beyond = 1 - float(point) / 100 - stalled
            return 1.0 if saturated or beyond <= 0 else -math.log(beyond) / decay

        latency = Latency(
            basis="open-loop, intended send time",
            mean=1 / decay,
            stdev=1 / decay,
            min=0.0,
            max=at("99.99"),
            percentiles={point: at(point) for point in POINTS},
        )
        return LoadResult(
            duration=seconds,
            requests=received,
            bytes=round(received * 150.0),
            errors=Errors(read=shows.errors, timeout=shows.unfinished),
            latency=latency,
            cpu_seconds=seconds / 10,
            at_rate=AtRate(
                due=due,
                answered=due - lost,
                unfinished=shows.unfinished,
                service=None,
                lag_p99=shows.lag_share * latency.percentiles["99"],
                lag_max=None,
                late=late,
            ),
        )
