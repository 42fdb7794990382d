"""The latency of each cell in short: each figure is the median over its trials."""

import re
import statistics
from array import array
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from pydantic import ConfigDict, Field

from harness.dashboard.documents import CellLatency, LatencyDocument
from harness.records.models import Gate, Latency, Load, Outcome, Purpose, Record

PERCENTILE = re.compile(r"\d+(\.\d+)?")


class LatencyInShort(Latency):
    """A distribution without its histogram, which is most of it."""

    model_config = ConfigDict(validate_by_name=False)
    # Skipped, not parsed: a key of this name is in no file.
    histogram: tuple[tuple[float, int], ...] = Field(default=(), validation_alias="not read")


class LatencyTrial(Record):
    """Of a trial, what the latency chart needs: a fifth of the time to read all of it."""

    implementation: str
    test_type: str
    load: Load
    purpose: Purpose = "measure"
    latency: LatencyInShort | None
    gates: tuple[Gate, ...] = ()


def _column() -> "array[float]":
    return array("d")


@dataclass
class Tally:
    """The distributions of one cell, a column a figure: so that many trials take little memory."""

    first: LatencyTrial
    percentiles: dict[str, "array[float]"] = field(default_factory=lambda: defaultdict(_column))
    mean: "array[float]" = field(default_factory=_column)
    stdev: "array[float]" = field(default_factory=_column)
    maximum: "array[float]" = field(default_factory=_column)

    def add(self, latency: Latency) -> None:
        """One more trial."""
        for key, value in latency.percentiles.items():
            if PERCENTILE.fullmatch(key):
                self.percentiles[key].append(value)
        self.mean.append(latency.mean)
        self.stdev.append(latency.stdev)
        self.maximum.append(latency.max)

    def cell(self, basis: str) -> CellLatency:
        """Each figure is the median over the trials."""
        values = {key: self.percentiles[key] for key in sorted(self.percentiles, key=float)}
        return CellLatency(
            implementation=self.first.implementation,
            load=self.first.load,
            basis=basis,
            percentiles={key: statistics.median(found) for key, found in values.items()},
            spread={key: (min(found), max(found)) for key, found in values.items()},
            mean=statistics.median(self.mean),
            stdev=statistics.median(self.stdev),
            maximum=statistics.median(self.maximum),
            trials=len(self.mean),
        )


def latencies(trials: Iterable[LatencyTrial]) -> dict[str, LatencyDocument]:
    """Latency by test type, of trials that stand for their cell and that no gate keeps out."""
    tallies: dict[tuple[str, str, str, str], Tally] = {}
    for trial in trials:
        kept = trial.purpose == "measure" and all(gate.outcome is not Outcome.FAIL for gate in trial.gates)
        if trial.latency and kept:
            key = (trial.test_type, trial.load.label, trial.implementation, trial.latency.basis)
            tallies.setdefault(key, Tally(trial)).add(trial.latency)
    found: dict[str, list[CellLatency]] = defaultdict(list)
    for (test_type, _, _, basis), tally in tallies.items():
        found[test_type].append(tally.cell(basis))
    return {name: LatencyDocument(test_type=name, cells=tuple(cells)) for name, cells in found.items()}
