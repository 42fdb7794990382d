"""What many records of a run say in short: verdicts by cell, latency by cell."""

import re
import statistics
from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ConfigDict, Field

from harness.dashboard.documents import CellLatency, LatencyDocument, VerdictSummary
from harness.records.lines import Lines, grown
from harness.records.models import AuditedLoad, Gate, Latency, LatencyBasis, Load, Outcome, Verdict, worst
from harness.records.reader import SampleKey
from harness.stats.closed_loop import NAMES, common, latency_of

PERCENTILE = re.compile(r"\d+(\.\d+)?")


class LatencyInShort(Latency):
    """A distribution without its histogram, which is most of it."""

    model_config = ConfigDict(validate_by_name=False)
    # Skipped, not parsed: a key of this name is in no file.
    histogram: tuple[tuple[float, int], ...] = Field(default=(), validation_alias="not read")


class AuditedInShort(AuditedLoad):
    """The load beside a sample, with its distribution as short."""

    latency: LatencyInShort | None


class SampleLatency(SampleKey):
    """Of a sample, what the latency chart needs."""

    level: Load
    latency: LatencyInShort | None
    audited: AuditedInShort | None = None
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


def _column() -> "array[float]":
    return array("d")


@dataclass
class Tally:
    """The distributions of one cell, a column a figure: so that many samples take little memory."""

    level: Load
    basis: LatencyBasis
    percentiles: dict[str, "array[float]"] = field(default_factory=lambda: defaultdict(_column))
    mean: "array[float]" = field(default_factory=_column)
    stdev: "array[float]" = field(default_factory=_column)
    maximum: "array[float]" = field(default_factory=_column)

    def add(self, latency: Latency) -> None:
        """One more sample."""
        for key, value in latency.percentiles.items():
            if PERCENTILE.fullmatch(key):
                self.percentiles[key].append(value)
        self.mean.append(latency.mean)
        self.stdev.append(latency.stdev)
        self.maximum.append(latency.max)

    def document(self, implementation: str) -> CellLatency:
        """Each figure is the median over the samples."""
        values = {key: self.percentiles[key] for key in sorted(self.percentiles, key=float)}
        return CellLatency(
            implementation=implementation,
            level=self.level,
            basis=NAMES[self.basis],
            percentiles={key: statistics.median(found) for key, found in values.items()},
            spread={key: (min(found), max(found)) for key, found in values.items()},
            mean=statistics.median(self.mean),
            stdev=statistics.median(self.stdev),
            maximum=statistics.median(self.maximum),
            samples=len(self.mean),
        )


class SamplesDigest:
    """What the page asks of samples.jsonl beside the ranking, read once and then only as it grows."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.lines = Lines()  # where each cell's samples stand
        # Of test type, level and implementation: on each basis that it has.
        self._tallies: dict[tuple[str, str], dict[str, dict[LatencyBasis, Tally]]] = defaultdict(
            lambda: defaultdict(dict)
        )

    def grow(self) -> None:
        """Read what was appended."""
        for sample, start, length in grown(self._path, self.lines, SampleLatency):
            self.lines.spans[sample.implementation, sample.test_type].append((start, length))
            self.add(sample)

    def add(self, sample: SampleLatency) -> None:
        """One more sample."""
        for basis in NAMES:
            if latency := latency_of(sample, basis):
                tallies = self._tallies[sample.test_type, sample.level.label][sample.implementation]
                if basis not in tallies:
                    tallies[basis] = Tally(level=sample.level, basis=basis)
                tallies[basis].add(latency)

    def latencies(self) -> Mapping[str, LatencyDocument]:
        """By test type, on one basis for all cells of a test type and level (``harness.stats.closed_loop``)."""
        result: dict[str, list[CellLatency]] = defaultdict(list)
        for (test_type, _), cells in self._tallies.items():
            basis = common(cells.values())
            result[test_type] += [tallies[basis].document(name) for name, tallies in cells.items() if basis in tallies]
        return {name: LatencyDocument(test_type=name, cells=tuple(items)) for name, items in result.items()}


def latencies(samples: Iterable[SampleLatency]) -> dict[str, LatencyDocument]:
    """Latency by test type: each percentile is the median over the cell's samples that no gate keeps out."""
    digest = SamplesDigest(Path())
    for sample in samples:
        digest.add(sample)
    return dict(digest.latencies())
