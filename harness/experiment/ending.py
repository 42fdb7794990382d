"""Determines how a run ended: final status, failures, and a verdict on each implementation."""

from collections.abc import Collection, Iterator
from typing import Literal

from harness.records.run_info import RunStatus
from harness.records.run_records import ProcessRecord, RunRecords
from harness.records.verification_record import Outcome
from harness.report.verification_results import ImplementationVerdict, build_verdict, count_violations
from harness.stats.unranked import NOT_REACHED, loads_without_figure, unreached_cells

RETRIED_SUFFIX = "; started again"


def final_status(
    records: RunRecords, status: Literal["complete", "failed", "interrupted"], reason: str
) -> tuple[RunStatus, tuple[str, ...], tuple[str, ...]]:
    """Return a run's final status, all problems, and the problems that make the exit code nonzero.

    If ``status`` is not "complete", the run stopped early for the given ``reason``, and unmeasured cells are not
    failures.
    """
    before = records.info.problems
    if status != "complete":
        return status, (*before, reason or status), ()
    failed = tuple(dict.fromkeys((*before, *find_failures(records))))
    late_problems = tuple(
        f"{each.name} {cells}: {NOT_REACHED}"
        for each in records.info.implementations
        for cells in unreached_cells(records, each.name)
    )
    return (
        "failed" if failed else "incomplete" if late_problems else "complete",
        (*failed, *late_problems),
        (*failed, *late_problems),
    )


def find_failures(records: RunRecords) -> tuple[str, ...]:
    """Return a message for each failure. A cell that the run had no time to measure is not a failure."""
    messages = []
    failed = {(v.implementation, v.test_type) for v in records.verdicts if v.outcome is Outcome.FAIL}
    for implementation in records.info.implementations:
        name, build = implementation.name, implementation.build
        if build is None or build.status != "ok":
            what = "was not built" if build is None else f"{build.status}: {build.reason.splitlines()[0]}"
            messages.append(f"{name} {what}")
            continue
        for test_type in records.info.cells.get(name, {}) if records.info.cells else records.info.loads:
            if (name, test_type) in failed:
                messages.append(f"{name} {test_type}: verification failed")
            elif test_type in implementation.test_types:
                missing = loads_without_figure(records, name, test_type)
                messages += [
                    f"{name} {test_type} {load.label}: {reason}" for load, reason in missing if reason != NOT_REACHED
                ]
    return (*messages, *(_failure(process) for process in records.processes if process.status != "ok"))


def retried_failures(records: RunRecords, done: Collection[tuple[str, int]]) -> tuple[str, ...]:
    """Return a message for each failed process that ``--resume`` has restarted or will restart.

    ``done`` contains the (implementation, process number) pairs that it does not restart.
    """
    failed = (each for each in records.processes if each.status == "failed")
    new = (f"{_failure(each)}{RETRIED_SUFFIX}" for each in failed if (each.implementation, each.process) not in done)
    return (*(each for each in records.info.problems if each.endswith(RETRIED_SUFFIX)), *new)


def _failure(process: ProcessRecord) -> str:
    what = process.reason.splitlines()[0] if process.reason else process.status
    return f"{process.implementation} process {process.process + 1}: {what.removeprefix(f'{process.implementation}: ')}"


def judge_implementations(records: RunRecords) -> Iterator[ImplementationVerdict]:
    """Yield a verdict on each implementation: not built, not started, failed or verified."""
    for implementation in records.info.implementations:
        name = implementation.name
        if unbuilt := build_verdict(name, implementation.build):
            yield unbuilt
            continue
        own = [process for process in records.processes if process.implementation == name]
        violations = count_violations([verdict for verdict in records.verdicts if verdict.implementation == name])
        reasons = [process.reason or process.status for process in own if process.status != "ok"]
        if all(process.startup_time is None for process in own):
            yield ImplementationVerdict(
                implementation=name, verdict="not started", reason=reasons[-1] if reasons else ""
            )
        elif violations or reasons:
            yield ImplementationVerdict.failed(name, violations, reasons[0] if reasons else "")
        else:
            yield ImplementationVerdict(implementation=name, verdict="verified")
