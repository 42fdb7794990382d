"""The ranking of a run, from its records: tables by test type and load, and an overall score. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from harness.plan.profile import Processes
from harness.records.models import Load, ProcessRecord, RunInfo, Scenario, Trial, Verdict
from harness.stats import capacity, fit, model
from harness.stats.fit import Fitted
from harness.stats.stopping import alpha_at, section
from harness.stats.tables import Tables, alone, best_first, percentiles, placed, ratios_to
from harness.stats.values import (
    CPU,
    METRICS,
    PERCENTILES,
    THROUGHPUT,
    Cell,
    Metric,
    best_load,
    by_start,
    by_type,
    collect,
    deployments_of,
    headline_load,
)
from harness.stats.verdicts import NOT_REACHED, caveats, is_ranked, rates_unreached, unranked, why_no_figure

LIMIT = "limit"  # tag of an implementation that is no contestant: what machine, kernel and protocol cost


@dataclass(frozen=True, kw_only=True)
class _Run:
    """What the tables of a run are made from."""

    info: RunInfo
    rules: Processes
    cells: Mapping[str, Mapping[str, Mapping[Load, Cell]]]  # test type -> implementation -> load
    tables: Sequence[tuple[Metric, Tables, float]]  # by throughput and by CPU per request, with the noise floor
    unranked: Mapping[tuple[str, str], str]
    caveats: Mapping[tuple[str, str], tuple[str, ...]]
    startup: Mapping[str, float]
    limits: Sequence[str]
    processes: Sequence[ProcessRecord]

    def loads(self, kind: str) -> list[Load]:
        """Those planned, then others that were measured."""
        planned = list(self.info.loads[kind])
        seen = {load: None for own in self.cells[kind].values() for load in own if load not in planned}
        return [*planned, *sorted(seen, key=lambda load: (load.connections, load.label))]

    def at(self, kind: str, name: str, load: Load | None) -> tuple[Load | None, Cell | None]:
        """The cell of a row, at this load or else at its best."""
        own = self.cells[kind].get(name, {})
        chosen = best_load(own) if load is None else load
        return chosen, own.get(chosen) if chosen is not None else None

    def fitted(self, metric: Metric, tables: Tables, kind: str, load: Load | None) -> Fitted:
        """A table of one load, or of each one's best."""
        if (kind, load) in tables.fits:
            return tables.fits[kind, load]
        names = [n for n in self.cells[kind] if (n, kind) not in self.unranked and n not in self.limits]
        rows = {name: self.at(kind, name, load)[1] for name in names}
        return tables.fit({name: cell.values(metric) for name, cell in rows.items() if cell and cell.kept})


def rank(
    info: RunInfo, trials: Sequence[Trial], processes: Sequence[ProcessRecord], verdicts: Sequence[Verdict]
) -> model.Ranking:
    """Rank every test type at every load and at its headline one, overall, by latency goals and arrivals.

    Of a profile that only checks that things run: figures of rows that are not ranked, and no score.
    """
    floor, merged, collected = info.noise_floor, deployments_of(info), collect(trials)
    refused, limits = unranked(info, trials, processes, verdicts), _limits(info)
    ranked = {key: cell for key, cell in collected.items() if key[:2] not in refused and key[0] not in limits}
    startup = by_start(processes, METRICS["startup-time"])
    run = _Run(
        info=info,
        rules=section(info, "processes", Processes),
        cells=by_type(collected),
        tables=(
            (THROUGHPUT, Tables.of(ranked, THROUGHPUT, merged), floor.throughput if floor else 0.0),
            (CPU, Tables.of(ranked, CPU, merged), floor.cpu_per_request if floor else 0.0),
        ),
        unranked=refused,
        caveats=caveats(info, trials, verdicts),
        startup={name: median(times.values()) for name, times in startup.items()},
        limits=limits,
        processes=processes,
    )
    test_types = {kind: _test_type(kind, run) for kind in info.loads}
    reasons = {
        (kind, row.implementation): row.reason
        or NOT_REACHED * rates_unreached(row.implementation, kind, trials, processes)
        for kind, r in test_types.items()
        for row in r.headline.rows
    }
    return model.Ranking(
        run_id=info.run_id,
        reference=info.reference,
        leading=leading(info),
        test_types=test_types,
        overall=_overall(run, test_types),
        latency=capacity.tables(info, trials, reasons),
        orders=capacity.orders(info, trials, test_types, reasons),
        noise_floor=floor,
        notes=tuple(_notes(run, test_types)),
    )


def leading(info: RunInfo) -> model.Quantity:
    """CPU per request where the machine is shared or busy: it is the steadier figure there."""
    return "cpu" if info.machine.grade in ("C", "D") else "throughput"


def _limits(info: RunInfo) -> list[str]:
    """Those that are left out of ranks; where nothing else was run, or scores are relative to it, it is ranked."""
    found = [one.name for one in info.implementations if LIMIT in (tag.lower() for tag in one.tags)]
    return [name for name in found if len(found) < len(info.implementations) and name != info.reference]


# ---- tables ----------------------------------------------------------------------------------------------------------


def _test_type(kind: str, run: _Run) -> model.TestTypeRanking:
    tables = {load: _table(kind, load, run) for load in run.loads(kind)}
    chosen = next(iter(tables)) if len(tables) == 1 else headline_load(run.cells[kind])
    headline = tables[chosen] if chosen in tables else _table(kind, None, run)
    return model.TestTypeRanking(test_type=kind, headline=headline, tables=tuple(tables.values()))


def _table(kind: str, load: Load | None, run: _Run) -> model.Table:
    processes = {trial.process for own in run.cells[kind].values() for cell in own.values() for trial in cell.trials}
    alpha = alpha_at(run.rules, len(processes))
    found = [
        tables.standings(
            run.info.reference, run.fitted(metric, tables, kind, load), alpha=alpha, floor=floor, higher=metric.higher
        )
        for metric, tables, floor in run.tables
    ]
    rows = [_row(one.name, kind, load, run, found) for one in run.info.implementations if kind in one.test_types]
    return model.Table(test_type=kind, load=load, rows=best_first(rows, lambda row: row.throughput))


def _row(
    name: str, kind: str, load: Load | None, run: _Run, found: Sequence[Mapping[str, model.Standing]]
) -> model.Row:
    at, cell = run.at(kind, name, load)
    reason, flags = run.unranked.get((name, kind), ""), run.caveats.get((name, kind), ())
    startup = run.startup.get(name)
    if cell is None or at is None:
        loads = run.info.loads[kind] if load is None else (load,)
        late = NOT_REACHED in (why_no_figure(name, kind, each, run.processes) for each in loads)
        why = reason or (NOT_REACHED if late else "missing")
        return model.Row(implementation=name, startup_time=startup, flags=flags, ranked=False, reason=why)
    above, floor = _beside_the_limit(name, kind, at, run)
    reason = reason or (floor if cell.kept else f"kept out by its gates: {cell.why_empty}")
    return model.Row(
        implementation=name,
        load=at,
        throughput=found[0].get(name),
        cpu_per_request=found[1].get(name),
        rss_peak=cell.median(METRICS["memory"]),
        startup_time=startup,
        errors=sum(trial.errors.total for trial in cell.trials),
        flags=tuple(dict.fromkeys((*cell.flags, *above, *flags))),
        ranked=not reason and is_ranked(run.info),
        reason=reason,
        trials=len(cell.trials),
        dropped=len(cell.trials) - len(cell.kept),
        latency=_latency(cell),
        response_time=cell.median(METRICS["response-time"]),
        throughput_per_memory=cell.median(METRICS["throughput-per-memory"]),
        threads=cell.median(METRICS["threads"]),
    )


def _beside_the_limit(name: str, kind: str, load: Load, run: _Run) -> tuple[list[str], str]:
    """How many times the floor's CPU per request a row takes, as a flag; of the floor why it has no rank."""
    own, reason = run.cells[kind][name][load], ""
    cpu, rate = own.median(CPU), own.median(THROUGHPUT)
    if name in run.limits:
        figures = f" ({rate:,.0f} req/s, {cpu * 1e6:.3g} µs CPU/req)" if rate and cpu else ""
        reason = f"the floor: what the machine allows, not ranked{figures}"
    good = [other for other in run.limits if other != name and (other, kind) not in run.unranked]
    others = [run.cells[kind].get(other, {}).get(load) for other in good]
    known = [least for cell in others if cell and (least := cell.median(CPU))]
    return [f"CPU {cpu / min(known):.3g}× the floor"] if cpu and known else [], reason


def _latency(cell: Cell) -> model.ClosedLoopLatency | None:
    """Of the closed loop; none where any process's generator told none."""
    found = [
        (trial.process, trial.latency, trial.requests)
        for trial in cell.kept
        if trial.latency and not isinstance(trial.load, Scenario)
    ]
    means = cell.by_process(METRICS["response-time"])
    if not found or len(means) < len(cell.processes):
        return None
    return model.ClosedLoopLatency(
        mean=alone(means),
        percentiles=percentiles([(process, times.percentiles, n) for process, times, n in found], PERCENTILES),
        maximum=max(times.max for _, times, _ in found),
    )


# ---- overall ---------------------------------------------------------------------------------------------------------


def _overall(run: _Run, test_types: Mapping[str, model.TestTypeRanking]) -> tuple[model.Score, ...]:
    """Geometric means of ratios to the reference over the test types in which it has a figure; empty without one.

    A score depends on the run and its reference only, so filtering a view never changes it (an arithmetic mean of
    normalised figures would also depend on the reference: Fleming & Wallace 1986). Missing is missing, never 0; a
    throughput that is given, as that of arrivals, scores nobody.
    """
    ratios = {
        kind: {
            row.implementation: row.throughput.to_reference.value
            for row in ranking.headline.rows
            if row.throughput and row.throughput.to_reference
        }
        for kind, ranking in test_types.items()
        if not isinstance(ranking.headline.load, Scenario)
    }
    spots = [(kind, test_types[kind].headline.load) for kind, found in ratios.items() if found]
    if not spots or not is_ranked(run.info):
        return ()
    throughput, cpu = (
        _scores(run, metric, tables, [run.fitted(metric, tables, *spot) for spot in spots], floor)
        for metric, tables, floor in run.tables
    )
    scores = [
        model.Score(
            implementation=one.name,
            throughput=throughput.get(one.name),
            cpu=cpu.get(one.name),
            ratios={kind: ratios[kind][one.name] for kind, _ in spots if one.name in ratios[kind]},
            missing=tuple(kind for kind, _ in spots if one.name not in ratios[kind]),
        )
        for one in run.info.implementations
        if one.name not in run.limits
    ]

    def place(score: model.Score) -> tuple[int | str, ...]:
        """By the leading figure, then by the other one."""
        both = (score.cpu, score.throughput) if leading(run.info) == "cpu" else (score.throughput, score.cpu)
        return *(each.position if each else len(scores) + 1 for each in both), score.implementation

    return tuple(sorted(scores, key=place))


def _scores(
    run: _Run, metric: Metric, tables: Tables, fits: Sequence[Fitted], floor: float
) -> dict[str, model.Standing]:
    """A score's interval is that of its ratio to the reference; of a cost the reference's over one's own."""
    reference = run.info.reference
    names = [name for name in fits[0].names if all(name in table.names for table in fits)]
    if reference not in names:
        return {}
    joint = fit.together(fits, names, tables.prior)
    joint = joint if metric.higher else replace(joint, mean=-joint.mean)
    counts = [min(int(table.processes[list(table.names).index(name)]) for table in fits) for name in names]
    shown = [
        model.Estimate(median=ratio.value, low=ratio.low, high=ratio.high, processes=count, values=())
        for ratio, count in zip(ratios_to(joint, reference), counts, strict=True)
    ]
    return placed(joint, shown, reference, alpha_at(run.rules, max(counts)), floor, higher=True)


def _notes(run: _Run, test_types: Mapping[str, model.TestTypeRanking]) -> Iterator[str]:
    info = run.info
    if len(info.sets) > 1:
        names = ", ".join(one.name for one in info.sets[:20]) + (", …" if len(info.sets) > 20 else "")
        yield f"{len(info.sets)} deployments ({names}): ratios are within each, and they are the unit of intervals"
    if info.reference is None:
        yield "no reference implementation: there are no ratios to it and no overall score"
    elif lacking := [
        kind
        for kind, ranking in test_types.items()
        if not any(row.implementation == info.reference and row.throughput for row in ranking.headline.rows)
    ]:
        yield f"not in the overall score, because {info.reference} has no figure there: {', '.join(lacking)}"
    counts = [max(own.processes, default=0) for _, tables, _ in run.tables for own in tables.fits.values()]
    if max(counts, default=0) == 1:
        rounds = any(own.within.freedom.any() for _, tables, _ in run.tables for own in tables.fits.values())
        yield "one process of each: " + (
            f"fresh ones are taken to differ by {fit.ASSUMED:.0%}"
            if rounds
            else "nothing says how far others would differ"
        )
    if info.settings.get("network") == "bridge":
        yield "all of this run went over a bridge network: its figures are not those of runs on the host's own network"
    if info.status == "incomplete":
        yield "the run is incomplete: time was up before every cell was tried (more --time, or fewer names and types)"
    elif info.status != "complete":
        yield f"the run is {info.status}: intervals are those of the processes so far"
