"""All tables of a run by one metric: fitted together, then each with estimates, places, rank intervals and ratios."""

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import geometric_mean
from typing import TypeVar

import numpy as np

from harness.stats import fit, pairs
from harness.stats.fit import CONFIDENCE, MOST_WIDTH, Fitted, Means, Place, Prior
from harness.stats.model import Estimate, GoalRow, OrderRow, RankInterval, Ratio, Row, Standing
from harness.stats.values import Cell, Key, Metric, shown
from harness.stats.variances import Matrix

ONLY = ""  # the table of a metric that has one
AnyRow = TypeVar("AnyRow", Row, GoalRow, OrderRow)
Values = Mapping[str, Mapping[Place, float]]  # of a table: by row, by process and round


@dataclass(frozen=True)
class Tables:
    """Positive values of every table; what all of them teach of variances holds for each."""

    values: Mapping[Hashable, Values]
    deployments: Mapping[int, int] = field(default_factory=dict)  # process -> deployment of a merged run: the unit then

    @classmethod
    def of(cls, cells: Mapping[Key, Cell], metric: Metric, deployments: Mapping[int, int] | None = None) -> "Tables":
        """A table for each test type and load; cells that neither teach nor are compared are left out by the caller."""
        found: defaultdict[Hashable, dict[str, Mapping[Place, float]]] = defaultdict(dict)
        for (name, kind, load), cell in cells.items():
            found[kind, load][name] = cell.values(metric)
        return cls(found, deployments or {})

    @cached_property
    def fits(self) -> Mapping[Hashable, Fitted]:
        """Each table before its run's variances are known."""
        return {spot: self.fit(rows) for spot, rows in self.values.items()}

    @cached_property
    def prior(self) -> Prior:
        """What they teach of their variances."""
        return fit.prior(list(self.fits.values()))

    def fit(self, rows: Values) -> Fitted:
        """A further table, which teaches nothing."""
        if not self.deployments:
            return fit.of_values(rows)
        most = 1 + max((number for own in rows.values() for _, number in own), default=0)
        moved = {
            name: {
                (self.deployments[process], process * most + number): value
                for (process, number), value in own.items()
                if process in self.deployments
            }
            for name, own in rows.items()
        }
        return fit.of_values(moved, merged=True)

    def means(self, spot: Hashable = ONLY) -> Means:
        """The rows of a table, ready to be compared."""
        return fit.means(self.fits[spot], self.prior)

    def ratio(self, a: str, b: str, confidence: float, table: Hashable | Fitted = ONLY) -> Ratio | None:
        """Row ``a`` over row ``b`` of a table, or of a further one; None where one has no figure."""
        fitted = table if isinstance(table, Fitted) else self.fits.get(table)
        if fitted is None or a not in fitted.names or b not in fitted.names:
            return None
        compared = fit.means(fitted, self.prior)
        one, other = (np.asarray([list(fitted.names).index(name)]) for name in (a, b))
        return pairs.differences(compared, compared, one, other).ratios(confidence)[0]

    def standings(
        self, reference: str | None, table: Fitted | None = None, *,
        alpha: float = 1 - CONFIDENCE, floor: float = 0.0, higher: bool,
    ) -> dict[str, Standing]:  # fmt: skip
        """By row of the only table or another one.

        ``alpha``: the error of all its decisions; below ``floor``, the machine's relative noise, no pair differs.
        """
        table = table or self.fits[ONLY]
        compared = fit.means(table, self.prior)
        return placed(compared, estimates(table, compared), reference, alpha, floor, higher=higher)


def estimates(table: Fitted, compared: Means) -> list[Estimate]:
    """Of each row over its processes."""
    widths = fit.as_shown(table, compared).half_width().tolist()
    return [estimate(own[~np.isnan(own)], width) for own, width in zip(table.figures, widths, strict=True)]


def alone(values: Mapping[int, float]) -> Estimate:
    """The median of values by process with Student's interval of these alone."""
    logs = np.log(list(values.values()))
    own = fit.additive(logs[None], columns=False)
    return estimate(logs, float(fit.half_width(own.variance * own.leverage, own.freedom, CONFIDENCE)[0]))


def estimate(logs: Matrix, width: float) -> Estimate:
    """The median over processes; its interval is about the geometric mean, widened where that misses the median."""
    values, center = np.exp(logs), float(logs.mean())
    middle, low, high = float(np.median(values)), None, None
    if width < MOST_WIDTH:
        low, high = min(math.exp(center - width), middle), max(math.exp(center + width), middle)
    return Estimate(median=middle, low=low, high=high, processes=len(values), values=tuple(values.tolist()))


def percentiles(
    loads: Iterable[tuple[int, Mapping[str, float], int]], points: Collection[str] | None = None
) -> dict[str, Estimate]:
    """Over processes, of loads as (process, percentiles, answers): all or those ``points``.

    One that all loads of a process were too short for would be that of the others: it is left out.
    """
    values: defaultdict[str, defaultdict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    processes = set()
    for process, found, answers in loads:
        processes.add(process)
        for point, seconds in found.items():
            if seconds > 0 and (points is None or point in points) and shown(point, answers):
                values[point][process].append(seconds)
    return {
        point: alone({process: geometric_mean(each) for process, each in own.items()})
        for point, own in values.items()
        if len(own) == len(processes)
    }


def best_first(rows: Iterable[AnyRow], standing: Callable[[AnyRow], Standing | None]) -> tuple[AnyRow, ...]:
    """Ranked rows by their place, then the others by name."""

    def place(row: AnyRow) -> tuple[bool, int, str]:
        own = standing(row)
        return own is None, own.position if own else 0, row.implementation

    return tuple(sorted(rows, key=place))


def placed(
    compared: Means, shown: Sequence[Estimate], reference: str | None, alpha: float, floor: float, *, higher: bool
) -> dict[str, Standing]:
    """Rows ranked by their shown medians, decided by their means."""
    names = list(compared.names)
    if not names:
        return {}
    places = list(pairs.ranks(compared, np.asarray([each.median for each in shown]), alpha, floor, higher=higher))
    to_best = ratios_to(compared, names[places.index(min(places))])
    to_reference: Sequence[Ratio | None] = [None] * len(names)
    if reference in names:
        to_reference = ratios_to(compared, reference)
    return {
        name: Standing(
            estimate=estimate, position=position, rank=RankInterval(low=low, high=high), tie_group=group,
            to_reference=of_reference, to_best=best,
        )
        for name, estimate, (position, low, high, group), of_reference, best in zip(
            names, shown, places, to_reference, to_best, strict=True
        )
    }  # fmt: skip


def ratios_to(compared: Means, name: str) -> Sequence[Ratio]:
    """Every row over this one; itself is 1."""
    rows, to = np.arange(len(compared.mean)), list(compared.names).index(name)
    found = pairs.differences(compared, compared, rows, np.full_like(rows, to)).ratios()
    found[to] = Ratio(value=1.0, low=1.0, high=1.0)
    return found
