"""The pairs of a table: which differ after Holm's correction, and the ranks and ties that follow. All vectorised."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from harness.stats.fit import CONFIDENCE, MOST_WIDTH, Means, half_width
from harness.stats.model import Ratio
from harness.stats.variances import Matrix

Decisions = NDArray[np.bool_]
Places = NDArray[np.intp]
PATIL = 4.5  # degrees of freedom


@dataclass(frozen=True, kw_only=True)
class Differences:
    """Differences of log means with their squared errors, and the t that they follow; NaN where nothing is known."""

    value: Matrix
    squared_error: Matrix
    freedom: Matrix
    scale: Matrix

    def half_width(self, confidence: float = CONFIDENCE) -> Matrix:
        """Half-width of the interval of each, on logs."""
        return self.scale * half_width(self.squared_error, self.freedom, confidence)

    def ratios(self, confidence: float = CONFIDENCE) -> list[Ratio]:
        """With their intervals; without where these are wider than anything that can be said."""
        half = self.half_width(confidence)
        found = []
        for value, width in zip(self.value.tolist(), half.tolist(), strict=True):
            known = width < MOST_WIDTH
            low, high = (math.exp(value - width), math.exp(value + width)) if known else (None, None)
            found.append(Ratio(value=math.exp(value), low=low, high=high))
        return found

    def p_values(self) -> Matrix:
        """Of no difference, two-sided."""
        with np.errstate(invalid="ignore", divide="ignore"):
            t = np.where(self.value == 0, 0.0, np.abs(self.value) / (self.scale * np.sqrt(self.squared_error)))
            return np.asarray(np.where(np.isnan(self.squared_error), np.nan, 2 * special.stdtr(self.freedom, -t)))


def differences(one: Means, other: Means, rows: Places, columns: Places) -> Differences:
    """Rows of ``one`` minus rows of ``other``, broadcast.

    The difference of two t's by its second and fourth moment (Patil 1965, Biometrika 52): wider in the tails, where the
    many pairs of a table are decided, than Welch's. Where one has too few degrees of freedom for a fourth moment, or
    both have their variance from one estimate, the fewer stand for both.
    """
    first, second = one.squared_error[rows], other.squared_error[columns]
    own, others = one.freedom[rows], other.freedom[columns]
    total = first + second
    moderated = one.moderated and other.moderated
    with np.errstate(invalid="ignore", divide="ignore"):
        share, rest = first / total, second / total
        a, b = own / (own - 2), others / (others - 2)
        variance = share * a + rest * b
        fourth = (share * a) ** 2 / (own - 4) + (rest * b) ** 2 / (others - 4)
        matched = 4 + variance**2 / fourth
        fit = (own > PATIL) & (others > PATIL) & (total > 0) & moderated
        scale = np.where(fit, np.sqrt(variance * (matched - 2) / matched), 1.0)
    freedom = np.where(fit, matched, np.minimum(own, others))
    return Differences(value=one.mean[rows] - other.mean[columns], squared_error=total, freedom=freedom, scale=scale)


def significant(table: Means, alpha: float) -> Decisions:
    """Symmetric matrix of the pairs that differ at a family-wise error of ``alpha`` over all testable pairs."""
    differ = np.zeros((len(table.mean), len(table.mean)), dtype=bool)
    known = np.flatnonzero(np.isfinite(table.squared_error))
    first, second = (known[each] for each in np.triu_indices(len(known), 1))
    differ[first, second] = holm(differences(table, table, first, second).p_values(), alpha)
    return differ | differ.T


def holm(p_values: Matrix, alpha: float) -> Decisions:
    """Holm's step-down (1979): reject in ascending order while p ≤ alpha / (hypotheses left)."""
    order = np.argsort(p_values, kind="stable")
    failures = np.flatnonzero(~(p_values[order] <= alpha / np.arange(len(p_values), 0, -1)))
    rejected = np.zeros(len(p_values), dtype=bool)
    rejected[order[: failures[0] if len(failures) else len(order)]] = True
    return rejected


def ranks(
    table: Means, medians: Matrix, alpha: float, floor: float = 0.0, *, higher: bool
) -> Iterator[tuple[int, int, int, int]]:
    """By row its place by median, the best and the worst rank that are not excluded, and its tie group; all 1-based.

    A row is better than another that it differs from at ``alpha``, by no less than the machine's noise floor (0.03:
    3 %). The interval of row i is [1 + rows better than i, rows - rows worse than i]: with a family-wise error of 5 %
    all true ranks lie inside their intervals at once with 95 % (Mogstad, Romano, Shaikh & Wilhelm 2024). It holds the
    place of the point estimate, which orders by median where the test compares mean logs. A tie group ends before the
    first row that its leader is better than.
    """
    sign, size = (1 if higher else -1), len(medians)
    with np.errstate(invalid="ignore"):
        ahead = sign * (table.mean[:, None] - table.mean)
        better = significant(table, alpha) & (ahead >= np.log1p(floor)) & (ahead > 0)
    order = np.argsort(-sign * medians, kind="stable").tolist()
    groups, leader, group = {}, order[0] if order else 0, 1
    for row in order:
        if better[leader, row]:
            leader, group = row, group + 1
        groups[row] = group
    places = {row: place for place, row in enumerate(order, 1)}
    before, behind = better.sum(axis=0).tolist(), better.sum(axis=1).tolist()
    for row, place in sorted(places.items()):
        yield place, min(1 + before[row], place), max(size - behind[row], place), groups[row]
