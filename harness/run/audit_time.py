"""How much of a run's time its audits may take: each has an equal part of it, and what one spares the next may use.

The part is planned before the run (a profile's ``audit_share`` of the time that measuring is planned to take), and what
an audit takes beyond its load is learned on the way. One that does not fit is shortened, at random, so that no time
of a load is one in which nobody can be looking; a cell's first one always comes.
"""

import random
from dataclasses import dataclass

from harness.measure.audit import LEAST_SECONDS
from harness.plan.plan import Plan
from harness.plan.profile import Profile

OVERHEAD_SECONDS = 0.8  # of an audit beyond its load: the generator's start, the tables, the judgement; until measured
RESERVED = 0.2  # of the time, where servers stay up: for audits at moments that nobody can foresee
NEWEST = 0.2  # with which the latest audit counts in what is learned


@dataclass
class AuditTime:
    """The account of one run."""

    seconds: float  # that all audits may take
    owed: int  # audits that are planned: one of each cell and process
    reserved: float = 0.0  # share of the seconds for others
    overhead: float = OVERHEAD_SECONDS
    spent: float = 0.0
    audits: int = 0
    _each: float = 0.0
    _balance: float = 0.0  # of the planned ones

    def __post_init__(self) -> None:
        self._each = self.seconds * (1 - self.reserved) / max(1, self.owed)

    @classmethod
    def of(cls, plan: Plan, profile: Profile) -> "AuditTime":
        """What a profile plans for its audits."""
        cells = sum(len(candidate.test_types) for candidate in plan.blocks[0])
        return cls(
            seconds=profile.audit_share * plan.expected_seconds,
            owed=cells * (1 if profile.rounds else plan.minimum_blocks),
            reserved=RESERVED if profile.rounds else 0.0,
        )

    def affords_another(self) -> bool:
        """Whether there is time for an audit that is not owed."""
        return self._left() >= LEAST_SECONDS + self.overhead

    def load_seconds(self, wanted: float, *, owed: bool, seed: int) -> float:
        """How long the load of the next audit lasts: as long as wanted, or sometimes so and sometimes the least.

        In the mean it takes what there is for it.
        """
        if owed:
            self._balance += self._each
        allowed = (self._balance if owed else self._left()) - self.overhead
        if wanted <= max(allowed, LEAST_SECONDS):
            return wanted
        often = max(0.0, allowed - LEAST_SECONDS) / (wanted - LEAST_SECONDS)
        return wanted if random.Random(f"audit time {seed}").random() < often else LEAST_SECONDS

    def took(self, load_seconds: float, seconds: float, *, owed: bool) -> None:
        """An audit is over."""
        self.overhead += NEWEST * (max(0.0, seconds - load_seconds) - self.overhead)
        self.spent += seconds
        self.audits += 1
        if owed:
            self.owed = max(0, self.owed - 1)
            self._balance -= seconds

    def _left(self) -> float:
        """For audits that are not owed: what those to come will not take."""
        return self.seconds - self.spent - self.owed * self._each

    def text(self, run_seconds: float) -> str:
        """What it came to, in a line."""
        if not self.audits or run_seconds <= 0:
            return ""
        return (
            f"{self.audits} audits took {self.spent:.1f} s, {self.spent / run_seconds:.1%} of {run_seconds:.0f} s of "
            f"measuring (planned: at most {self.seconds:.1f} s)"
        )
