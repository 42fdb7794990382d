"""The verdicts of comparisons and claims: the words that reports, the regression gate and the page share."""

from collections.abc import Iterable
from typing import Literal, get_args

# A comparison of a cell, of a request of a service, or of all of them. "same": the interval excludes any difference
# above the margin. "failed": the compared version does not work. "not in base": the baseline lacks the request.
Verdict = Literal["failed", "slower", "cannot tell", "faster", "same", "not in base"]
WORST_FIRST: tuple[Verdict, ...] = ("failed", "slower", "cannot tell", "faster", "same")  # "not in base" never decides

# A claim of a talk is not a comparison of two versions: its verdict says whether a measured ratio agrees with the
# claimed ratio. "undecided" is its "cannot tell".
ClaimConclusion = Literal["supported", "direction only", "refuted", "needs a larger machine", "undecided"]
CLAIM_CONCLUSIONS: tuple[ClaimConclusion, ...] = get_args(ClaimConclusion)


def is_equivalent(low: float | None, high: float | None, margin: float) -> bool:
    """Return whether the interval of a ratio excludes any relative difference above the margin (0.05 means 5 %)."""
    return bool(low and high and low >= 1 / (1 + margin) and high <= 1 + margin)


def worst(verdicts: Iterable[Verdict], default: Verdict = "cannot tell") -> Verdict:
    """Return the first of ``WORST_FIRST`` that occurs; the default if none does."""
    return min((each for each in verdicts if each in WORST_FIRST), key=WORST_FIRST.index, default=default)
