"""A finished run of two implementations as records and as files, for the tests of what reads them."""

from pathlib import Path

from harness.benchmarks.simulation import run_info, sample
from harness.plan.profile import Replication
from harness.records.models import (
    CheckResult,
    Errors,
    Latency,
    Closed,
    Outcome,
    ReplicateRecord,
    RunInfo,
    Sample,
    Verdict,
)
from harness.records.store import RunStore

JSON = Closed(connections=64)
QUERIES = (Closed(connections=64, queries=1), Closed(connections=64, queries=20))
LEVELS = {"json": (JSON,), "query": QUERIES}
LATENCY = Latency(
    basis="closed-loop, wrk-corrected",
    mean=0.0005,
    stdev=0.002,
    min=0.0001,
    max=1.5,
    percentiles={"50": 0.0004, "99": 0.002},
)


def info(run_id: str = "20260101-000000") -> RunInfo:
    """Two implementations, two blocks, ``fast`` being the reference."""
    known = run_info(("fast", "slow"), Replication(minimum=2, maximum=2), reference="fast", levels=LEVELS)
    return known.model_copy(update={"run_id": run_id, "status": "complete", "completed_at": known.started_at + 61})


def samples() -> list[Sample]:
    """Every cell twice, but for the most queries of ``slow``, whose samples had errors."""
    found = []
    for implementation, factor in (("fast", 2.0), ("slow", 1.0)):
        for test_type, levels in LEVELS.items():
            for level in levels:
                for block, wobble in enumerate((1.0, 1.02)):
                    one = sample(implementation, block, 1000 * factor * wobble, test_type=test_type, level=level)
                    found.append(one.model_copy(update={"latency": LATENCY}))
    return [broken(s) if (s.implementation, s.level) == ("slow", QUERIES[1]) else s for s in found]


def broken(one: Sample) -> Sample:
    """The sample with errors, kept out by its gate."""
    gate = {"name": "errors", "outcome": Outcome.FAIL, "value": 3.0, "threshold": 0.0, "word": "errors"}
    changed = {**one.model_dump(), "errors": Errors(read=1, status=2).model_dump(), "gates": [gate]}
    return Sample.model_validate(changed)


def replicate(implementation: str, block: int, status: str = "ok") -> ReplicateRecord:
    """A fresh start."""
    return ReplicateRecord.model_validate(
        {
            "implementation": implementation,
            "block": block,
            "replicate": block,
            "started_at": 0.0,
            "first_answer": 0.25,
            "status": status,
        }
    )


def verdict(implementation: str, test_type: str, outcome: Outcome = Outcome.PASS) -> Verdict:
    """A verification with one check."""
    return Verdict(
        implementation=implementation,
        test_type=test_type,
        replicate=0,
        thorough=True,
        outcome=outcome,
        results=(CheckResult(check="status-ok", rule="http.2", outcome=outcome),),
        duration=0.1,
    )


def write(results: Path, run_id: str = "20260101-000000") -> RunStore:
    """The run's folder."""
    store = RunStore(results / run_id, started_at=0.0)
    store.write_info(info(run_id))
    for one in samples():
        store.add_sample(one)
    for implementation in ("fast", "slow"):
        for block in (0, 1):
            store.add_replicate(replicate(implementation, block))
        for test_type in LEVELS:
            store.add_verdict(verdict(implementation, test_type))
    return store
