"""The order service: the words of its tables, the same in every rendering for people, and its CSV."""

import csv
from collections.abc import Sequence
from typing import TextIO

from harness.records.models import RunInfo
from harness.report import Report, wording
from harness.report.cells import interval
from harness.report.columns import ORDERS
from harness.stats.model import Estimate, OrderCapacityRow, OrderPoint, OrderRow, OrderTable, Ranking
from harness.units import format_bytes

PERCENTILES = ("50", "90", "99")
HEADERS = (
    *("rank", "implementation", "p50 ms", "95 %", "p90", "p99", "CPU rank", "µs CPU/arrival", "95 %"),
    *("µs database", "memory", "lines", "n", "remarks"),
)
CAPACITY_HEADERS = ("rank", "implementation", "factor", "95 %", "missed at", "n", "remarks")
POINT_HEADERS = (
    "implementation",
    "use case",
    "operation",
    "p50 ms",
    "95 %",
    "p90",
    "p99",
    "95 %",
    "answered",
    "failed",
)
WHOLE = "the whole arrival"

Lines = list[tuple[str, ...]]


def tables(info: RunInfo, ranking: Ranking, *, every_operation: bool = False) -> list[tuple[str, Sequence[str], Lines]]:
    """Title, headers and lines of every table for people."""
    orders = ranking.orders
    if orders is None:
        return []
    sizes = {one.name: one.lines for one in info.implementations}
    found: list[tuple[str, Sequence[str], Lines]] = [
        (title(table), HEADERS, [_cells(row, sizes.get(row.implementation)) for row in table.rows])
        for table in orders.tables
    ]
    if orders.goal and orders.capacities:
        name = f"order, highest factor at which {orders.goal.label} of create order"
        found.append((name, CAPACITY_HEADERS, [_capacity_cells(row) for row in orders.capacities]))
    if every_operation and orders.tables:
        factor = orders.tables[-1].factor
        lines = [
            _point_cells(name, point)
            for name, points in orders.points.items()
            for point in points
            if point.factor == factor
        ]
        found.append((f"order ×{factor:g}, every operation of every use case", POINT_HEADERS, lines))
    return found


def title(table: OrderTable) -> str:
    """``order ×8, by the response time of create order``."""
    return f"order ×{table.factor:g}, by the response time of create order"


def notes(ranking: Ranking) -> list[str]:
    """What a reader must know of these figures."""
    if ranking.orders is None:
        return []
    return [
        "order: ×1 is 445 arrivals and 1,000 requests a minute of five use cases (open loop, Poisson); response times "
        "count from the due time: an arrival's first request from its drawn moment, a later one from the answer before",
        "CPU/arrival: CPU time of the server's processes per arrival of all use cases; database: PostgreSQL's; "
        "lines: of the implementation's program, neither blank nor comment nor import",
    ]


def _cells(row: OrderRow, lines: int | None) -> tuple[str, ...]:
    response, cpu = row.response, row.cpu_per_arrival
    remarks = [*([] if row.ranked else [row.reason or "not ranked"]), *map(wording.name, row.words)]
    return (
        response.rank.label if response and row.ranked else "–",
        row.implementation,
        _scaled(response.estimate if response else None, 1e3),
        interval(response.estimate, 1e3) if response else "–",
        *(_scaled(row.percentiles.get(key), 1e3) for key in ("90", "99")),
        cpu.rank.label if cpu and row.ranked else "–",
        _scaled(cpu.estimate if cpu else None, 1e6, digits=0),
        interval(cpu.estimate, 1e6) if cpu else "–",
        _scaled(row.database_cpu_per_arrival, 1e6, digits=0),
        format_bytes(row.rss_peak),
        "–" if lines is None else f"{lines:,}",
        str(response.estimate.replicates if response else 0),
        ", ".join(remarks),
    )


def _capacity_cells(row: OrderCapacityRow) -> tuple[str, ...]:
    capacity = row.capacity if row.ranked else None
    return (
        capacity.rank.label if capacity else "–",
        row.implementation,
        f"×{capacity.estimate.median:.1f}" if capacity else "–",
        interval(capacity.estimate, 1.0) if capacity else "–",
        "–" if row.above is None else f"×{row.above:.1f}",
        str(capacity.estimate.replicates if capacity else 0),
        ", ".join([*([row.reason] if row.reason else []), *row.words]),
    )


def _point_cells(name: str, point: OrderPoint) -> tuple[str, ...]:
    p50, p99 = point.percentiles.get("50"), point.percentiles.get("99")
    return (
        name,
        point.use_case,
        point.operation or WHOLE,
        _scaled(p50, 1e3),
        interval(p50, 1e3) if p50 else "–",
        _scaled(point.percentiles.get("90"), 1e3),
        _scaled(p99, 1e3),
        interval(p99, 1e3) if p99 else "–",
        f"{point.answered:,}",
        f"{point.failed:,}",
    )


def _scaled(estimate: Estimate | None, scale: float, digits: int = 2) -> str:
    return "–" if estimate is None else f"{estimate.median * scale:,.{digits}f}"


def export(report: Report, out: TextIO) -> None:
    """CSV: one line an operation of a use case, factor and implementation; SI units, unknowns empty."""
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(ORDERS)
    orders = report.ranking.orders
    for name, points in orders.points.items() if orders else ():
        for point in points:
            known = {"run": report.records.info.run_id, "implementation": name, **_point(point)}
            writer.writerow("" if (value := known.get(column)) is None else value for column in ORDERS)


def _point(point: OrderPoint) -> dict[str, object]:
    found: dict[str, object] = {
        "factor": point.factor,
        "use_case": point.use_case,
        "operation": point.operation or WHOLE,
        "answered": point.answered,
        "failed": point.failed,
        "replicates": point.replicates,
    }
    for key in PERCENTILES:
        if estimate := point.percentiles.get(key):
            column = f"response_time_p{key}_seconds"
            found |= {column: estimate.median, f"{column}_low": estimate.low, f"{column}_high": estimate.high}
    return found
