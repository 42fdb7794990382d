"""The order service's tables, from the records of a run: response times, CPU per arrival, capacity at a goal. Pure.

The unit is the replicate, as everywhere: percentiles are taken within each load, and their intervals over processes.
Response times count from the due time: of an arrival's first request its drawn moment, of a later one the answer
before.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import median

from harness.plan.testtypes.order import ORDER
from harness.records.models import Latency, RunInfo, Sample
from harness.records.orders import OrderCapacity, OrderRecords, OrderSample
from harness.stats import further, metric, rules, sets
from harness.stats.capacity import LOWER_BOUND, estimate_of, shown
from harness.stats.closed_loop import ARRIVALS
from harness.stats.metric import MetricRows
from harness.stats.model import (
    Estimate,
    OrderCapacityRow,
    OrderPoint,
    OrderRow,
    Orders,
    OrderTable,
    Ranking,
    Row,
    Table,
)
from harness.stats.tables import NOTHING, Rules, Standings, standings
from harness.stats.values import PROVISIONAL_BELOW

PERCENTILES = ("50", "90", "99")
RANKED_BY = further.METRICS["response-time-p50"]  # of a sample of the order service: of "create order"
TYPE = ORDER.name
Key = tuple[str, str]  # use case, operation


def with_orders(ranking: Ranking, info: RunInfo, samples: Sequence[Sample], records: OrderRecords) -> Ranking:
    """The ranking with the tables of the order service; as it is for a run without it."""
    if TYPE not in ranking.test_types:
        return ranking
    mine = [sample for sample in samples if sample.test_type == TYPE]
    replication = rules.replication(info)
    rule = Rules(
        alpha=1 - replication.confidence,
        confidence=replication.confidence,
        reference=info.reference,
        set_of=sets.set_of_block(info),
    )
    tables = [
        _table(table, table.level.factor, mine, records.samples, rule)
        for table in ranking.test_types[TYPE].levels
        if table.level is not None and table.level.factor is not None
    ]
    names = [one.name for one in info.implementations if TYPE in one.test_types]
    refused = {row.implementation: row.reason for row in ranking.test_types[TYPE].headline.rows if not row.ranked}
    orders = Orders(
        tables=tuple(sorted(tables, key=lambda table: table.factor)),
        goal=records.capacities[-1].goal if records.capacities else None,
        capacities=_capacities(names, refused, records.capacities, rule),
        points={
            name: points([s for s in records.samples if s.implementation == name], [t.factor for t in tables], rule)
            for name in names
        },
    )
    return ranking.model_copy(update={"orders": orders})


def headline(orders: Orders, table: Table) -> OrderTable:
    """The order service's table at the factor of the test type's headline table."""
    chosen = table.level.factor if table.level else None
    return next((one for one in orders.tables if one.factor == chosen), orders.tables[-1])


def _table(
    table: Table, factor: float, samples: Sequence[Sample], loads: Sequence[OrderSample], rule: Rules
) -> OrderTable:
    """One factor: who answers "create order" soonest, and at what cost."""
    at: defaultdict[str, list[Sample]] = defaultdict(list)
    for sample in samples:
        if sample.level.factor == factor:
            at[sample.implementation].append(sample)
    ranked = [row.implementation for row in table.rows if row.ranked]
    found = _standings(
        further.rows({name: further.of_cell(RANKED_BY, at[name], (), ARRIVALS) for name in ranked}), rule, higher=False
    )
    rows = [
        _row(row, at[row.implementation], [s for s in loads if _at(s, row.implementation, factor)], found, rule)
        for row in table.rows
    ]
    last = len(rows) + 1
    rows.sort(key=lambda row: (row.response.position if row.response else last, row.implementation))
    return OrderTable(factor=factor, rows=tuple(rows))


def _at(load: OrderSample, implementation: str, factor: float) -> bool:
    return load.implementation == implementation and load.factor == factor and load.valid


def _row(row: Row, samples: Sequence[Sample], loads: Sequence[OrderSample], found: Standings, rule: Rules) -> OrderRow:
    database = {s.block: s.database_cpu_per_arrival for s in loads if s.database_cpu_per_arrival}
    latencies = [(s.block, s.latency, s.requests) for s in samples if s.rankable and s.latency]
    return OrderRow(
        implementation=row.implementation,
        response=found.of.get(row.implementation),
        percentiles=_percentiles(latencies, rule),
        cpu_per_arrival=row.cpu_per_request,
        database_cpu_per_arrival=_estimate(database, rule) if database else None,
        rss_peak=row.rss_peak,
        ranked=row.ranked,
        reason=row.reason,
        words=row.words,
    )


def points(loads: Sequence[OrderSample], factors: Sequence[float], rule: Rules) -> tuple[OrderPoint, ...]:
    """Every operation of every use case at these factors; those that a search came by are each process's own."""
    by_factor: defaultdict[float, list[OrderSample]] = defaultdict(list)
    for load in loads:
        if load.factor in factors:
            by_factor[load.factor].append(load)
    return tuple(point for factor, members in sorted(by_factor.items()) for point in _points(factor, members, rule))


def _points(factor: float, loads: Sequence[OrderSample], rule: Rules) -> Iterable[OrderPoint]:
    kinds: dict[Key, None] = {}
    for load in loads:
        kinds |= dict.fromkeys((each.use_case, each.operation) for each in load.operations)
        kinds |= dict.fromkeys((each.use_case, "") for each in load.use_cases)
    for use_case, operation in kinds:
        found = [(load, *_of(load, use_case, operation)) for load in loads]
        valid = [(load.block, latency, answered) for load, latency, answered, _ in found if load.valid and latency]
        yield OrderPoint(
            factor=factor,
            use_case=use_case,
            operation=operation,
            percentiles=_percentiles(valid, rule),
            answered=sum(answered for _, _, answered, _ in found),
            failed=sum(failed for _, _, _, failed in found),
            replicates=len(valid),
        )


def _of(load: OrderSample, use_case: str, operation: str) -> tuple[Latency | None, int, int]:
    """Latency, answers and failures of an operation in one load; of the whole arrival for none."""
    if not operation:
        for each in load.use_cases:
            if each.use_case == use_case:
                return each.latency, each.done, each.due - each.done
    for one in load.operations:
        if (one.use_case, one.operation) == (use_case, operation):
            return one.latency, one.answered, one.due - one.answered
    return None, 0, 0


def _capacities(
    names: Sequence[str], refused: Mapping[str, str], found: Sequence[OrderCapacity], rule: Rules
) -> tuple[OrderCapacityRow, ...]:
    """Factors of those who met the goal in every process: leaving out the processes that did not would flatter."""
    if not found:
        return ()
    by_name: defaultdict[str, list[OrderCapacity]] = defaultdict(list)
    for one in found:
        by_name[one.implementation].append(one)
    values = {
        name: {one.block: one.factor for one in by_name[name] if one.factor is not None}
        for name in names
        if by_name[name] and name not in refused and all(one.factor is not None for one in by_name[name])
    }
    placed = _standings(MetricRows(values=values, windows={}), rule, higher=True)
    rows = [_capacity(name, by_name[name], refused.get(name, ""), placed) for name in names]
    last = len(rows) + 1
    rows.sort(key=lambda row: (row.capacity.position if row.capacity and row.ranked else last, row.implementation))
    return tuple(rows)


def _capacity(name: str, found: Sequence[OrderCapacity], refused: str, placed: Standings) -> OrderCapacityRow:
    missed = sum(one.factor is None for one in found)
    reason = refused
    if not reason and not found:
        reason = "missing"
    elif not reason and missed:
        reason = f"{found[-1].goal.label} held at no factor in {missed} of {len(found)} replicates"
    elif not reason and name not in placed.of:
        reason = "no ratio to the reference on any set of machines"
    words = []
    if any(one.factor is not None and one.above is None for one in found):
        words.append(LOWER_BOUND)
    if 0 < len(found) < PROVISIONAL_BELOW:
        words.append("provisional")
    above = [one.above for one in found if one.above is not None]
    return OrderCapacityRow(
        implementation=name,
        capacity=placed.of.get(name),
        above=median(above) if above else None,
        ranked=not reason,
        reason=reason,
        words=tuple(words),
    )


def _standings(found: MetricRows, rule: Rules, *, higher: bool) -> Standings:
    rows = metric.across(found, rule.set_of, rule.reference)
    if not rows.values:
        return NOTHING
    known = metric.prior([metric.fitted(rows)])
    return standings(rows, rule, prior=known, floor=0.0, higher=higher, duets={})


def _percentiles(found: Sequence[tuple[int, Latency, int]], rule: Rules) -> dict[str, Estimate]:
    """Of (block, latency, requests): a percentile that some loads were too short for would be that of the others."""
    values: defaultdict[str, dict[int, float]] = defaultdict(dict)
    for block, latency, requests in found:
        for key in PERCENTILES:
            seconds = latency.percentiles.get(key, 0.0)
            if seconds > 0 and shown(key, requests):
                values[key][block] = seconds
    blocks = len({block for block, _, _ in found})
    return {key: _estimate(by_block, rule) for key, by_block in values.items() if len(by_block) == blocks}


def _estimate(by_block: Mapping[int, float], rule: Rules) -> Estimate:
    """Over processes, or over sets of machines where there are several."""
    return estimate_of(sets.by_set(by_block, rule.set_of), rule.confidence)
