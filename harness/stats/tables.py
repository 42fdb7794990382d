"""One table of the ranking: its rows ordered, with intervals, rank intervals, tie groups and words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from harness.records.models import Load
from harness.stats import estimates, metric, nested, pairs
from harness.stats.basis import Comparable
from harness.stats.metric import MetricRows
from harness.stats.model import (
    Comparability,
    Estimate,
    Interval,
    LogMean,
    Processes,
    RankInterval,
    Ratio,
    Row,
    Standing,
    Table,
)
from harness.stats.moderation import UNLEARNED, Prior
from harness.stats.picture import comparison_intervals
from harness.stats.ranks import ranks
from harness.stats.values import CellValues, log_matrix


@dataclass(frozen=True, kw_only=True)
class Rules:
    """What decides a difference: error per look, confidence of intervals, reference and noise floors (relative)."""

    alpha: float
    confidence: float
    reference: str | None
    throughput_floor: float = 0.0
    cpu_floor: float = 0.0
    throughput_prior: Prior = UNLEARNED  # of the run's variances, learned from all of its tables
    cpu_prior: Prior = UNLEARNED
    set_of: Mapping[int, int] = field(default_factory=dict)  # block -> set of machines; empty: there is one


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One implementation of a table: its cell, or the reason why it has none that can be ranked."""

    implementation: str
    level: Load | None
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
    comparability: Comparability | None


NOTHING = Standings(of={}, comparisons=0, comparability=None)


def table(
    test_type: str, level: Load | None, entries: Sequence[Entry], rules: Rules, duets: Sequence[Decided] = ({}, {})
) -> Table:
    """The table of a test type at a level; ``level`` None where each implementation is shown at its best one.

    ``duets`` are the orders that duets decided: by throughput and by CPU per request.
    """
    ranked = [(entry, entry.cell) for entry in entries if entry.cell is not None and not entry.reason]
    throughput = standings(
        metric.throughput([(entry.implementation, cell) for entry, cell in ranked]),
        rules,
        prior=rules.throughput_prior,
        floor=rules.throughput_floor,
        higher=True,
        duets=duets[0],
    )
    cpu = standings(
        metric.cpu_per_request([(entry.implementation, cell) for entry, cell in ranked]),
        rules,
        prior=rules.cpu_prior,
        floor=rules.cpu_floor,
        higher=False,
        duets=duets[1],
    )
    rows = [_row(entry, throughput, cpu) for entry in entries]
    last = len(rows) + 1  # not inside the key: a list is empty while it is being sorted
    rows.sort(key=lambda row: (row.throughput.position if row.throughput else last, row.implementation))
    return Table(
        test_type=test_type,
        level=level,
        rows=tuple(rows),
        comparisons=throughput.comparisons,
        throughput_comparability=throughput.comparability,
        cpu_comparability=cpu.comparability,
    )


def _row(entry: Entry, throughput: Standings, cpu: Standings) -> Row:
    cell = entry.cell
    ranked = cell is not None and not entry.reason
    return Row(
        implementation=entry.implementation,
        level=entry.level,
        throughput=throughput.of.get(entry.implementation),
        cpu_per_request=cpu.of.get(entry.implementation),
        rss_peak=cell.rss_peak if cell else None,
        response_time=cell.response_time if cell else None,
        throughput_per_memory=cell.throughput_per_memory if cell else None,
        threads=cell.threads if cell else None,
        first_answer=entry.first_answer,
        errors=cell.errors if cell else 0,
        words=(cell.words if cell else ()) + entry.extra_words,
        ranked=ranked,
        reason=entry.reason,
        samples=cell.samples if cell else 0,
        dropped=cell.dropped if cell else 0,
    )


def standings(
    rows: MetricRows,
    rules: Rules,
    *,
    prior: Prior,
    floor: float,
    higher: bool,
    duets: Decided,
) -> Standings:
    """Estimates, places, rank intervals, tie groups and ratios of one metric; values in the order of the blocks."""
    values = rows.values
    if not values:
        return NOTHING
    names = list(values)
    logs = log_matrix(list(values.values()))
    stats = estimates.moments(logs)
    compared, components = metric.comparable(rows, prior)
    family = pairs.significant(compared, rules.alpha)
    better = pairs.better(compared, family.rejected, floor, higher)
    _apply_duets(better, names, duets)
    places = ranks(stats.median if higher else -stats.median, better)
    low, high = (
        compared.means.intervals(rules.confidence, stats.median)
        if rows.in_turns
        else estimates.intervals(stats, rules.confidence)
    )
    best = int(np.argmin(places.position))
    to_best = _ratios(compared, best, rules.confidence, family.level)
    reference = names.index(rules.reference) if rules.reference in names else None
    to_reference = None if reference is None else _ratios(compared, reference, rules.confidence, family.level)
    medians, counts = stats.median.tolist(), stats.count.tolist()
    lows, highs = estimates.finites(low), estimates.finites(high)
    position, group = places.position.tolist(), places.tie_group.tolist()
    rank_low, rank_high = places.low.tolist(), places.high.tolist()
    log_means = _log_means(compared)
    drawn = _drawn(compared, better, family.level, medians)
    return Standings(
        of={
            name: Standing(
                estimate=Estimate(
                    median=medians[i],
                    low=lows[i],
                    high=highs[i],
                    replicates=int(counts[i]),
                    values=tuple(values[name].values()),
                    blocks=tuple(values[name]),
                ),
                position=position[i],
                rank=RankInterval(low=rank_low[i], high=rank_high[i]),
                tie_group=group[i],
                to_reference=None if to_reference is None else to_reference[i],
                to_best=to_best[i],
                log_mean=log_means[i],
                comparison=drawn[i],
                components=_components(components.get(name)),
            )
            for i, name in enumerate(names)
        },
        comparisons=family.size,
        comparability=_comparability(compared, family.level),
    )


WHY_NOT = {
    "paired": "by differences within blocks: too few implementations, or too unlike, to share variances",
    "welch": "by each one's own variance: too few implementations, or too unlike, to share them",
}


def _comparability(table: Comparable, level: float) -> Comparability:
    freedom = table.prior.freedom
    text = table.how or WHY_NOT.get(table.basis, "")
    if table.basis == "moderated" and not table.how:
        worth = "as if all were the same" if np.isinf(freedom) else f"worth {freedom:.1f} degrees of freedom"
        removed = ", block effects removed" if table.blocks_removed else ""
        text = f"by variances moderated by those of the run's other cells ({worth}){removed}"
    return Comparability(
        basis=table.basis,
        prior_freedom=estimates.finite(freedom) if table.basis == "moderated" and table.prior.usable else None,
        pair_level=level,
        text=text,
    )


def _components(found: nested.Components | None) -> Processes | None:
    return (
        None
        if found is None
        else Processes(
            processes=found.processes,
            windows=found.windows,
            within=found.within,
            between=found.between,
            text=nested.ONE_PROCESS if found.scope == "process" else "",
        )
    )


def _log_means(table: Comparable) -> list[LogMean]:
    means = table.means
    freedom = np.where(np.isfinite(means.squared_error) & (means.freedom > 0), means.freedom, np.nan)
    columns = means.mean.tolist(), estimates.finites(means.squared_error), estimates.finites(freedom)
    return [LogMean(mean=mean, squared_error=error, freedom=free) for mean, error, free in zip(*columns, strict=True)]


def _drawn(table: Comparable, better: pairs.Decisions, level: float, medians: Sequence[float]) -> list[Interval | None]:
    """Comparison intervals, widened where they miss the median that the row shows."""
    if len(medians) < MINIMUM_TO_COMPARE:
        return [None] * len(medians)
    low, high = (np.exp(bound).tolist() for bound in comparison_intervals(table, better, level))
    return [Interval(low=min(a, middle), high=max(b, middle)) for a, b, middle in zip(low, high, medians, strict=True)]


MINIMUM_TO_COMPARE = 2


def _ratios(table: Comparable, index: int, confidence: float, level: float) -> list[Ratio]:
    """Every row over this one, one record a row, from vectors: tables of a thousand rows have many. Itself is 1."""
    contrasts = table.against(index)
    columns = [np.exp(contrasts.difference)]
    for wanted in (confidence, 1 - level):
        half = contrasts.half_width(wanted)
        columns += [np.exp(contrasts.difference - half), np.exp(contrasts.difference + half)]
    for column in columns:
        column[index] = 1.0
    values, *bounds = columns[0].tolist(), *(estimates.finites(column) for column in columns[1:])
    return [
        Ratio(value=value, low=low, high=high, simultaneous_low=least, simultaneous_high=most)
        for value, low, high, least, most in zip(values, *bounds, strict=True)
    ]


def _apply_duets(better: pairs.Decisions, names: Sequence[str], duets: Decided) -> None:
    """Order the pairs that the blocks leave tied and duets decided. Duets never overturn what blocks decide."""
    index = {name: position for position, name in enumerate(names)}
    for (one, other), winner in duets.items():
        if one not in index or other not in index:
            continue
        first, second = (one, other) if winner == one else (other, one)
        if not better[index[second], index[first]]:
            better[index[first], index[second]] = True
