"""The verdicts of comparisons and claims, as used by reports, the regression gate and the web page."""

from collections.abc import Iterable
from typing import Literal, get_args

# Verdict on a cell, on a service's request, or on a whole comparison. "same": the interval excludes any difference
# above the margin. "failed": the compared version does not work. "not in base": the baseline lacks the request.
Verdict = Literal["failed", "slower", "cannot tell", "faster", "same", "not in base"]
# "not in base" is never decisive
WORST_FIRST: tuple[Verdict, ...] = ("failed", "slower", "cannot tell", "faster", "same")

# A claim does not compare two versions. Its conclusion states whether a measured ratio agrees with the claimed ratio.
# "undecided" corresponds to "cannot tell".
ClaimConclusion = Literal["supported", "direction only", "refuted", "needs a larger machine", "undecided"]
CLAIM_CONCLUSIONS: tuple[ClaimConclusion, ...] = get_args(ClaimConclusion)


def is_equivalent(low: float | None, high: float | None, margin: float) -> bool:
    """Return whether a ratio's interval excludes all relative differences above the margin (0.05 means 5 %)."""
    return bool(low and high and low >= 1 / (1 + margin) and high <= 1 + margin)


def worst(verdicts: Iterable[Verdict], default: Verdict = "cannot tell") -> Verdict:
    """Return the first entry of ``WORST_FIRST`` that occurs, or the default."""
    return min((each for each in verdicts if each in WORST_FIRST), key=WORST_FIRST.index, default=default)
