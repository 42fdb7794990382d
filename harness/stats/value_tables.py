"""Fits a metric's tables, with variances moderated by a prior from all tables of the run, and ranks each table."""

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import geometric_mean
from typing import TypeVar

import numpy as np

from harness.records.run_info import RunInfo
from harness.stats import moderation, pairs
from harness.stats.cell_values import (
    CellKey,
    CellTrials,
    Metric,
    deployment_by_process,
    has_enough_requests,
    joining_baseline,
)
from harness.stats.moderation import CONFIDENCE, MAX_HALF_WIDTH, Prior, RowMeans, moderated_means
from harness.stats.ranking_model import Estimate, GoalRow, RankInterval, Ratio, Row, ScenarioRow, Standing
from harness.stats.table_fit import Position, TableFit, fit_additive, fit_values
from harness.stats.variances import FloatArray

SINGLE_TABLE = ""  # key of a metric's only table
AnyRow = TypeVar("AnyRow", Row, GoalRow, ScenarioRow)
TableValues = Mapping[str, Mapping[Position, float]]  # row name -> (process, round) -> value


@dataclass(frozen=True)
class ValueTables:
    """The tables of a metric in a run. A prior, estimated from all tables, moderates each table's variances."""

    values: Mapping[Hashable, TableValues]  # table key -> positive values
    deployments: Mapping[int, int] = field(default_factory=dict)  # process -> deployment, for a merged run
    baseline: str | None = None  # the row that connects joined parts

    @classmethod
    def of_run(cls, values: Mapping[Hashable, TableValues], info: RunInfo) -> "ValueTables":
        """Create the tables of a run, which may be merged from several runs."""
        return cls(values, deployment_by_process(info), joining_baseline(info))

    @classmethod
    def of(cls, cells: Mapping[CellKey, CellTrials], metric: Metric, info: RunInfo | None = None) -> "ValueTables":
        """Group cells into a table per test type and load."""
        by_table: defaultdict[Hashable, dict[str, Mapping[Position, float]]] = defaultdict(dict)
        for (name, kind, load), cell in cells.items():
            by_table[kind, load][name] = cell.values(metric)
        return cls.of_run(by_table, info) if info else cls(by_table)

    @cached_property
    def fits(self) -> Mapping[Hashable, TableFit]:
        """The fit of each table, before variances are moderated."""
        return {key: self.fit(rows) for key, rows in self.values.items()}

    @cached_property
    def prior(self) -> Prior:
        """The prior for variances, estimated from all tables."""
        return moderation.estimate_prior(list(self.fits.values()))

    def fit(self, rows: TableValues) -> TableFit:
        """Fit a table. Only the tables in ``values`` contribute to the prior.

        In joined parts, omit rows that no process connects to the baseline, because machines differ.
        """
        if not self.deployments:
            return fit_values(rows)
        if self.baseline:
            connected = connected_rows(rows, self.baseline)
            rows = {name: own for name, own in rows.items() if name in connected}
        rounds_per_process = 1 + max((number for own in rows.values() for _, number in own), default=0)
        by_deployment = {
            name: {
                (self.deployments[process], process * rounds_per_process + number): value
                for (process, number), value in own.items()
                if process in self.deployments
            }
            for name, own in rows.items()
        }
        return fit_values(by_deployment, merged="parts" if self.baseline else "deployments")

    def means(self, key: Hashable = SINGLE_TABLE) -> RowMeans:
        """Return the moderated means of a table's rows."""
        return moderated_means(self.fits[key], self.prior)

    def ratio(self, a: str, b: str, confidence: float, table: Hashable | TableFit = SINGLE_TABLE) -> Ratio | None:
        """Return the ratio of row ``a`` to row ``b`` in a table, or None if the table does not contain both rows."""
        fitted = table if isinstance(table, TableFit) else self.fits.get(table)
        if fitted is None or a not in fitted.names or b not in fitted.names:
            return None
        compared = moderated_means(fitted, self.prior)
        row_a, row_b = (np.asarray([list(fitted.names).index(name)]) for name in (a, b))
        return pairs.differences(compared, compared, row_a, row_b).ratios(confidence)[0]

    def standings(
        self, reference: str | None, table: TableFit | None = None, *,
        alpha: float = 1 - CONFIDENCE, floor: float = 0.0, higher_is_better: bool,
    ) -> dict[str, Standing]:  # fmt: skip
        """Rank the rows of ``table`` (default: the only table), with ratios to ``reference``.

        ``alpha`` is the family-wise error of all decisions. Rows tie if their relative difference is below ``floor``.
        """
        table = table or self.fits[SINGLE_TABLE]
        compared = moderated_means(table, self.prior)
        return rank_rows(
            compared, estimate_rows(table, compared), reference, alpha, floor, higher_is_better=higher_is_better
        )


def connected_rows(rows: Mapping[str, Collection[Position]], baseline: str) -> set[str]:
    """Return the baseline and the rows that share a process with it, directly or through other rows."""
    processes = {name: {process for process, _ in own} for name, own in rows.items()}
    found, before = {baseline}, 0
    while len(found) > before:
        before = len(found)
        reached = set[int]().union(*(processes.get(name, ()) for name in found))
        found |= {name for name, own in processes.items() if own & reached}
    return found


def estimate_rows(table: TableFit, compared: RowMeans) -> list[Estimate]:
    """Return each row's median over processes, with an interval for absolute values rather than for ratios."""
    widths = moderation.standalone_means(table, compared).half_width().tolist()
    return [estimate_from_logs(own[~np.isnan(own)], width) for own, width in zip(table.displayed, widths, strict=True)]


def estimate_from_processes(values: Mapping[int, float]) -> Estimate:
    """Return the median of positive values, with a Student interval computed only from these values."""
    logs = np.log(list(values.values()))
    own = fit_additive(logs[None], columns=False)
    half_width = moderation.student_half_width(own.variance * own.leverage, own.df, CONFIDENCE)
    return estimate_from_logs(logs, float(half_width[0]))


def estimate_from_logs(logs: FloatArray, width: float) -> Estimate:
    """Return the median over processes, with an interval (half-width ``width``) around the mean of their logs.

    If the interval does not contain the median, it is extended to the median.
    """
    values, center = np.exp(logs), float(logs.mean())
    middle, low, high = float(np.median(values)), None, None
    if width < MAX_HALF_WIDTH:
        low, high = min(math.exp(center - width), middle), max(math.exp(center + width), middle)
    return Estimate(median=middle, low=low, high=high, processes=len(values), values=tuple(values.tolist()))


def estimate_percentiles(
    loads: Iterable[tuple[int, Mapping[str, float], int]], points: Collection[str] | None = None
) -> dict[str, Estimate]:
    """Return the median over processes, and its interval, for each latency percentile.

    A percentile is omitted if any process lacks a trial with enough responses for this percentile.

    Args:
        loads: One tuple per trial: (process number, {percentile such as "99": seconds}, number of responses).
        points: Percentiles to return; None for all.
    """
    values: defaultdict[str, defaultdict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    processes = set()
    for process, of_load, responses in loads:
        processes.add(process)
        for point, seconds in of_load.items():
            if seconds > 0 and (points is None or point in points) and has_enough_requests(point, responses):
                values[point][process].append(seconds)
    return {
        point: estimate_from_processes({process: geometric_mean(each) for process, each in own.items()})
        for point, own in values.items()
        if len(own) == len(processes)
    }


def sort_rows(rows: Iterable[AnyRow], standing: Callable[[AnyRow], Standing | None]) -> tuple[AnyRow, ...]:
    """Return the rows with a standing, sorted by position, followed by the other rows, sorted by name."""

    def sort_key(row: AnyRow) -> tuple[bool, int, str]:
        own = standing(row)
        return own is None, own.position if own else 0, row.implementation

    return tuple(sorted(rows, key=sort_key))


def rank_rows(
    compared: RowMeans,
    estimates: Sequence[Estimate],
    reference: str | None,
    alpha: float,
    floor: float,
    *,
    higher_is_better: bool,
) -> dict[str, Standing]:
    """Return the standing of each row. The displayed medians determine the order; the means decide which rows differ.

    ``alpha`` is the family-wise error of all decisions. ``floor`` is the relative noise of the machine.
    """
    names = list(compared.names)
    if not names:
        return {}
    ranks = list(
        pairs.ranks(
            compared, np.asarray([each.median for each in estimates]), alpha, floor, higher_is_better=higher_is_better
        )
    )
    to_best = ratios_to_row(compared, names[ranks.index(min(ranks))])
    to_reference: Sequence[Ratio | None] = [None] * len(names)
    if reference in names:
        to_reference = ratios_to_row(compared, reference)
    return {
        name: Standing(
            estimate=estimate, position=position, rank=RankInterval(low=low, high=high), tie_group=group,
            to_reference=of_reference, to_best=best,
        )
        for name, estimate, (position, low, high, group), of_reference, best in zip(
            names, estimates, ranks, to_reference, to_best, strict=True
        )
    }  # fmt: skip


def ratios_to_row(compared: RowMeans, name: str) -> Sequence[Ratio]:
    """Return the ratio of each row to the named row. The ratio of the named row to itself is exactly 1."""
    rows, to = np.arange(len(compared.mean)), list(compared.names).index(name)
    ratios = pairs.differences(compared, compared, rows, np.full_like(rows, to)).ratios()
    ratios[to] = Ratio(value=1.0, low=1.0, high=1.0)
    return ratios
