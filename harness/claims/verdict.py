"""The verdict on one comparison, from a ratio with its interval. Pure arithmetic on logarithms.

A claim of a ratio means every ratio within its tolerance, ``expected / (1 + t)`` to ``expected * (1 + t)``. Where that
holds 1, it says that the two are alike, and claims no order.

- supported: the interval lies within; of a claimed order: on the claimed side of 1;
- direction only: the interval lies on the claimed side of 1, and wholly outside the tolerance;
- refuted: the interval lies on the other side of 1, or wholly outside the tolerance where no order is claimed;
- undecided: anything else.
"""

import math
from dataclasses import dataclass

from harness.records.claims import WORDS, Word
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
    interval = _interval(measured)
    if interval is None:
        return _no_interval(measured)
    low, high = interval
    least, most = expected / (1 + tolerance), expected * (1 + tolerance)
    within = f"{least:.3g} to {most:.3g}"
    if least <= low and high <= most:
        return Finding(word="supported", reason=f"the interval lies within {within}")
    alike = least <= 1 <= most
    outside = high < least or low > most
    if alike:
        if outside:
            return Finding(word="refuted", reason=f"the two are not alike: the interval excludes {within}")
        return _open(measured, processes, (least, most), f"the interval reaches beyond {within}")
    claimed_side = low > 1 if expected > 1 else high < 1
    other_side = high < 1 if expected > 1 else low > 1
    if other_side:
        return Finding(word="refuted", reason="the order is the other way round")
    if claimed_side and outside:
        return Finding(word="direction only", reason=f"the order is as said, the size is not: {within} is excluded")
    told = "the order is as said, the size is open" if claimed_side else "the order is open"
    return _open(measured, processes, (least, most) if claimed_side else (1.0, least, most), told)


def of_order(order: str, measured: Ratio, processes: int) -> Finding:
    """Whether the one is higher, or lower, than the other."""
    interval = _interval(measured)
    if interval is None:
        return _no_interval(measured)
    low, high = interval
    if low > 1 or high < 1:
        as_said = (low > 1) == (order == "higher")
        return (
            Finding(word="supported", reason="the interval lies on the claimed side of 1")
            if as_said
            else Finding(word="refuted", reason="the order is the other way round")
        )
    return _open(measured, processes, (1.0,), "the order is open: the interval holds 1")


def of_count(count: float, *, none: bool, requests: int) -> Finding:
    """Whether there was any of what was said to occur never, or at times."""
    seen = f"{count:,.0f} in {requests:,} requests"
    return Finding(word="supported" if (count == 0) == none else "refuted", reason=seen)


def of_occurrences(values: tuple[float, ...], *, none: bool) -> Finding:
    """The same of a program's starts, each of which has a figure: zero, or not."""
    some = sum(value != 0 for value in values)
    seen = f"in {some} of {len(values)} starts"
    if not values or 0 < some < len(values):
        return Finding(word="undecided", reason=seen, takes="a start that ends the same way each time")
    return Finding(word="supported" if (some == 0) == none else "refuted", reason=seen)


def of_claim(words: tuple[Word, ...]) -> Word:
    """The verdict on a claim as a whole: the least favourable of its statements, but open while any is open.

    A refuted statement refutes it whatever the others will show.
    """
    for word in ("refuted", "undecided", "direction only"):
        if word in words:
            return WORDS[WORDS.index(word)]
    return "supported" if words else "undecided"


def _interval(measured: Ratio) -> tuple[float, float] | None:
    if measured.low is None or measured.high is None:
        return None
    return measured.low, measured.high


def _no_interval(measured: Ratio) -> Finding:
    reason = f"{measured.value:.2f} of one process each has no interval"
    return Finding(word="undecided", reason=reason, takes="at least two processes of each, better five")


def _open(measured: Ratio, processes: int, edges: tuple[float, ...], reason: str) -> Finding:
    """Undecided, with the processes after which the interval would lie clear of the nearest edge.

    Half-widths fall with the root of the number of processes; that t's quantile falls, too, is left out: so it is
    a cautious guess.
    """
    value = math.log(measured.value)
    half = math.log((measured.high or measured.value) / (measured.low or measured.value)) / 2
    gap = min(abs(value - math.log(edge)) for edge in edges)
    wanted = math.ceil(processes * (half / gap) ** 2) if gap > 0 else math.inf
    if wanted > MANY:
        takes = f"more than {MANY} processes of each, or a quieter machine: what was measured is at the edge"
    else:
        takes = f"about {max(wanted, processes + 1)} processes of each (now {processes})"
    return Finding(word="undecided", reason=reason, takes=takes)
