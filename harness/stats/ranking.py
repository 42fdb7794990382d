"""Ranks a run's implementations: tables by test type and load, and an overall score."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from harness.plan.profile import ProcessLimits
from harness.plan.testtypes.registry import group
from harness.records.loads import Load, Scenario
from harness.records.run_info import RunInfo
from harness.records.run_records import ProcessRecord
from harness.records.trial_record import Trial
from harness.records.verification_record import VerificationRecord
from harness.stats import capacity, ranking_model
from harness.stats.cell_values import (
    CPU_PER_REQUEST,
    METRICS,
    PERCENTILES,
    THROUGHPUT,
    CellTrials,
    Metric,
    best_load,
    collect_cells,
    collect_process_values,
    group_by_test_type,
    headline_table_load,
)
from harness.stats.moderation import ASSUMED_SD, pool_tables
from harness.stats.stopping import alpha_at, profile_section
from harness.stats.table_fit import TableFit
from harness.stats.unranked import (
    NOT_REACHED,
    UNCONNECTED,
    caveats,
    is_ranked,
    rates_unreached,
    unranked_reasons,
    verified_amounts,
    why_no_figure,
)
from harness.stats.value_tables import (
    ValueTables,
    estimate_from_processes,
    estimate_percentiles,
    rank_rows,
    ratios_to_row,
    sort_rows,
)

# Tag of implementations that show the minimum cost of machine, kernel and protocol. They are not ranked.
LIMIT_TAG = "limit"


@dataclass(frozen=True, kw_only=True)
class _RankingInput:
    """The input for all tables of a run."""

    info: RunInfo
    rules: ProcessLimits
    cells: Mapping[str, Mapping[str, Mapping[Load, CellTrials]]]  # test type -> implementation -> load -> cell
    tables: Sequence[tuple[Metric, ValueTables, float]]  # (metric, tables, noise floor) of each metric
    unranked: Mapping[tuple[str, str], str]  # (implementation, test type) -> reason
    caveats: Mapping[tuple[str, str], tuple[str, ...]]
    # (implementation, test type) -> (number of checks, number of checked responses)
    verified: Mapping[tuple[str, str], tuple[int, int]]
    startup: Mapping[str, float]  # implementation -> median startup time in seconds
    limits: Sequence[str]  # implementations with the limit tag
    processes: Sequence[ProcessRecord]

    def loads(self, kind: str) -> list[Load]:
        """Return the planned loads of a test type, followed by loads that were measured but not planned."""
        planned = list(self.info.loads[kind])
        unplanned = {load for own in self.cells[kind].values() for load in own if load not in planned}
        return [*planned, *sorted(unplanned, key=lambda load: (load.connections, load.label))]

    def at(self, kind: str, name: str, load: Load | None) -> tuple[Load | None, CellTrials | None]:
        """Return (load, cell) of an implementation at ``load``. If ``load`` is None, use the best load."""
        own = self.cells[kind].get(name, {})
        chosen = best_load(own) if load is None else load
        return chosen, own.get(chosen) if chosen is not None else None

    def fitted(self, metric: Metric, tables: ValueTables, kind: str, load: Load | None) -> TableFit:
        """Return the fit of a test type's table at a load. If ``load`` is None, use each row's best load."""
        if (kind, load) in tables.fits:
            return tables.fits[kind, load]
        names = [n for n in self.cells[kind] if (n, kind) not in self.unranked and n not in self.limits]
        rows = {name: self.at(kind, name, load)[1] for name in names}
        return tables.fit({name: cell.values(metric) for name, cell in rows.items() if cell and cell.valid})


def rank(
    info: RunInfo, trials: Sequence[Trial], processes: Sequence[ProcessRecord], verdicts: Sequence[VerificationRecord]
) -> ranking_model.Ranking:
    """Rank each test type at each load, and compute overall scores, capacities and scenario results.

    If the profile only checks that implementations run (``smoke``), rows are unranked and there is no score.
    """
    floor, collected = info.noise_floor, collect_cells(trials)
    unranked, limits = unranked_reasons(info, trials, processes, verdicts), _limits(info)
    ranked = {key: cell for key, cell in collected.items() if key[:2] not in unranked and key[0] not in limits}
    startup = collect_process_values(processes, METRICS["startup-time"])
    run = _RankingInput(
        info=info,
        rules=profile_section(info, "processes", ProcessLimits),
        cells=group_by_test_type(collected),
        tables=(
            (THROUGHPUT, ValueTables.of(ranked, THROUGHPUT, info), floor.throughput if floor else 0.0),
            (CPU_PER_REQUEST, ValueTables.of(ranked, CPU_PER_REQUEST, info), floor.cpu_per_request if floor else 0.0),
        ),
        unranked=unranked,
        caveats=caveats(info, trials, verdicts),
        verified=verified_amounts(trials, verdicts),
        startup={name: median(times.values()) for name, times in startup.items()},
        limits=limits,
        processes=processes,
    )
    test_types = {kind: _rank_test_type(kind, run) for kind in info.loads}
    reasons = {
        (kind, row.implementation): row.reason
        or NOT_REACHED * rates_unreached(row.implementation, kind, trials, processes)
        for kind, r in test_types.items()
        for row in r.headline.rows
    }
    scored, groups = _score_parts(test_types)
    return ranking_model.Ranking(
        run_id=info.run_id,
        reference=info.reference,
        leading=leading_quantity(info),
        test_types=test_types,
        overall=_overall_scores(run, scored),
        groups={name: _overall_scores(run, part) for name, part in groups.items()},
        latency=capacity.latency_tables(info, trials, reasons),
        orders=capacity.scenario_results(info, trials, test_types, reasons),
        noise_floor=floor,
        notes=tuple(_notes(run, test_types)),
    )


def leading_quantity(info: RunInfo) -> ranking_model.Quantity:
    """Return the leading metric: throughput or, on a shared or busy machine, CPU per request, which varies less."""
    return "cpu" if info.machine.grade in ("C", "D") else "throughput"


def _limits(info: RunInfo) -> list[str]:
    """Return the implementations with the limit tag, except the baseline. If all have the tag, return an empty list."""
    tagged = [one.name for one in info.implementations if LIMIT_TAG in (tag.lower() for tag in one.tags)]
    return [name for name in tagged if len(tagged) < len(info.implementations) and name != info.reference]


# ---- Tables by test type and load ------------------------------------------------------------------------------------


def _rank_test_type(kind: str, run: _RankingInput) -> ranking_model.TestTypeRanking:
    tables = {load: _rank_table(kind, load, run) for load in run.loads(kind)}
    chosen = next(iter(tables)) if len(tables) == 1 else headline_table_load(run.cells[kind])
    headline = tables[chosen] if chosen in tables else _rank_table(kind, None, run)
    every = tuple(tables.values())
    return ranking_model.TestTypeRanking(test_type=kind, group=group(kind), headline=headline, tables=every)


def _rank_table(kind: str, load: Load | None, run: _RankingInput) -> ranking_model.Table:
    processes = {trial.process for own in run.cells[kind].values() for cell in own.values() for trial in cell.trials}
    alpha = alpha_at(run.rules, len(processes))
    standings = [
        tables.standings(
            run.info.reference,
            run.fitted(metric, tables, kind, load),
            alpha=alpha,
            floor=floor,
            higher_is_better=metric.higher_is_better,
        )
        for metric, tables, floor in run.tables
    ]
    cells = {name: run.at(kind, name, load)[1] for name in run.cells[kind]}
    cold = {name for name, cell in cells.items() if cell and not cell.warm}
    standings = [_rank_as_at_most(own, cold) for own in standings]
    rows = [
        _make_row(one.name, kind, load, run, standings) for one in run.info.implementations if kind in one.test_types
    ]
    return ranking_model.Table(test_type=kind, load=load, rows=sort_rows(rows, lambda row: row.throughput))


def _rank_as_at_most(
    standings: dict[str, ranking_model.Standing], cold: Collection[str]
) -> dict[str, ranking_model.Standing]:
    """Include rank 1 in the interval of each row in ``cold`` (not warmed up): a warm server might cost less."""
    return {
        name: standing.model_copy(update={"rank": standing.rank.model_copy(update={"low": 1})})
        if name in cold
        else standing
        for name, standing in standings.items()
    }


def _make_row(
    name: str,
    kind: str,
    load: Load | None,
    run: _RankingInput,
    standings: Sequence[Mapping[str, ranking_model.Standing]],
) -> ranking_model.Row:
    load_in_run, cell = run.at(kind, name, load)
    reason, flags = run.unranked.get((name, kind), ""), run.caveats.get((name, kind), ())
    startup = run.startup.get(name)
    if cell is None or load_in_run is None:
        loads = run.info.loads[kind] if load is None else (load,)
        late = NOT_REACHED in (why_no_figure(name, kind, each, run.processes) for each in loads)
        reason = reason or (NOT_REACHED if late else "missing")
        return ranking_model.Row(implementation=name, startup_time=startup, flags=flags, ranked=False, reason=reason)
    checks, responses_checked = run.verified.get((name, kind), (0, 0))
    to_floor, limit_reason = _relative_to_limit(name, kind, load_in_run, run)
    reason = reason or (limit_reason if cell.valid else f"excluded by validity checks: {cell.why_empty}")
    reason = reason or UNCONNECTED * (run.tables[0][1].baseline is not None and name not in standings[0])
    return ranking_model.Row(
        implementation=name,
        load=load_in_run,
        throughput=standings[0].get(name),
        cpu_per_request=standings[1].get(name),
        rss_peak=cell.median(METRICS["memory"]),
        startup_time=startup,
        errors=sum(trial.errors.total for trial in cell.trials),
        flags=tuple(dict.fromkeys((*cell.flags, *flags))),
        ranked=not reason and is_ranked(run.info),
        reason=reason,
        trials=len(cell.trials),
        dropped=len(cell.trials) - len(cell.valid),
        checks=checks,
        responses_checked=responses_checked,
        latency=_latency(cell),
        response_time=cell.median(METRICS["response-time"]),
        throughput_per_memory=cell.median(METRICS["throughput-per-memory"]),
        threads=cell.median(METRICS["threads"]),
        cpu_to_floor=to_floor,
    )


def _relative_to_limit(name: str, kind: str, load: Load, run: _RankingInput) -> tuple[float | None, str]:
    """Return (CPU per request divided by the floor, or None; why ``name`` is not ranked, or "" without the limit tag).

    The floor is the smallest CPU per request of the other implementations with the limit tag, at the same load.
    """
    own, reason = run.cells[kind][name][load], ""
    cpu, rate = own.median(CPU_PER_REQUEST), own.median(THROUGHPUT)
    if name in run.limits:
        figures = f" ({rate:,.0f} req/s, {cpu * 1e6:.3g} µs CPU/req)" if rate and cpu else ""
        reason = f"shows the minimum cost on this machine, so it is not ranked{figures}"
    others = [other for other in run.limits if other != name and (other, kind) not in run.unranked]
    cells = [run.cells[kind].get(other, {}).get(load) for other in others]
    floors = [floor for cell in cells if cell and (floor := cell.median(CPU_PER_REQUEST))]
    return cpu / min(floors) if cpu and floors else None, reason


def _latency(cell: CellTrials) -> ranking_model.ClosedLoopLatency | None:
    """Return the closed-loop latency, or None if any process's latency is unknown."""
    latencies = [
        (trial.process, trial.latency, trial.requests)
        for trial in cell.valid
        if trial.latency and not isinstance(trial.load, Scenario)
    ]
    means = cell.by_process(METRICS["response-time"])
    if not latencies or len(means) < len(cell.processes):
        return None
    return ranking_model.ClosedLoopLatency(
        mean=estimate_from_processes(means),
        percentiles=estimate_percentiles(
            [(process, times.percentiles, n) for process, times, n in latencies], PERCENTILES
        ),
        maximum=max(times.max for _, times, _ in latencies),
    )


# ---- Overall scores --------------------------------------------------------------------------------------------------


TestTypeRankings = Mapping[str, ranking_model.TestTypeRanking]


def _score_parts(test_types: TestTypeRankings) -> tuple[TestTypeRankings, Mapping[str, TestTypeRankings]]:
    """Return (test types of the overall score, other test types by group). If all have a group, ignore the groups."""
    parts: dict[str, dict[str, ranking_model.TestTypeRanking]] = {}
    for kind, ranking in test_types.items():
        parts.setdefault(ranking.group, {})[kind] = ranking
    scored = parts.pop("", {})
    return (scored, parts) if scored else (test_types, {})


def _overall_scores(
    run: _RankingInput, test_types: Mapping[str, ranking_model.TestTypeRanking]
) -> tuple[ranking_model.Score, ...]:
    """Return the scores: geometric means of ratios to the baseline, over all test types with a baseline result.

    A score depends only on the run and the baseline, so it does not change when a reader filters a table. With
    arithmetic means, the order would depend on the choice of baseline (Fleming & Wallace 1986). An implementation that
    lacks a result in any of these test types has no score. Scenarios do not count, because their throughput is given.
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
    scored = [(kind, test_types[kind].headline.load) for kind, by_name in ratios.items() if by_name]
    if not scored or not is_ranked(run.info):
        return ()
    throughput, cpu = (
        _scores(run, metric, tables, [run.fitted(metric, tables, *headline) for headline in scored], floor)
        for metric, tables, floor in run.tables
    )
    scores = [
        ranking_model.Score(
            implementation=one.name,
            throughput=throughput.get(one.name),
            cpu=cpu.get(one.name),
            ratios={kind: ratios[kind][one.name] for kind, _ in scored if one.name in ratios[kind]},
            missing=tuple(kind for kind, _ in scored if one.name not in ratios[kind]),
        )
        for one in run.info.implementations
        if one.name not in run.limits
    ]

    def sort_key(score: ranking_model.Score) -> tuple[int | str, ...]:
        """Order by the leading metric, then by the other metric, then by name."""
        by_cpu = leading_quantity(run.info) == "cpu"
        standings = (score.cpu, score.throughput) if by_cpu else (score.throughput, score.cpu)
        return *(each.position if each else len(scores) + 1 for each in standings), score.implementation

    return tuple(sorted(scores, key=sort_key))


def _scores(
    run: _RankingInput, metric: Metric, tables: ValueTables, fits: Sequence[TableFit], floor: float
) -> dict[str, ranking_model.Standing]:
    """Return the scores for a metric. If lower values are better, invert the ratios, so that higher is better."""
    reference = run.info.reference
    names = [name for name in fits[0].names if all(name in table.names for table in fits)]
    if reference not in names:
        return {}
    joint = pool_tables(fits, names, tables.prior)
    joint = joint if metric.higher_is_better else replace(joint, mean=-joint.mean)
    counts = [min(int(table.processes[list(table.names).index(name)]) for table in fits) for name in names]
    estimates = [
        ranking_model.Estimate(median=ratio.value, low=ratio.low, high=ratio.high, processes=count, values=())
        for ratio, count in zip(ratios_to_row(joint, reference), counts, strict=True)
    ]
    return rank_rows(joint, estimates, reference, alpha_at(run.rules, max(counts)), floor, higher_is_better=True)


def _notes(run: _RankingInput, test_types: Mapping[str, ranking_model.TestTypeRanking]) -> Iterator[str]:
    info, part = run.info, run.info.part
    if part and part.number:
        yield (
            f"the run is part {part.number} of {part.count}, with {len(info.implementations)} of {len(part.selection)} "
            "implementations: join all parts with ./tfb report RUN RUN …"
        )
    elif part:
        yield (
            f"the run joins {part.count} parts: ratios between parts are computed through {info.reference}, so a part "
            f"without results of {info.reference} is not ranked; intervals do not account for machine differences that "
            "change ratios"
        )
    elif len(info.sets) > 1:
        names = ", ".join(one.name for one in info.sets[:20]) + (", …" if len(info.sets) > 20 else "")
        yield (
            f"the run has {len(info.sets)} deployments ({names}): ratios compare servers on the same deployment, and "
            "intervals show the variation between deployments"
        )
    if info.reference is None:
        yield "there is no baseline implementation, so there are no ratios and no overall score"
    elif unmeasured := [
        kind
        for kind, ranking in test_types.items()
        if not any(row.implementation == info.reference and row.throughput for row in ranking.headline.rows)
    ]:
        yield f"the overall score excludes {', '.join(unmeasured)}, because {info.reference} has no result there"
    counts = [
        count
        for _, tables, _ in run.tables
        for own in tables.fits.values()
        for name, count in zip(own.names, own.processes, strict=True)
        if name != tables.baseline  # the baseline has processes in every joined part
    ]
    if max(counts, default=0) == 1:
        rounds = any(own.within.df.any() for _, tables, _ in run.tables for own in tables.fits.values())
        yield "each implementation was measured in a single process: " + (
            f"intervals assume that processes differ by {ASSUMED_SD:.0%}"
            if rounds
            else "the variance between processes is unknown"
        )
    if info.settings.get("network") == "bridge":
        yield "the run used a bridge network, so the figures are not comparable with runs on the host's network"
    if info.status == "incomplete":
        yield (
            "the run is incomplete, because time ran out before every cell was measured: increase --time, or select "
            "fewer implementations or test types"
        )
    elif info.status != "complete":
        yield f"the run is {info.status}: the results cover only the processes measured so far"
