"""Pairwise decisions in a table: differences, Holm's correction, rank intervals and tie groups."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from harness.stats.moderation import CONFIDENCE, MAX_HALF_WIDTH, RowMeans, student_half_width
from harness.stats.ranking_model import Ratio
from harness.stats.variances import BoolArray, FloatArray

RowIndices = NDArray[np.intp]
# A t distribution has a fourth moment if it has more than 4 degrees of freedom; 4.5 adds a margin.
MIN_DF_FOR_FOURTH_MOMENT = 4.5


@dataclass(frozen=True, kw_only=True)
class Differences:
    """Differences between log means.

    The error of a difference, divided by ``scale`` and by its standard error, follows a t distribution with ``df``
    degrees of freedom. ``squared_error`` is the squared standard error, or NaN if it is unknown.
    """

    value: FloatArray
    squared_error: FloatArray
    df: FloatArray
    scale: FloatArray

    def half_width(self, confidence: float = CONFIDENCE) -> FloatArray:
        """Return the half-width of each interval on the log scale."""
        return self.scale * student_half_width(self.squared_error, self.df, confidence)

    def ratios(self, confidence: float = CONFIDENCE) -> list[Ratio]:
        """Return each difference as a ratio. A ratio has no interval if the interval is unknown or extremely wide."""
        half = self.half_width(confidence)
        ratios = []
        for value, width in zip(self.value.tolist(), half.tolist(), strict=True):
            known = width < MAX_HALF_WIDTH
            low, high = (math.exp(value - width), math.exp(value + width)) if known else (None, None)
            ratios.append(Ratio(value=math.exp(value), low=low, high=high))
        return ratios

    def p_values(self) -> FloatArray:
        """Return the two-sided p-value of each difference for the hypothesis that there is no difference."""
        with np.errstate(invalid="ignore", divide="ignore"):
            t = np.where(self.value == 0, 0.0, np.abs(self.value) / (self.scale * np.sqrt(self.squared_error)))
            return np.asarray(np.where(np.isnan(self.squared_error), np.nan, 2 * special.stdtr(self.df, -t)))


def differences(one: RowMeans, other: RowMeans, rows: RowIndices, columns: RowIndices) -> Differences:
    """Subtract rows of ``other`` (indices: ``columns``) from rows of ``one`` (indices: ``rows``), with broadcasting.

    The difference of two independent t variables is approximated by a scaled t variable with the same second and fourth
    moments (Patil 1965, Biometrika 52). This is more accurate than Welch's approximation in the tails, where the many
    pairs of a table are decided. If a row has too few degrees of freedom for a fourth moment, or if all rows share a
    variance estimate, use an ordinary t distribution with the smaller degrees of freedom.
    """
    first, second = one.squared_error[rows], other.squared_error[columns]
    df_one, df_other = one.df[rows], other.df[columns]
    total = first + second
    moderated = one.moderated and other.moderated
    with np.errstate(invalid="ignore", divide="ignore"):
        share_one, share_other = first / total, second / total
        variance_one, variance_other = df_one / (df_one - 2), df_other / (df_other - 2)
        variance = share_one * variance_one + share_other * variance_other
        fourth = (share_one * variance_one) ** 2 / (df_one - 4) + (share_other * variance_other) ** 2 / (df_other - 4)
        matched_df = 4 + variance**2 / fourth
        applies = (df_one > MIN_DF_FOR_FOURTH_MOMENT) & (df_other > MIN_DF_FOR_FOURTH_MOMENT) & (total > 0) & moderated
        scale = np.where(applies, np.sqrt(variance * (matched_df - 2) / matched_df), 1.0)
    df = np.where(applies, matched_df, np.minimum(df_one, df_other))
    if one is other and one.shared_error is not None:  # in a merged run, rows share the errors of column effects
        total = total - 2 * one.shared_error[rows, columns]
    return Differences(value=one.mean[rows] - other.mean[columns], squared_error=total, df=df, scale=scale)


def significant(table: RowMeans, alpha: float) -> BoolArray:
    """Return a symmetric matrix (rows x rows): True if two rows differ at the family-wise error ``alpha``."""
    differ = np.zeros((len(table.mean), len(table.mean)), dtype=bool)
    known = np.flatnonzero(np.isfinite(table.squared_error))
    first, second = (known[each] for each in np.triu_indices(len(known), 1))
    differ[first, second] = holm(differences(table, table, first, second).p_values(), alpha)
    return differ | differ.T


def holm(p_values: FloatArray, alpha: float) -> BoolArray:
    """Apply Holm's step-down procedure (Holm 1979). Return whether each hypothesis is rejected.

    Reject hypotheses in ascending order of p-value, and stop at the first p-value above ``alpha`` / n. n is the number
    of hypotheses that have not been rejected so far.
    """
    order = np.argsort(p_values, kind="stable")
    failures = np.flatnonzero(~(p_values[order] <= alpha / np.arange(len(p_values), 0, -1)))
    rejected = np.zeros(len(p_values), dtype=bool)
    rejected[order[: failures[0] if len(failures) else len(order)]] = True
    return rejected


def ranks(
    table: RowMeans, medians: FloatArray, alpha: float, floor: float = 0.0, *, higher_is_better: bool
) -> Iterator[tuple[int, int, int, int]]:
    """Yield (position by median, best possible rank, worst possible rank, tie group) for each row, all 1-based.

    Row i beats row j if it is significantly better, and by at least the noise floor. The ranks of row i range
    from 1 + (number of rows that beat i) to (number of rows) - (number of rows that i beats). With a family-wise error
    of 5 %, all true ranks are in these intervals with a probability of 95 % (Mogstad, Romano, Shaikh & Wilhelm 2024).
    The test compares mean logarithms, so the position by median may lie outside the interval. The interval is then
    extended to this position. A tie group ends before the first row that the group's first row beats.

    Args:
        table: The means to compare.
        medians: The displayed value of each row.
        alpha: Family-wise error over all pairs.
        floor: Relative noise of the machine; 0.03 means 3 %.
        higher_is_better: Whether a higher value is better.
    """
    sign, size = (1 if higher_is_better else -1), len(medians)
    with np.errstate(invalid="ignore"):
        lead = sign * (table.mean[:, None] - table.mean)
        beats = significant(table, alpha) & (lead >= np.log1p(floor)) & (lead > 0)
    order = np.argsort(-sign * medians, kind="stable").tolist()
    groups, leader, group = {}, order[0] if order else 0, 1
    for row in order:
        if beats[leader, row]:
            leader, group = row, group + 1
        groups[row] = group
    positions = {row: position for position, row in enumerate(order, 1)}
    beaten_by, beats_count = beats.sum(axis=0).tolist(), beats.sum(axis=1).tolist()
    for row, position in sorted(positions.items()):
        yield position, min(1 + beaten_by[row], position), max(size - beats_count[row], position), groups[row]
