"""What many records of a run say in short: verdicts by cell, latency by cell."""

import re
import statistics
from collections import defaultdict
from collections.abc import Sequence

from harness.dashboard.documents import CellLatency, LatencyDocument, VerdictSummary
from harness.rank.closed_loop import NAMES, basis_of, latency_of
from harness.results.reader import SampleKey
from harness.results.records import AuditedLoad, Gate, Latency, Level, Outcome, Verdict, worst

PERCENTILE = re.compile(r"\d+(\.\d+)?")


class SampleLatency(SampleKey):
    """Of a sample, what the latency chart needs."""

    level: Level
    latency: Latency | None
    audited: AuditedLoad | None = None
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
            outcome=worst(verdict.outcome for verdict in group),
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
    """Latency by test type: each percentile is the median over the cell's samples that no gate keeps out.

    On one basis for all cells of a test type and level, which ``harness.rank.closed_loop`` chooses.
    """
    tables: dict[tuple[str, str], dict[str, list[SampleLatency]]] = defaultdict(lambda: defaultdict(list))
    for sample in samples:
        if sample.latency is not None or sample.audited is not None:
            tables[sample.test_type, sample.level.label][sample.implementation].append(sample)
    result: dict[str, list[CellLatency]] = defaultdict(list)
    cells = [
        (key, name, found, basis_of(table.values())) for key, table in tables.items() for name, found in table.items()
    ]
    for (test_type, _), implementation, members, basis in cells:
        distributions = [latency for sample in members if (latency := latency_of(sample, basis))]
        if not distributions:
            continue
        keys = {key for latency in distributions for key in latency.percentiles if PERCENTILE.fullmatch(key)}
        values = {
            key: [item.percentiles[key] for item in distributions if key in item.percentiles]
            for key in sorted(keys, key=float)
        }
        result[test_type].append(
            CellLatency(
                implementation=implementation,
                level=members[0].level,
                basis=NAMES[basis],
                percentiles={key: statistics.median(found) for key, found in values.items()},
                spread={key: (min(found), max(found)) for key, found in values.items()},
                mean=statistics.median(item.mean for item in distributions),
                stdev=statistics.median(item.stdev for item in distributions),
                maximum=statistics.median(item.max for item in distributions),
                samples=len(distributions),
            )
        )
    return {name: LatencyDocument(test_type=name, cells=tuple(items)) for name, items in result.items()}
