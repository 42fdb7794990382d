"""The verdict on one statement, from a ratio with its interval. Pure arithmetic on logarithms.

A statement means a range of ratios: of a ratio r, all from r / (1 + t) to r (1 + t); of an order, all on its side of 1,
where "not lower" lets a difference pass that is smaller than one that anybody would speak of. A range that holds 1 says
that two are alike, and no order.

- supported: the interval lies within the range;
- refuted: it lies on the other side of 1, or leaves no room for a difference that is worth the name; where two were
  said to be alike, it lies outside;
- direction only: it lies on the claimed side of 1, and not within the range;
- undecided: anything else.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from harness.records.claims import Word
from harness.stats.model import Ratio

MANY = 100  # processes: beyond, what a claim takes is told as more than that
# Of a claim the first of these that its statements have; where one is enough, the first from the end.
ORDER: tuple[Word, ...] = ("refuted", "undecided", "needs a larger machine", "direction only", "supported")


class Range(NamedTuple):
    """Ratios that count as what was said; endless where there is no end on a side."""

    least: float
    most: float

    def __str__(self) -> str:
        ends = [f"{end:.3g}" for end in self if 0 < end < math.inf]
        return " to ".join(ends) if len(ends) > 1 else f"{'above' if math.isinf(self.most) else 'below'} {ends[0]}"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A verdict with the reason in a sentence, and how many more processes of each would decide more."""

    word: Word
    reason: str
    more: float = 0.0
    range: Range | None = None


def of_ratio(expected: float, tolerance: float, measured: Ratio, processes: int, least: float = 0.05) -> Finding:
    """Whether a measured ratio is what was claimed, within the tolerance. ``least``: the least difference of two."""
    meant = Range(expected / (1 + tolerance), expected * (1 + tolerance))
    low, high = measured.low, measured.high
    if low is None or high is None:
        return _no_interval(measured, meant)
    if meant.least <= low and high <= meant.most:
        return Finding(word="supported", reason=f"all of the interval is within {meant}", range=meant)
    outside = high < meant.least or low > meant.most
    if meant.least <= 1 <= meant.most:
        if outside:
            return Finding(word="refuted", reason=f"the two are not alike: {meant} is excluded", range=meant)
        return _open("undecided", measured, processes, meant, meant, f"the interval reaches beyond {meant}")
    if (high < 1) if expected > 1 else (low > 1):
        return Finding(word="refuted", reason="the order is the other way round", range=meant)
    if low <= 1 <= high:
        if outside and (high < 1 + least if expected > 1 else low > 1 / (1 + least)):
            return Finding(word="refuted", reason=f"a difference of {least:.0%} is excluded", range=meant)
        return _open("undecided", measured, processes, meant, (1.0, *meant), "the order is open: the interval holds 1")
    if outside:
        return Finding(word="direction only", reason=f"the order is as said, the size is not {meant}", range=meant)
    return _open("direction only", measured, processes, meant, meant, f"whether the size is {meant} is open")


def of_order(order: str, least: float, measured: Ratio, processes: int, *, substantial: bool = False) -> Finding:
    """Whether the one is higher, lower, not higher or not lower than the other, by ``least`` where substantially so."""
    edge = 1 + least if order.endswith("higher") else 1 / (1 + least)
    above = order in ("higher", "not lower")
    side = edge if substantial or order.startswith("not ") else 1.0
    meant = Range(side, math.inf) if above else Range(0.0, side)
    low, high = measured.low, measured.high
    if low is None or high is None:
        return _no_interval(measured, meant)
    if meant.least < low and high < meant.most:
        return Finding(word="supported", reason=f"all of the interval is {meant}", range=meant)
    if (high < edge) if above else (low > edge):
        opposite = (high < 1) if above else (low > 1)
        reason = "the order is the other way round" if opposite else f"a difference of {least:.0%} is excluded"
        return Finding(word="refuted", reason=reason, range=meant)
    return _open("undecided", measured, processes, meant, (side, edge), f"the interval holds {side:.3g}")


def of_count(count: int, *, none: bool, of: str) -> Finding:
    """Whether there was any of what was said to occur never, or at times."""
    return Finding(word="supported" if (count == 0) == none else "refuted", reason=f"{count:,} in {of}")


def of_size(finding: Finding, loads: Sequence[tuple[float, float]], cpus: int) -> Finding:
    """By the utilisation law, requests/s take so many CPUs times the CPU seconds of one; as found where there are."""
    rate, cost = max(loads, key=math.prod)
    if rate * cost <= cpus:
        return finding
    reason = (
        f"{rate:,.0f} requests/s at the {cost * 1e6:,.0f} µs of CPU that one took here, generator and database with "
        f"it, are {math.ceil(rate * cost)} CPUs; here are {cpus}"
    )
    return replace(finding, word="needs a larger machine", reason=reason, more=0.0)


def of_claim(words: Sequence[Word], *, can: bool = False) -> Word:
    """The verdict on a claim: the least favourable of its statements, or the most where one of them is enough."""
    return next((word for word in (ORDER[::-1] if can else ORDER) if word in words), "undecided")


def _no_interval(measured: Ratio, meant: Range) -> Finding:
    return Finding(
        word="undecided", reason=f"{measured.value:.2f} of one process each has no interval", more=1, range=meant
    )


def _open(word: Word, measured: Ratio, processes: int, meant: Range, edges: Sequence[float], reason: str) -> Finding:
    """Open, with the processes after which the interval would lie clear of the nearest edge.

    Half-widths fall with the root of the number of processes; that t's quantile falls, too, is left out: so it is
    a cautious guess.
    """
    half = math.log((measured.high or measured.value) / (measured.low or measured.value)) / 2
    gap = min(abs(math.log(measured.value / edge)) for edge in edges)
    wanted = math.ceil(processes * (half / gap) ** 2) if gap > 0 else math.inf
    return Finding(word=word, reason=reason, more=max(wanted - processes, 1), range=meant)
