"""The latency of each cell in short: each figure is the median over its trials."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import median

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


def latencies(trials: Iterable[LatencyTrial]) -> dict[str, LatencyDocument]:
    """Latency by test type, of trials that stand for their cell and that no gate keeps out."""
    cells: dict[tuple[str, str, str], list[Latency]] = defaultdict(list)
    loads: dict[str, Load] = {}
    for trial in trials:
        kept = trial.purpose == "measure" and all(gate.outcome is not Outcome.FAIL for gate in trial.gates)
        if trial.latency and kept:
            loads[trial.load.label] = trial.load
            cells[trial.test_type, trial.load.label, trial.implementation].append(trial.latency)
    found: dict[str, list[CellLatency]] = defaultdict(list)
    for (test_type, label, implementation), seen in cells.items():
        found[test_type].append(_cell(implementation, loads[label], seen))
    return {name: LatencyDocument(test_type=name, cells=tuple(each)) for name, each in found.items()}


def _cell(implementation: str, load: Load, seen: Sequence[Latency]) -> CellLatency:
    """Each figure is the median over the trials."""
    keys = sorted({key for each in seen for key in each.percentiles if PERCENTILE.fullmatch(key)}, key=float)
    values = {key: [each.percentiles[key] for each in seen if key in each.percentiles] for key in keys}
    return CellLatency(
        implementation=implementation,
        load=load,
        basis=seen[0].basis,
        percentiles={key: median(found) for key, found in values.items()},
        spread={key: (min(found), max(found)) for key, found in values.items()},
        mean=median(each.mean for each in seen),
        stdev=median(each.stdev for each in seen),
        maximum=median(each.max for each in seen),
        trials=len(seen),
    )
