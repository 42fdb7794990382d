"""Servers that are alive side by side are warmed in turns: short bursts of load over all that is not steady yet.

A just-in-time compiler works beside the load that it compiles for, and under a full load on few CPUs it is one of many
threads that want them: warmed without a pause, a server spends most of its warm-up serving requests with code that is
about to be replaced. In turns, the compilers of one server work off what its burst left while another has its own, and
where only one server is left its bursts wait until it has nothing more to do, within bounds.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from harness.host.clock import Clock
from harness.measure import sweep
from harness.measure.observe import Observation
from harness.measure.steady import SteadyDetector
from harness.records.models import WarmUp
from harness.run.member import Member

GLANCE_SECONDS = 0.25
BUSY_SHARE = 0.05  # of a CPU: a server without a load that uses more is still at work on an earlier one
PAUSE_SECONDS = 1.5  # most, between two bursts of the only server that is left
SETTLE_SECONDS = 8.0  # most, until all are quiet after the last burst


@dataclass
class Warmth:
    """One test type of one server on its way to a steady cost."""

    member: Member
    test_type: str
    detector: SteadyDetector
    bursts: list[Observation] = field(default_factory=list)

    @property
    def done(self) -> bool:
        """Steady, at its cap, or not there any more."""
        return (
            bool(self.detector.steady)
            or self.detector.seconds >= self.detector.cap_seconds
            or self.test_type not in self.member.targets
        )

    @property
    def result(self) -> WarmUp | None:
        """All bursts as one warm-up."""
        return sweep.warmed(self.bursts, self.detector) if self.bursts else None


Burst = Callable[[Warmth], bool]  # a burst of load; False when it failed, and its test type or server is left out


def in_turns(cells: Sequence[Warmth], burst: Burst, clock: Clock, *, seconds: float, seed: int) -> None:
    """Bursts over all cells that are not done, in seeded random order, lap after lap; then all servers come to rest.

    It ends after so many seconds at the latest; every cell has one burst all the same.
    """
    until = clock.monotonic() + seconds
    lap = 0
    while waiting := [cell for cell in cells if not cell.done]:
        if lap and clock.monotonic() >= until:
            break
        random.Random(f"{seed}/{lap}").shuffle(waiting)
        alone = len({id(cell.member) for cell in waiting}) == 1
        for cell in waiting:
            if cell.done or (lap and clock.monotonic() >= until):
                continue
            if burst(cell) and alone:
                settle([cell.member], clock, PAUSE_SECONDS)
        lap += 1
    settle(
        list({id(cell.member): cell.member for cell in cells if cell.member.targets}.values()), clock, SETTLE_SECONDS
    )


def settle(members: Sequence[Member], clock: Clock, seconds: float) -> None:
    """Wait until none of them uses a CPU any more, at most so long."""
    until = clock.monotonic() + seconds
    before = [member.reading() for member in members]
    while clock.monotonic() < until:
        clock.sleep(GLANCE_SECONDS)
        after = [member.reading() for member in members]
        shares = [
            later.used_since(earlier) / (later.at - earlier.at)
            for earlier, later in zip(before, after, strict=True)
            if earlier and later and later.at > earlier.at
        ]
        if max(shares, default=0.0) <= BUSY_SHARE:
            return
        before = after
