"""The ranking of a run, from its records: tables by test type and load, an overall score; or by one metric. Pure."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np

from harness.records.models import Load, ProcessRecord, RunInfo, RunRecords, Scenario, Trial, Verdict
from harness.stats import capacity, fit, orders
from harness.stats.fit import Fitted
from harness.stats.model import (
    ClosedLoopLatency,
    Estimate,
    MetricRanking,
    MetricRow,
    MetricTable,
    Quantity,
    Ranking,
    Row,
    Score,
    Standing,
    Table,
    TestTypeRanking,
)
from harness.stats.stopping import alpha_at, processes_of
from harness.stats.tables import ONLY, Rules, Tables, alone, best_first, percentiles, placed
from harness.stats.values import (
    CPU,
    METRICS,
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
from harness.stats.verdicts import caveats, unranked

LIMIT = "limit"  # tag of an implementation that is no contestant: what machine, kernel and protocol cost
PERCENTILES = ("50", "90", "99")  # of a row; all that there are stand with the trials


@dataclass(frozen=True, kw_only=True)
class _Run:
    """What the tables of a run are made from."""

    info: RunInfo
    cells: Mapping[str, Mapping[str, Mapping[Load, Cell]]]  # test type -> implementation -> load
    tables: Sequence[tuple[Metric, Tables, float]]  # by throughput and by CPU per request, with the noise floor
    unranked: Mapping[tuple[str, str], str]
    caveats: Mapping[tuple[str, str], tuple[str, ...]]
    startup: Mapping[str, float]
    limits: Sequence[str]
    rules: Rules

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
) -> Ranking:
    """Rank every test type at every load and at its headline one, overall, by latency goals and arrivals."""
    rules, floor = processes_of(info), info.noise_floor
    refused, limits = unranked(info, trials, processes, verdicts), _limits(info)
    collected = collect(trials)
    startup = by_start(processes, METRICS["startup-time"])
    ranked = {key: cell for key, cell in collected.items() if key[:2] not in refused and key[0] not in limits}
    merged = deployments_of(info)
    run = _Run(
        info=info,
        cells=by_type(collected),
        tables=(
            (THROUGHPUT, Tables.of(ranked, THROUGHPUT, merged), floor.throughput if floor else 0.0),
            (CPU, Tables.of(ranked, CPU, merged), floor.cpu_per_request if floor else 0.0),
        ),
        unranked=refused,
        caveats=caveats(info, trials, verdicts),
        startup={name: median(times.values()) for name, times in startup.items()},
        limits=limits,
        rules=Rules(alpha=1 - rules.confidence, confidence=rules.confidence, reference=info.reference),
    )
    test_types = {kind: _test_type(kind, run) for kind in info.loads}
    reasons = {(kind, row.implementation): row.reason for kind, r in test_types.items() for row in r.headline.rows}
    return Ranking(
        run_id=info.run_id,
        reference=info.reference,
        confidence=rules.confidence,
        leading=leading(info),
        test_types=test_types,
        overall=_overall(run, test_types),
        latency=capacity.tables(info, trials, reasons, run.rules),
        orders=orders.of_run(info, trials, test_types, reasons, run.rules),
        noise_floor=floor,
        notes=tuple(_notes(run, test_types)),
    )


def leading(info: RunInfo) -> Quantity:
    """CPU per request where the machine is shared or busy: it is the steadier figure there."""
    return "cpu" if info.machine.grade in ("C", "D") else "throughput"


def _limits(info: RunInfo) -> list[str]:
    """Those that are left out of ranks; where nothing else was run, or scores are relative to it, it is ranked."""
    found = [one.name for one in info.implementations if LIMIT in (tag.lower() for tag in one.tags)]
    return [name for name in found if len(found) < len(info.implementations) and name != info.reference]


# ---- tables ----------------------------------------------------------------------------------------------------------


def _test_type(kind: str, run: _Run) -> TestTypeRanking:
    tables = {load: _table(kind, load, run) for load in run.loads(kind)}
    chosen = next(iter(tables)) if len(tables) == 1 else headline_load(run.cells[kind])
    headline = tables[chosen] if chosen in tables else _table(kind, None, run)
    return TestTypeRanking(test_type=kind, headline=headline, tables=tuple(tables.values()))


def _table(kind: str, load: Load | None, run: _Run) -> Table:
    processes = {trial.process for own in run.cells[kind].values() for cell in own.values() for trial in cell.trials}
    rules = replace(run.rules, alpha=alpha_at(processes_of(run.info), len(processes)))
    found = [
        tables.standings(rules, run.fitted(metric, tables, kind, load), floor=floor, higher=metric.higher)
        for metric, tables, floor in run.tables
    ]
    rows = [_row(one.name, kind, load, run, found) for one in run.info.implementations if kind in one.test_types]
    return Table(test_type=kind, load=load, rows=best_first(rows, lambda row: row.throughput))


def _row(name: str, kind: str, load: Load | None, run: _Run, found: Sequence[Mapping[str, Standing]]) -> Row:
    at, cell = run.at(kind, name, load)
    reason = run.unranked.get((name, kind), "")
    if cell is None or at is None:
        return Row(
            implementation=name, load=None, throughput=None, cpu_per_request=None, rss_peak=None,
            startup_time=run.startup.get(name), errors=0, flags=run.caveats.get((name, kind), ()),
            ranked=False, reason=reason or "missing",
        )  # fmt: skip
    floor, figures = _beside_the_limit(name, kind, at, run)
    if not reason:
        reason = figures if cell.kept else f"kept out by its gates: {cell.why_empty}"
    latency = _latency(cell, run.rules.confidence)
    return Row(
        implementation=name,
        load=at,
        throughput=found[0].get(name),
        cpu_per_request=found[1].get(name),
        rss_peak=cell.median(METRICS["memory"]),
        startup_time=run.startup.get(name),
        errors=sum(trial.errors.total for trial in cell.trials),
        flags=tuple(dict.fromkeys((*cell.flags, *floor, *run.caveats.get((name, kind), ())))),
        ranked=not reason,
        reason=reason,
        trials=len(cell.trials),
        dropped=len(cell.trials) - len(cell.kept),
        latency=latency,
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
    others = [run.cells[kind].get(other, {}).get(load) for other in run.limits if other != name]
    known = [least for cell in others if cell and (least := cell.median(CPU))]
    return [f"CPU {cpu / min(known):.3g}× the floor"] if cpu and known else [], reason


def _latency(cell: Cell, confidence: float) -> ClosedLoopLatency | None:
    """Of the closed loop; none where any process's generator told none."""
    found = [
        (trial.process, trial.latency, trial.requests)
        for trial in cell.kept
        if trial.latency and not isinstance(trial.load, Scenario)
    ]
    means = cell.by_process(METRICS["response-time"])
    if not found or len(means) < len(cell.processes):
        return None
    return ClosedLoopLatency(
        mean=alone(means, confidence),
        percentiles=percentiles([(p, latency.percentiles, n) for p, latency, n in found], confidence, PERCENTILES),
        maximum=max(latency.max for _, latency, _ in found),
    )


# ---- overall ---------------------------------------------------------------------------------------------------------


def _overall(run: _Run, test_types: Mapping[str, TestTypeRanking]) -> tuple[Score, ...]:
    """Geometric means of ratios to the reference over the test types in which it has a figure; empty without one.

    A score depends on the run and its reference only, so filtering a view never changes it (an arithmetic mean of
    normalised figures would also depend on the reference: Fleming & Wallace 1986). Missing is missing, never 0; a
    throughput that is given, as that of arrivals, scores nobody.
    """
    reference, spots, ratios = run.info.reference, [], defaultdict[str, dict[str, float]](dict)
    for kind, ranking in test_types.items():
        rows = [row for row in ranking.headline.rows if row.throughput and row.throughput.to_reference]
        if rows and not isinstance(ranking.headline.load, Scenario):
            spots.append((kind, ranking.headline.load))
            for row in rows:
                assert row.throughput and row.throughput.to_reference  # noqa: S101, PT018 - as chosen
                ratios[row.implementation][kind] = row.throughput.to_reference.value
    if reference is None or not spots:
        return ()
    throughput, cpu = (
        _scores(run, metric, tables, [run.fitted(metric, tables, *spot) for spot in spots], floor)
        for metric, tables, floor in run.tables
    )
    scores = [
        Score(
            implementation=one.name,
            throughput=throughput.get(one.name),
            cpu=cpu.get(one.name),
            ratios=ratios[one.name],
            missing=tuple(kind for kind, _ in spots if kind not in ratios[one.name]),
        )
        for one in run.info.implementations
        if one.name not in run.limits
    ]
    last = len(scores) + 1
    by = ("cpu", "throughput") if leading(run.info) == "cpu" else ("throughput", "cpu")

    def place(score: Score) -> tuple[int | str, ...]:
        return *(getattr(score, each).position if getattr(score, each) else last for each in by), score.implementation

    return tuple(sorted(scores, key=place))


def _scores(run: _Run, metric: Metric, tables: Tables, fits: Sequence[Fitted], floor: float) -> dict[str, Standing]:
    names = [name for name in fits[0].names if all(name in table.names for table in fits)]
    if run.info.reference not in names:
        return {}
    joint = fit.together(fits, names, tables.prior)
    logs = joint.mean - joint.mean[names.index(run.info.reference)]
    joint = replace(joint, mean=logs if metric.higher else -logs)  # of a cost the reference's over one's own
    counts = [min(int(table.processes[list(table.names).index(name)]) for table in fits) for name in names]
    plain = [
        Estimate(median=float(np.exp(log)), low=None, high=None, processes=count, values=())
        for log, count in zip(joint.mean, counts, strict=True)
    ]
    rules = replace(run.rules, alpha=alpha_at(processes_of(run.info), max(counts)))
    scores = {}
    for name, standing in placed(joint, plain, rules, floor=floor, higher=True).items():
        of = standing.to_reference  # a score's interval is that of its ratio to the reference
        bounds = {"low": of.low, "high": of.high} if of else {}
        scores[name] = standing.model_copy(update={"estimate": standing.estimate.model_copy(update=bounds)})
    return scores


def _notes(run: _Run, test_types: Mapping[str, TestTypeRanking]) -> list[str]:
    info, notes = run.info, []
    for kind, ranking in test_types.items():
        for table in ranking.tables:
            bound = [
                row.implementation for row in table.rows if _bound(run.at(kind, row.implementation, table.load)[1])
            ]
            if len(bound) > 1 and table.load:
                notes.append(
                    f"{kind} {table.load.label}: the generator was saturated by {', '.join(bound)}: what they show may "
                    "be its ceiling, not theirs"
                )
    if len(info.sets) > 1:
        names = ", ".join(one.name for one in info.sets[:20]) + (", …" if len(info.sets) > 20 else "")
        notes.append(
            f"{len(info.sets)} deployments ({names}): ratios are within each, and they are the unit of intervals"
        )
    if info.reference is None:
        notes.append("no reference implementation: there are no ratios to it and no overall score")
    lacking = [
        kind
        for kind, ranking in test_types.items()
        if not any(row.implementation == info.reference and row.ranked for row in ranking.headline.rows)
    ]
    if info.reference is not None and lacking:
        notes.append(f"not in the overall score, because {info.reference} has no figure there: {', '.join(lacking)}")
    if (
        max((max(own.processes, default=0) for _, tables, _ in run.tables for own in tables.fits.values()), default=0)
        == 1
    ):
        notes.append(f"one process of each: fresh ones are taken to differ by {fit.ASSUMED:.0%}")
    if info.settings.get("network") == "bridge":
        notes.append(
            "all of this run went over a bridge network: its figures are not those of runs on the host's own network"
        )
    if info.status != "complete":
        notes.append(f"the run is {info.status}: intervals are those of the processes so far")
    return notes


def _bound(cell: Cell | None) -> bool:
    """Whether most of a cell's trials saturated the generator."""
    return cell is not None and 2 * sum(gate.name == "generator-bound" for gate in cell.objections) > len(cell.trials)


def rank_by(records: RunRecords, name: str) -> MetricRanking:
    """All tables of a run by the metric of this name, one of ``METRICS``."""
    metric = METRICS[name]
    return MetricRanking(
        run_id=records.info.run_id,
        metric=name,
        title=metric.title,
        unit=metric.unit,
        confidence=processes_of(records.info).confidence,
        tables=_metric_of_processes(records, metric) if metric.of_process else _metric_of_trials(records, metric),
    )


def _metric_of_processes(records: RunRecords, metric: Metric) -> tuple[MetricTable, ...]:
    tables = Tables({ONLY: by_start(records.processes, metric)}, deployments_of(records.info))
    names = [record.implementation for record in records.processes]
    return (_metric_table(records, metric, tables, None, dict.fromkeys(names, f"no {metric.title} recorded")),)


def _metric_of_trials(records: RunRecords, metric: Metric) -> tuple[MetricTable, ...]:
    info, cells = records.info, collect(records.trials)
    refused = unranked(info, records.trials, records.processes, records.verdicts)
    ranked = {key: cell for key, cell in cells.items() if key[:2] not in refused}
    tables = Tables.of(ranked, metric, deployments_of(info))
    spots = dict.fromkeys([(kind, load) for kind, loads in info.loads.items() for load in loads])
    found: dict[tuple[str, Load], dict[str, str]] = {spot: {} for spot in spots}
    for name, kind, load in cells:
        why = refused.get((name, kind), f"no {metric.title} of a valid trial")
        found.setdefault((kind, load), {})[name] = why
    return tuple(_metric_table(records, metric, tables, spot, reasons) for spot, reasons in found.items() if reasons)


def _metric_table(
    records: RunRecords, metric: Metric, tables: Tables, spot: tuple[str, Load] | None, reasons: Mapping[str, str]
) -> MetricTable:
    """Best first; then who has no figure, and why."""
    looks, table = processes_of(records.info), tables.fits.get(spot or ONLY) or tables.fit({})
    alpha = alpha_at(looks, int(max(table.processes, default=0)))
    rules = Rules(alpha=alpha, confidence=looks.confidence, reference=records.info.reference)
    found = tables.standings(rules, table, higher=metric.higher)
    rows = best_first(
        [
            MetricRow(implementation=n, standing=found.get(n), reason="" if n in found else why)
            for n, why in reasons.items()
        ],
        lambda row: row.standing,
    )
    return MetricTable(test_type=spot[0] if spot else None, load=spot[1] if spot else None, rows=rows)
