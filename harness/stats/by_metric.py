"""A run ranked by any one metric: tables at every level, with intervals, rank intervals and ties as elsewhere."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from scipy import special

from harness.records.models import Load, Record, ReplicateRecord, RunRecords, Sample
from harness.stats import closed_loop, further, ratios, rules
from harness.stats.further import METRICS, Metric, Values
from harness.stats.model import Interval, RankInterval, Standing
from harness.stats.ranks import ranks
from harness.stats.tables import Rules, standings
from harness.stats.verdicts import unranked

ERRORS = "errors"
NAMES = (*METRICS, ERRORS)

Key = tuple[str, Load]


class MetricRow(Record):
    """One implementation: its standing, or the reason why it has none."""

    implementation: str
    standing: Standing | None = None
    reason: str = ""


class ErrorRow(Record):
    """Errors of one cell, whatever its gates said: a count, its share of the requests with an interval, ranks."""

    implementation: str
    errors: int
    requests: int
    share: float
    interval: Interval
    rank: RankInterval


class MetricTable(Record):
    """One table, best first; ``test_type`` and ``level`` are None where the metric is of a process as a whole."""

    test_type: str | None
    level: Load | None
    basis: str = ""  # of latencies: whose they are
    rows: tuple[MetricRow, ...] = ()
    errors: tuple[ErrorRow, ...] = ()


class MetricRanking(Record):
    """A run ranked by one metric."""

    run_id: str
    metric: str
    title: str
    unit: str
    higher_is_better: bool
    confidence: float
    tables: tuple[MetricTable, ...]


def rank_by(records: RunRecords, name: str) -> MetricRanking:
    """All tables of a run by the metric of this name, one of NAMES."""
    confidence = rules.replication(records.info).confidence
    cells = _cells(records)
    if name == ERRORS:
        tables = tuple(
            MetricTable(test_type=kind, level=level, errors=_errors(rows, confidence))
            for (kind, level), rows in cells.items()
        )
        title, unit, higher = "errors", "of the requests", False
    else:
        metric = METRICS[name]
        tables = _tables(records, metric, cells)
        title, unit, higher = metric.title, metric.unit, metric.higher
    return MetricRanking(
        run_id=records.info.run_id,
        metric=name,
        title=title,
        unit=unit,
        higher_is_better=higher,
        confidence=confidence,
        tables=tables,
    )


def _cells(records: RunRecords) -> dict[Key, dict[str, list[Sample]]]:
    """Samples by table and implementation, tables in the order of the plan."""
    found: defaultdict[Key, defaultdict[str, list[Sample]]] = defaultdict(lambda: defaultdict(list))
    for sample in records.samples:
        if sample.duet_partner is None:
            found[sample.test_type, sample.level][sample.implementation].append(sample)
    planned = [(kind, level) for kind, levels in records.info.levels.items() for level in levels]
    order = [*(key for key in planned if key in found), *(key for key in found if key not in planned)]
    return {key: dict(found[key]) for key in order}


def _tables(
    records: RunRecords, metric: Metric, cells: Mapping[Key, Mapping[str, Sequence[Sample]]]
) -> tuple[MetricTable, ...]:
    reasons = unranked(records.info, records.samples, records.replicates, records.verdicts)
    processes: defaultdict[str, list[ReplicateRecord]] = defaultdict(list)
    for record in records.replicates:
        processes[record.implementation].append(record)
    if metric.of_process is not None:
        whole = {name: further.of_cell(metric, (), found) for name, found in processes.items()}
        return (MetricTable(test_type=None, level=None, rows=_rows(records, metric, [whole], whole, {})),)
    bases = {key: closed_loop.basis_to_compare(rows.values()) for key, rows in cells.items()}
    values = {
        key: {name: further.of_cell(metric, samples, (), bases[key]) for name, samples in rows.items()}
        for key, rows in cells.items()
    }
    ranked = {
        key: {name: found for name, found in rows.items() if (name, key[0]) not in reasons}
        for key, rows in values.items()
    }
    everything = list(ranked.values())
    return tuple(
        MetricTable(
            test_type=kind,
            level=level,
            basis=closed_loop.NAMES[bases[kind, level]] if metric.of_latency else "",
            rows=_rows(
                records,
                metric,
                everything,
                ranked[kind, level],
                {name: reasons.get((name, kind), "") or f"no {metric.title} of a valid sample" for name in rows},
            ),
        )
        for (kind, level), rows in values.items()
    )


def _rows(
    records: RunRecords,
    metric: Metric,
    everything: Sequence[Mapping[str, Values]],
    mine: Mapping[str, Values],
    reasons: Mapping[str, str],
) -> tuple[MetricRow, ...]:
    replication = rules.replication(records.info)
    blocks = max((len(found.processes) for found in mine.values()), default=0)
    found = standings(
        further.rows(mine),
        Rules(
            alpha=rules.alpha_at(replication, blocks),
            confidence=replication.confidence,
            reference=records.info.reference,
        ),
        prior=ratios.prior([further.rows(table) for table in everything]),
        floor=0.0,
        higher=metric.higher,
        duets={},
    ).of
    ordered = sorted(found, key=lambda name: found[name].position)
    rest = [name for name in {**mine, **reasons} if name not in found]
    return (
        *(MetricRow(implementation=name, standing=found[name]) for name in ordered),
        *(MetricRow(implementation=name, reason=reasons.get(name, f"no {metric.title} recorded")) for name in rest),
    )


def _errors(cells: Mapping[str, Sequence[Sample]], confidence: float) -> tuple[ErrorRow, ...]:
    """By share of the requests: better is decided where the intervals (Clopper & Pearson 1934) do not meet.

    Requests of a process share its fate, so that these intervals are too narrow for what another process would show;
    they say what these requests showed.
    """
    names = list(cells)
    counts = np.array([sum(sample.errors.total for sample in cells[name]) for name in names], dtype=float)
    # Errors of connection, read, write and time are of requests that no answer completed.
    whole = [sum(s.requests + s.errors.total - s.errors.status for s in cells[name]) for name in names]
    totals = np.maximum(np.array(whole, dtype=float), 1.0)
    tail = (1 - confidence) / 2
    low = np.where(counts > 0, special.betaincinv(np.maximum(counts, 1), totals - counts + 1, tail), 0.0)
    high = np.where(counts < totals, special.betaincinv(counts + 1, np.maximum(totals - counts, 1), 1 - tail), 1.0)
    shares = counts / totals
    places = ranks(-shares, high[:, None] < low[None, :])
    order = np.argsort(places.position)
    return tuple(
        ErrorRow(
            implementation=names[i],
            errors=int(counts[i]),
            requests=int(totals[i]),
            share=float(shares[i]),
            interval=Interval(low=float(low[i]), high=float(high[i])),
            rank=RankInterval(low=int(places.low[i]), high=int(places.high[i])),
        )
        for i in order
    )
