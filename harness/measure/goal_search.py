"""The capacity at a latency goal: which rate to try next, and between which two rates the capacity lies. Pure.

As in MLPerf's server scenario (Reddi et al., ISCA 2020) a load meets the goal when the share of late requests is at
most 1 - the percentile's; a binomial interval says whether the load was long enough to decide. Requests that were
never answered are late.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scipy import special

GROWTH = 1.1  # while every rate meets the goal
SHRINKAGE = 0.5  # while none does
LEAST_SHARE = 0.01  # of the closed-loop throughput: below it the search gives up


@dataclass(frozen=True, kw_only=True)
class Tried:
    """What loads at one rate showed, pooled over one process."""

    rate: float  # requests/s
    due: int
    late: int

    def met(self, late_share: float) -> bool:
        """Whether no more than this share of the requests were late."""
        return self.due > 0 and self.late <= late_share * self.due

    def decided(self, late_share: float, confidence: float) -> bool:
        """Whether the interval of the share of late requests (Clopper & Pearson 1934) lies on one side of the goal.

        Lateness comes in bursts, so that the interval is narrower than the truth's: it says that the load was long
        enough, not more. How sure a capacity is, is a matter of several processes.
        """
        if self.due <= 0:
            return False
        tail = (1 - confidence) / 2
        k, n = self.late, self.due
        low = 0.0 if k == 0 else float(special.betaincinv(k, n - k + 1, tail))
        high = 1.0 if k == n else float(special.betaincinv(k + 1, n - k, 1 - tail))
        return high <= late_share or low > late_share


@dataclass(frozen=True, kw_only=True)
class Bracket:
    """The highest rate that met the goal and the lowest beyond it that missed it."""

    low: Tried | None
    high: Tried | None
    contradictions: int

    @property
    def ends(self) -> tuple[Tried, ...]:
        """Those that there are."""
        return tuple(end for end in (self.low, self.high) if end is not None)


def requests_to_decide(late_share: float, confidence: float) -> int:
    """Requests without which not even a load without a late one shows that a goal was met: 368 for p99 at 95 %."""
    return math.ceil(math.log((1 - confidence) / 2) / math.log1p(-late_share))


def bracket(tried: Sequence[Tried], late_share: float) -> Bracket:
    """The cut between rates that contradicts the fewest loads (misses below, goals met above it); the lowest of equals.

    One stall of the machine at a low rate would otherwise pass for the server's capacity.
    """
    ordered = sorted(tried, key=lambda one: one.rate)
    met = [one.met(late_share) for one in ordered]
    costs = [met[:cut].count(False) + met[cut:].count(True) for cut in range(len(ordered) + 1)]
    cut = costs.index(min(costs))
    low = next((one for one, good in zip(ordered[:cut][::-1], met[:cut][::-1], strict=True) if good), None)
    high = next((one for one, good in zip(ordered[cut:], met[cut:], strict=True) if not good), None)
    return Bracket(low=low, high=high, contradictions=min(costs))


def next_rate(
    found: Bracket, capacity: float, *, late_share: float, width: float, confidence: float, seconds: float = math.inf
) -> float | None:
    """The rate to try next; None when the bracket is as narrow as ``width`` and both of its ends are decided.

    ``capacity``: closed-loop throughput; ``seconds``: of a load, which may be too short to decide a low rate. Outwards
    while one end is missing, then halving on logarithms, then again at an end whose loads were too short to decide.
    """
    low, high = found.low, found.high
    if low is None and high is None:
        return capacity / 2
    if low is None:
        assert high is not None  # noqa: S101 - one of both is there
        least = max(LEAST_SHARE * capacity, requests_to_decide(late_share, confidence) / seconds)
        lower = max(high.rate * SHRINKAGE, least)
        return lower if lower < high.rate else None
    if high is None:
        return low.rate * GROWTH
    if high.rate / low.rate > 1 + width:
        return math.sqrt(low.rate * high.rate)
    return next((end.rate for end in found.ends if not end.decided(late_share, confidence)), None)
