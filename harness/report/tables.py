"""The tables of a ranking as text: the same figures, words and columns in every rendering for people."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

from harness.plan.orders import CREATE
from harness.records.models import RunInfo
from harness.stats.model import (
    Estimate,
    GoalRow,
    LatencyTable,
    MetricRanking,
    MetricTable,
    OrderPoint,
    OrderRow,
    Quantity,
    Ranking,
    RatePoint,
    Ratio,
    Row,
    Score,
    Standing,
    Table,
)
from harness.units import format_bytes, format_micros, format_rate, format_seconds

ORDER = "order"  # test type of the order service, which has tables of its own
Any_ = TypeVar("Any_")


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column of a table; where there is not room for all, those with the highest ``order`` go first."""

    header: str
    cells: tuple[str, ...]
    order: int = 0  # 0: always there


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A table as text."""

    title: str
    columns: tuple[Column, ...]
    breaks: frozenset[int] = frozenset()  # rows behind which a group of tied rows ends
    remarks: tuple[str, ...] = ()  # lines below it: a remark, and whom it is about
    sums_up: bool = False  # the others, and has no remarks of its own


def counted(number: int, thing: str) -> str:
    """``1 implementation``, ``2 implementations``, ``3 processes``."""
    return f"{number:,} {thing}{'' if number == 1 else 'es' if thing.endswith('s') else 's'}"


def is_ranked(info: RunInfo) -> bool:
    """Whether the run's profile measures well enough to rank by: ``smoke`` only checks that things run."""
    profile = info.settings.get("profile")
    return not (isinstance(profile, dict) and profile.get("ranked") is False)


def interval(estimate: Estimate | None, scale: float = 1.0) -> str:
    """``[low, high]``, or an en dash where it is not known."""
    if estimate is None or estimate.low is None or estimate.high is None:
        return "–"
    low, high = estimate.low * scale, estimate.high * scale
    digits = 0 if high >= 100 else 1 if high >= 10 else 2
    return f"[{low:,.{digits}f}, {high:,.{digits}f}]"


def ratio(value: Ratio | None) -> str:
    """``1.12× [1.08, 1.17]``."""
    if value is None:
        return "–"
    if value.low is None or value.high is None or value.low == value.high:
        return f"{value.value:.2f}×"
    return f"{value.value:.2f}× [{value.low:.2f}, {value.high:.2f}]"


def shown(info: RunInfo, ranking: Ranking, *, every_load: bool) -> Iterator[Shown]:
    """All tables of a run; with ``every_load`` those of each load and operation."""
    for kind, test in ranking.test_types.items():
        if kind == ORDER and ranking.orders:
            continue
        for table in (test.headline, *(test.tables if every_load and len(test.tables) > 1 else ())):
            yield of_table(info, ranking, table)
    for found in ranking.latency.values():
        yield _goal(f"{found.test_type}, capacity at {found.goal.label}", "req/s at goal", found.rows)
        yield _points(found)
    yield from _orders(info, ranking, every_operation=every_load)
    if ranking.overall and is_ranked(info):
        yield _overall(ranking)


def standing(row: Row, quantity: Quantity) -> Standing | None:
    """Of a row in one of the two figures; None where it is not ranked."""
    return (row.cpu_per_request if quantity == "cpu" else row.throughput) if row.ranked else None


def by_place(rows: Iterable[Any_], read: Callable[[Any_], Standing | None]) -> list[Any_]:
    """Best first by one figure; those without it last."""
    return sorted(rows, key=lambda row: found.position if (found := read(row)) else 1 << 30)


# ---- closed loops ---------------------------------------------------------------------------------------------------


def of_table(info: RunInfo, ranking: Ranking, table: Table) -> Shown:
    """Throughput and CPU per request of one table, the leading figure first; no ranks where the run ranks nothing."""
    ranked, leading = is_ranked(info), ranking.leading
    other: Quantity = "throughput" if leading == "cpu" else "cpu"
    rows = by_place(table.rows, lambda row: standing(row, leading))

    def name(row: Row) -> str:
        return row.implementation + (f" ({row.load.label})" if table.load is None and row.load else "")

    def percentile(point: str) -> Column:
        def show(row: Row) -> str:
            return _scaled(row.latency.percentiles.get(point) if row.latency else None, 1e3)

        return _column(f"p{point} ms", rows, show, 4)

    rank = [_column("rank", rows, lambda row: _rank(standing(row, leading)))]
    rank_by_other = f"rank by {'CPU' if other == 'cpu' else 'req/s'}"
    against = [
        _column(f"× {ranking.reference}", rows, lambda row: ratio(_to_reference(standing(row, leading))), 2),
        _column(rank_by_other, rows, lambda row: _rank(standing(row, other)), 3),
    ]
    columns = (
        *(rank if ranked else ()),
        _column("implementation", rows, name),
        *_quantity(rows, leading, 0),
        *(against[:1] if ranked and ranking.reference else ()),
        *_quantity(rows, other, 1),
        *(against[1:] if ranked else ()),
        percentile("50"),
        percentile("99"),
        _column("memory", rows, lambda row: format_bytes(row.rss_peak), 5),
        _column("startup time", rows, lambda row: format_seconds(row.startup_time), 6),
        _column("errors", rows, lambda row: str(row.errors), 7),
    )
    found = [standing(row, leading) for row in rows]
    counts = {each.estimate.processes for each in found if each}
    each_of = f", {counted(counts.pop(), 'process')} each" if len(counts) == 1 else ""
    return Shown(
        title=f"{table.test_type}, {f'at {table.load.label}' if table.load else 'each at its best load'}{each_of}",
        columns=tuple(column for column in columns if column.order == 0 or not set(column.cells) <= {"–", "0"}),
        breaks=_breaks(found) if ranked else frozenset(),
        remarks=_remarks((row.implementation, _of_row(row)) for row in rows),
    )


def _column(header: str, rows: Iterable[Any_], show: Callable[[Any_], str], order: int = 0) -> Column:
    return Column(header=header, cells=tuple(map(show, rows)), order=order)


def _quantity(rows: Sequence[Row], quantity: Quantity, order: int) -> tuple[Column, Column]:
    def estimate(row: Row) -> Estimate | None:
        return _estimate(standing(row, quantity))

    if quantity == "cpu":
        value = _column("µs CPU/req", rows, lambda row: format_micros(_median(estimate(row))))
        return value, _column("95 %", rows, lambda row: interval(estimate(row), 1e6), order)
    value = _column("req/s", rows, lambda row: format_rate(_median(estimate(row))))
    return value, _column("95 %", rows, lambda row: interval(estimate(row)), order)


def _estimate(found: Standing | None) -> Estimate | None:
    return found.estimate if found else None


def _median(estimate: Estimate | None) -> float | None:
    return estimate.median if estimate else None


def _to_best(found: Standing | None) -> Ratio | None:
    return found.to_best if found else None


def _to_reference(found: Standing | None) -> Ratio | None:
    return found.to_reference if found else None


def _rank(found: Standing | None) -> str:
    return found.rank.label if found else "–"


def _breaks(standings: Sequence[Standing | None]) -> frozenset[int]:
    """Where groups end, unless each is of one row."""
    groups = [each.tie_group if each else None for each in standings]
    if len(set(groups)) == len(groups):
        return frozenset()
    return frozenset(at for at, (own, following) in enumerate(pairwise(groups)) if own != following)


def _scaled(estimate: Estimate | None, scale: float, digits: int = 2) -> str:
    return "–" if estimate is None else f"{estimate.median * scale:,.{digits}f}"


def _of_row(row: Row) -> list[str]:
    """What a reader must know of a row, the gravest first."""
    dropped = [f"{row.dropped} of {row.trials} trials kept out"] if row.dropped and row.ranked else []
    return [*_flags(row), *dropped]


def _flags(row: Row | GoalRow | OrderRow) -> list[str]:
    return [*([] if row.ranked else [row.reason or "not ranked"]), *row.flags]


def _remarks(rows: Iterable[tuple[str, Iterable[str]]]) -> tuple[str, ...]:
    """``CPU contention: resteasy, express``; ``all rows`` where it is about each of several."""
    about: dict[str, dict[str, None]] = {}
    names = set()
    for name, remarks in rows:
        names.add(name)
        for remark in remarks:
            about.setdefault(remark, {})[name] = None
    return tuple(
        f"{remark}: {'all rows' if len(found) == len(names) > 1 else ', '.join(found)}"
        for remark, found in about.items()
    )


# ---- loads at given rates -------------------------------------------------------------------------------------------


def _goal(title: str, header: str, rows: Sequence[GoalRow]) -> Shown:
    def show(value: float | None) -> str:
        return "–" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.1f}"

    def capacity(row: GoalRow) -> Standing | None:
        return row.capacity if row.ranked else None

    columns = (
        _column("rank", rows, lambda row: _rank(capacity(row))),
        _column("implementation", rows, lambda row: row.implementation),
        _column(header, rows, lambda row: show(_median(_estimate(capacity(row))))),
        _column("95 %", rows, lambda row: interval(_estimate(capacity(row)))),
        _column("× best", rows, lambda row: ratio(_to_best(capacity(row))), 2),
        _column("missed at", rows, lambda row: show(row.above), 1),
        _column("closed loop", rows, lambda row: format_rate(row.closed_loop), 3),
    )
    return Shown(
        title=title,
        columns=columns,
        breaks=_breaks([capacity(row) for row in rows]),
        remarks=_remarks((row.implementation, _flags(row)) for row in rows),
    )


def _points(table: LatencyTable) -> Shown:
    rows = [(row.implementation, point) for row in table.rows for point in row.points]

    def percentile(key: str, order: int = 0) -> Column:
        return _column(f"p{key}", rows, lambda row: _scaled(row[1].percentiles.get(key), 1e3), order)

    def share(point: RatePoint) -> str:
        return f"{point.share:.0%} of own" if point.share is not None else "same for all"

    columns = (
        _column("implementation", rows, lambda row: row[0]),
        _column("load", rows, lambda row: share(row[1])),
        _column("req/s", rows, lambda row: format_rate(row[1].rate)),
        percentile("50"),
        percentile("90", 2),
        percentile("99"),
        _column("95 %", rows, lambda row: interval(row[1].percentiles.get("99"), 1e3), 1),
        percentile("99.9", 3),
        _column("max seen", rows, lambda row: "–" if row[1].maximum is None else f"{row[1].maximum * 1e3:,.1f}", 4),
    )
    return Shown(
        title=f"{table.test_type}, latency over load (ms from the intended send time)",
        columns=columns,
        remarks=_remarks((f"{name} at {format_rate(p.rate)} req/s", p.flags) for name, p in rows),
    )


# ---- the order service ----------------------------------------------------------------------------------------------


def _orders(info: RunInfo, ranking: Ranking, *, every_operation: bool) -> Iterator[Shown]:
    orders = ranking.orders
    if orders is None:
        return
    sizes = {one.name: one.lines for one in info.implementations}
    for table in orders.tables:
        yield _order_table(f"order ×{table.factor:g}, by the response time of {CREATE}", table.rows, sizes)
    if orders.goal and orders.capacities:
        yield _goal(f"order, highest factor at which {orders.goal.label} of {CREATE}", "factor", orders.capacities)
    if every_operation and orders.tables:
        factor = orders.tables[-1].factor
        found = [(name, each) for name, points in orders.points.items() for each in points if each.factor == factor]
        yield _operations(f"order ×{factor:g}, every operation of every use case", found)


def _order_table(title: str, rows: Sequence[OrderRow], sizes: dict[str, int | None]) -> Shown:
    def response(row: OrderRow) -> Estimate | None:
        return row.response.estimate if row.response and row.ranked else None

    def cpu(row: OrderRow) -> Estimate | None:
        return row.cpu_per_arrival.estimate if row.cpu_per_arrival and row.ranked else None

    columns = (
        _column("rank", rows, lambda row: _rank(row.response if row.ranked else None)),
        _column("implementation", rows, lambda row: row.implementation),
        _column("p50 ms", rows, lambda row: _scaled(response(row), 1e3)),
        _column("95 %", rows, lambda row: interval(response(row), 1e3)),
        _column("p90", rows, lambda row: _scaled(row.percentiles.get("90"), 1e3), 1),
        _column("p99", rows, lambda row: _scaled(row.percentiles.get("99"), 1e3), 1),
        _column("rank by CPU", rows, lambda row: _rank(row.cpu_per_arrival if row.ranked else None), 2),
        _column("µs CPU/arrival", rows, lambda row: _scaled(cpu(row), 1e6, 0)),
        _column("95 %", rows, lambda row: interval(cpu(row), 1e6), 1),
        _column("µs database", rows, lambda row: _scaled(row.database_cpu_per_arrival, 1e6, 0), 3),
        _column("memory", rows, lambda row: format_bytes(row.rss_peak), 4),
        _column("lines", rows, lambda row: "–" if (n := sizes.get(row.implementation)) is None else f"{n:,}", 5),
    )
    return Shown(
        title=title,
        columns=columns,
        breaks=_breaks([row.response if row.ranked else None for row in rows]),
        remarks=_remarks((row.implementation, _flags(row)) for row in rows),
    )


def _operations(title: str, rows: Sequence[tuple[str, OrderPoint]]) -> Shown:
    columns = [
        _column("implementation", rows, lambda row: row[0]),
        _column("use case", rows, lambda row: row[1].use_case),
        _column("operation", rows, lambda row: row[1].operation or "the whole arrival"),
        _column("p50 ms", rows, lambda row: _scaled(row[1].percentiles.get("50"), 1e3)),
        _column("95 %", rows, lambda row: interval(row[1].percentiles.get("50"), 1e3), 2),
        _column("p99 ms", rows, lambda row: _scaled(row[1].percentiles.get("99"), 1e3)),
        _column("95 %", rows, lambda row: interval(row[1].percentiles.get("99"), 1e3), 2),
        _column("answered", rows, lambda row: f"{row[1].answered:,}", 3),
        _column("failed", rows, lambda row: f"{row[1].failed:,}", 1),
    ]
    return Shown(title=title, columns=tuple(columns))


# ---- all test types, and any metric ---------------------------------------------------------------------------------


def _overall(ranking: Ranking) -> Shown:
    leading, other = ("cpu", "throughput") if ranking.leading == "cpu" else ("throughput", "cpu")

    def of(score: Score, quantity: str) -> Standing | None:
        return score.cpu if quantity == "cpu" else score.throughput

    def figure(score: Score, quantity: str) -> str:
        ends = _estimate(of(score, quantity))
        return ratio(Ratio(value=ends.median, low=ends.low, high=ends.high) if ends else None)

    rows = by_place(ranking.overall, lambda score: of(score, leading))
    headers = {"cpu": "by CPU per request", "throughput": "by req/s"}
    columns = (
        _column("rank", rows, lambda score: _rank(of(score, leading))),
        _column("implementation", rows, lambda score: score.implementation),
        _column(headers[leading], rows, lambda score: figure(score, leading)),
        _column(headers[other], rows, lambda score: figure(score, other), 1),
        _column("missing", rows, lambda score: ", ".join(score.missing), 2),
    )
    return Shown(
        title=f"overall: geometric mean of ratios to {ranking.reference}, more is better",
        columns=tuple(column for column in columns if any(column.cells)),
        breaks=_breaks([of(score, leading) for score in rows]),
        sums_up=True,
    )


def by_metric(ranking: MetricRanking) -> Iterator[Shown]:
    """A run by any one metric: a table a load."""
    for table in ranking.tables:
        where = f"{table.test_type} at {table.load.label}" if table.test_type and table.load else "each process"
        title = f"{ranking.title}, {where}"
        yield _metric(title, ranking.unit, table)


def _metric(title: str, unit: str, table: MetricTable) -> Shown:
    rows = [(row, _estimate(row.standing)) for row in table.rows]

    def show(value: float | None) -> str:
        if value is None:
            return "–"
        if unit == "s":
            return f"{value * 1e6:,.1f} µs" if value < 1e-3 else format_seconds(value)
        return format_bytes(value) if unit == "B" else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"

    columns = (
        _column("rank", rows, lambda row: _rank(row[0].standing)),
        _column("implementation", rows, lambda row: row[0].implementation),
        _column("figure", rows, lambda row: show(_median(row[1]))),
        _column("95 %", rows, lambda row: f"[{show(row[1].low)}, {show(row[1].high)}]" if row[1] else "–"),
        _column("× best", rows, lambda row: ratio(_to_best(row[0].standing)), 1),
    )
    return Shown(
        title=title,
        columns=columns,
        breaks=_breaks([row.standing for row in table.rows]),
        remarks=_remarks((row.implementation, [row.reason] if row.reason else []) for row in table.rows),
    )
