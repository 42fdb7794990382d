"""Two runs cell by cell, the ratio of any two cells, and the noise floor of a machine: each from the one fit."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from harness.records.models import NoiseFloor, ProcessRecord, RunInfo, RunRecords, Trial
from harness.stats import fit, pairs
from harness.stats.fit import CONFIDENCE, Means, half_width
from harness.stats.model import CellComparison, Comparison, Effect, Ratio
from harness.stats.pairs import Differences
from harness.stats.tables import ONLY, Tables
from harness.stats.values import CPU, METRICS, THROUGHPUT, Cell, Key, Metric, by_start, collect
from harness.stats.verdicts import unranked

Cells = Mapping[Key, Cell]
MISSING = Effect(ratio=None, verdict="missing")


def compare(a: RunRecords, b: RunRecords, fail_over: float) -> Comparison:
    """Run B over run A. ``fail_over`` is relative (0.05 for 5 %).

    Two halves of one run, as ``compare --base`` makes them, stood side by side and are compared within rounds; separate
    runs have nothing in common. Holm's correction covers all cells of a metric.
    """
    cells = collect(a.trials), collect(b.trials)
    reasons = [unranked(side.info, side.trials, side.processes, side.verdicts) for side in (a, b)]
    why = {key: _why_missing(key, cells, reasons) for key in (*cells[0], *cells[1])}
    interleaved = a.info.started_at == b.info.started_at and a.info.seed == b.info.seed
    floor = _larger(a.info.noise_floor, b.info.noise_floor)
    one, other = ({key: side[key] for key in why if not why[key]} for side in cells)
    effects = []
    for metric, least in ((THROUGHPUT, floor and floor.throughput), (CPU, floor and floor.cpu_per_request)):
        found = (_within_rounds if interleaved else _of_separate_runs)(one, other, metric)
        effects.append(_effects(found, metric, least or 0.0))
    made = [
        CellComparison(
            implementation=key[0], test_type=key[1], load=key[2], reason=reason,
            throughput=effects[0].get(key, MISSING), cpu_per_request=effects[1].get(key, MISSING),
        )
        for key, reason in why.items()
    ]  # fmt: skip
    return Comparison(
        run_a=a.info.run_id,
        run_b=b.info.run_id,
        fail_over=fail_over,
        interleaved=interleaved,
        cells=tuple(sorted(made, key=_place)),
        noise_floor=floor,
        notes=tuple(_differing(a.info, b.info)),
    )


def ratio(
    trials: Sequence[Trial],
    a: Key,
    b: Key,
    metric: str,
    confidence: float,
    processes: Sequence[ProcessRecord] = (),
) -> Ratio | None:
    """Cell ``a`` over cell ``b``, each (implementation, test type, load), in a metric of ``values.METRICS``.

    Among all rows of their table where it is one; None where one has no figure. ``processes``: for a metric of these.
    """
    of = METRICS[metric]
    if of.of_process:
        return Tables({ONLY: by_start(processes, of)}).ratio(a[0], b[0], confidence)
    cells = collect(trials)
    tables = Tables.of(cells, of)
    if a[1:] == b[1:]:
        return tables.ratio(a[0], b[0], confidence, a[1:])
    both = tables.fit({str(key): cells[key].values(of) for key in (a, b) if key in cells})
    return tables.ratio(str(a), str(b), confidence, both)


def ratio_of_values(a: Mapping[int, float], b: Mapping[int, float], confidence: float) -> Ratio | None:
    """The same of positive values by process that no run recorded."""
    values = {name: {(process, 0): value for process, value in own.items()} for name, own in (("a", a), ("b", b))}
    return Tables({ONLY: values}).ratio("a", "b", confidence)


def noise_floor(trials: Sequence[Trial], names: tuple[str, str], *, profile: str, measured_at: float) -> NoiseFloor:
    """The largest difference of two copies of one implementation (A/A) that the pairs do not exclude.

    A pair is a process number of both, over all cells that both have: cells of one process share its luck. More pairs
    lower the part that is chance; a lasting advantage of one copy (start order, placement, memory layout) stays, and is
    what the floor is for. What cancels over cells shows where ``compare`` would tell the copies of one apart: the floor
    lies above each of these. Raises ValueError with fewer than two pairs.
    """
    cells, floors, logs = collect(trials), [], np.empty(0)
    first, second = ({key[1:]: cell for key, cell in cells.items() if key[0] == name and cell.kept} for name in names)
    one, other = ({("", *spot): side[spot] for spot in first if spot in second} for side in (first, second))
    for metric in (THROUGHPUT, CPU):
        found: defaultdict[int, list[float]] = defaultdict(list)
        for key, cell in one.items():
            own, twins = (each.by_process(metric) for each in (cell, other[key]))
            for process in own.keys() & twins.keys():
                found[process].append(float(np.log(own[process] / twins[process])))
        logs = np.asarray([np.mean(found[process]) for process in sorted(found)])
        if len(logs) < 2:
            raise ValueError(f"a noise floor needs at least two A/A pairs, there are {len(logs)}")
        half = half_width(logs.var(ddof=1) / len(logs), np.asarray(len(logs) - 1), CONFIDENCE)
        effects = _effects(_within_rounds(one, other, metric), metric, 0.0).values()
        told = [each.ratio for each in effects if each.ratio and each.verdict != "tie"]
        ends = [max(1 / (each.low or 1.0), each.high or 1.0) for each in told]
        floors.append(max([float(np.exp(abs(logs.mean()) + half)), *ends]) - 1)
    return NoiseFloor(
        implementation=names[0], profile=profile, measured_at=measured_at, pairs=len(logs), throughput=floors[0],
        cpu_per_request=floors[1],
    )  # fmt: skip


# ---- two runs --------------------------------------------------------------------------------------------------------


def _within_rounds(a: Cells, b: Cells, metric: Metric) -> dict[Key, Differences]:
    """B minus A of every cell, as rows of one table."""
    both = {(side + key[0], *key[1:]): cell for side, cells in (("A ", a), ("B ", b)) for key, cell in cells.items()}
    tables, found = Tables.of(both, metric), {}
    for spot in tables.fits:
        compared = tables.means(spot)
        rows = {name: np.asarray([row]) for row, name in enumerate(compared.names)}
        for name, kind, load in a:
            if (kind, load) == spot and {"A " + name, "B " + name} <= rows.keys():
                found[name, kind, load] = pairs.differences(compared, compared, rows["B " + name], rows["A " + name])
    return found


def _of_separate_runs(a: Cells, b: Cells, metric: Metric) -> dict[Key, Differences]:
    """B minus A of every cell: what processes of one number have in common does not cancel, and adds to errors."""
    sides = []
    for cells in (a, b):
        tables = Tables.of(cells, metric)
        found: dict[Key, tuple[Means, NDArray[np.intp]]] = {}
        for kind, load in dict.fromkeys(key[1:] for key in cells):
            table, compared = tables.fits[kind, load], tables.means((kind, load))
            whole = fit.as_shown(table, compared)
            if len(table.columns) < 2:  # nothing says what another one would have in common
                whole = replace(whole, squared_error=np.full(len(table.names), np.nan))
            found |= {(name, kind, load): (whole, np.asarray([row])) for row, name in enumerate(table.names)}
        sides.append(found)
    first, second = sides
    return {
        key: pairs.differences(second[key][0], table, second[key][1], row)
        for key, (table, row) in first.items()
        if key in second
    }


def _effects(found: Mapping[Key, Differences], metric: Metric, floor: float) -> dict[Key, Effect]:
    p_values = {key: float(each.p_values()[0]) for key, each in found.items()}
    tested = [key for key, p in p_values.items() if np.isfinite(p)]
    rejected = dict(zip(tested, pairs.holm(np.asarray([p_values[key] for key in tested]), 1 - CONFIDENCE), strict=True))
    effects = {}
    for key, each in found.items():
        (value,) = each.ratios()
        verdict: Literal["faster", "slower", "tie"] = "tie"
        if rejected.get(key) and abs(np.log(value.value)) >= np.log1p(floor):
            verdict = "faster" if (value.value > 1) == metric.higher else "slower"
        effects[key] = Effect(ratio=value, verdict=verdict)
    return effects


def _why_missing(
    key: Key, cells: Sequence[Mapping[Key, Cell]], reasons: Sequence[Mapping[tuple[str, str], str]]
) -> str:
    for letter, own, refused in zip("AB", cells, reasons, strict=True):
        if reason := refused.get(key[:2]):
            return f"{letter}: {reason}"
        if key not in own or not own[key].kept:
            return f"{letter}: {own[key].why_empty if key in own else 'not measured'}"
    return ""


def _place(cell: CellComparison) -> tuple[str, int, str, str]:
    return cell.test_type, cell.load.connections, cell.load.label, cell.implementation


def _larger(one: NoiseFloor | None, other: NoiseFloor | None) -> NoiseFloor | None:
    if one is None or other is None:
        return one or other
    larger = {name: max(getattr(one, name), getattr(other, name)) for name in ("throughput", "cpu_per_request")}
    return one.model_copy(update=larger)


def _differing(a: RunInfo, b: RunInfo) -> Iterator[str]:
    """Facts in which two runs differ, with both sides."""
    for name, left, right in (
        ("machine", a.machine.hostname, b.machine.hostname),
        ("CPU", a.machine.cpu_model, b.machine.cpu_model),
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
        if left != right:
            one, other = ("unknown" if value in (None, "") else value for value in (left, right))
            yield f"the runs differ in {name}: A {one}, B {other}"
