"""All pairs of a table at once: which differences are significant after Holm's correction.

A thousand implementations are half a million pairs a table, so there is no loop over pairs: the t statistics are made
in slices, and exact p-values are computed only where two bounds of the critical value leave it open.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import special

from harness.stats import contrasts
from harness.stats.basis import Comparable
from harness.stats.contrasts import Means
from harness.stats.values import Matrix

Decisions = NDArray[np.bool_]
Places = NDArray[np.intp]


@dataclass(frozen=True)
class Holm:
    """Which pairs of a family are rejected (Holm 1979), how many it has, and the p-value at which it stopped.

    An interval at confidence 1 - ``level`` of any pair excludes "no difference" just where the pair is rejected.
    """

    rejected: Decisions
    size: int
    level: float


class _Statistics(Protocol):
    """Of all pairs: what bounds their critical values, and by rows the difference and its squared standard error."""

    @property
    def lowest_freedom(self) -> float: ...  # of all pairs
    @property
    def highest_freedom(self) -> float: ...
    @property
    def largest_scale(self) -> float: ...

    def rows(self, start: int, stop: int) -> tuple[Matrix, Matrix]:
        """Difference and error of these rows with those from ``start`` on; NaN where a pair cannot be tested."""

    def exact(self, first: Places, second: Places) -> tuple[Matrix, Matrix]:
        """Degrees of freedom and scale of the t of these pairs."""


# The scale of a difference of two t's (``contrasts.approximation``) is between 1 and this: its largest value, at equal
# shares and six degrees of freedom each, is sqrt(9/8).
SMALLEST_SCALE, LARGEST_SCALE = 0.98, 1.08


@dataclass(frozen=True)
class _Unpaired:
    """Each row with a variance of its own."""

    means: Means
    lowest_freedom: float
    highest_freedom: float
    largest_scale: float

    def rows(self, start: int, stop: int) -> tuple[Matrix, Matrix]:
        mean, error = self.means.mean, self.means.squared_error
        return mean[start:stop, None] - mean[start:], error[start:stop, None] + error[start:]

    def exact(self, first: Places, second: Places) -> tuple[Matrix, Matrix]:
        error, freedom = self.means.squared_error, self.means.freedom
        return contrasts.approximation(
            error[first], error[second], freedom[first], freedom[second], moderated=self.means.moderated
        )


@dataclass(frozen=True)
class _Paired:
    """Differences within blocks; ``shared``: blocks that a pair has in common."""

    lowest_freedom: float
    highest_freedom: float
    shared: Matrix
    difference: Matrix
    error: Matrix
    largest_scale: float = 1.0

    def rows(self, start: int, stop: int) -> tuple[Matrix, Matrix]:
        return self.difference[start:stop, start:], self.error[start:stop, start:]

    def exact(self, first: Places, second: Places) -> tuple[Matrix, Matrix]:
        freedom = np.asarray(self.shared[first, second] - 1)
        return freedom, np.ones_like(freedom)


def significant(table: Comparable, alpha: float) -> Holm:
    """Symmetric matrix of the pairs that differ, at a family-wise error of ``alpha`` over all testable pairs."""
    statistics = _statistics(table)
    count = len(table.logs)
    tests = _squares(statistics, count)
    size = sum(square.size - int(np.count_nonzero(np.isnan(square))) for _, square in tests)
    rejected = np.zeros((count, count), dtype=bool)
    if size == 0:
        return Holm(rejected, 0, alpha)
    # What is rejected has p <= alpha; when that may be k pairs, it has p <= alpha / (size - k + 1) as well. The t
    # quantile with the most degrees of freedom of all pairs bounds t from below. With the fewest, a t above the
    # quantile of alpha / size is rejected for sure. Only what lies between needs a closer look.
    limit = _limit(statistics.highest_freedom, alpha) * SMALLEST_SCALE**2
    most = sum(int(np.count_nonzero(square > limit)) for _, square in tests)
    never = _limit(statistics.highest_freedom, alpha / (size - most + 1)) * SMALLEST_SCALE**2
    certain = _limit(statistics.lowest_freedom, alpha / size) * statistics.largest_scale**2
    unclear = []
    for start, square in tests:
        sure = square > certain
        rejected[start : start + len(sure), start:] = sure
        row, column = np.divmod(np.flatnonzero((square > never) & ~sure), square.shape[1])
        unclear.append((start + row, start + column, square[row, column]))
    first, second, squares = (np.concatenate(parts) for parts in zip(*unclear, strict=True))
    already = int(np.count_nonzero(rejected))
    freedom, scale = statistics.exact(first, second)
    with np.errstate(invalid="ignore"):
        p_values = 2 * special.stdtr(freedom, -np.sqrt(squares) / scale)
    chosen = holm(np.asarray(p_values), alpha, already=already, size=size)
    rejected[first[chosen], second[chosen]] = True
    found = already + int(np.count_nonzero(chosen))
    return Holm(rejected | rejected.T, size, alpha / max(size - found, 1))


ROWS = 128  # of a slice of the pairs: small enough for the cache


def _squares(statistics: _Statistics, size: int) -> list[tuple[int, Matrix]]:
    """The squares of t of every pair once, in slices of rows with the columns from the slice's first row on.

    NaN, which is above no limit, stands for what cannot be tested and for pairs that stand elsewhere.
    """
    slices = []
    for start in range(0, size, ROWS):
        difference, error = statistics.rows(start, start + ROWS)
        with np.errstate(invalid="ignore", divide="ignore"):
            square = difference**2
            square /= error
        height = len(square)
        square[:, :height][_lower(height)] = np.nan
        slices.append((start, square))
    return slices


def _limit(freedom: float, p_value: float) -> float:
    """The square of t at this two-sided p."""
    return float(special.stdtrit(freedom, 1 - p_value / 2)) ** 2


def holm(p_values: Matrix, alpha: float, *, already: int = 0, size: int | None = None) -> Decisions:
    """Holm's step-down: reject in ascending order while p ≤ alpha / (hypotheses left).

    ``already`` hypotheses were rejected before with p ≤ alpha / size; ``size`` counts the whole family.
    """
    total = len(p_values) if size is None else size
    order = np.argsort(p_values, kind="stable")
    limits = alpha / (total - already - np.arange(len(p_values)))
    failures = np.nonzero(p_values[order] > limits)[0]
    rejected = np.zeros(len(p_values), dtype=bool)
    rejected[order[: failures[0] if len(failures) else len(order)]] = True
    return rejected


@lru_cache(maxsize=8)
def _lower(size: int) -> Decisions:
    """True on the diagonal and below it. The same for all tables of a run."""
    return np.tri(size, dtype=bool)


def _statistics(table: Comparable) -> _Statistics:
    if table.basis == "paired":
        return _paired(table.logs, table.least_squared_error)
    freedom = table.means.freedom[np.isfinite(table.means.squared_error) & (table.means.freedom > 0)]
    lowest, highest = (float(freedom.min()), float(2 * freedom.max())) if len(freedom) else (1.0, 1.0)
    return _Unpaired(table.means, lowest, highest, LARGEST_SCALE if table.means.moderated else 1.0)


def _paired(logs: Matrix, least: Matrix | None = None) -> _Paired:
    present = ~np.isnan(logs)
    mask = present.astype(float)
    # Centred rows: the sums of squares below then lose no digits when servers differ by orders of magnitude.
    centre = np.where(present.any(axis=1), np.nansum(logs, axis=1) / np.maximum(mask.sum(axis=1), 1), 0.0)
    values = np.where(present, logs - centre[:, None], 0.0)
    shared = mask @ mask.T
    sums = values @ mask.T
    sums -= sums.T
    squares = (values**2) @ mask.T
    squares += squares.T
    squares -= 2 * (values @ values.T)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = sums / shared
        error = np.where(shared >= 2, np.maximum(squares - sums * mean, 0.0) / (shared * (shared - 1)), np.nan)
        if least is not None:  # of each mean, from within processes: no difference is better known
            error = np.maximum(error, least[:, None] + least[None, :])
        difference = mean + (centre[:, None] - centre[None, :])
    testable = shared[shared >= 2]
    lowest, highest = (float(testable.min() - 1), float(testable.max() - 1)) if len(testable) else (1.0, 1.0)
    return _Paired(lowest, highest, shared, difference, error)


def half_widths(table: Comparable, confidence: float) -> Matrix:
    """Half-width on logs of every pair's interval at this (unadjusted) confidence; NaN where it has none."""
    statistics = _statistics(table)
    count = len(table.logs)
    _, error = statistics.rows(0, count)
    first, second = (places.ravel() for places in np.indices((count, count)))
    freedom, scale = (values.reshape(count, count) for values in statistics.exact(first, second))
    with np.errstate(invalid="ignore", divide="ignore"):
        quantile = special.stdtrit(np.maximum(freedom, 1e-9), 0.5 + confidence / 2)
        return np.asarray(quantile * scale * np.sqrt(error))


def better(table: Comparable, decided: Decisions, floor: float, higher: bool) -> Decisions:
    """``[i, j]`` is True when row i is better than row j: decided, and no smaller than the machine's noise floor.

    ``floor`` is relative (0.03 for 3 %): a significant difference below it may come from the machine, not the servers.
    """
    mean = table.means.mean
    best = mean if higher else -mean
    least = np.log1p(floor)
    with np.errstate(invalid="ignore"):
        found = (best - least)[:, None] >= best if least > 0 else best[:, None] > best
    found &= decided
    return np.asarray(found)
