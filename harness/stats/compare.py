"""Comparison of two runs: the ratio of every cell with its interval, a verdict, and whether it is a regression."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from harness.records.models import Load, NoiseFloor, RunInfo, RunRecords
from harness.stats import across, rules
from harness.stats.across import Side
from harness.stats.contrasts import Contrasts
from harness.stats.estimates import finite
from harness.stats.model import CellComparison, Comparison, Effect, Ratio
from harness.stats.pairs import holm
from harness.stats.values import CellValues, collect
from harness.stats.verdicts import unranked


@dataclass(frozen=True, kw_only=True)
class _Test:
    """One metric of one cell, before the correction for the number of cells."""

    ratio: Ratio | None
    p_value: float | None


NOT_TESTED = _Test(ratio=None, p_value=None)
Key = tuple[str, str, Load]


def compare(a: RunRecords, b: RunRecords, fail_over: float, *, interleaved: bool = False) -> Comparison:
    """Run B over run A. ``fail_over`` is relative (0.05 for 5 %).

    ``interleaved``: block i of A and block i of B were measured in turn, as ``compare --base`` does, so that they are
    compared within blocks. Blocks of separate runs have nothing in common (``rank.across``). Holm's correction covers
    all cells of a metric. Regressions come first, then other decided cells, ties, and what is missing.
    """
    confidence = min(rules.replication(a.info).confidence, rules.replication(b.info).confidence)
    cells_a, cells_b = _cells(a), _cells(b)
    reasons = {
        letter: unranked(side.info, side.samples, side.replicates, side.verdicts)
        for letter, side in (("A", a), ("B", b))
    }
    keys = [*cells_a, *(key for key in cells_b if key not in cells_a)]
    why = {key: _why_missing(key, cells_a, cells_b, reasons["A"], reasons["B"]) for key in keys}
    floor = _larger(a.info.noise_floor, b.info.noise_floor)
    alpha = 1 - confidence
    tested = [key for key in keys if not why[key]]
    throughput = dict.fromkeys(keys, NOT_TESTED) | _tests(
        {key: cells_a[key].throughput for key in tested},
        {key: cells_b[key].throughput for key in tested},
        interleaved=interleaved,
        confidence=confidence,
    )
    cpu = dict.fromkeys(keys, NOT_TESTED) | _tests(
        {key: cells_a[key].cpu_per_request for key in tested},
        {key: cells_b[key].cpu_per_request for key in tested},
        interleaved=interleaved,
        confidence=confidence,
    )
    effects = _effects(throughput, alpha, floor.throughput if floor else 0.0, fail_over, higher=True)
    costs = _effects(cpu, alpha, floor.cpu_per_request if floor else 0.0, fail_over, higher=False)
    return Comparison(
        run_a=a.info.run_id,
        run_b=b.info.run_id,
        fail_over=fail_over,
        paired=interleaved,
        confidence=confidence,
        cells=tuple(
            sorted(
                (
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
                key=_place,
            )
        ),
        noise_floor=floor,
        notes=_notes(a.info, b.info),
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
            return f"{letter}: {', '.join(cell.failed_words) or 'no valid response'}"
    return ""


def _place(cell: CellComparison) -> tuple[int, str, int, int, float, str]:
    """Regressions first, then decided cells, ties, and missing ones; within these by test type and level."""
    effects = cell.throughput, cell.cpu_per_request
    verdicts = {effect.verdict for effect in effects}
    if any(effect.regression for effect in effects):
        weight = 0
    elif verdicts & {"faster", "slower"}:
        weight = 1
    else:
        weight = 3 if verdicts == {"missing"} else 2
    level = cell.level
    return (
        weight,
        cell.test_type,
        level.connections,
        level.queries or 0,
        level.factor or 0.0,
        cell.implementation,
    )


def _tests(a: Side, b: Side, *, interleaved: bool, confidence: float) -> dict[Key, _Test]:
    """Ratio of B over A with its interval and the p-value of no difference; neither without two values each."""
    contrasts = across.within_blocks(a, b) if interleaved else across.of_separate_runs(a, b)
    return {key: _test(contrast, confidence) for key, contrast in contrasts.items()}


def _test(contrast: Contrasts, confidence: float) -> _Test:
    effect, half = float(contrast.difference[0]), float(contrast.half_width(confidence)[0])
    ratio = Ratio(value=float(np.exp(effect)), low=finite(np.exp(effect - half)), high=finite(np.exp(effect + half)))
    return _Test(ratio=ratio, p_value=finite(float(contrast.p_value()[0])))


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
    return tuple(f"the runs differ in {name}: A {left}, B {right}" for name, left, right in differing(a, b))


def differing(a: RunInfo, b: RunInfo) -> tuple[tuple[str, str, str], ...]:
    """Facts in which two runs differ, with both sides: the one list for command line and page."""
    facts = (
        ("machine", a.machine.hostname, b.machine.hostname),
        ("CPU", a.machine.cpu_model, b.machine.cpu_model),
        ("kernel", a.machine.kernel, b.machine.kernel),
        ("usable CPUs", len(a.machine.cpus_usable), len(b.machine.cpus_usable)),
        ("governor", a.machine.governor, b.machine.governor),
        ("turbo", a.machine.turbo, b.machine.turbo),
        ("grade", a.machine.grade, b.machine.grade),
        ("profile", a.profile, b.profile),
        ("runtime", a.runtime, b.runtime),
        ("order", a.order, b.order),
        *((f"tool {tool}", a.tools.get(tool), b.tools.get(tool)) for tool in sorted({*a.tools, *b.tools})),
    )
    return tuple((name, _shown(left), _shown(right)) for name, left, right in facts if left != right)


def _shown(value: object) -> str:
    return "unknown" if value is None else str(value)
