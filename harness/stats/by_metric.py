"""A run ranked by any one metric: tables at every load, with intervals, rank intervals and ties as elsewhere."""

from collections.abc import Mapping

from harness.records.models import Load, RunRecords
from harness.stats.model import MetricRanking, MetricRow, MetricTable
from harness.stats.stopping import alpha_at, processes_of
from harness.stats.tables import ONLY, Rules, Tables, best_first
from harness.stats.values import METRICS, Metric, by_start, collect, deployments_of
from harness.stats.verdicts import unranked


def rank_by(records: RunRecords, name: str) -> MetricRanking:
    """All tables of a run by the metric of this name, one of ``METRICS``."""
    metric = METRICS[name]
    return MetricRanking(
        run_id=records.info.run_id,
        metric=name,
        title=metric.title,
        unit=metric.unit,
        confidence=processes_of(records.info).confidence,
        tables=_of_processes(records, metric) if metric.of_process else _of_trials(records, metric),
    )


def _of_processes(records: RunRecords, metric: Metric) -> tuple[MetricTable, ...]:
    tables = Tables({ONLY: by_start(records.processes, metric)}, deployments_of(records.info))
    names = [record.implementation for record in records.processes]
    return (_table(records, metric, tables, None, dict.fromkeys(names, f"no {metric.title} recorded")),)


def _of_trials(records: RunRecords, metric: Metric) -> tuple[MetricTable, ...]:
    info, cells = records.info, collect(records.trials)
    refused = unranked(info, records.trials, records.processes, records.verdicts)
    ranked = {key: cell for key, cell in cells.items() if key[:2] not in refused}
    tables = Tables.of(ranked, metric, deployments_of(info))
    spots = dict.fromkeys([(kind, load) for kind, loads in info.loads.items() for load in loads])
    found: dict[tuple[str, Load], dict[str, str]] = {spot: {} for spot in spots}
    for name, kind, load in cells:
        why = refused.get((name, kind), f"no {metric.title} of a valid trial")
        found.setdefault((kind, load), {})[name] = why
    return tuple(_table(records, metric, tables, spot, reasons) for spot, reasons in found.items() if reasons)


def _table(
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
