"""What many records of a run say in short: verdicts by cell, latency by cell."""

import re
import statistics
from collections import defaultdict
from collections.abc import Sequence

from harness.dashboard.documents import CellLatency, LatencyDocument, VerdictSummary
from harness.results.reader import SampleKey
from harness.results.records import Gate, Latency, Level, Outcome, Verdict

PERCENTILE = re.compile(r"\d+(\.\d+)?")
SEVERITY = {Outcome.PASS: 0, Outcome.WARN: 1, Outcome.FAIL: 2}


class SampleLatency(SampleKey):
    """Of a sample, what the latency chart needs."""

    level: Level
    latency: Latency | None
    gates: tuple[Gate, ...] = ()


def summarise(verdicts: Sequence[Verdict]) -> tuple[VerdictSummary, ...]:
    """The worst outcome of each implementation x test type, with the checks that did not pass in any replicate."""
    groups: dict[tuple[str, str], list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        groups[verdict.implementation, verdict.test_type].append(verdict)
    return tuple(
        VerdictSummary(
            implementation=implementation,
            test_type=test_type,
            outcome=max((verdict.outcome for verdict in group), key=SEVERITY.__getitem__),
            findings=tuple(
                {
                    result.check: result
                    for verdict in group
                    for result in verdict.results
                    if result.outcome is not Outcome.PASS
                }.values()
            ),
        )
        for (implementation, test_type), group in sorted(groups.items())
    )


def latencies(samples: Sequence[SampleLatency]) -> dict[str, LatencyDocument]:
    """Latency by test type: each percentile is the median over the cell's samples that no gate keeps out."""
    cells: dict[tuple[str, str, str], list[tuple[Level, Latency]]] = defaultdict(list)
    for sample in samples:
        kept_out = any(gate.outcome is Outcome.FAIL for gate in sample.gates)
        if sample.latency is not None and not kept_out:
            key = sample.test_type, sample.implementation, sample.level.label
            cells[key].append((sample.level, sample.latency))
    result: dict[str, list[CellLatency]] = defaultdict(list)
    for (test_type, implementation, _), members in cells.items():
        distributions = [latency for _, latency in members]
        keys = {key for latency in distributions for key in latency.percentiles if PERCENTILE.fullmatch(key)}
        values = {
            key: [item.percentiles[key] for item in distributions if key in item.percentiles]
            for key in sorted(keys, key=float)
        }
        result[test_type].append(
            CellLatency(
                implementation=implementation,
                level=members[0][0],
                basis=distributions[0].basis,
                percentiles={key: statistics.median(found) for key, found in values.items()},
                spread={key: (min(found), max(found)) for key, found in values.items()},
                mean=statistics.median(item.mean for item in distributions),
                stdev=statistics.median(item.stdev for item in distributions),
                maximum=statistics.median(item.max for item in distributions),
                samples=len(distributions),
            )
        )
    return {name: LatencyDocument(test_type=name, cells=tuple(items)) for name, items in result.items()}
