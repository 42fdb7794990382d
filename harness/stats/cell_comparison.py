"""Compares cells within a run or between two runs, and computes the noise floor from an A/A run."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from harness.records.run_info import NoiseFloor, RunInfo
from harness.records.run_records import ProcessRecord, RunRecords
from harness.records.trial_record import Trial
from harness.records.verdicts import Verdict, is_equivalent
from harness.stats import pairs
from harness.stats.cell_values import (
    CPU_PER_REQUEST,
    METRICS,
    THROUGHPUT,
    CellKey,
    CellTrials,
    Metric,
    collect_cells,
    collect_process_values,
)
from harness.stats.moderation import CONFIDENCE, RowMeans, standalone_means, student_half_width
from harness.stats.pairs import Differences
from harness.stats.ranking_model import CellComparison, Comparison, Effect, Ratio
from harness.stats.unranked import unranked_reasons
from harness.stats.value_tables import SINGLE_TABLE, ValueTables

TrialsByCell = Mapping[CellKey, CellTrials]
MISSING_EFFECT = Effect(ratio=None, verdict="cannot tell")


def compare(a: RunRecords, b: RunRecords, threshold: float) -> Comparison:
    """Compare run B (or head) with run A (or base), cell by cell.

    If A and B were measured in the same rounds (``compare --base``), they are compared within rounds. In separate runs,
    errors shared by all cells of a run do not cancel. Holm's correction applies to all cells of a metric together. A
    cell's verdict is "same" if the ratio's interval lies within the relative difference ``threshold``.
    """
    cells = collect_cells(a.trials), collect_cells(b.trials)
    reasons = [unranked_reasons(side.info, side.trials, side.processes, side.verdicts) for side in (a, b)]
    missing_reason = {key: _why_missing(key, cells, reasons) for key in (*cells[0], *cells[1])}
    interleaved = a.info.started_at == b.info.started_at and a.info.seed == b.info.seed
    floor = _larger_floor(a.info.noise_floor, b.info.noise_floor)
    cells_a, cells_b = ({key: side[key] for key, reason in missing_reason.items() if not reason} for side in cells)
    effects = []
    for metric, noise in ((THROUGHPUT, floor and floor.throughput), (CPU_PER_REQUEST, floor and floor.cpu_per_request)):
        differences = (_within_rounds if interleaved else _between_runs)(cells_a, cells_b, metric)
        effects.append(_effects(differences, metric, noise or 0.0, threshold))
    planned = [_planned_cells(side.info) for side in (a, b)]
    compared = [
        CellComparison(
            implementation=key[0], test_type=key[1], load=key[2], reason=reason, only_in=_only_in(key, planned),
            throughput=effects[0].get(key, MISSING_EFFECT), cpu_per_request=effects[1].get(key, MISSING_EFFECT),
        )
        for key, reason in missing_reason.items()
    ]  # fmt: skip
    return Comparison(
        run_a=a.info.run_id,
        run_b=b.info.run_id,
        threshold=threshold,
        interleaved=interleaved,
        across=tuple(differing_conditions(a.info, b.info)),
        cells=tuple(sorted(compared, key=_sort_key)),
        noise_floor=floor,
        notes=tuple(_run_differences(a.info, b.info)),
    )


def ratio(
    trials: Sequence[Trial],
    a: CellKey,
    b: CellKey,
    metric: str,
    confidence: float,
    processes: Sequence[ProcessRecord] = (),
) -> Ratio | None:
    """Return cell ``a``'s metric divided by cell ``b``'s, with an interval, or None if either value is unknown.

    Cells in the same table are compared within that table's fit. Only metrics recorded once per process, such as the
    startup time, need ``processes``.
    """
    chosen_metric = METRICS[metric]
    if chosen_metric.of_process:
        return ValueTables({SINGLE_TABLE: collect_process_values(processes, chosen_metric)}).ratio(
            a[0], b[0], confidence
        )
    cells = collect_cells(trials)
    tables = ValueTables.of(cells, chosen_metric)
    if a[1:] == b[1:]:
        return tables.ratio(a[0], b[0], confidence, a[1:])
    fitted = tables.fit({str(key): cells[key].values(chosen_metric) for key in (a, b) if key in cells})
    return tables.ratio(str(a), str(b), confidence, fitted)


def ratio_of_values(a: Mapping[int, float], b: Mapping[int, float], confidence: float) -> Ratio | None:
    """Return the ratio of ``a`` to ``b`` with an interval. Both map process numbers to positive values."""
    values = {name: {(process, 0): value for process, value in own.items()} for name, own in (("a", a), ("b", b))}
    return ValueTables({SINGLE_TABLE: values}).ratio("a", "b", confidence)


def noise_floor(trials: Sequence[Trial], names: tuple[str, str], *, profile: str, measured_at: float) -> NoiseFloor:
    """Return the largest difference between two copies of an implementation (A/A) that is consistent with the data.

    Two processes with the same number, one of each copy, form a pair. The ratio of each pair is averaged over the
    common cells. More pairs reduce the contribution of chance. They do not reduce a lasting advantage of one copy, for
    example from start order or memory layout. The average hides differences in a single cell, so the floor is at least
    as large as any significant difference in a cell.

    Args:
        trials: Trials of the run.
        names: Names of the implementation and of the copy.
        profile: Name of the profile, for the record.
        measured_at: Seconds since 1970, for the record.

    Raises:
        ValueError: There are fewer than two pairs.
    """
    cells, floors, logs = collect_cells(trials), [], np.empty(0)
    own, copy = ({key[1:]: cell for key, cell in cells.items() if key[0] == name and cell.valid} for name in names)
    own_cells, copy_cells = ({("", *key): side[key] for key in own if key in copy} for side in (own, copy))
    for metric in (THROUGHPUT, CPU_PER_REQUEST):
        log_ratios: defaultdict[int, list[float]] = defaultdict(list)
        for key, cell in own_cells.items():
            values, copy_values = (each.by_process(metric) for each in (cell, copy_cells[key]))
            for process in values.keys() & copy_values.keys():
                log_ratios[process].append(float(np.log(values[process] / copy_values[process])))
        logs = np.asarray([np.mean(log_ratios[process]) for process in sorted(log_ratios)])
        if len(logs) < 2:
            raise ValueError(f"a noise floor needs at least two pairs of processes, but the run has {len(logs)}")
        half = student_half_width(logs.var(ddof=1) / len(logs), np.asarray(len(logs) - 1), CONFIDENCE)
        effects = _effects(_within_rounds(own_cells, copy_cells, metric), metric, 0.0, 0.0).values()
        different = [each.ratio for each in effects if each.ratio and each.verdict in ("faster", "slower")]
        ends = [max(1 / (each.low or 1.0), each.high or 1.0) for each in different]
        floors.append(max([float(np.exp(abs(logs.mean()) + half)), *ends]) - 1)
    return NoiseFloor(
        implementation=names[0], profile=profile, measured_at=measured_at, pairs=len(logs), throughput=floors[0],
        cpu_per_request=floors[1],
    )  # fmt: skip


# ---- Differences between two runs ------------------------------------------------------------------------------------


def _within_rounds(a: TrialsByCell, b: TrialsByCell, metric: Metric) -> dict[CellKey, Differences]:
    """Return B's log mean minus A's for each cell.

    A and B are rows of the same table, so the effects of rounds cancel.
    """
    joint = {(side + key[0], *key[1:]): cell for side, cells in (("A ", a), ("B ", b)) for key, cell in cells.items()}
    tables, differences = ValueTables.of(joint, metric), {}
    for table in tables.fits:
        compared = tables.means(table)
        rows = {name: np.asarray([row]) for row, name in enumerate(compared.names)}
        for name, kind, load in a:
            if (kind, load) == table and {"A " + name, "B " + name} <= rows.keys():
                row_a, row_b = rows["A " + name], rows["B " + name]
                differences[name, kind, load] = pairs.differences(compared, compared, row_b, row_a)
    return differences


def _between_runs(a: TrialsByCell, b: TrialsByCell, metric: Metric) -> dict[CellKey, Differences]:
    """Return B's log mean minus A's for each cell of two separate runs.

    In a run, processes with the same number share an error. This error does not cancel in the difference between
    separate runs, so it is added to the error of the difference.
    """
    sides = []
    for cells in (a, b):
        tables = ValueTables.of(cells, metric)
        rows: dict[CellKey, tuple[RowMeans, NDArray[np.intp]]] = {}
        for kind, load in dict.fromkeys(key[1:] for key in cells):
            table, compared = tables.fits[kind, load], tables.means((kind, load))
            standalone = standalone_means(table, compared)
            if len(table.columns) < 2:  # with a single process number, the shared error is unknown
                standalone = replace(standalone, squared_error=np.full(len(table.names), np.nan))
            rows |= {(name, kind, load): (standalone, np.asarray([row])) for row, name in enumerate(table.names)}
        sides.append(rows)
    first, second = sides
    return {
        key: pairs.differences(second[key][0], table, second[key][1], row)
        for key, (table, row) in first.items()
        if key in second
    }


def _effects(
    differences: Mapping[CellKey, Differences], metric: Metric, floor: float, margin: float
) -> dict[CellKey, Effect]:
    """Convert differences to ratios with verdicts.

    The verdict is "same" if the ratio's interval lies within ``margin``, a relative difference. It is "faster" or
    "slower" only if the ratio differs by at least ``floor``, the noise floor.
    """
    p_values = {key: float(each.p_values()[0]) for key, each in differences.items()}
    tested = [key for key, p in p_values.items() if np.isfinite(p)]
    rejected = dict(zip(tested, pairs.holm(np.asarray([p_values[key] for key in tested]), 1 - CONFIDENCE), strict=True))
    effects = {}
    for key, each in differences.items():
        (value,) = each.ratios()
        verdict: Verdict = "cannot tell"
        if is_equivalent(value.low, value.high, margin):
            verdict = "same"
        elif rejected.get(key) and abs(np.log(value.value)) >= np.log1p(floor):
            verdict = "faster" if (value.value > 1) == metric.higher_is_better else "slower"
        effects[key] = Effect(ratio=value, verdict=verdict)
    return effects


def _planned_cells(info: RunInfo) -> set[CellKey]:
    """Return all cells that a run planned to measure."""
    return {
        (each.name, kind, load)
        for each in info.implementations
        for kind in each.test_types
        for load in (info.cells.get(each.name, {}) if info.cells else info.loads).get(kind, ())
    }


def _only_in(key: CellKey, planned: Sequence[set[CellKey]]) -> Literal["", "A", "B"]:
    """Return "A" or "B" if only that run planned the cell, otherwise an empty string."""
    in_a, in_b = (key in cells for cells in planned)
    return "" if in_a == in_b else "A" if in_a else "B"


def _why_missing(
    key: CellKey, cells: Sequence[Mapping[CellKey, CellTrials]], reasons: Sequence[Mapping[tuple[str, str], str]]
) -> str:
    """Return why a run has no valid trial of the cell, such as ``B: not measured``, or "" if both runs have one."""
    for letter, own, unranked in zip("AB", cells, reasons, strict=True):
        if reason := unranked.get(key[:2]):
            return f"{letter}: {reason}"
        if key not in own or not own[key].valid:
            return f"{letter}: {own[key].why_empty if key in own else 'not measured'}"
    return ""


def _sort_key(cell: CellComparison) -> tuple[str, int, str, str]:
    return cell.test_type, cell.load.connections, cell.load.label, cell.implementation


def _larger_floor(a: NoiseFloor | None, b: NoiseFloor | None) -> NoiseFloor | None:
    if a is None or b is None:
        return a or b
    larger = {name: max(getattr(a, name), getattr(b, name)) for name in ("throughput", "cpu_per_request")}
    return a.model_copy(update=larger)


def differing_conditions(a: RunInfo, b: RunInfo) -> Iterator[str]:
    """Yield the name and both values of each entry in ``RunInfo.conditions`` that differs between the runs."""
    for (name, value_a), value_b in zip(a.conditions.items(), b.conditions.values(), strict=True):
        if value_a != value_b:
            yield f"{name}: A {value_a}, B {value_b}"


def _run_differences(a: RunInfo, b: RunInfo) -> Iterator[str]:
    """Yield a note for each setting or machine property that differs between the runs."""
    for name, *values in (
        ("machine", a.machine.hostname, b.machine.hostname),
        ("CPU", a.machine.cpu_model, b.machine.cpu_model),
        ("network path", a.network_path, b.network_path),
        ("kernel", a.machine.kernel, b.machine.kernel),
        ("usable CPUs", len(a.machine.cpus_usable), len(b.machine.cpus_usable)),
        ("governor", a.machine.governor, b.machine.governor),
        ("turbo", a.machine.turbo, b.machine.turbo),
        ("grade", a.machine.grade, b.machine.grade),
        ("profile", a.profile, b.profile),
        ("runtime", a.runtime, b.runtime),
        ("design", a.design, b.design),
        ("revision", *(run.revision and run.revision + " with local changes" * bool(run.dirty) for run in (a, b))),
        ("generator", a.generator, b.generator),
        *((f"tool {tool}", a.tools.get(tool), b.tools.get(tool)) for tool in sorted({*a.tools, *b.tools})),
    ):
        if values[0] != values[1]:
            value_a, value_b = ("unknown" if value in (None, "") else value for value in values)
            yield f"the runs differ in {name}: A {value_a}, B {value_b}"
