"""Audits in memory: a sample like the others, whose cost is so many times theirs."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from harness.measure.audit import Audited
from harness.measure.sweep import take_sample
from harness.measure.testbed import Target, Testbed
from harness.records.models import AuditedLoad, Load


@dataclass(frozen=True)
class FakeAuditor:
    """Finds nothing in what is answered."""

    cost: Mapping[str, float]  # by implementation

    def __call__(
        self, testbed: Testbed, target: Target, level: Load, seed: int, expected: float, seconds: float
    ) -> Audited:
        """Load the target as a sample does."""
        target = replace(target, ledger=None)
        sample = take_sample(testbed, target, level, seconds=seconds)
        cpu, factor = sample.cpu_per_request, self.cost[sample.implementation]
        return Audited(
            results=(),
            successes=sample.requests - sample.errors.status,
            failed=sample.errors.status,
            load=AuditedLoad(
                duration=sample.duration,
                requests=sample.requests,
                cpu_per_request=cpu * factor if cpu else None,
                latency=sample.latency.model_copy(update={"basis": "closed-loop, service time"})
                if sample.latency
                else None,
            ),
        )
