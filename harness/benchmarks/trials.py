"""What each method would have said: replays of both over a pool of measured blocks. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from harness.benchmarks import simulation
from harness.plan.profile import Replication
from harness.records.models import Sample
from harness.stats import estimates
from harness.stats.duet import DuetPair, Order, order, turns
from harness.stats.model import Ratio, Row
from harness.stats.ranking import rank
from harness.stats.stopping import undecided
from harness.stats.values import log_matrix

Metric = Literal["throughput", "cpu_per_request"]
METRICS: tuple[Metric, ...] = ("throughput", "cpu_per_request")
FASTER, SLOWER = "faster", "slower"


@dataclass(frozen=True, kw_only=True)
class Point:
    """Both figures of one load on one server."""

    throughput: float
    cpu_per_request: float

    def merit(self, metric: Metric) -> float:
        """The figure, turned so that more is better."""
        return self.throughput if metric == "throughput" else 1 / self.cpu_per_request


@dataclass(frozen=True, kw_only=True)
class Block:
    """One block of two servers, ``faster`` by construction (or equal to) ``slower``: fresh processes of each."""

    faster: Point
    slower: Point
    faster_single: Point  # the long window of TechEmpower's method
    slower_single: Point


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Shares of the replays that came out each way, and the mean replicates of one server that they took."""

    right: float
    wrong: float
    tied: float
    replicates: float


def single_windows(pool: Sequence[Block], metric: Metric) -> Outcome:
    """TechEmpower's way: one window each, higher is better. Every window against every other, as of any two moments."""
    right = wrong = 0
    for one in pool:
        for other in pool:
            if one.faster_single.merit(metric) > other.slower_single.merit(metric):
                right += 1
            else:
                wrong += 1
    total = right + wrong
    return Outcome(right=right / total, wrong=wrong / total, tied=0.0, replicates=1.0)


def sequential(
    pool: Sequence[Block], rule: Replication, tries: int, generator: np.random.Generator
) -> dict[Metric, Outcome]:
    """This method: the pool's blocks in random order through the stopping rule and the ranking, as shipped."""
    counts: dict[Metric, list[int]] = {"throughput": [0, 0, 0], "cpu_per_request": [0, 0, 0]}
    replicates = 0
    for _ in range(tries):
        drawn = [pool[int(i)] for i in generator.permutation(len(pool))[: rule.maximum]]
        measured = [
            [_sample(FASTER, number, block.faster), _sample(SLOWER, number, block.slower)]
            for number, block in enumerate(drawn)
        ]
        rows, blocks = play(measured, (FASTER, SLOWER), rule)
        replicates += blocks
        for metric, count in counts.items():
            count[{1: 0, -1: 1, 0: 2}[decision(rows, FASTER, metric)]] += 1
    return {
        metric: Outcome(right=right / tries, wrong=wrong / tries, tied=tied / tries, replicates=replicates / tries)
        for metric, (right, wrong, tied) in counts.items()
    }


def play(blocks: Iterable[Sequence[Sample]], names: tuple[str, str], rule: Replication) -> tuple[Sequence[Row], int]:
    """Take block after block until the rule is content: the rows of the headline table, and the blocks taken."""
    expected = [(name, simulation.TEST_TYPE) for name in names]
    measured: list[Sample] = []
    used = 0
    for block in blocks:
        measured += block
        used += 1
        if not undecided(measured, expected, rule):
            break
    ranking = rank(simulation.run_info(names, rule), measured, [], [])
    return ranking.test_types[simulation.TEST_TYPE].headline.rows, used


def _sample(name: str, block: int, point: Point) -> Sample:
    made = simulation.sample(name, block, point.throughput)
    return made.model_copy(update={"cpu_per_request": point.cpu_per_request})


def decision(rows: Sequence[Row], name: str, metric: Metric) -> int:
    """1 when this one of two is decided to be better, -1 when worse, 0 for a tie."""
    row = next(row for row in rows if row.implementation == name)
    standing = row.throughput if metric == "throughput" else row.cpu_per_request
    if standing is None or standing.rank.low != standing.rank.high:
        return 0
    return 1 if standing.rank.low == 1 else -1


def true_ratio(pool: Sequence[Block], metric: Metric) -> Ratio:
    """The slower over the faster, over the whole pool, within blocks: what the machine says the difference is."""
    return paired_ratio(
        {number: getattr(block.faster, metric) for number, block in enumerate(pool)},
        {number: getattr(block.slower, metric) for number, block in enumerate(pool)},
    )


def paired_ratio(base: Mapping[int, float], other: Mapping[int, float]) -> Ratio:
    """The other over the base, within blocks, with its 95 % interval."""
    logs = log_matrix([base, other])
    found = estimates.ratios(logs, estimates.moments(logs), 0, True, 0.95)
    return Ratio(value=float(found.value[1]), low=estimates.finite(found.low[1]), high=estimates.finite(found.high[1]))


def duet_order(pairs: Sequence[DuetPair], metric: Metric) -> Order | None:
    """What the duets say of the faster one over the slower one, turned so that more is better."""
    found = order(turns(pairs, FASTER, metric))
    return found if found is None or metric == "throughput" else replace(found, effect=-found.effect, slot=-found.slot)
