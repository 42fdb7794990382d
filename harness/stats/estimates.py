"""Estimates of one table's metric: medians with intervals, and ratios by the textbook's two tests.

Everything works on natural logarithms of replicate medians, as a matrix of implementations x blocks with NaN where a
value is missing. The unit is the replicate (a fresh server process): requests and windows of one process share its
memory layout, compilation and neighbours, and pooling them makes a nominal 95 % interval cover about 70 %.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from harness.stats.values import Matrix


def t_quantile(confidence: float, freedom: Matrix | float) -> Matrix:
    """Two-sided quantile of Student's t: the factor of a standard error in an interval of this confidence."""
    return np.asarray(special.stdtrit(freedom, 0.5 + confidence / 2))


@dataclass(frozen=True)
class Moments:
    """Count, mean, variance (n - 1), and median of each row of a log matrix. Variance is NaN below two values."""

    count: Matrix
    mean: Matrix
    variance: Matrix
    median: Matrix


def moments(logs: Matrix) -> Moments:
    """The moments of every row, over the values present."""
    present = ~np.isnan(logs)
    count = present.sum(axis=1).astype(float)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(present, logs, 0.0).sum(axis=1) / count
        squares = np.where(present, logs - mean[:, None], 0.0) ** 2
        variance = np.where(count >= 2, squares.sum(axis=1) / (count - 1), np.nan)
    ordered = np.sort(logs, axis=1)  # NaN sorts last
    rows = np.arange(len(logs))
    lower = np.maximum((count.astype(int) - 1) // 2, 0)
    upper = np.maximum(count.astype(int) // 2, 0)
    upper = np.minimum(upper, logs.shape[1] - 1)
    middle = (np.exp(ordered[rows, lower]) + np.exp(ordered[rows, upper])) / 2
    return Moments(count, mean, variance, np.asarray(middle))


def intervals(stats: Moments, confidence: float) -> tuple[Matrix, Matrix]:
    """Interval of each row's typical value: exp(mean ± t · s / √n) of the logs, widened where it misses the median.

    On logs because throughput and CPU cost err by factors (Georges 2007; Kalibera & Jones 2013). NaN below two values.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        half = t_quantile(confidence, np.maximum(stats.count - 1, 1)) * np.sqrt(stats.variance / stats.count)
    low = np.minimum(np.exp(stats.mean - half), stats.median)
    high = np.maximum(np.exp(stats.mean + half), stats.median)
    return low, high


@dataclass(frozen=True)
class Contrasts:
    """Differences of logs with their squared standard errors and degrees of freedom; NaN where not testable."""

    difference: Matrix
    squared_error: Matrix
    freedom: Matrix

    def half_width(self, confidence: float) -> Matrix:
        """Half-width of the interval of each difference, on logs; NaN where not testable."""
        with np.errstate(invalid="ignore"):
            return np.asarray(t_quantile(confidence, self.freedom) * np.sqrt(self.squared_error))


def against(logs: Matrix, stats: Moments, index: int, paired: bool) -> Contrasts:
    """Every row minus row ``index``: by Welch's t (Welch 1947), or by the t of the differences within blocks."""
    if not paired:
        return _welch(stats, index)
    differences = logs - logs[index]
    inner = moments(differences)
    with np.errstate(invalid="ignore", divide="ignore"):
        testable = inner.count >= 2
        error = np.where(testable, inner.variance / inner.count, np.nan)
        # Rows that share no block with it still have a ratio, only no interval.
        mean = np.where(inner.count >= 1, inner.mean, stats.mean - stats.mean[index])
    return Contrasts(mean, error, np.where(testable, inner.count - 1, np.nan))


def _welch(stats: Moments, index: int) -> Contrasts:
    with np.errstate(invalid="ignore", divide="ignore"):
        part = stats.variance / stats.count
        error = part + part[index]
        inner = part**2 / (stats.count - 1)
        freedom = error**2 / (inner + inner[index])
    smallest = np.minimum(stats.count, stats.count[index]) - 1
    return Contrasts(stats.mean - stats.mean[index], error, np.where(np.isnan(freedom), smallest, freedom))


@dataclass(frozen=True)
class Ratios:
    """Ratios with their intervals; ``low`` and ``high`` are NaN where there is no interval."""

    value: Matrix
    low: Matrix
    high: Matrix


def ratios(logs: Matrix, stats: Moments, index: int, paired: bool, confidence: float) -> Ratios:
    """Every row over row ``index``: geometric mean of the replicates' ratios with its interval, not adjusted for looks.

    The row itself is exactly 1.
    """
    contrasts = against(logs, stats, index, paired)
    half = contrasts.half_width(confidence)
    value = np.exp(contrasts.difference)
    low, high = np.exp(contrasts.difference - half), np.exp(contrasts.difference + half)
    for array in (value, low, high):
        array[index] = 1.0
    return Ratios(value, low, high)


def finite(number: float) -> float | None:
    """The number, or None where it is unknown."""
    return float(number) if math.isfinite(number) else None


def finites(numbers: Matrix) -> list[float | None]:
    """The same for a vector."""
    return [number if math.isfinite(number) else None for number in numbers.tolist()]
