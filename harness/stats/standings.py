"""Tables of one quantity: fitted together, then each with estimates, places, rank intervals, tie groups and ratios."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from harness.records.models import Load
from harness.stats import fit, pairs
from harness.stats.fit import Fitted, Means, Prior
from harness.stats.model import Estimate, RankInterval, Ratio, Standing
from harness.stats.values import Cell, Key, Metric, observed

MOST_WIDTH = 300.0  # on logs: what is wider is not known at all
Spot = tuple[str, Load]  # of a table: test type and load


@dataclass(frozen=True)
class Tables:
    """All tables of a run by one metric."""

    metric: Metric
    cells: Mapping[Spot, Mapping[str, Cell]]  # by implementation
    deployments: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, cells: Mapping[Key, Cell], metric: Metric, deployments: Mapping[int, int] | None = None) -> "Tables":
        """Of cells that teach and are compared; others are left out by the caller."""
        found: defaultdict[Spot, dict[str, Cell]] = defaultdict(dict)
        for (name, kind, load), cell in cells.items():
            found[kind, load][name] = cell
        return cls(metric, found, deployments or {})

    def fit(self, rows: Mapping[str, Cell]) -> Fitted:
        """One table."""
        return fit.fit(observed(rows, self.metric, self.deployments))

    @cached_property
    def fits(self) -> Mapping[Spot, Fitted]:
        """Each of them."""
        return {spot: self.fit(rows) for spot, rows in self.cells.items()}

    @cached_property
    def prior(self) -> Prior:
        """What they teach of their variances."""
        return fit.prior(list(self.fits.values()))


@dataclass(frozen=True, kw_only=True)
class Rules:
    """What decides a difference: the error of this look, confidence of intervals, and whom ratios are relative to."""

    alpha: float
    confidence: float
    reference: str | None = None


@dataclass(frozen=True, kw_only=True)
class Standings:
    """By implementation, and the number of pairs that Holm's correction covers."""

    of: Mapping[str, Standing] = field(default_factory=dict)
    comparisons: int = 0


def standings(table: Fitted, known: Prior | None, rules: Rules, *, floor: float = 0.0, higher: bool) -> Standings:
    """Of a fitted table. ``floor``: relative noise of the machine, below which no difference is called one."""
    if not table.names:
        return Standings()
    compared = fit.means(table, known or fit.prior([table]))
    return placed(compared, estimates(table, compared, rules.confidence), rules, floor=floor, higher=higher)


def estimates(table: Fitted, compared: Means, confidence: float) -> list[Estimate]:
    """Medians over processes; their intervals are about the geometric mean, widened where that misses the median."""
    found = []
    for logs, width in zip(table.figures, compared.half_width(confidence).tolist(), strict=True):
        known = logs[~np.isnan(logs)]
        values = np.exp(known)
        middle, center = float(np.median(values)), float(known.mean())
        low = high = None
        if width < MOST_WIDTH:
            low, high = min(math.exp(center - width), middle), max(math.exp(center + width), middle)
        found.append(Estimate(median=middle, low=low, high=high, processes=len(values), values=tuple(values.tolist())))
    return found


def alone(values: Mapping[int, float], confidence: float) -> Estimate:
    """The median of values by process with Student's interval of these alone."""
    table = fit.fit(fit.Observed.of({"": {(process, 0): value for process, value in values.items()}}))
    return estimates(table, fit.means(table, fit.prior([table])), confidence)[0]


def placed(compared: Means, shown: Sequence[Estimate], rules: Rules, *, floor: float, higher: bool) -> Standings:
    """Rows ranked by their shown medians, decided by their means."""
    family = pairs.significant(compared, rules.alpha)
    better = pairs.better(compared, family.differ, floor, higher=higher)
    medians = np.asarray([each.median for each in shown])
    places = pairs.ranks(medians if higher else -medians, better)
    names = list(compared.names)
    to_best = ratios(compared, int(np.argmin(places.position)), rules.confidence)
    to_reference: Sequence[Ratio | None] = [None] * len(names)
    if rules.reference in names:
        to_reference = ratios(compared, names.index(rules.reference), rules.confidence)
    columns = (each.tolist() for each in (places.position, places.low, places.high, places.tie_group))
    return Standings(
        of={
            name: Standing(
                estimate=estimate, position=position, rank=RankInterval(low=low, high=high), tie_group=group,
                to_reference=reference, to_best=best,
            )
            for name, estimate, position, low, high, group, reference, best in zip(
                names, shown, *columns, to_reference, to_best, strict=True
            )
        },
        comparisons=family.size,
    )  # fmt: skip


def ratios(compared: Means, to: int, confidence: float) -> list[Ratio]:
    """Every row over this one; itself is 1."""
    rows = np.arange(len(compared.mean))
    found = pairs.differences(compared, compared, rows, np.full_like(rows, to))
    half = found.half_width(confidence)
    half[to] = 0.0
    return as_ratios(found.value, half)


def as_ratios(value: fit.Matrix, half: fit.Matrix) -> list[Ratio]:
    """From logarithms and their half-widths."""
    width = np.where(half < MOST_WIDTH, half, np.nan)
    columns = (np.exp(each).tolist() for each in (value, value - width, value + width))
    return [Ratio(value=v, low=finite(low), high=finite(high)) for v, low, high in zip(*columns, strict=True)]


def finite(value: float) -> float | None:
    """None for what is no number."""
    return value if math.isfinite(value) else None
