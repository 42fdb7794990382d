"""A complete run of two implementations, as records and as files."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

from harness.plan.profile import ProcessLimits
from harness.records.loads import ClosedLoop, Load
from harness.records.measurements import ErrorCounts
from harness.records.run_info import RunInfo
from harness.records.run_records import ProcessRecord
from harness.records.store import RunStore
from harness.records.trial_record import Trial, ValidityCheck
from harness.records.verification_record import CheckResult, Outcome, VerificationRecord
from harness.tests.doubles import runs

JSON = ClosedLoop(connections=64)
QUERIES = (ClosedLoop(connections=64, queries=1), ClosedLoop(connections=64, queries=20))
LOADS: dict[str, tuple[Load, ...]] = {"json": (JSON,), "query": QUERIES}
PROCESSES = 2
BROKEN = ValidityCheck(name="errors", outcome=Outcome.FAIL, value=3.0, threshold=0.0, flag="errors")


def info(run_id: str = "20260101-000000") -> RunInfo:
    """Return the description of a run: two implementations with two processes each, and the baseline ``fast``."""
    rules = ProcessLimits(minimum=PROCESSES, maximum=PROCESSES)
    found = runs.run_info(("fast", "slow"), rules, reference="fast", loads=LOADS)
    return found.model_copy(update={"run_id": run_id, "name": "invented", "completed_at": 61.0})


def trial(implementation: str, process: int, throughput: float, *, test_type: str = "json", load: Load = JSON) -> Trial:
    """Return a one-second trial."""
    return runs.trial(implementation, throughput, process, test_type=test_type, load=load)


def trials() -> list[Trial]:
    """Return two trials per cell. ``slow`` has errors at the highest number of queries."""
    recorded = []
    for implementation, factor in (("fast", 2.0), ("slow", 1.0)):
        for test_type, loads in LOADS.items():
            for load in loads:
                for process, wobble in enumerate((1.0, 1.02)):
                    one = trial(implementation, process, 1000 * factor * wobble, test_type=test_type, load=load)
                    broken = (implementation, load) == ("slow", QUERIES[1])
                    update = {"errors": ErrorCounts(read=1, status=2), "validity": (BROKEN,)}
                    recorded.append(one.model_copy(update=update) if broken else one)
    return recorded


def process(implementation: str, number: int, status: Literal["ok", "failed", "interrupted"] = "ok") -> ProcessRecord:
    """Return a process record."""
    return ProcessRecord(
        implementation=implementation, process=number, started_at=0.0, startup_time=0.25, status=status
    )


def verdict(
    implementation: str, test_type: str, outcome: Outcome = Outcome.PASS, *, process: int = 0
) -> VerificationRecord:
    """Return a verification record with one check."""
    results = (CheckResult(check="status-ok", rule="http.2", outcome=outcome),)
    return VerificationRecord(
        implementation=implementation, test_type=test_type, process=process, thorough=process == 0, outcome=outcome,
        results=results, duration=0.1,
    )  # fmt: skip


def stored(
    folder: Path, info: RunInfo, trials: Sequence[Trial], verdicts: Iterable[VerificationRecord] = ()
) -> RunStore:
    """Write a run with these trials and their processes."""
    store = RunStore(folder, started_at=0.0)
    store.write_info(info)
    for one in trials:
        store.add_trial(one)
    for implementation, number in sorted({(one.implementation, one.process) for one in trials}):
        store.add_process(process(implementation, number))
    (folder / "verdicts.jsonl").touch()
    for each in verdicts:
        store.add_verdict(each)
    return store


def write(results: Path, run_id: str = "20260101-000000") -> RunStore:
    """Write the complete run into the folder ``results``."""
    verdicts = [verdict(implementation, test_type) for implementation in ("fast", "slow") for test_type in LOADS]
    return stored(results / run_id, info(run_id), trials(), verdicts)
