"""One live process among others, and what is known of it."""

from collections import defaultdict
from dataclasses import dataclass, field

from harness.errors import ServerDiedError
from harness.measure.testbed import Target
from harness.records.models import WarmUp
from harness.run.replicate import Replicate
from harness.runtime import Reading

ENOUGH_SECONDS = 5.0  # of idleness, before it is judged
LOOKS = {False: 1, True: 3}  # in a row that find it busy; on a JIT runtime the first rounds leave work to its compilers


@dataclass
class Member:
    """A server with its targets, its warm-ups, and what it used while others were under load."""

    replicate: Replicate
    targets: dict[str, Target] = field(default_factory=dict)  # verified test types
    warm_ups: dict[str, WarmUp | None] = field(default_factory=dict)  # not yet recorded with a sample
    steady: dict[str, bool | None] = field(default_factory=dict)
    failed_loads: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    windows: dict[str, int] = field(default_factory=lambda: defaultdict(int))  # at the headline level, by test type
    connections: int = 0  # that it holds to PostgreSQL
    setup_seconds: float = 0.0  # start, verification and its part of the warm-up
    loaded_at: float = 0.0  # when its latest load ended, by the clock
    idle_seconds: float = 0.0  # since the latest look
    idle_cpu_seconds: float = 0.0
    idle_share: float = 0.0  # CPUs that it used while others were under load, at the latest look
    busy_looks: int = 0  # the latest ones in a row that found it busy

    @property
    def name(self) -> str:
        """The implementation."""
        return self.replicate.planned.implementation

    def reading(self) -> Reading | None:
        """Its meter now; None when it is gone, which is found out when its turn comes."""
        try:
            return self.replicate.server.meter.read()
        except ServerDiedError:
            return None

    def count_idle(self, before: Reading | None, after: Reading | None) -> None:
        """It had nothing to do between these readings."""
        if before is None or after is None:
            return
        self.idle_seconds += after.at - before.at
        self.idle_cpu_seconds += after.used_since(before)

    def disturbs(self, limit: float) -> bool:
        """Whether it used more than ``limit`` CPUs while it should have been idle; of a JIT runtime by three looks.

        A look covers what was seen since the latest, usually a round; less than five seconds are left for the next.
        """
        if self.idle_seconds < ENOUGH_SECONDS:
            return False
        self.idle_share = self.idle_cpu_seconds / self.idle_seconds
        self.idle_seconds = self.idle_cpu_seconds = 0.0
        self.busy_looks = self.busy_looks + 1 if self.idle_share > limit else 0
        return self.busy_looks >= LOOKS[self.replicate.planned.jit]
