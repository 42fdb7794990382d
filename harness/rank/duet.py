"""Order of two implementations from duets: measured at the same moment on the same CPUs, slots swapped each pair.

What disturbs one disturbs the other, so the difference needs seconds where separate windows need minutes. They compete
for the CPUs, so its size shrinks (a true 10 % read as 4 to 7 %): duets order neighbours and never give sizes.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from scipy import special

from harness.model import Level, Sample
from harness.rank.estimates import t_quantile
from harness.rank.pairs import holm

Metric = Literal["throughput", "cpu_per_request"]
Pair = tuple[str, str]
MINIMUM_PAIRS = 4  # two are spent on the effect of the slot, and the error needs two degrees of freedom


@dataclass(frozen=True, kw_only=True)
class DuetPair:
    """One simultaneous measurement of two implementations; ``first`` is the one in slot 0, started first."""

    first: Sample
    second: Sample

    def log_ratio(self, of: str, metric: Metric) -> float | None:
        """Natural log of the ratio of ``of`` over the other one."""
        one, other = getattr(self.first, metric), getattr(self.second, metric)
        if not one or not other:
            return None
        ratio = float(np.log(one / other))
        return ratio if self.first.implementation == of else -ratio


@dataclass(frozen=True, kw_only=True)
class Order:
    """What the duets of two implementations say: log ratio of the first over the second, freed of the slot's effect."""

    effect: float
    error: float  # standard error
    freedom: int
    slot: float  # log ratio of slot 0 over slot 1
    pairs: int

    @property
    def p_value(self) -> float:
        """Two-sided p of no difference."""
        if self.error == 0:
            return 0.0 if self.effect else 1.0
        return float(2 * special.stdtr(self.freedom, -abs(self.effect) / self.error))

    def bound(self, confidence: float) -> float:
        """Largest absolute log ratio that the data does not exclude."""
        return abs(self.effect) + float(t_quantile(confidence, float(self.freedom))) * self.error


def match(samples: Sequence[Sample]) -> dict[tuple[str, Level, Pair], list[DuetPair]]:
    """Pairs of duet samples by test type, level and sorted names; both must have passed their gates.

    Partners are matched within a block by the order in which they started; the earlier one of a pair is in slot 0.
    """
    groups: defaultdict[tuple[str, Level, Pair, int], list[Sample]] = defaultdict(list)
    for sample in samples:
        if sample.duet_partner is not None:
            one, other = sorted((sample.implementation, sample.duet_partner))
            groups[sample.test_type, sample.level, (one, other), sample.block].append(sample)
    found: defaultdict[tuple[str, Level, Pair], list[DuetPair]] = defaultdict(list)
    for (test_type, level, names, _), members in sorted(groups.items(), key=lambda item: item[0][3]):
        members.sort(key=lambda sample: sample.started_at)
        if names[0] == names[1]:
            ones, others = members[::2], members[1::2]
        else:
            ones = [sample for sample in members if sample.implementation == names[0]]
            others = [sample for sample in members if sample.implementation == names[1]]
        for left, right in zip(ones, others, strict=False):
            if not (left.rankable and right.rankable and _simultaneous(left, right)):
                continue
            first, second = (left, right) if left.started_at <= right.started_at else (right, left)
            found[test_type, level, names].append(DuetPair(first=first, second=second))
    return dict(found)


def _simultaneous(one: Sample, other: Sample) -> bool:
    return abs(one.started_at - other.started_at) < min(one.duration, other.duration) / 2


def order(ratios: Sequence[float], slots: Sequence[int]) -> Order | None:
    """Effect of the implementation apart from that of the slot; None with too few pairs or slots never swapped.

    Least squares of ratio = effect + slot · (±1 / 2), with ``slots`` +1 where the numerator was in slot 0, else -1.
    """
    count = len(ratios)
    if count < MINIMUM_PAIRS or len(set(slots)) < 2:
        return None
    design = np.column_stack([np.ones(count), np.asarray(slots, dtype=float) / 2])
    observed = np.asarray(ratios)
    solution, *_ = np.linalg.lstsq(design, observed, rcond=None)
    residual = observed - design @ solution
    freedom = count - 2
    variance = float(residual @ residual) / freedom
    covariance = variance * np.linalg.inv(design.T @ design)
    return Order(
        effect=float(solution[0]),
        error=float(np.sqrt(covariance[0, 0])),
        freedom=freedom,
        slot=float(solution[1]),
        pairs=count,
    )


def bias(pairs: Sequence[DuetPair], metric: Metric) -> Order | None:
    """What duets of an implementation with itself show: the two copies labelled so that they swap slots each pair."""
    ratios, slots = [], []
    for index, pair in enumerate(pairs):
        ratio = pair.log_ratio(pair.first.implementation, metric)
        if ratio is not None:
            sign = 1 if index % 2 == 0 else -1
            ratios.append(sign * ratio)
            slots.append(sign)
    return order(ratios, slots)


@dataclass(frozen=True, kw_only=True)
class Decisions:
    """What the duets of a run decide, by test type and level, and what to say of it."""

    throughput: Mapping[tuple[str, Level], Mapping[Pair, str]] = field(default_factory=dict)
    cpu_per_request: Mapping[tuple[str, Level], Mapping[Pair, str]] = field(default_factory=dict)
    tested: int = 0
    notes: tuple[str, ...] = ()

    def at(self, test_type: str, level: Level | None) -> tuple[Mapping[Pair, str], Mapping[Pair, str]]:
        """Winners of the decided pairs of a table, by throughput and by CPU per request."""
        if level is None:
            return {}, {}
        return self.throughput.get((test_type, level), {}), self.cpu_per_request.get((test_type, level), {})


def decide_all(samples: Sequence[Sample], *, alpha: float) -> Decisions:
    """Decide the order of every pair that was measured in duets, at a family-wise error of ``alpha`` a table."""
    if not any(sample.duet_partner is not None for sample in samples):
        return Decisions()
    matched = match(samples)
    decided: dict[Metric, dict[tuple[str, Level], dict[Pair, str]]] = {"throughput": {}, "cpu_per_request": {}}
    notes: list[str] = []
    tested = 0
    metrics: tuple[Metric, ...] = ("throughput", "cpu_per_request")
    for cell in {(test_type, level): None for test_type, level, _ in matched}:
        duets = {names: pairs for (*key, names), pairs in matched.items() if tuple(key) == cell}
        for metric in metrics:
            winners, count = _decide(duets, metric, alpha)
            decided[metric][cell] = winners
            tested += count
            notes.extend(_notes(cell, duets, metric, winners))
    return Decisions(
        throughput=decided["throughput"],
        cpu_per_request=decided["cpu_per_request"],
        tested=tested,
        notes=tuple(notes),
    )


def _decide(duets: Mapping[Pair, Sequence[DuetPair]], metric: Metric, alpha: float) -> tuple[dict[Pair, str], int]:
    """Winners among the pairs of one table, and how many pairs were tested. An order within the A/A bias is none."""
    orders = {
        names: found
        for names, pairs in duets.items()
        if names[0] != names[1] and (found := _order(names, pairs, metric))
    }
    floor = max((found.bound(1 - alpha) for pairs in _same(duets) if (found := bias(pairs, metric))), default=0.0)
    rejected = holm(np.asarray([found.p_value for found in orders.values()]), alpha)
    winners = {}
    for (names, found), yes in zip(orders.items(), rejected, strict=True):
        if yes and abs(found.effect) > floor:
            first_wins = (found.effect > 0) == (metric == "throughput")  # less CPU is better
            winners[names] = names[0] if first_wins else names[1]
    return winners, len(orders)


def _same(duets: Mapping[Pair, Sequence[DuetPair]]) -> list[Sequence[DuetPair]]:
    return [pairs for names, pairs in duets.items() if names[0] == names[1]]


def _order(names: Pair, pairs: Sequence[DuetPair], metric: Metric) -> Order | None:
    ratios, slots = [], []
    for pair in pairs:
        ratio = pair.log_ratio(names[0], metric)
        if ratio is not None:
            ratios.append(ratio)
            slots.append(1 if pair.first.implementation == names[0] else -1)
    return order(ratios, slots)


def _notes(
    cell: tuple[str, Level], duets: Mapping[Pair, Sequence[DuetPair]], metric: Metric, winners: Mapping[Pair, str]
) -> list[str]:
    title = f"{cell[0]} {cell[1].label}, {'throughput' if metric == 'throughput' else 'CPU per request'}"
    notes = []
    for names, pairs in duets.items():
        if names[0] == names[1]:
            if found := bias(pairs, metric):
                notes.append(
                    f"{title}: duets of {names[0]} with itself differ by {np.expm1(abs(found.effect)):.1%} "
                    f"(slot {np.expm1(abs(found.slot)):.1%}) in {found.pairs} pairs"
                )
        elif names in winners:
            loser = names[1] if winners[names] == names[0] else names[0]
            notes.append(f"{title}: {winners[names]} before {loser} by {len(pairs)} duets (order only, no size)")
    return notes
