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
    """Of all pairs: ``difference`` and ``error`` (its squared standard error), NaN where a pair cannot be tested."""

    difference: Matrix
    error: Matrix
    lowest_freedom: float
    highest_freedom: float
    part: Matrix  # Welch only: variance of each row's mean
    count: Matrix  # Welch: values of each row; paired: shared blocks of each pair


def significant(logs: Matrix, alpha: float, paired: bool) -> Holm:
    """Symmetric matrix of the pairs that differ, at a family-wise error of ``alpha`` over all testable pairs."""
    statistics = _paired(logs) if paired else _welch(moments(logs))
    with np.errstate(invalid="ignore", divide="ignore"):
        square = statistics.difference**2
        square /= statistics.error
    square[_lower(len(square))] = np.nan  # every pair once; NaN is above no limit
    size = square.size - int(np.count_nonzero(np.isnan(square)))
    if size == 0:
        return Holm(np.zeros(square.shape, dtype=bool), 0)
    # What is rejected has p <= alpha; when that may be k pairs, it has p <= alpha / (size - k + 1) as well. By the t
    # quantile with the most degrees of freedom of all pairs this bounds t from below. With the fewest, a t above the
    # quantile of alpha / size is rejected for sure. Only what lies between needs its p.
    with np.errstate(invalid="ignore"):
        most = int(np.count_nonzero(square > _limit(statistics.highest_freedom, alpha)))
        never = _limit(statistics.highest_freedom, alpha / (size - most + 1))
        rejected = square > _limit(statistics.lowest_freedom, alpha / size)
        first, second = np.divmod(np.flatnonzero((square > never) & ~rejected), len(square))
    sure = int(np.count_nonzero(rejected))
    if len(first):
        freedom = _freedom(statistics, first, second, paired)
        p_values = 2 * special.stdtr(freedom, -np.sqrt(square[first, second]))
        chosen = holm(np.asarray(p_values), alpha, already=sure, size=size)
        rejected[first[chosen], second[chosen]] = True
    return Holm(rejected | rejected.T, size)


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
    return _Statistics(difference, part[:, None] + part[None, :], lowest, highest, part, stats.count)


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
    return _Statistics(difference, error, lowest, highest, np.empty(0), shared)


def _paired_complete(values: Matrix, centre: Matrix) -> _Statistics:
    """The same where every implementation has a value in every block: rows are centred, so their sums vanish."""
    size, blocks = values.shape
    with np.errstate(invalid="ignore", divide="ignore"):
        scale = np.float64(1.0) / np.float64(blocks * (blocks - 1))
        # |a - b|² = |a|² + |b|² - 2ab for all pairs, scaled, as one product.
        squares = scale * (values**2).sum(axis=1, keepdims=True)
        ones = np.ones((size, 1))
        error = np.hstack((-2 * scale * values, squares, ones)) @ np.hstack((values, ones, squares)).T
    np.maximum(error, 0.0, out=error)
    shared = np.broadcast_to(np.float64(blocks), (size, size))
    freedom = max(blocks - 1.0, 1.0)
    return _Statistics(centre[:, None] - centre, error, freedom, freedom, np.empty(0), shared)


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
    with np.errstate(invalid="ignore", divide="ignore"):
        if paired:
            freedom = statistics.count - 1
        else:
            inner = statistics.part**2 / (stats.count - 1)
            freedom = statistics.error**2 / (inner[:, None] + inner[None, :])
        quantile = special.stdtrit(np.maximum(freedom, 1), 0.5 + confidence / 2)
        return np.asarray(quantile * np.sqrt(statistics.error))


def better(logs: Matrix, decided: Decisions, floor: float, higher: bool) -> Decisions:
    """``[i, j]`` is True when row i is better than row j: decided, and no smaller than the machine's noise floor.

    ``floor`` is relative (0.03 for 3 %): a significant difference below it may come from the machine, not the servers.
    """
    mean = moments(logs).mean
    difference = mean[:, None] - mean if higher else mean - mean[:, None]
    least = np.log1p(floor)
    with np.errstate(invalid="ignore"):
        found = difference >= least if least > 0 else difference > 0
    found &= decided
    return np.asarray(found)
