"""All pairs of a table at once: which differences are significant after Holm's correction.

A thousand implementations are half a million pairs a table, so there is no loop over pairs: the t statistics come from
matrix products, and exact p-values are computed only where two bounds of the critical value leave it open.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import special

from harness.rank.estimates import Moments, moments
from harness.rank.values import Matrix

Decisions = NDArray[np.bool_]


@dataclass(frozen=True)
class Holm:
    """Which p-values of a family are rejected (Holm 1979), and how many hypotheses the family has."""

    rejected: Decisions
    size: int


@dataclass(frozen=True)
class _Statistics:
    """Of all pairs: degrees of freedom, and by rows the difference and its squared standard error."""

    lowest_freedom: float
    highest_freedom: float
    part: Matrix  # Welch only: variance of each row's mean
    count: Matrix  # Welch: values of each row; paired: shared blocks of each pair

    def rows(self, start: int, stop: int) -> tuple[Matrix, Matrix]:
        """Difference and error of these rows with those from ``start`` on; NaN where a pair cannot be tested."""
        raise NotImplementedError


@dataclass(frozen=True)
class _Table(_Statistics):
    difference: Matrix
    error: Matrix

    def rows(self, start: int, stop: int) -> tuple[Matrix, Matrix]:
        return self.difference[start:stop, start:], self.error[start:stop, start:]


@dataclass(frozen=True)
class _Complete(_Statistics):
    """Paired, with a value of every row in every block: made when asked for, as a table of all pairs leaves the cache.

    Rows are centred, so that their sums vanish, and |a - b|² = |a|² + |b|² - 2ab is one product of two factors.
    """

    centre: Matrix
    left: Matrix
    right: Matrix

    def rows(self, start: int, stop: int) -> tuple[Matrix, Matrix]:
        error = self.left[start:stop] @ self.right[:, start:]
        return self.centre[start:stop, None] - self.centre[start:], np.maximum(error, 0.0, out=error)


def significant(logs: Matrix, alpha: float, paired: bool) -> Holm:
    """Symmetric matrix of the pairs that differ, at a family-wise error of ``alpha`` over all testable pairs."""
    statistics = _paired(logs) if paired else _welch(moments(logs))
    tests = _squares(statistics, len(logs))
    size = sum(square.size - int(np.count_nonzero(np.isnan(square))) for _, square in tests)
    rejected = np.zeros((len(logs), len(logs)), dtype=bool)
    if size == 0:
        return Holm(rejected, 0)
    # What is rejected has p <= alpha; when that may be k pairs, it has p <= alpha / (size - k + 1) as well. By the t
    # quantile with the most degrees of freedom of all pairs this bounds t from below. With the fewest, a t above the
    # quantile of alpha / size is rejected for sure. Only what lies between needs a closer look.
    limit = _limit(statistics.highest_freedom, alpha)
    most = sum(int(np.count_nonzero(square > limit)) for _, square in tests)
    never = _limit(statistics.highest_freedom, alpha / (size - most + 1))
    certain = _limit(statistics.lowest_freedom, alpha / size)
    unclear = []
    for start, square in tests:
        sure = square > certain
        rejected[start : start + len(sure), start:] = sure
        row, column = np.divmod(np.flatnonzero((square > never) & ~sure), square.shape[1])
        unclear.append((start + row, start + column, square[row, column]))
    first, second, squares = (np.concatenate(parts) for parts in zip(*unclear, strict=True))
    already = int(np.count_nonzero(rejected))
    if statistics.lowest_freedom == statistics.highest_freedom:
        chosen = _step_down(squares, statistics.lowest_freedom, alpha, already, size)
    else:
        p_values = 2 * special.stdtr(_freedom(statistics, first, second, paired), -np.sqrt(squares))
        chosen = holm(np.asarray(p_values), alpha, already=already, size=size)
    rejected[first[chosen], second[chosen]] = True
    return Holm(rejected | rejected.T, size)


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


def _step_down(squares: Matrix, freedom: float, alpha: float, already: int, size: int) -> Decisions:
    """Holm's step-down among pairs of the same degrees of freedom: limits of t² instead of a p-value for each.

    While k pairs are rejected, every one with p ≤ alpha / (size - k) is rejected as well.
    """
    ordered = np.sort(squares)
    count = 0
    limit = np.inf
    while count < len(ordered):
        below = _limit(freedom, alpha / (size - already - count))
        found = len(ordered) - int(np.searchsorted(ordered, below))
        if found == count:
            break
        count, limit = found, below
    return np.asarray(squares >= limit)


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


def _welch(stats: Moments) -> _Statistics:
    with np.errstate(invalid="ignore", divide="ignore"):
        part = stats.variance / stats.count
    difference = stats.mean[:, None] - stats.mean[None, :]
    counts = stats.count[stats.count >= 2]
    lowest, highest = (float(counts.min() - 1), float(2 * counts.max() - 2)) if len(counts) else (1.0, 1.0)
    return _Table(lowest, highest, part, stats.count, difference, part[:, None] + part[None, :])


def _paired(logs: Matrix) -> _Statistics:
    present = ~np.isnan(logs)
    mask = present.astype(float)
    # Centred rows: the sums of squares below then lose no digits when servers differ by orders of magnitude.
    centre = np.where(present.any(axis=1), np.nansum(logs, axis=1) / np.maximum(mask.sum(axis=1), 1), 0.0)
    values = np.where(present, logs - centre[:, None], 0.0)
    if present.all():
        return _paired_complete(values, centre)
    shared = mask @ mask.T
    sums = values @ mask.T
    sums -= sums.T
    squares = (values**2) @ mask.T
    squares += squares.T
    squares -= 2 * (values @ values.T)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = sums / shared
        error = np.where(shared >= 2, np.maximum(squares - sums * mean, 0.0) / (shared * (shared - 1)), np.nan)
        difference = mean + (centre[:, None] - centre[None, :])
    testable = shared[shared >= 2]
    lowest, highest = (float(testable.min() - 1), float(testable.max() - 1)) if len(testable) else (1.0, 1.0)
    return _Table(lowest, highest, np.empty(0), shared, difference, error)


def _paired_complete(values: Matrix, centre: Matrix) -> _Statistics:
    size, blocks = values.shape
    with np.errstate(invalid="ignore", divide="ignore"):
        scale = np.float64(1.0) / np.float64(blocks * (blocks - 1))
        squares = scale * (values**2).sum(axis=1, keepdims=True)
        ones = np.ones((size, 1))
        left = np.hstack((-2 * scale * values, squares, ones))
    right = np.ascontiguousarray(np.hstack((values, ones, squares)).T)
    freedom = max(blocks - 1.0, 1.0)
    shared = np.broadcast_to(np.float64(blocks), (size, size))
    return _Complete(freedom, freedom, np.empty(0), shared, centre, left, right)


def _freedom(statistics: _Statistics, first: NDArray[np.intp], second: NDArray[np.intp], paired: bool) -> Matrix:
    if paired:
        return np.asarray(statistics.count[first, second] - 1)
    one, other = statistics.part[first], statistics.part[second]
    inner = one**2 / (statistics.count[first] - 1) + other**2 / (statistics.count[second] - 1)
    return np.asarray((one + other) ** 2 / inner)


def half_widths(logs: Matrix, confidence: float, paired: bool) -> Matrix:
    """Half-width on logs of every pair's interval at this (unadjusted) confidence; NaN where it has none."""
    stats = moments(logs)
    statistics = _paired(logs) if paired else _welch(stats)
    _, error = statistics.rows(0, len(logs))
    with np.errstate(invalid="ignore", divide="ignore"):
        if paired:
            freedom = statistics.count - 1
        else:
            inner = statistics.part**2 / (stats.count - 1)
            freedom = error**2 / (inner[:, None] + inner[None, :])
        quantile = special.stdtrit(np.maximum(freedom, 1), 0.5 + confidence / 2)
        return np.asarray(quantile * np.sqrt(error))


def better(logs: Matrix, decided: Decisions, floor: float, higher: bool) -> Decisions:
    """``[i, j]`` is True when row i is better than row j: decided, and no smaller than the machine's noise floor.

    ``floor`` is relative (0.03 for 3 %): a significant difference below it may come from the machine, not the servers.
    """
    mean = moments(logs).mean
    best = mean if higher else -mean
    least = np.log1p(floor)
    with np.errstate(invalid="ignore"):
        found = (best - least)[:, None] >= best if least > 0 else best[:, None] > best
    found &= decided
    return np.asarray(found)
