"""Differences of two means, each with a variance and degrees of freedom of its own (the Behrens–Fisher problem).

The one place where an interval or a p-value of a ratio comes from: tables, ranks, stopping, comparison and score use
it, and the page, which is sent mean, squared error and freedom of each row, recomputes with the same three formulas.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import special

from harness.stats.values import Matrix

Basis = Literal["moderated", "paired", "welch"]
PATIL_ABOVE = 4.0  # degrees of freedom of both: the fourth moment of t, which the approximation matches, is finite


@dataclass(frozen=True, kw_only=True)
class Means:
    """Mean logarithm of each row, its squared standard error and the degrees of freedom of that; NaN where unknown."""

    mean: Matrix
    squared_error: Matrix
    freedom: Matrix
    moderated: bool

    @property
    def basis(self) -> Basis:
        """What the variances are."""
        return "moderated" if self.moderated else "welch"

    def intervals(self, confidence: float, median: Matrix) -> tuple[Matrix, Matrix]:
        """Bounds of each row around its own median, in the metric's unit; NaN where unknown.

        Not around ``mean``, from which is taken off what rounds have in common: that is for comparing rows, and shifts
        one that lacks rounds by what the others had in them.
        """
        with np.errstate(invalid="ignore"):
            factor = np.exp(special.stdtrit(self.freedom, 0.5 + confidence / 2) * np.sqrt(self.squared_error))
            return median / factor, median * factor


@dataclass(frozen=True, kw_only=True)
class Contrasts:
    """Differences of logs: ``difference / (scale * error)`` is a t of ``freedom`` degrees; NaN where not testable."""

    difference: Matrix
    squared_error: Matrix
    freedom: Matrix
    scale: Matrix

    def half_width(self, confidence: float) -> Matrix:
        """Half-width of the interval of each difference, on logs; NaN where not testable."""
        with np.errstate(invalid="ignore"):
            quantile = special.stdtrit(self.freedom, 0.5 + confidence / 2)
            return np.asarray(quantile * self.scale * np.sqrt(self.squared_error))

    def p_value(self) -> Matrix:
        """Two-sided p of no difference; NaN where not testable, or without any variance."""
        with np.errstate(invalid="ignore", divide="ignore"):
            t = np.abs(self.difference) / (self.scale * np.sqrt(self.squared_error))
            return np.asarray(np.where(self.squared_error > 0, 2 * special.stdtr(self.freedom, -t), np.nan))


def approximation(
    one: Matrix, other: Matrix, one_freedom: Matrix, other_freedom: Matrix, *, moderated: bool
) -> tuple[Matrix, Matrix]:
    """Degrees of freedom and scale of the t that a difference with these squared errors follows.

    Moderated: the difference of two independent t's by its second and fourth moment (Patil 1965, Biometrika 52). It is
    wider in the tails, where the many pairs of a table are decided, than the t of Welch and Satterthwaite, which stands
    for variances that are not moderated. Where one of both has too few degrees of freedom for a fourth moment, the
    fewer stand for both: Patil's go there as they come down to four.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        total = one + other
        share, rest = one / total, other / total
        freedom = 1 / (share**2 / one_freedom + rest**2 / other_freedom)
        # Two rows of equal figures have no variance to share: then the fewer degrees of freedom stand.
        freedom = np.where(total > 0, freedom, np.minimum(one_freedom, other_freedom))
        if not moderated:
            return freedom, np.ones_like(freedom)
        fit = (one_freedom > PATIL_ABOVE) & (other_freedom > PATIL_ABOVE) & (total > 0)
        first, second = one_freedom / (one_freedom - 2), other_freedom / (other_freedom - 2)
        variance = share * first + rest * second
        fourth = (share * first) ** 2 / (one_freedom - 4) + (rest * second) ** 2 / (other_freedom - 4)
        matched = 4 + variance**2 / fourth
        scale = np.sqrt(variance * (matched - 2) / matched)
    return np.where(fit, matched, np.minimum(one_freedom, other_freedom)), np.where(fit, scale, 1.0)


def differences(one: Means, other: Means) -> Contrasts:
    """``one`` minus ``other``, element by element; shapes broadcast."""
    moderated = one.moderated and other.moderated
    freedom, scale = approximation(
        one.squared_error, other.squared_error, one.freedom, other.freedom, moderated=moderated
    )
    return Contrasts(
        difference=one.mean - other.mean, squared_error=one.squared_error + other.squared_error,
        freedom=freedom, scale=scale,
    )  # fmt: skip


def row(means: Means, index: int | slice) -> Means:
    """One row, or some, as means of their own."""
    places = slice(index, index + 1) if isinstance(index, int) else index
    return Means(
        mean=means.mean[places], squared_error=means.squared_error[places], freedom=means.freedom[places],
        moderated=means.moderated,
    )  # fmt: skip
