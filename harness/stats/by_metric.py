"""A run ranked by any one metric: tables at every load, with intervals, rank intervals and ties as elsewhere."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from scipy import stats

from harness.records.models import RunRecords, Trial
from harness.stats import fit, pairs
from harness.stats.model import ErrorRow, MetricRanking, MetricRow, MetricTable, RankInterval
from harness.stats.standings import Rules, Spot, Tables, standings
from harness.stats.stopping import alpha_at, processes_of
from harness.stats.values import METRICS, THROUGHPUT, Cell, Metric, collect, deployments_of, observed_of
from harness.stats.verdicts import unranked

ERRORS = "errors"
NAMES = (*METRICS, ERRORS)


def rank_by(records: RunRecords, name: str) -> MetricRanking:
    """All tables of a run by the metric of this name, one of NAMES."""
    rules = processes_of(records.info)
    tables = Tables.of(collect(records.trials), THROUGHPUT).cells
    planned = [(kind, load) for kind, loads in records.info.loads.items() for load in loads]
    cells = {spot: tables[spot] for spot in dict.fromkeys((*planned, *tables)) if spot in tables}
    metric = METRICS.get(name)
    if metric is None:
        made = tuple(
            MetricTable(test_type=kind, load=load, errors=_errors(rows, rules.confidence))
            for (kind, load), rows in cells.items()
        )
    else:
        made = _of_processes(records, metric) if metric.of_process else _of_trials(records, metric, cells)
    return MetricRanking(
        run_id=records.info.run_id,
        metric=name,
        title=metric.title if metric else ERRORS,
        unit=metric.unit if metric else "of the requests",
        higher_is_better=bool(metric and metric.higher),
        confidence=rules.confidence,
        tables=made,
    )


def _of_processes(records: RunRecords, metric: Metric) -> tuple[MetricTable, ...]:
    values: defaultdict[str, dict[tuple[int, int], float]] = defaultdict(dict)
    for record in records.processes:
        value = metric.of_process(record) if metric.of_process and record.status != "interrupted" else None
        values[record.implementation].update({(record.process, 0): value} if value else {})
    table = fit.fit(observed_of(values, deployments_of(records.info)))
    rows = _rows(records, metric, table, fit.prior([table]), dict.fromkeys(values, f"no {metric.title} recorded"))
    return (MetricTable(test_type=None, load=None, rows=rows),)


def _of_trials(
    records: RunRecords, metric: Metric, cells: Mapping[Spot, Mapping[str, Cell]]
) -> tuple[MetricTable, ...]:
    refused = unranked(records.info, records.trials, records.processes, records.verdicts)
    ranked = {spot: {n: c for n, c in rows.items() if (n, spot[0]) not in refused} for spot, rows in cells.items()}
    tables = Tables(metric, ranked, deployments_of(records.info))
    return tuple(
        MetricTable(
            test_type=kind,
            load=load,
            rows=_rows(
                records, metric, tables.fits[kind, load], tables.prior,
                {name: refused.get((name, kind), f"no {metric.title} of a valid trial") for name in rows},
            ),
        )
        for (kind, load), rows in cells.items()
    )  # fmt: skip


def _rows(
    records: RunRecords, metric: Metric, table: fit.Fitted, known: fit.Prior, reasons: Mapping[str, str]
) -> tuple[MetricRow, ...]:
    rules = processes_of(records.info)
    alpha = alpha_at(rules, int(max(table.processes, default=0)))
    own = Rules(alpha=alpha, confidence=rules.confidence, reference=records.info.reference)
    found = standings(table, known, own, higher=metric.higher).of
    return (
        *(MetricRow(implementation=n, standing=found[n]) for n in sorted(found, key=lambda name: found[name].position)),
        *(MetricRow(implementation=n, reason=reason) for n, reason in reasons.items() if n not in found),
    )


def _errors(cells: Mapping[str, Cell], confidence: float) -> tuple[ErrorRow, ...]:
    """By share of the requests: better is decided where the intervals (Clopper & Pearson 1934) do not meet.

    They say what these requests showed: those of a process share its fate, and another one's may differ by more.
    """
    names = list(cells)
    counted = [_counted(cell.trials) for cell in cells.values()]
    bounds = [stats.binomtest(few, of).proportion_ci(confidence) for few, of in counted]
    shares = np.array([few / of for few, of in counted])
    low, high = (np.array([getattr(each, end) for each in bounds]) for end in ("low", "high"))
    places = pairs.ranks(-shares, high[:, None] < low[None, :])
    return tuple(
        ErrorRow(
            implementation=names[i], errors=counted[i][0], requests=counted[i][1], share=float(shares[i]),
            low=float(low[i]), high=float(high[i]), rank=RankInterval(low=int(places.low[i]), high=int(places.high[i])),
        )
        for i in np.argsort(places.position)
    )  # fmt: skip


def _counted(trials: Sequence[Trial]) -> tuple[int, int]:
    """Errors and requests; errors of connection, read, write and time are of requests that no answer completed."""
    errors = sum(trial.errors.total for trial in trials)
    return errors, max(1, sum(trial.requests + trial.errors.total - trial.errors.status for trial in trials))
