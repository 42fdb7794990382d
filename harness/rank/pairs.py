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
    part: Matrix  # Welch only: variance of each row's mean
    count: Matrix  # Welch: values of each row; paired: shared blocks of each pair


def significant(logs: Matrix, alpha: float, paired: bool) -> Holm:
    """Symmetric matrix of the pairs that differ, at a family-wise error of ``alpha`` over all testable pairs."""
    statistics = _paired(logs) if paired else _welch(moments(logs))
    with np.errstate(invalid="ignore", divide="ignore"):
        square = statistics.difference**2 / statistics.error
    upper = _upper(len(square))
    size = int((~np.isnan(square) & upper).sum())
    rejected = np.zeros_like(upper)
    if size == 0:
        return Holm(rejected, 0)
    # |t| below the normal quantile of alpha is never rejected; above the t quantile of alpha / size with the fewest
    # degrees of freedom of all pairs it always is.
    never = float(special.ndtri(1 - alpha / 2)) ** 2
    always = float(special.stdtrit(statistics.lowest_freedom, 1 - alpha / size / 2)) ** 2
    with np.errstate(invalid="ignore"):
        sure = (square > always) & upper
        first, second = np.nonzero((square > never) & ~sure & upper)
    rejected |= sure
    if len(first):
        freedom = _freedom(statistics, first, second, paired)
        p_values = 2 * special.stdtr(freedom, -np.sqrt(square[first, second]))
        chosen = holm(np.asarray(p_values), alpha, already=int(sure.sum()), size=size)
        rejected[first[chosen], second[chosen]] = True
    return Holm(rejected | rejected.T, size)


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
def _upper(size: int) -> Decisions:
    """True above the diagonal: every pair once. The same for all tables of a run."""
    return np.triu(np.ones((size, size), dtype=bool), 1)


def _welch(stats: Moments) -> _Statistics:
    with np.errstate(invalid="ignore", divide="ignore"):
        part = stats.variance / stats.count
    difference = stats.mean[:, None] - stats.mean[None, :]
    counts = stats.count[stats.count >= 2]
    lowest = float(counts.min() - 1) if len(counts) else 1.0
    return _Statistics(difference, part[:, None] + part[None, :], lowest, part, stats.count)


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
    lowest = float(testable.min() - 1) if len(testable) else 1.0
    return _Statistics(difference, error, lowest, np.empty(0), shared)


def _paired_complete(values: Matrix, centre: Matrix) -> _Statistics:
    """The same where every implementation has a value in every block: rows are centred, so their sums vanish."""
    size, blocks = values.shape
    error = values @ values.T
    squares = np.diagonal(error).copy()
    error *= -2
    error += squares[:, None]
    error += squares
    np.maximum(error, 0.0, out=error)
    with np.errstate(invalid="ignore", divide="ignore"):
        error /= np.float64(blocks * (blocks - 1))
    shared = np.broadcast_to(np.float64(blocks), (size, size))
    return _Statistics(centre[:, None] - centre, error, max(blocks - 1.0, 1.0), np.empty(0), shared)


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
    difference = mean[:, None] - mean[None, :]
    if not higher:
        difference = -difference
    with np.errstate(invalid="ignore"):
        return np.asarray(decided & (difference > 0) & (np.abs(difference) >= np.log1p(floor)))
