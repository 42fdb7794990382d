"""Records for the tests of the ranking: a run of a few blocks with the figures of choice."""

from harness.benchmarks.simulation import LEVEL, run_info, sample
from harness.plan.profile import Replication
from harness.records.models import Errors, Gate, Load, Outcome, RunInfo, Sample

FIXED = Replication(minimum=5, maximum=5)
WOBBLE = (1.0, 1.01, 0.99, 1.005, 0.995)

CONTENDED = Gate(name="contended", outcome=Outcome.WARN, value=0.2, threshold=0.05, word="contended")
ERRORS = Gate(name="errors", outcome=Outcome.FAIL, value=3.0, threshold=0.0, word="errors")


def five(
    implementation: str, throughput: float, *, test_type: str = "json", level: Load = LEVEL, phase: int = 0
) -> list[Sample]:
    """Five replicates around this throughput; ``phase`` shifts the wobble so that no two servers share it."""
    return [
        sample(implementation, block, throughput * WOBBLE[(block + phase) % 5], test_type=test_type, level=level)
        for block in range(5)
    ]


def run(*names: str, reference: str | None = None, levels: dict[str, tuple[Load, ...]] | None = None) -> RunInfo:
    """A run of five blocks over these implementations."""
    return run_info(names, FIXED, reference=reference, levels=levels)


__all__ = ["CONTENDED", "ERRORS", "FIXED", "LEVEL", "Errors", "five", "run", "sample"]
