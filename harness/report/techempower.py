"""Exports a run as a TechEmpower results.json, which TechEmpower's viewers and tfb-status can read.

For each closed-loop load, the document contains the trial with the median throughput. A load without a valid trial has
an empty object, so that entries stay aligned with the lists of levels.
"""

import json
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TextIO
from uuid import NAMESPACE_URL, uuid5

from harness.plain_text import json_text
from harness.plan.testtypes import Sweep
from harness.plan.testtypes.registry import TEST_TYPES
from harness.records.loads import ClosedLoop, Load
from harness.records.run_info import ImplementationInfo
from harness.records.run_records import RunRecords
from harness.records.trial_record import Trial
from harness.records.verification_record import WHOLE_SERVER, Outcome, VerificationRecord, worst_outcome
from harness.report import Report
from harness.stats.unranked import NOT_REACHED, unreached_cells

ResultsDocument = dict[str, object]
SWEEP_BY_KEY: Mapping[str, Sweep] = {  # results.json's key for a list of levels -> sweep over these levels
    "concurrencyLevels": "concurrency",
    "pipelineConcurrencyLevels": "pipeline",
    "queryIntervals": "query",
    "cachedQueryIntervals": "cached-query",
}


def export(report: Report, out: TextIO) -> None:
    """Write the run as results.json."""
    out.write(json_text(json.dumps(document(report.records), indent=1)) + "\n")


def document(records: RunRecords) -> ResultsDocument:
    """Return the content of a run's results.json."""
    info = records.info
    loads = {
        kind: [load for load in sweep_loads if isinstance(load, ClosedLoop)] for kind, sweep_loads in info.loads.items()
    }
    loads = {kind: sweep_loads for kind, sweep_loads in loads.items() if sweep_loads}
    duration = round(max((trial.asked_duration for trial in records.trials), default=0))
    median_trials = _median_trials(records.trials)
    raw: dict[str, object] = {}
    succeeded: dict[str, list[str]] = {}
    failed: dict[str, list[str]] = {}
    for test_type, sweep_loads in loads.items():
        entries: dict[str, list[ResultsDocument]] = {}
        succeeded[test_type], failed[test_type] = [], []
        for name in (i.name for i in info.implementations if test_type in i.test_types):
            trials = [median_trials.get((name, test_type, load)) for load in sweep_loads]
            if any(trials):
                entries[name] = [_entry(trial, duration) if trial else {} for trial in trials]
            (succeeded if all(trials) else failed)[test_type].append(name)
        raw[test_type] = entries
    return {
        "uuid": str(uuid5(NAMESPACE_URL, f"tfb:{info.machine.hostname}:{info.run_id}")),
        "name": info.name,
        "environmentDescription": info.environment,
        # tfb-status requires ``repositoryUrl`` to be a string, and an unknown ``branchName`` to be null.
        "git": {"commitId": info.revision, "repositoryUrl": "", "branchName": None} if info.revision else None,
        "operatingSystem": {"name": info.machine.os, "version": info.machine.kernel},
        "startTime": round(info.started_at * 1000),
        "completionTime": round(info.completed_at * 1000) if info.completed_at else None,
        "duration": duration,
        **{key: _intervals(loads, sweep) for key, sweep in SWEEP_BY_KEY.items()},
        "frameworks": [i.name for i in info.implementations],
        "rawData": raw,
        "completed": {i.name: _completed(i, records) for i in info.implementations},
        "succeeded": succeeded,
        "failed": failed,
        "verify": _verify(records.verdicts),
        "testMetadata": [_metadata(implementation) for implementation in info.implementations],
    }


def _median_trials(trials: Sequence[Trial]) -> Mapping[tuple[str, str, Load], Trial]:
    """Return each cell's valid trial with the median throughput (the lower median of an even number of trials)."""
    cells: dict[tuple[str, str, Load], list[Trial]] = defaultdict(list)
    for trial in trials:
        if trial.rankable and trial.purpose == "measure":
            cells[trial.implementation, trial.test_type, trial.load].append(trial)
    return {
        key: sorted(cell_trials, key=lambda t: t.throughput)[(len(cell_trials) - 1) // 2]
        for key, cell_trials in cells.items()
    }


def _entry(trial: Trial, duration: float) -> ResultsDocument:
    """Return a trial's entry in results.json.

    Viewers divide counts by the document's ``duration``, so scale the counts from the trial's duration to ``duration``.
    """
    scale = duration / max(trial.duration, 1e-6)  # do not divide by zero
    errors, latency = trial.errors, trial.latency
    counts = {
        "connect": errors.connect,
        "read": errors.read,
        "write": errors.write,
        "timeout": errors.timeout,
        "5xx": errors.status,  # TechEmpower's name for all statuses except 2xx and 3xx
    }
    return {
        # Unknown latencies are zero. They are unknown for pipelined requests and for trials with wrk.
        "latencyAvg": _wrk_time(latency.mean if latency else 0.0),
        "latencyStdev": _wrk_time(latency.stdev if latency else 0.0),
        "latencyMax": _wrk_time(latency.max if latency else 0.0),
        "totalRequests": round(trial.requests * scale),
        "startTime": round(trial.started_at),
        "endTime": round(trial.started_at) + round(duration),
        **{key: max(1, round(count * scale)) for key, count in counts.items() if count},
    }


def _wrk_time(seconds: float) -> str:
    """Format a time as wrk prints it."""
    if seconds < 1e-3:
        return f"{seconds * 1e6:.2f}us" if seconds else "0us"
    return f"{seconds * 1e3:.2f}ms" if seconds < 1 else f"{seconds:.2f}s"


def _intervals(loads: Mapping[str, Sequence[ClosedLoop]], sweep: Sweep) -> list[int]:
    """Return the levels (numbers of queries or connections) of the first measured test type with this sweep."""
    swept = (name for name, kind in TEST_TYPES.items() if kind.sweep == sweep and not kind.concurrency)
    first = next((name for name in swept if name in loads), None)
    return [load.queries or load.connections for load in loads[first]] if first else []


def _completed(implementation: ImplementationInfo, records: RunRecords) -> str:
    """Return the start time of an implementation's last trial, or the reason why the measurement is incomplete.

    The time is local and in TechEmpower's format.
    """
    build, trials = implementation.build, records.trials
    if build is not None and build.status != "ok":
        return f"{build.status}: {(build.reason.splitlines() or [''])[0]}"
    if unreached := unreached_cells(records, implementation.name):
        return f"incomplete: {', '.join(unreached)}: {NOT_REACHED}"
    last_started_at = max((t.started_at for t in trials if t.implementation == implementation.name), default=None)
    return "not measured" if last_started_at is None else time.strftime("%Y%m%d%H%M%S", time.localtime(last_started_at))


def _verify(verdicts: Sequence[VerificationRecord]) -> dict[str, dict[str, str]]:
    """Return implementation -> test type -> worst verification outcome over all processes."""
    outcomes: dict[str, dict[str, list[Outcome]]] = defaultdict(lambda: defaultdict(list))
    for verdict in (each for each in verdicts if each.test_type != WHOLE_SERVER):
        outcomes[verdict.implementation][verdict.test_type].append(verdict.outcome)
    return {
        name: {kind: worst_outcome(process_outcomes).value for kind, process_outcomes in kinds.items()}
        for name, kinds in outcomes.items()
    }


def _metadata(i: ImplementationInfo) -> ResultsDocument:
    lower_case_keys = (
        *("approach", "classification", "database", "framework", "language", "orm", "platform", "webserver"),
        *("os", "database_os"),
    )
    return {
        "project_name": i.project or i.framework,
        "name": i.name,
        **{key: str(getattr(i, key) or "none").lower() for key in lower_case_keys},
        "display_name": i.display_name,
        "notes": i.notes,
        "versus": i.versus or "None",
        "tags": list(i.tags),
    }
