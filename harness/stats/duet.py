"""Order of two implementations from duets: measured at the same moment on the same CPUs, slots swapped each pair.

What disturbs one disturbs the other, so the difference needs seconds where separate windows need minutes. They compete
for the CPUs, so its size shrinks (a true 10 % read as 4 to 7 %): duets order neighbours and never give sizes.

The unit is the start of two fresh servers, not the pair of windows: the pairs of one start share the luck of its
processes, and say how these two processes compare, not the implementations.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from scipy import special

from harness.records.models import Load, Sample
from harness.stats.estimates import t_quantile
from harness.stats.pairs import holm

Metric = Literal["throughput", "cpu_per_request"]
Pair = tuple[str, str]
ERROR_SHARE = 0.5  # of a run with duets: they test some pairs of the blocks again, so both share the error
MINIMUM_STARTS = 3  # of both servers; fewer leave no error to judge by


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
    slot: float  # log ratio of slot 0 over slot 1
    starts: int
    pairs: int

    @property
    def freedom(self) -> int:
        """Degrees of freedom."""
        return self.starts - 1

    @property
    def p_value(self) -> float:
        """Two-sided p of no difference."""
        if self.error == 0:
            return 0.0 if self.effect else 1.0
        return float(2 * special.stdtr(self.freedom, -abs(self.effect) / self.error))

    def bound(self, confidence: float) -> float:
        """Largest absolute log ratio that the data does not exclude."""
        return abs(self.effect) + float(t_quantile(confidence, float(self.freedom))) * self.error


def match(samples: Sequence[Sample]) -> dict[tuple[str, Load, Pair], list[DuetPair]]:
    """Pairs of duet samples by test type, level and sorted names; both must have passed their gates.

    ``block`` numbers the starts. Partners are matched within one by the order in which their loads began; the earlier
    one of a pair is in slot 0.
    """
    groups: defaultdict[tuple[str, Load, Pair, int], list[Sample]] = defaultdict(list)
    for sample in samples:
        if sample.duet_partner is not None:
            one, other = sorted((sample.implementation, sample.duet_partner))
            groups[sample.test_type, sample.level, (one, other), sample.block].append(sample)
    found: defaultdict[tuple[str, Load, Pair], list[DuetPair]] = defaultdict(list)
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


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One pair as the analysis sees it: the log ratio of the first name over the second, and who was in slot 0."""

    start: int
    ratio: float
    in_slot_0: bool  # the first name was


def order(turns: Sequence[Turn]) -> Order | None:
    """Effect of the implementation apart from that of the slot; None without enough starts with both slot orders.

    A start's effect is the mean of its two slot orders, so that the slot cancels; Student's t over starts.
    """
    by_start: defaultdict[int, tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
    for turn in turns:
        by_start[turn.start][0 if turn.in_slot_0 else 1].append(turn.ratio)
    swapped = [
        (float(np.mean(ahead)), float(np.mean(behind))) for ahead, behind in by_start.values() if ahead and behind
    ]
    if len(swapped) < MINIMUM_STARTS:
        return None
    values = np.asarray(swapped)
    effects = values.mean(axis=1)
    return Order(
        effect=float(effects.mean()),
        error=float(effects.std(ddof=1) / np.sqrt(len(effects))),
        slot=float((values[:, 0] - values[:, 1]).mean() / 2),
        starts=len(effects),
        pairs=len(turns),
    )


def turns(pairs: Sequence[DuetPair], of: str, metric: Metric) -> list[Turn]:
    """The pairs as ratios of ``of`` over its partner; a pair without the figure is left out."""
    return [
        Turn(start=pair.first.block, ratio=ratio, in_slot_0=pair.first.implementation == of)
        for pair in pairs
        if (ratio := pair.log_ratio(of, metric)) is not None
    ]


def bias(pairs: Sequence[DuetPair], metric: Metric) -> Order | None:
    """What duets of an implementation with itself show, taken as those of two names are.

    Of the two copies, the first one is started first, and has slot 0 first, in even starts; in odd ones the other is.
    """
    seen: Counter[int] = Counter()
    found = []
    for pair in pairs:
        start = pair.first.block
        in_slot_0 = (seen[start] + start) % 2 == 0
        seen[start] += 1
        ratio = pair.log_ratio(pair.first.implementation, metric)
        if ratio is not None:
            found.append(Turn(start=start, ratio=ratio if in_slot_0 else -ratio, in_slot_0=in_slot_0))
    return order(found)


@dataclass(frozen=True, kw_only=True)
class Decisions:
    """What the duets of a run decide, by test type and level, and what to say of it."""

    throughput: Mapping[tuple[str, Load], Mapping[Pair, str]] = field(default_factory=dict)
    cpu_per_request: Mapping[tuple[str, Load], Mapping[Pair, str]] = field(default_factory=dict)
    tested: int = 0
    notes: tuple[str, ...] = ()

    def at(self, test_type: str, level: Load | None) -> tuple[Mapping[Pair, str], Mapping[Pair, str]]:
        """Winners of the decided pairs of a table, by throughput and by CPU per request."""
        if level is None:
            return {}, {}
        return self.throughput.get((test_type, level), {}), self.cpu_per_request.get((test_type, level), {})


def decide_all(samples: Sequence[Sample], *, alpha: float) -> Decisions:
    """Decide the order of every pair that was measured in duets, at a family-wise error of ``alpha`` a table."""
    matched = match(samples)
    decided: dict[Metric, dict[tuple[str, Load], dict[Pair, str]]] = {"throughput": {}, "cpu_per_request": {}}
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
        if names[0] != names[1] and (found := order(turns(pairs, names[0], metric)))
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


def _notes(
    cell: tuple[str, Load], duets: Mapping[Pair, Sequence[DuetPair]], metric: Metric, winners: Mapping[Pair, str]
) -> list[str]:
    title = f"{cell[0]} {cell[1].label}, {'throughput' if metric == 'throughput' else 'CPU per request'}"
    notes = []
    for names, pairs in duets.items():
        if names[0] == names[1]:
            if found := bias(pairs, metric):
                notes.append(
                    f"{title}: duets of {names[0]} with itself differ by {np.expm1(abs(found.effect)):.1%} "
                    f"(slot {np.expm1(abs(found.slot)):.1%}) in {found.starts} starts"
                )
        elif names in winners:
            loser = names[1] if winners[names] == names[0] else names[0]
            notes.append(f"{title}: {winners[names]} before {loser} by {len(pairs)} duets (order only, no size)")
        elif order(turns(pairs, names[0], metric)) is None:
            notes.append(f"{title}: too few starts of {names[0]} and {names[1]} in duets to order them")
    return notes
