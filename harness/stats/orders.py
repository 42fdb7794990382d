"""The order service's tables: response times from the due time, CPU per arrival, capacity at a goal. Pure."""

from collections.abc import Iterable, Mapping, Sequence

from harness.plan.profile import Orders as OrderRules
from harness.records.models import Latency, RunInfo, Scenario, Trial
from harness.stats.capacity import Reasons, capacities
from harness.stats.model import OrderPoint, OrderRow, Orders, OrderTable, Table, TestTypeRanking
from harness.stats.stopping import section
from harness.stats.tables import ONLY, Rules, Tables, alone, best_first, percentiles
from harness.stats.values import METRICS, Cell, deployments_of, percentile

TYPE = "order"  # the test type
PERCENTILES = ("50", "90", "99")
RESPONSE = METRICS["response-time-p50"]  # of "create order"


def of_run(
    info: RunInfo, trials: Sequence[Trial], test_types: Mapping[str, TestTypeRanking], reasons: Reasons, rules: Rules
) -> Orders | None:
    """None for a run without it."""
    if TYPE not in test_types:
        return None
    mine = [trial for trial in trials if trial.test_type == TYPE and isinstance(trial.load, Scenario)]
    names = [one.name for one in info.implementations if TYPE in one.test_types]
    searched = any(trial.purpose == "search" for trial in mine)
    goal = (section(info, "orders", OrderRules) or OrderRules()).goal
    tables = [
        _table(info, table, table.load.factor, mine, rules)
        for table in test_types[TYPE].tables
        if isinstance(table.load, Scenario)
    ]
    measured = [trial for trial in mine if trial.purpose == "measure"]
    return Orders(
        tables=tuple(sorted(tables, key=lambda table: table.factor)),
        goal=goal if searched else None,
        capacities=capacities(info, TYPE, mine, goal, reasons, rules) if searched else (),
        points={
            name: tuple(
                point for table in tables for point in _points(table.factor, _at(measured, name, table.factor), rules)
            )
            for name in names
        },
    )


def _at(trials: Iterable[Trial], name: str, factor: float) -> list[Trial]:
    return [t for t in trials if t.implementation == name and isinstance(t.load, Scenario) and t.load.factor == factor]


def _table(info: RunInfo, table: Table, factor: float, trials: Sequence[Trial], rules: Rules) -> OrderTable:
    """One factor: who answers "create order" soonest, and at what cost."""
    measured = [trial for trial in trials if trial.purpose == "measure"]
    cells = {row.implementation: Cell(_at(measured, row.implementation, factor)) for row in table.rows}
    values = {row.implementation: cells[row.implementation].values(RESPONSE) for row in table.rows if row.ranked}
    found = Tables({ONLY: values}, deployments_of(info)).standings(rules, higher=False)
    rows = []
    for row in table.rows:
        kept = cells[row.implementation].kept
        times = [(t.process, {point: percentile(t, point) or 0.0 for point in PERCENTILES}, t.requests) for t in kept]
        database = {t.process: t.database_cpu_seconds / t.arrivals.due for t in kept
                    if t.database_cpu_seconds and t.arrivals and t.arrivals.due}  # fmt: skip
        rows.append(
            OrderRow(
                implementation=row.implementation,
                response=found.get(row.implementation),
                percentiles=percentiles(times, rules.confidence),
                cpu_per_arrival=row.cpu_per_request,
                database_cpu_per_arrival=alone(database, rules.confidence) if database else None,
                rss_peak=row.rss_peak,
                ranked=row.ranked,
                reason=row.reason,
                flags=row.flags,
            )
        )
    return OrderTable(factor=factor, rows=best_first(rows, lambda row: row.response))


def _points(factor: float, loads: Sequence[Trial], rules: Rules) -> Iterable[OrderPoint]:
    """Every operation of every use case, and every arrival as a whole."""
    seen: dict[tuple[str, str], list[tuple[Trial, Latency | None, int, int]]] = {}
    for load in loads:
        for one in load.arrivals.operations if load.arrivals else ():
            seen.setdefault((one.use_case, one.operation), []).append((load, one.latency, one.answered, one.due))
        for each in load.arrivals.use_cases if load.arrivals else ():
            seen.setdefault((each.use_case, ""), []).append((load, each.latency, each.done, each.due))
    for (use_case, operation), found in seen.items():
        valid = [(load.process, times.percentiles, done) for load, times, done, _ in found if load.rankable and times]
        yield OrderPoint(
            factor=factor,
            use_case=use_case,
            operation=operation,
            percentiles=percentiles(valid, rules.confidence, PERCENTILES),
            answered=sum(done for _, _, done, _ in found),
            failed=sum(due - done for _, _, done, due in found),
            processes=len({process for process, _, _ in valid}),
        )
