"""The pairs of a table: which differ after Holm's correction, and the ranks and ties that follow. All vectorised."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from harness.stats.fit import Matrix, Means

Decisions = NDArray[np.bool_]
Places = NDArray[np.intp]
PATIL = 4.5  # degrees of freedom
LEAST_T = 1.9  # below the normal quantile of 5 %: no pair with a smaller t is ever significant


@dataclass(frozen=True, kw_only=True)
class Differences:
    """Differences of log means with their squared errors, and the t that they follow; NaN where nothing is known."""

    value: Matrix
    squared_error: Matrix
    freedom: Matrix
    scale: Matrix

    def half_width(self, confidence: float) -> Matrix:
        """Half-width of the interval of each, on logs."""
        with np.errstate(invalid="ignore"):
            quantile = special.stdtrit(np.maximum(self.freedom, 1e-9), 0.5 + confidence / 2)
            return np.asarray(quantile * self.scale * np.sqrt(self.squared_error))

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
    size = len(first)
    with np.errstate(divide="ignore", invalid="ignore"):
        square = (table.mean[first] - table.mean[second]) ** 2 / (
            table.squared_error[first] + table.squared_error[second]
        )
    near = square > LEAST_T**2
    first, second = first[near], second[near]
    chosen = holm(differences(table, table, first, second).p_values(), alpha, size=size)
    differ[first[chosen], second[chosen]] = True
    return differ | differ.T


def holm(p_values: Matrix, alpha: float, *, size: int | None = None) -> Decisions:
    """Holm's step-down (1979): reject in ascending order while p ≤ alpha / (hypotheses left), of ``size`` in all."""
    total = len(p_values) if size is None else size
    order = np.argsort(p_values, kind="stable")
    failures = np.flatnonzero(~(p_values[order] <= alpha / (total - np.arange(len(p_values)))))
    rejected = np.zeros(len(p_values), dtype=bool)
    rejected[order[: failures[0] if len(failures) else len(order)]] = True
    return rejected


def better(table: Means, differ: Decisions, floor: float, *, higher: bool) -> Decisions:
    """``[i, j]``: row i is better than row j, decided and by no less than the machine's noise floor (0.03: 3 %)."""
    best = table.mean if higher else -table.mean
    with np.errstate(invalid="ignore"):
        return np.asarray(differ & (best[:, None] - best >= np.log1p(floor)) & (best[:, None] > best))


@dataclass(frozen=True, kw_only=True)
class Ranks:
    """By row: place of the point estimate, interval of ranks that is not excluded, and tie group; all 1-based."""

    position: NDArray[np.int64]
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    tie_group: NDArray[np.int64]


def ranks(score: Matrix, decided: Decisions) -> Ranks:
    """Rank rows by ``score`` (higher is better); ties in score keep their order.

    The interval of row i is [1 + rows decided better than i, rows - rows decided worse than i]: with a family-wise
    error of 5 % all true ranks lie inside their intervals at once with 95 % (Mogstad, Romano, Shaikh & Wilhelm 2024).
    It holds the place of the point estimate, which orders by median where the test compares mean logs. A tie group ends
    before the first row that its leader is decided better than.
    """
    size = len(score)
    order = np.argsort(-score, kind="stable")
    position = np.empty(size, dtype=np.int64)
    position[order] = np.arange(1, size + 1)
    groups = np.empty(size, dtype=np.int64)
    start, group = 0, 0
    while start < size:
        group += 1
        behind = decided[order[start], order[start:]]
        end = start + int(np.argmax(behind)) if behind.any() else size
        groups[order[start:end]] = group
        start = end
    return Ranks(
        position=position,
        low=np.minimum(1 + decided.sum(axis=0), position),
        high=np.maximum(size - decided.sum(axis=1), position),
        tie_group=groups,
    )
