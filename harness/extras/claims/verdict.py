"""The verdict on one statement, from a ratio with its interval. Pure arithmetic on logarithms.

A claim of a ratio means every ratio within its tolerance, ``expected / (1 + t)`` to ``expected * (1 + t)``. Where that
holds 1, it says that the two are alike, and claims no order.

- supported: the interval lies within; of a claimed order: on the claimed side of 1;
- direction only: the interval lies on the claimed side of 1, and wholly outside the tolerance;
- refuted: the interval lies on the other side of 1, or wholly outside the tolerance where no order is claimed;
- undecided: anything else.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from harness.records.claims import Word
from harness.stats.model import Ratio

MANY = 100  # processes: beyond, what a claim takes is told as more than that


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A verdict with the reason in a sentence, and what it would take where it is open."""

    word: Word
    reason: str
    takes: str = ""


def of_ratio(expected: float, tolerance: float, measured: Ratio, processes: int) -> Finding:
    """Whether a measured ratio is what was claimed, within the tolerance."""
    low, high = measured.low, measured.high
    if low is None or high is None:
        return _no_interval(measured)
    least, most = expected / (1 + tolerance), expected * (1 + tolerance)
    within = f"{least:.3g} to {most:.3g}"
    if least <= low and high <= most:
        return Finding(word="supported", reason=f"the interval lies within {within}")
    outside = high < least or low > most
    if least <= 1 <= most:
        if outside:
            return Finding(word="refuted", reason=f"the two are not alike: the interval excludes {within}")
        return _open(measured, processes, (least, most), f"the interval reaches beyond {within}")
    claimed_side, other_side = (low > 1, high < 1) if expected > 1 else (high < 1, low > 1)
    if other_side:
        return Finding(word="refuted", reason="the order is the other way round")
    if claimed_side and outside:
        return Finding(word="direction only", reason=f"the order is as said, the size is not: {within} is excluded")
    if claimed_side:
        return _open(measured, processes, (least, most), "the order is as said, the size is open")
    return _open(measured, processes, (1.0, least, most), "the order is open")


def of_order(order: str, measured: Ratio, processes: int) -> Finding:
    """Whether the one is higher, or lower, than the other."""
    low, high = measured.low, measured.high
    if low is None or high is None:
        return _no_interval(measured)
    if low <= 1 <= high:
        return _open(measured, processes, (1.0,), "the order is open: the interval holds 1")
    if (low > 1) == (order == "higher"):
        return Finding(word="supported", reason="the interval lies on the claimed side of 1")
    return Finding(word="refuted", reason="the order is the other way round")


def of_count(count: int, *, none: bool, requests: int) -> Finding:
    """Whether there was any of what was said to occur never, or at times."""
    seen = f"{count:,} in {requests:,} requests"
    return Finding(word="supported" if (count == 0) == none else "refuted", reason=seen)


def of_occurrences(values: Sequence[float], *, none: bool) -> Finding:
    """The same of a program's starts, each of which has a figure: zero, or not."""
    some = sum(value != 0 for value in values)
    seen = f"in {some} of {len(values)} starts"
    if not values or 0 < some < len(values):
        return Finding(word="undecided", reason=seen, takes="a start that ends the same way each time")
    return Finding(word="supported" if (some == 0) == none else "refuted", reason=seen)


def of_claim(words: Sequence[Word]) -> Word:
    """The verdict on a claim: the least favourable of its statements, but open while any is open, and none refuted."""
    order: tuple[Word, ...] = ("refuted", "undecided", "direction only", "supported")
    return next((word for word in order if word in words), "undecided")


def _no_interval(measured: Ratio) -> Finding:
    reason = f"{measured.value:.2f} of one process each has no interval"
    return Finding(word="undecided", reason=reason, takes="at least two processes of each, better five")


def _open(measured: Ratio, processes: int, edges: Sequence[float], reason: str) -> Finding:
    """Undecided, with the processes after which the interval would lie clear of the nearest edge.

    Half-widths fall with the root of the number of processes; that t's quantile falls, too, is left out: so it is
    a cautious guess.
    """
    half = math.log((measured.high or measured.value) / (measured.low or measured.value)) / 2
    gap = min(abs(math.log(measured.value / edge)) for edge in edges)
    wanted = math.ceil(processes * (half / gap) ** 2) if gap > 0 else math.inf
    takes = f"about {max(wanted, processes + 1)} processes of each (now {processes})"
    if wanted > MANY:
        takes = f"more than {MANY} processes of each, or a quieter machine: what was measured is at the edge"
    return Finding(word="undecided", reason=reason, takes=takes)
