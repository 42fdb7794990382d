"""TechEmpower's results.json: the document that its viewers and tfb-status read, from our records.

One entry a level, as there: the figures are those of the replicate with the median throughput, never of the best one.
Where a level has no valid sample the entry is an empty object, so that positions still match the level lists.
"""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TextIO
from uuid import NAMESPACE_URL, uuid5

from harness.plan.testtypes import Sweep
from harness.plan.testtypes.registry import TEST_TYPES
from harness.records.models import ImplementationInfo, Latency, Load, Outcome, RunRecords, Sample, worst
from harness.report import Report, closed_loop
from harness.stats.model import Ranking

Document = dict[str, object]
INTERVALS: Mapping[str, Sweep] = {  # TechEmpower's key -> the sweep whose levels it lists
    "concurrencyLevels": "concurrency",
    "pipelineConcurrencyLevels": "pipeline",
    "queryIntervals": "query",
    "cachedQueryIntervals": "cached-query",
}


def export(report: Report, out: TextIO) -> None:
    """The document as it is written beside a run."""
    out.write(json.dumps(document(report.records, report.ranking), indent=1) + "\n")


def document(records: RunRecords, ranking: Ranking | None = None) -> Document:
    """The whole document; with the latency at given rates, which TechEmpower does not know, of ``ranking``."""
    info = records.info
    levels = info.levels
    chosen = _medians(records.samples)
    raw: dict[str, object] = {}
    succeeded: dict[str, list[str]] = {}
    failed: dict[str, list[str]] = {}
    for test_type, planned in levels.items():
        entries: dict[str, list[Document]] = {}
        succeeded[test_type], failed[test_type] = [], []
        for implementation in info.implementations:
            if test_type not in implementation.test_types:
                continue
            found = [chosen.get((implementation.name, test_type, level)) for level in planned]
            if any(found):
                entries[implementation.name] = [_entry(sample) if sample else {} for sample in found]
            (succeeded if all(found) else failed)[test_type].append(implementation.name)
        raw[test_type] = entries
    return {
        "uuid": str(uuid5(NAMESPACE_URL, f"tfb:{info.machine.hostname}:{info.run_id}")),
        "name": info.name,
        "environmentDescription": info.environment,
        "git": {"commitId": info.revision or "", "repositoryUrl": "", "branchName": ""},
        "operatingSystem": {"name": info.machine.os, "version": info.machine.kernel},
        "startTime": round(info.started_at * 1000),
        "completionTime": round(info.completed_at * 1000) if info.completed_at else None,
        "duration": _duration(records.samples),
        **{key: _intervals(levels, sweep) for key, sweep in INTERVALS.items()},
        "frameworks": [i.name for i in info.implementations],
        "rawData": raw,
        "completed": _completed(records),
        "succeeded": succeeded,
        "failed": failed,
        "verify": _verify(records),
        "testMetadata": [_metadata(implementation) for implementation in info.implementations],
        **({"tfb": own} if (own := _own(ranking)) else {}),
    }


def _own(ranking: Ranking | None) -> Document:
    """Under a key of our own: latency at given rates by test type, and the closed loop's service time by level.

    TechEmpower's latencyAvg, latencyStdev and latencyMax stay what wrk says, altered by its correction.
    """
    at_rates = {
        kind: table.model_dump(mode="json", by_alias=True)
        for kind, table in (ranking.latency if ranking else {}).items()
    }
    service = closed_loop.service_times(ranking) if ranking else {}
    found = {"latency": at_rates, "closedLoopServiceTime": service}
    return {key: value for key, value in found.items() if value}


def _medians(samples: Sequence[Sample]) -> Mapping[tuple[str, str, Load], Sample]:
    """Of each cell the valid sample with the median throughput (the lower one of an even number)."""
    cells: dict[tuple[str, str, Load], list[Sample]] = defaultdict(list)
    for sample in samples:
        if sample.rankable and sample.duet_partner is None:
            cells[sample.implementation, sample.test_type, sample.level].append(sample)
    return {key: sorted(found, key=lambda s: s.throughput)[(len(found) - 1) // 2] for key, found in cells.items()}


def _entry(sample: Sample) -> Document:
    entry: Document = {
        **_latency(sample.latency),
        "totalRequests": sample.requests,
        "startTime": round(sample.started_at),
        "endTime": round(sample.started_at + sample.duration),
    }
    errors = sample.errors
    for key, count in (("connect", errors.connect), ("read", errors.read), ("write", errors.write)):
        if count:
            entry[key] = count
    if errors.timeout:
        entry["timeout"] = errors.timeout
    if errors.status:
        entry["5xx"] = errors.status  # TechEmpower's name for every status that is not 2xx or 3xx
    return entry


def _latency(latency: Latency | None) -> Document:
    """As wrk prints it; zeros for a pipelined run, whose latency wrk cannot measure."""
    if latency is None:
        return {"latencyAvg": "0us", "latencyStdev": "0us", "latencyMax": "0us"}
    figures = (("latencyAvg", latency.mean), ("latencyStdev", latency.stdev), ("latencyMax", latency.max))
    return {name: _wrk_time(seconds) for name, seconds in figures}


def _wrk_time(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{seconds * 1e6:.2f}us"
    return f"{seconds * 1e3:.2f}ms" if seconds < 1 else f"{seconds:.2f}s"


def _duration(samples: Sequence[Sample]) -> int:
    return round(max((s.asked_duration for s in samples), default=0))


def _intervals(levels: Mapping[str, Sequence[Load]], sweep: Sweep) -> list[int]:
    """The levels of the first test type that is swept so: query counts, or connections where none are asked for."""
    swept = (name for name, kind in TEST_TYPES.items() if kind.sweep == sweep and not kind.concurrency)
    first = next((name for name in swept if name in levels), None)
    return [level.queries or level.connections for level in levels[first]] if first else []


def _completed(records: RunRecords) -> dict[str, str]:
    """Implementation -> when it was done, or what kept it."""
    done = {}
    for implementation in records.info.implementations:
        build = implementation.build
        last = [s.started_at for s in records.samples if s.implementation == implementation.name]
        if build is not None and build.status != "ok":
            done[implementation.name] = f"{build.status}: {(build.reason.splitlines() or [''])[0]}"
        elif last:
            done[implementation.name] = str(round(max(last) * 1000))
        else:
            done[implementation.name] = "not measured"
    return done


def _verify(records: RunRecords) -> dict[str, dict[str, str]]:
    """Implementation -> test type -> the worst outcome of its replicates."""
    outcomes: dict[tuple[str, str], list[Outcome]] = defaultdict(list)
    for verdict in records.verdicts:
        outcomes[verdict.implementation, verdict.test_type].append(verdict.outcome)
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for (implementation, test_type), seen in outcomes.items():
        found[implementation][test_type] = worst(seen).value
    return dict(found)


def _metadata(i: ImplementationInfo) -> Document:
    return {
        "project_name": i.framework,
        "name": i.name,
        "approach": i.approach,
        "classification": i.classification,
        "database": i.database,
        "framework": i.framework,
        "language": i.language,
        "orm": i.orm,
        "platform": i.platform or "None",
        "webserver": i.webserver or "None",
        "os": i.os,
        "database_os": i.database_os,
        "display_name": i.display_name,
        "notes": i.notes,
        "versus": i.versus or "None",
        "tags": list(i.tags),
    }
