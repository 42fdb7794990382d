"""One table of the ranking: its rows ordered, with intervals, rank intervals, tie groups and words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from harness.rank import estimates, pairs
from harness.rank.model import Estimate, RankInterval, Ratio, Row, Standing, Table
from harness.rank.ranks import ranks
from harness.rank.values import CellValues, log_matrix
from harness.results.records import Level


@dataclass(frozen=True, kw_only=True)
class Rules:
    """What decides a difference: error per look, confidence of intervals, reference and noise floors (relative)."""

    alpha: float
    confidence: float
    reference: str | None
    throughput_floor: float = 0.0
    cpu_floor: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One implementation of a table: its cell, or the reason why it has none that can be ranked."""

    implementation: str
    level: Level | None
    cell: CellValues | None
    reason: str = ""  # empty: ranked
    first_answer: float | None = None
    extra_words: tuple[str, ...] = ()


Decided = Mapping[tuple[str, str], str]  # pair of implementations -> the better one, from duets


@dataclass(frozen=True, kw_only=True)
class Standings:
    """One metric of a table."""

    of: Mapping[str, Standing]
    comparisons: int


NOTHING = Standings(of={}, comparisons=0)


def table(
    test_type: str, level: Level | None, entries: Sequence[Entry], rules: Rules, duets: Sequence[Decided] = ({}, {})
) -> Table:
    """The table of a test type at a level; ``level`` None where each implementation is shown at its best one.

    ``duets`` are the orders that duets decided: by throughput and by CPU per request.
    """
    ranked = [(entry, entry.cell) for entry in entries if entry.cell is not None and not entry.reason]
    throughput = standings(
        {entry.implementation: cell.throughput for entry, cell in ranked},
        rules,
        floor=rules.throughput_floor,
        higher=True,
        duets=duets[0],
    )
    cpu = standings(
        {entry.implementation: cell.cpu_per_request for entry, cell in ranked if cell.cpu_per_request},
        rules,
        floor=rules.cpu_floor,
        higher=False,
        duets=duets[1],
    )
    rows = [_row(entry, throughput, cpu) for entry in entries]
    last = len(rows) + 1  # not inside the key: a list is empty while it is being sorted
    rows.sort(key=lambda row: (row.throughput.position if row.throughput else last, row.implementation))
    return Table(test_type=test_type, level=level, rows=tuple(rows), comparisons=throughput.comparisons)


def _row(entry: Entry, throughput: Standings, cpu: Standings) -> Row:
    cell = entry.cell
    ranked = cell is not None and not entry.reason
    return Row(
        implementation=entry.implementation,
        level=entry.level,
        throughput=throughput.of.get(entry.implementation),
        cpu_per_request=cpu.of.get(entry.implementation),
        rss_peak=cell.rss_peak if cell else None,
        first_answer=entry.first_answer,
        errors=cell.errors if cell else 0,
        words=(cell.words if cell else ()) + entry.extra_words,
        ranked=ranked,
        reason=entry.reason,
        samples=cell.samples if cell else 0,
        dropped=cell.dropped if cell else 0,
    )


def standings(
    values: Mapping[str, Mapping[int, float]], rules: Rules, *, floor: float, higher: bool, duets: Decided
) -> Standings:
    """Estimates, places, rank intervals, tie groups and ratios of one metric; ``values`` in the order of the blocks."""
    if not values:
        return NOTHING
    names = list(values)
    logs = log_matrix(list(values.values()))
    stats = estimates.moments(logs)
    paired = estimates.pairs_by_block(logs)
    family = pairs.significant(logs, rules.alpha, paired)
    better = pairs.better(logs, family.rejected, floor, higher)
    _apply_duets(better, names, duets)
    places = ranks(stats.median if higher else -stats.median, better)
    low, high = estimates.intervals(stats, rules.confidence)
    best = int(np.argmin(places.position))
    to_best = _ratios(estimates.ratios(logs, stats, best, paired, rules.confidence))
    medians, counts = stats.median.tolist(), stats.count.tolist()
    lows, highs = estimates.finites(low), estimates.finites(high)
    position, group = places.position.tolist(), places.tie_group.tolist()
    rank_low, rank_high = places.low.tolist(), places.high.tolist()
    reference = names.index(rules.reference) if rules.reference in names else None
    to_reference = (
        None if reference is None else _ratios(estimates.ratios(logs, stats, reference, paired, rules.confidence))
    )
    return Standings(
        of={
            name: Standing(
                estimate=Estimate(
                    median=medians[i],
                    low=lows[i],
                    high=highs[i],
                    replicates=int(counts[i]),
                    values=tuple(values[name].values()),
                ),
                position=position[i],
                rank=RankInterval(low=rank_low[i], high=rank_high[i]),
                tie_group=group[i],
                to_reference=None if to_reference is None else to_reference[i],
                to_best=to_best[i],
            )
            for i, name in enumerate(names)
        },
        comparisons=family.size,
    )


def _ratios(ratios: estimates.Ratios) -> list[Ratio]:
    """One record a row, from vectors: tables of a thousand rows have many."""
    columns = ratios.value.tolist(), estimates.finites(ratios.low), estimates.finites(ratios.high)
    return [Ratio(value=value, low=low, high=high) for value, low, high in zip(*columns, strict=True)]


def _apply_duets(better: pairs.Decisions, names: Sequence[str], duets: Decided) -> None:
    """Order the pairs that the blocks leave tied and duets decided. Duets never overturn what blocks decide."""
    index = {name: position for position, name in enumerate(names)}
    for (one, other), winner in duets.items():
        if one not in index or other not in index:
            continue
        first, second = (one, other) if winner == one else (other, one)
        if not better[index[second], index[first]]:
            better[index[first], index[second]] = True
