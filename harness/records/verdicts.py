"""The verdicts of comparisons and claims, as used by reports, the regression gate and the web page."""

from collections.abc import Iterable
from typing import Literal, get_args

UNCHANGED_MARGIN = 0.05  # default margin: relative differences up to 5 % count as unchanged

# Verdict on a cell, on a service's request, or on a whole comparison. "same": the interval excludes differences above
# the margin. "failed": the new version does not work. "not in base": the base version does not have the request.
Verdict = Literal["failed", "slower", "cannot tell", "faster", "same", "not in base"]
# "not in base" is not in this list, because it does not affect the verdict on a whole comparison.
WORST_FIRST: tuple[Verdict, ...] = ("failed", "slower", "cannot tell", "faster", "same")

# Whether a measured ratio agrees with a claim. "undecided" corresponds to the verdict "cannot tell".
ClaimConclusion = Literal["supported", "direction only", "refuted", "needs a larger machine", "undecided"]
CLAIM_CONCLUSIONS: tuple[ClaimConclusion, ...] = get_args(ClaimConclusion)


def is_equivalent(low: float | None, high: float | None, margin: float) -> bool:
    """Return whether a ratio's interval lies between 1 / (1 + margin) and 1 + margin."""
    return bool(low and high and low >= 1 / (1 + margin) and high <= 1 + margin)


def worst(verdicts: Iterable[Verdict], default: Verdict = "cannot tell") -> Verdict:
    """Return the worst verdict, in the order of ``WORST_FIRST``. Return the default if no listed verdict occurs."""
    return min((each for each in verdicts if each in WORST_FIRST), key=WORST_FIRST.index, default=default)
