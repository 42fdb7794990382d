"""Builds a ranking's tables as text, so that all human-readable reports show the same values, terms and columns."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from harness.plan.testtypes.registry import ranked_operation
from harness.records.run_info import RunInfo
from harness.stats.ranking_model import (
    Estimate,
    GoalRow,
    LatencyTable,
    Quantity,
    Ranking,
    Ratio,
    Row,
    ScenarioRow,
    Score,
    Standing,
    Table,
)
from harness.stats.unranked import is_ranked
from harness.units import format_bytes, format_micros, format_rate, format_seconds

DRAWING_WIDTH = 31  # width of a drawn interval in characters
R = TypeVar("R")
Percentiles = Mapping[str, Estimate]


@dataclass(frozen=True, kw_only=True)
class Column:
    """A table column.

    On a narrow terminal, the columns with the highest ``order`` move to a second table. Their headers must therefore be
    clear without the other columns.
    """

    header: str
    cells: tuple[str, ...]
    order: int = 0  # columns with order 0 always stay in the main table


@dataclass(frozen=True, kw_only=True)
class TextTable:
    """A table with text cells."""

    title: str
    columns: tuple[Column, ...]
    remarks: tuple[str, ...] = ()  # lines below the table, for example ``steal: express``
    sums_up: bool = False  # whether the table combines the results of other tables


def _no_standing(_: object) -> Standing | None:
    return None


@dataclass(frozen=True)
class TableRows(Generic[R]):
    """A table's rows, with methods that build columns. ``standing`` returns the standing that ranks a row."""

    rows: Sequence[R]
    standing: Callable[[R], Standing | None] = _no_standing

    def column(self, header: str, show: Callable[[R], str], order: int = 0) -> Column:
        """Return a column with a cell for each row, formatted by ``show``."""
        return Column(header=header, cells=tuple(map(show, self.rows)), order=order)

    def ranks(self) -> list[Column]:
        """Return the column of ranks. If rows are tied, add a column with a letter for each tie group."""
        groups = [standing.tie_group if standing else None for standing in map(self.standing, self.rows)]
        tied = [group for group, count in Counter(groups).items() if group is not None and count > 1]
        letters = {group: _letters(index) for index, group in enumerate(tied)}
        cells = tuple("" if group is None else letters.get(group, "") for group in groups)
        return [self.rank(), *([Column(header="tie", cells=cells)] if tied else [])]

    def rank(self, header: str = "rank", of: Callable[[R], Standing | None] | None = None, order: int = 0) -> Column:
        """Return a column with each row's range of possible ranks. ``of`` replaces ``self.standing``."""
        standings = [(of or self.standing)(row) for row in self.rows]
        return Column(header=header, cells=tuple(each.rank.label if each else "–" for each in standings), order=order)

    def figure(
        self,
        header: str,
        of: Callable[[R], Standing | Estimate | None],
        show: Callable[[float], str],
        scale: float = 1.0,
        order: int = 0,
    ) -> Column:
        """Return a column of medians with 95 % intervals.

        ``show`` formats medians. ``scale`` converts the bounds of intervals to the same unit.
        """
        estimates = [_estimate_of(of(row)) for row in self.rows]
        medians = ["–" if each is None else show(each.median) for each in estimates]
        intervals = [format_interval(each, scale) for each in estimates]
        if set(intervals) <= {"–"}:
            return Column(header=header, cells=tuple(medians), order=order)
        width = max(map(len, intervals), default=0)
        cells = (
            median if interval == "–" else f"{median} {interval:>{width}}"
            for median, interval in zip(medians, intervals, strict=True)
        )
        return Column(header=f"{header} [95 %]", cells=tuple(cells), order=order)

    def percentile(self, header: str, point: str, of: Callable[[R], Percentiles], order: int = 0) -> Column:
        """Return a column with a latency percentile in milliseconds."""
        estimates = (of(row).get(point) for row in self.rows)
        cells = tuple("–" if each is None else _format_milliseconds(each.median) for each in estimates)
        return Column(header=header, cells=cells, order=order)

    def table(
        self,
        title: str,
        *columns: Column,
        remarks: Callable[[R], tuple[str, Iterable[str]]] | None = None,
        sums_up: bool = False,
    ) -> TextTable:
        """Return a table. Omit empty columns, unless their order is 0. ``remarks`` returns a row's name and remarks."""
        return TextTable(
            title=title,
            columns=tuple(each for each in columns if each.order == 0 or not set(each.cells) <= {"–", "0", ""}),
            remarks=_group_remarks(map(remarks, self.rows)) if remarks else (),
            sums_up=sums_up,
        )


def _letters(index: int) -> str:
    """Return ``a`` to ``z`` for the first 26 indices, then ``aa``, ``ab`` and so on."""
    before, letter = divmod(index, 26)
    return (_letters(before - 1) if before else "") + chr(ord("a") + letter)


def format_count(number: int, thing: str) -> str:
    """Format a number with a noun, for example ``1 implementation`` or ``3 processes``."""
    return f"{number:,} {thing}{'' if number == 1 else 'es' if thing.endswith('s') else 's'}"


def format_interval(estimate: Estimate | None, scale: float = 1.0) -> str:
    """Format an estimate's interval as ``[low, high]``, or as an en dash if it has none."""
    if estimate is None or estimate.low is None or estimate.high is None:
        return "–"
    low, high = estimate.low * scale, estimate.high * scale
    digits = 0 if high >= 100 else 1 if high >= 10 else 2
    return f"[{low:,.{digits}f}, {high:,.{digits}f}]"


def format_ratio(value: Ratio | None) -> str:
    """Format a ratio and its interval, if any, for example ``1.12× [1.08, 1.17]``."""
    if value is None:
        return "–"
    if value.low is None or value.high is None or value.low == value.high:
        return f"{_format_factor(value.value)}×"
    return f"{_format_factor(value.value)}× [{_format_factor(value.low)}, {_format_factor(value.high)}]"


def draw_interval(
    value: float, low: float, high: float, expected: tuple[float, float], ends: tuple[float, float]
) -> str:
    """Draw a ratio and its interval as ``├─●─┤`` on a logarithmic axis from ``ends[0]`` to ``ends[1]``.

    ``│`` marks a ratio of 1, and ``░`` marks the expected range.
    """
    first, last = map(math.log, ends)

    def at(ratio: float) -> int:
        fraction = (math.log(min(max(ratio, ends[0]), ends[1])) - first) / (last - first)
        return round(fraction * (DRAWING_WIDTH - 1))

    line = ["·"] * DRAWING_WIDTH
    for mark, begin, end in (("░", *expected), ("│", 1.0, 1.0), ("─", low, high)):
        line[at(begin) : at(end) + 1] = mark * (at(end) + 1 - at(begin))
    line[at(low)], line[at(high)] = "├", "┤"
    line[at(value)] = "●"
    return "".join(line)


def _format_factor(value: float) -> str:
    """Format a factor like the dashboard, for example 123, 12.3, 1.23, 0.12 or 0.023."""
    small = 0 < value < 0.095
    digits = 1 - math.floor(math.log10(value)) if small else 2 if value < 10 else 1 if value < 100 else 0
    return f"{value:,.{digits}f}"


def row_standing(row: Row, quantity: Quantity) -> Standing | None:
    """Return a row's standing for a metric."""
    return row.cpu_per_request if quantity == "cpu" else row.throughput


def sort_by_position(rows: Iterable[R], read: Callable[[R], Standing | None]) -> list[R]:
    """Sort rows by their standings' positions, best first. Rows without a standing are last."""
    return sorted(rows, key=lambda row: standing.position if (standing := read(row)) else 1 << 30)


def _estimate_of(value: Standing | Estimate | None) -> Estimate | None:
    return value.estimate if isinstance(value, Standing) else value


def _format_milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:,.2f}"


def _group_remarks(rows: Iterable[tuple[str, Iterable[str]]]) -> tuple[str, ...]:
    """Return a line per remark with the affected rows, such as ``CPU contention: resteasy, express``."""
    names_by_remark: dict[str, dict[str, None]] = {}
    names = set()
    for name, remarks in rows:
        names.add(name)
        for remark in remarks:
            names_by_remark.setdefault(remark, {})[name] = None
    return tuple(
        f"{remark}: {'all rows' if len(affected) == len(names) > 1 else ', '.join(affected)}"
        for remark, affected in names_by_remark.items()
    )


def _row_remarks(row: Row | GoalRow) -> tuple[str, list[str]]:
    """Return a row's implementation and remarks. The reason why the row is not ranked precedes the flags."""
    return row.implementation, [*([row.reason] if row.reason else []), *row.flags]


def ranking_tables(info: RunInfo, ranking: Ranking, *, every_load: bool) -> Iterator[TextTable]:
    """Yield all tables of a run's ranking. ``every_load`` adds a table per load."""
    test_types = [test for test in ranking.test_types.values() if not test.is_scenario or not ranking.orders]
    for number, test in enumerate(test_types):
        yield closed_loop_table(info, ranking, test.headline, startup=number == 0)
        for table in test.tables if every_load and len(test.tables) > 1 else ():
            yield closed_loop_table(info, ranking, table)
    for latency in ranking.latency.values():
        yield _capacity_table(f"{latency.test_type}, capacity at {latency.goal.label}", "req/s at goal", latency.rows)
        yield _rate_table(latency)
    if orders := ranking.orders:
        scenario = next((name for name, test in ranking.test_types.items() if test.is_scenario), "")
        for scenario_table in orders.tables:
            title = f"{scenario} ×{scenario_table.factor:g}, by the response time of {ranked_operation(scenario)}"
            yield _scenario_table(title, scenario_table.rows, ranked=is_ranked(info))
        if orders.goal and orders.capacities:
            yield _capacity_table(
                f"{scenario}, highest factor at which {ranked_operation(scenario)} meets {orders.goal.label}",
                "factor",
                orders.capacities,
            )
    for name, scores in (("overall", ranking.overall), *ranking.groups.items()):
        if scores:
            yield _score_table(ranking, name, scores)


def separate_common_remarks(tables: Iterable[TextTable]) -> tuple[list[TextTable], list[str]]:
    """Return the tables without the remarks that they all share, and these remarks as notes on the run."""
    tables = list(tables)
    remarks = [{*table.remarks} for table in tables if not table.sums_up]
    common = set.intersection(*remarks) if len(remarks) > 1 else set()
    shorter = [replace(table, remarks=tuple(each for each in table.remarks if each not in common)) for table in tables]
    return shorter, [f"in every table: {remark}" for remark in sorted(common)]


def closed_loop_table(info: RunInfo, ranking: Ranking, table: Table, *, startup: bool = False) -> TextTable:
    """Return a table of throughput and CPU per request, leading metric first. Add ranks if the run is ranked."""
    ranked, leading = is_ranked(info), ranking.leading
    second: Quantity = "throughput" if leading == "cpu" else "cpu"
    place = (lambda row: row_standing(row, leading)) if ranked else _no_standing
    ordered = sort_by_position(table.rows, lambda row: row_standing(row, leading))
    rows: TableRows[Row] = TableRows(ordered, place)

    def name(row: Row) -> str:
        return row.implementation + (f" ({row.load.label})" if table.load is None and row.load else "")

    header, show, scale = ("µs CPU/req", format_micros, 1e6) if leading == "cpu" else ("req/s", format_rate, 1.0)
    other_header, show_other = ("req/s", format_rate) if leading == "cpu" else ("µs CPU/req", format_micros)
    other_scale = 1.0 if leading == "cpu" else 1e6

    def other_figure(row: Row) -> str:
        standing = row_standing(row, second)
        return show_other(standing.estimate.median) if standing else "–"

    def other_interval(row: Row) -> str:
        return format_interval(_estimate_of(row_standing(row, second)), other_scale)

    def to_reference(row: Row) -> str:
        standing = row_standing(row, leading)
        return format_ratio(standing.to_reference if standing else None)

    def remarks(row: Row) -> tuple[str, list[str]]:
        dropped = [f"{row.dropped} of {row.trials} trials excluded"] if row.dropped and not row.reason else []
        return row.implementation, [*_row_remarks(row)[1], *dropped]

    def latency(row: Row) -> Percentiles:
        return row.latency.percentiles if row.latency else {}

    counts = {row_place.estimate.processes for row in ordered if (row_place := row_standing(row, leading))}
    process_count = f", {format_count(counts.pop(), 'process')} each" if len(counts) == 1 else ""
    rank_by_other = f"rank by {'CPU' if second == 'cpu' else 'req/s'}"
    return rows.table(
        f"{table.test_type}, {f'at {table.load.label}' if table.load else 'each at its best load'}{process_count}",
        *(rows.ranks() if ranked else []),
        rows.column("implementation", name),
        rows.figure(header, lambda row: row_standing(row, leading), show, scale),
        *([rows.column(f"× {ranking.reference}", to_reference)] if ranked and ranking.reference else []),
        rows.column(other_header, other_figure),
        rows.column(f"{other_header} 95 %", other_interval, 1),
        *([rows.rank(rank_by_other, lambda row: row_standing(row, second), 3)] if ranked else []),
        rows.percentile("p50 ms", "50", latency, 4),
        rows.percentile("p99 ms", "99", latency, 4),
        rows.column("memory", lambda row: format_bytes(row.rss_peak), 5),
        *([rows.column("startup time", lambda row: format_seconds(row.startup_time), 6)] if startup else []),
        rows.column("errors", lambda row: str(row.errors), 7),
        rows.column("CPU × floor", lambda row: f"{_format_factor(row.cpu_to_floor)}×" if row.cpu_to_floor else "–", 8),
        remarks=remarks,
    )


def _capacity_table(title: str, header: str, goal_rows: Sequence[GoalRow]) -> TextTable:
    """Return a table of capacities at a latency goal, in requests per second or as load factors of a scenario."""
    rows = TableRows(goal_rows, lambda row: row.capacity)

    def show(value: float) -> str:
        return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"

    return rows.table(
        title,
        *rows.ranks(),
        rows.column("implementation", lambda row: row.implementation),
        rows.figure(header, rows.standing, show),
        rows.column("× best", lambda row: format_ratio(row.capacity.to_best if row.capacity else None), 2),
        rows.column("missed at", lambda row: "–" if row.above is None else show(row.above), 1),
        rows.column("closed loop", lambda row: format_rate(row.closed_loop), 3),
        remarks=_row_remarks,
    )


def _rate_table(table: LatencyTable) -> TextTable:
    rows = TableRows([(row.implementation, point) for row in table.rows for point in row.points])
    return rows.table(
        f"{table.test_type}, latency over load (ms from the intended send time)",
        rows.column("implementation", lambda row: row[0]),
        rows.column("load", lambda row: "same for all" if row[1].share is None else f"{row[1].share:.0%} of own"),
        rows.column("req/s", lambda row: format_rate(row[1].rate)),
        rows.percentile("p50", "50", lambda row: row[1].percentiles),
        rows.percentile("p90", "90", lambda row: row[1].percentiles, 2),
        rows.figure("p99", lambda row: row[1].percentiles.get("99"), _format_milliseconds, 1e3),
        rows.percentile("p99.9", "99.9", lambda row: row[1].percentiles, 3),
        rows.column("max seen", lambda row: "–" if row[1].maximum is None else f"{row[1].maximum * 1e3:,.1f}", 4),
        remarks=lambda row: (f"{row[0]} at {format_rate(row[1].rate)} req/s", row[1].flags),
    )


def _scenario_table(title: str, scenario_rows: Sequence[ScenarioRow], *, ranked: bool) -> TextTable:
    def response(row: ScenarioRow) -> Standing | None:
        return row.response

    rows = TableRows(scenario_rows, response if ranked else _no_standing)

    def micros(seconds: float) -> str:
        return f"{seconds * 1e6:,.0f}"

    def database(row: ScenarioRow) -> str:
        return micros(row.database_cpu_per_arrival.median) if row.database_cpu_per_arrival else "–"

    return rows.table(
        title,
        *(rows.ranks() if ranked else []),
        rows.column("implementation", lambda row: row.implementation),
        rows.figure("p50 ms", response, _format_milliseconds, 1e3),
        rows.percentile("p90", "90", lambda row: row.percentiles, 1),
        rows.percentile("p99", "99", lambda row: row.percentiles, 1),
        *([rows.rank("rank by CPU", lambda row: row_standing(row, "cpu"), 2)] if ranked else []),
        rows.figure("µs CPU/arrival", lambda row: row_standing(row, "cpu"), micros, 1e6),
        rows.column("µs database", database, 3),
        rows.column("memory", lambda row: format_bytes(row.rss_peak), 4),
        remarks=_row_remarks,
    )


def _score_table(ranking: Ranking, name: str, scores: Sequence[Score]) -> TextTable:
    def of(score: Score, quantity: str) -> Standing | None:
        return score.cpu if quantity == "cpu" else score.throughput

    def figure(score: Score, quantity: str) -> str:
        estimate = _estimate_of(of(score, quantity))
        return format_ratio(Ratio(value=estimate.median, low=estimate.low, high=estimate.high) if estimate else None)

    leading, second = ("cpu", "throughput") if ranking.leading == "cpu" else ("throughput", "cpu")
    headers = {"cpu": "by CPU per request", "throughput": "by req/s"}
    ordered = sort_by_position(scores, lambda score: of(score, leading))
    rows: TableRows[Score] = TableRows(ordered, lambda score: of(score, leading))
    return rows.table(
        f"{name}: geometric mean of ratios to {ranking.reference}, more is better",
        *rows.ranks(),
        rows.column("implementation", lambda score: score.implementation),
        rows.column(headers[leading], lambda score: figure(score, leading)),
        rows.column(headers[second], lambda score: figure(score, second), 1),
        rows.column("missing", lambda score: ", ".join(score.missing), 2),
        sums_up=True,
    )
