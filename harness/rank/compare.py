"""Comparison of two runs: the ratio of every cell with its interval, a verdict, and whether it is a regression."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import special

from harness.rank import estimates, rules
from harness.rank.estimates import finite
from harness.rank.model import CellComparison, Comparison, Effect, Ratio
from harness.rank.pairs import holm
from harness.rank.values import CellValues, collect, log_matrix
from harness.rank.verdicts import unranked
from harness.results.records import Level, NoiseFloor, ReplicateRecord, RunInfo, Sample, Verdict


@dataclass(frozen=True, kw_only=True)
class RunRecords:
    """Everything of one run that a comparison reads."""

    run: RunInfo
    samples: Sequence[Sample]
    replicates: Sequence[ReplicateRecord] = ()
    verdicts: Sequence[Verdict] = ()


@dataclass(frozen=True, kw_only=True)
class _Test:
    """One metric of one cell, before the correction for the number of cells."""

    ratio: Ratio | None
    p_value: float | None


NOT_TESTED = _Test(ratio=None, p_value=None)
Key = tuple[str, str, Level]


def compare(a: RunRecords, b: RunRecords, fail_over: float, *, interleaved: bool = False) -> Comparison:
    """Run B over run A. ``fail_over`` is relative (0.05 for 5 %).

    ``interleaved``: block i of A and block i of B were measured in turn, as ``compare --base`` does, so that they are
    compared within blocks. Blocks of separate runs have nothing in common, and are compared by Welch's t. Holm's
    correction covers all cells of a metric.
    """
    confidence = min(rules.replication(a.run).confidence, rules.replication(b.run).confidence)
    cells_a, cells_b = _cells(a), _cells(b)
    reasons = {
        letter: unranked(side.run, side.samples, side.replicates, side.verdicts)
        for letter, side in (("A", a), ("B", b))
    }
    keys = [*cells_a, *(key for key in cells_b if key not in cells_a)]
    keys.sort(key=lambda key: (key[1], key[2].concurrency, key[2].queries or 0, key[0]))
    why = {key: _why_missing(key, cells_a, cells_b, reasons["A"], reasons["B"]) for key in keys}
    floor = _larger(a.run.noise_floor, b.run.noise_floor)
    alpha = 1 - confidence
    throughput: dict[Key, _Test] = {}
    cpu: dict[Key, _Test] = {}
    for key in keys:
        if why[key]:
            throughput[key] = cpu[key] = NOT_TESTED
            continue
        one, other = cells_a[key], cells_b[key]
        throughput[key] = _test(one.throughput, other.throughput, interleaved, confidence)
        cpu[key] = _test(one.cpu_per_request, other.cpu_per_request, interleaved, confidence)
    effects = _effects(throughput, alpha, floor.throughput if floor else 0.0, fail_over, higher=True)
    costs = _effects(cpu, alpha, floor.cpu_per_request if floor else 0.0, fail_over, higher=False)
    return Comparison(
        run_a=a.run.run_id,
        run_b=b.run.run_id,
        fail_over=fail_over,
        paired=interleaved,
        confidence=confidence,
        cells=tuple(
            CellComparison(
                implementation=key[0],
                test_type=key[1],
                level=key[2],
                throughput=effects[key],
                cpu_per_request=costs[key],
                reason=why[key],
            )
            for key in keys
        ),
        noise_floor=floor,
        notes=_notes(a.run, b.run),
    )


def _cells(records: RunRecords) -> dict[Key, CellValues]:
    found = collect(records.samples)
    return {(name, kind, level): cell for (name, kind), levels in found.items() for level, cell in levels.items()}


def _why_missing(
    key: Key,
    cells_a: dict[Key, CellValues],
    cells_b: dict[Key, CellValues],
    reasons_a: dict[tuple[str, str], str],
    reasons_b: dict[tuple[str, str], str],
) -> str:
    for letter, cells, reasons in (("A", cells_a, reasons_a), ("B", cells_b, reasons_b)):
        cell = cells.get(key)
        if reason := reasons.get(key[:2]):
            return f"{letter}: {reason}"
        if cell is None:
            return f"{letter}: not measured"
        if not cell.throughput:
            return f"{letter}: {', '.join(cell.failed_words) or 'no good response'}"
    return ""


def _test(a: Mapping[int, float], b: Mapping[int, float], interleaved: bool, confidence: float) -> _Test:
    """Ratio of B over A with its interval and the p-value of no difference; neither without two values each."""
    if not a or not b:
        return NOT_TESTED
    if interleaved:
        logs = log_matrix([a, b])
    else:  # blocks are unrelated: side by side, whatever their numbers
        size = max(len(a), len(b))
        logs = np.full((2, size), np.nan)
        logs[0, : len(a)] = np.log(list(a.values()))
        logs[1, : len(b)] = np.log(list(b.values()))
    stats = estimates.moments(logs)
    contrast = estimates.against(logs, stats, 0, interleaved)
    effect, error, freedom = contrast.difference[1], contrast.squared_error[1], contrast.freedom[1]
    half = contrast.half_width(confidence)[1]
    p_value = None
    if error > 0 and freedom > 0:
        p_value = float(2 * special.stdtr(freedom, -abs(effect) / np.sqrt(error)))
    ratio = Ratio(value=float(np.exp(effect)), low=finite(np.exp(effect - half)), high=finite(np.exp(effect + half)))
    return _Test(ratio=ratio, p_value=p_value)


def _effects(
    tests: dict[Key, _Test], alpha: float, floor: float, fail_over: float, *, higher: bool
) -> dict[Key, Effect]:
    tested = [key for key, test in tests.items() if test.p_value is not None]
    p_values = np.asarray([tests[key].p_value for key in tested], dtype=float)
    rejected = dict(zip(tested, holm(p_values, alpha), strict=True))
    return {key: _effect(test, bool(rejected.get(key, False)), floor, fail_over, higher) for key, test in tests.items()}


def _effect(test: _Test, differs: bool, floor: float, fail_over: float, higher: bool) -> Effect:
    if test.ratio is None:
        return Effect(ratio=None, p_value=None, verdict="missing", regression=False)
    value = test.ratio.value
    verdict: Literal["faster", "slower", "tie"] = "tie"
    if differs and abs(np.log(value)) >= np.log1p(floor):
        verdict = "faster" if (value > 1) == higher else "slower"
    loss = 1 - value if higher else value - 1
    return Effect(
        ratio=test.ratio, p_value=test.p_value, verdict=verdict, regression=verdict == "slower" and loss > fail_over
    )


def _larger(one: NoiseFloor | None, other: NoiseFloor | None) -> NoiseFloor | None:
    if one is None or other is None:
        return one or other
    return one.model_copy(
        update={
            "throughput": max(one.throughput, other.throughput),
            "cpu_per_request": max(one.cpu_per_request, other.cpu_per_request),
        }
    )


def _notes(a: RunInfo, b: RunInfo) -> tuple[str, ...]:
    """What differs beside the code, and so speaks against a comparison of these runs."""
    notes = []
    for what, left, right in (
        ("machine", a.machine.hostname, b.machine.hostname),
        ("CPU", a.machine.cpu_model, b.machine.cpu_model),
        ("kernel", a.machine.kernel, b.machine.kernel),
        ("usable CPUs", len(a.machine.cpus_usable), len(b.machine.cpus_usable)),
        ("profile", a.profile, b.profile),
        ("runtime", a.runtime, b.runtime),
    ):
        if left != right:
            notes.append(f"the runs differ in {what}: A {left}, B {right}")
    return tuple(notes)
