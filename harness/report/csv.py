"""The ranking as CSV: one line a figure, in SI units that its name says; unknowns are empty."""

import csv
from collections.abc import Iterator, Mapping
from typing import TextIO

from harness.plain_text import cell
from harness.report import Report
from harness.stats.model import Estimate, GoalRow, OrderRow, Orders, RatePoint, Row, Standing, Table

COLUMNS = (
    *("run", "test_type", "load", "headline", "implementation", "language", "platform", "use_case", "operation"),
    *("figure", "value", "low", "high", "processes"),  # low and high: of its 95 % interval
    *("ratio", "ratio_low", "ratio_high", "rank_low", "rank_high", "tie_group"),  # ratio to the reference
    *("ranked", "reason", "flags"),
)
Line = dict[str, object]


def export(report: Report, out: TextIO) -> None:
    """Every figure of every table."""
    info = report.records.info
    known = {each.name: {"language": each.language, "platform": each.platform or None} for each in info.implementations}
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for line in _lines(report):
        whole = {"run": info.run_id, **known.get(str(line["implementation"]), {}), **line}
        values = (whole.get(name) for name in COLUMNS)
        writer.writerow("" if value is None else cell(value) for value in values)


def _lines(report: Report) -> Iterator[Line]:
    ranking = report.ranking
    for test in ranking.test_types.values():
        for headline, tables in ((True, (test.headline,)), (False, test.tables)):
            for table in tables:
                for row in table.rows:
                    yield from _of_row({"test_type": table.test_type, "headline": headline}, table, row)
    for found in ranking.latency.values():
        for goal in found.rows:
            about = _about(goal) | {"test_type": found.test_type}
            for point in goal.points:
                yield from _of_point(about, point)
            name = f"requests_per_second_at_p{found.goal.percentile:g}_{found.goal.seconds:g}_seconds"
            yield about | {"figure": name} | _standing(goal.capacity)
            yield about | {"figure": "missed_at_requests_per_second", "value": goal.above}
    if ranking.orders:
        yield from _of_orders(ranking.orders)


def _about(row: Row | GoalRow | OrderRow) -> Line:
    return {
        "implementation": row.implementation,
        "ranked": row.ranked,
        "reason": row.reason or None,
        "flags": "; ".join(row.flags) or None,
    }


def _of_row(table_of: Line, table: Table, row: Row) -> Iterator[Line]:
    load = row.load or table.load
    about = _about(row) | table_of | {"load": load.label if load else None}
    yield about | {"figure": "requests_per_second"} | _standing(row.throughput)
    yield about | {"figure": "cpu_seconds_per_request"} | _standing(row.cpu_per_request)
    if row.latency:
        yield about | {"figure": "service_time_mean_seconds"} | _estimate(row.latency.mean)
        yield from _percentiles(about, "service_time", row.latency.percentiles)
        yield about | {"figure": "service_time_maximum_seconds", "value": row.latency.maximum}
    for name, value in (
        ("rss_peak_bytes", row.rss_peak),
        ("startup_time_seconds", row.startup_time),
        ("requests_per_second_per_megabyte", row.throughput_per_memory),
        ("threads", row.threads),
        ("errors", row.errors),
    ):
        yield about | {"figure": name, "value": value}


def _of_point(about: Line, point: RatePoint) -> Iterator[Line]:
    at = f"{point.rate:.0f}/s" + (f", {point.share:.0%} of own" if point.share is not None else "")
    about = about | {"load": at, "processes": point.processes, "flags": "; ".join(point.flags) or None}
    yield about | {"figure": "requests_per_second_achieved", "value": point.achieved_rate}
    yield from _percentiles(about, "latency", point.percentiles)
    yield about | {"figure": "latency_maximum_seconds", "value": point.maximum}
    yield about | {"figure": "generator_lag_p99_seconds", "value": point.lag_p99}


def _of_orders(orders: Orders) -> Iterator[Line]:
    for table in orders.tables:
        for row in table.rows:
            about = _about(row) | {"test_type": "order", "load": f"x{table.factor:g}", "headline": True}
            yield about | {"figure": "cpu_seconds_per_arrival"} | _standing(row.cpu_per_arrival)
            yield about | {"figure": "database_cpu_seconds_per_arrival"} | _estimate(row.database_cpu_per_arrival)
            yield about | {"figure": "create_order_p50_seconds"} | _standing(row.response)
    for goal in orders.capacities:
        yield _about(goal) | {"test_type": "order", "figure": "factor_at_goal"} | _standing(goal.capacity)
    for name, points in orders.points.items():
        for point in points:
            at: Line = {"test_type": "order", "implementation": name, "load": f"x{point.factor:g}"}
            what = {"use_case": point.use_case, "operation": point.operation or "the whole arrival"}
            yield from _percentiles(at | what, "response_time", point.percentiles)
            yield at | what | {"figure": "answered", "value": point.answered}
            yield at | what | {"figure": "failed", "value": point.failed}


def _percentiles(about: Line, figure: str, percentiles: Mapping[str, Estimate]) -> Iterator[Line]:
    for key, estimate in percentiles.items():
        yield about | {"figure": f"{figure}_p{key}_seconds"} | _estimate(estimate)


def _estimate(estimate: Estimate | None) -> Line:
    if estimate is None:
        return {}
    return {"value": estimate.median, "low": estimate.low, "high": estimate.high, "processes": estimate.processes}


def _standing(standing: Standing | None) -> Line:
    if standing is None:
        return {}
    found = _estimate(standing.estimate)
    found |= {"rank_low": standing.rank.low, "rank_high": standing.rank.high, "tie_group": standing.tie_group}
    if ratio := standing.to_reference:
        found |= {"ratio": ratio.value, "ratio_low": ratio.low, "ratio_high": ratio.high}
    return found
