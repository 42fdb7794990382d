"""A ranking by one metric: as text, Markdown, CSV and JSON."""

import csv
from collections.abc import Callable, Iterator
from typing import TextIO

import rich.box
from rich.table import Table

from harness.report.cells import ratio
from harness.report.terminal import console
from harness.stats.by_metric import MetricRanking, MetricTable
from harness.units import format_bytes, format_seconds

COLUMNS = (
    *("run", "metric", "unit", "test_type", "level", "implementation", "rank_low", "rank_high", "tie_group"),
    *("value", "value_low", "value_high", "ratio", "ratio_low", "ratio_high", "processes", "reason"),
)
HEADERS = ("rank", "implementation", "figure", "95 %", "× best", "n", "remarks")


def text(ranking: MetricRanking, out: TextIO) -> None:
    """A table a level."""
    shown = console(out)
    for table in ranking.tables:
        printed = Table(title=_title(ranking, table), box=rich.box.SIMPLE_HEAD, title_justify="left", padding=(0, 1))
        for header in HEADERS:
            printed.add_column(header, justify="left" if header in ("implementation", "remarks") else "right")
        for line in _lines(ranking, table):
            printed.add_row(*line)
        shown.print(printed)


def markdown(ranking: MetricRanking, out: TextIO) -> None:
    """The same for a page."""
    for table in ranking.tables:
        out.write(f"## {_title(ranking, table)}\n\n")
        lines = (HEADERS, ("---",) * len(HEADERS), *_lines(ranking, table))
        out.writelines("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)
        out.write("\n")


def as_csv(ranking: MetricRanking, out: TextIO) -> None:
    """One line a row, SI units, unknowns empty."""
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for table in ranking.tables:
        start = (ranking.run_id, ranking.metric, ranking.unit, table.test_type, table.level and table.level.label)
        for row in table.rows:
            values: tuple[object, ...] = (None,) * 10
            if row.standing:
                of, best = row.standing.estimate, row.standing.to_best
                places = (row.standing.rank.low, row.standing.rank.high, row.standing.tie_group)
                against = (best.value, best.low, best.high) if best else (None, None, None)
                values = (*places, of.median, of.low, of.high, *against, of.replicates)
            writer.writerow(_blank(*start, row.implementation, *values, row.reason or None))
        for error in table.errors:
            values = (error.rank.low, error.rank.high, None, error.share, error.interval.low, error.interval.high)
            writer.writerow(_blank(*start, error.implementation, *values, *(None,) * 3, None, f"{error.errors} errors"))


def _blank(*values: object) -> list[object]:
    return ["" if value is None else value for value in values]


def as_json(ranking: MetricRanking, out: TextIO) -> None:
    """The model itself."""
    out.write(ranking.recorded(indent=1) + "\n")


FORMATS: dict[str, Callable[[MetricRanking, TextIO], None]] = {
    "text": text,
    "markdown": markdown,
    "csv": as_csv,
    "json": as_json,
}


def _title(ranking: MetricRanking, table: MetricTable) -> str:
    where = f"{table.test_type} at {table.level.label}" if table.test_type and table.level else "each process"
    return f"{ranking.title}, {where}" + (f" ({table.basis})" if table.basis else "")


def _lines(ranking: MetricRanking, table: MetricTable) -> Iterator[tuple[str, ...]]:
    show = _number(ranking.unit)
    for row in table.rows:
        if row.standing is None:
            yield "–", row.implementation, "–", "–", "–", "0", row.reason
            continue
        of = row.standing.estimate
        span = "–" if of.low is None or of.high is None else f"[{show(of.low)}, {show(of.high)}]"
        against = ratio(row.standing.to_best)
        yield row.standing.rank.label, row.implementation, show(of.median), span, against, str(of.replicates), ""
    for error in table.errors:
        span = f"[{error.interval.low:.3%}, {error.interval.high:.3%}]"
        counted = f"{error.errors:,} in {error.requests:,}"
        yield error.rank.label, error.implementation, f"{error.share:.3%}", span, "–", "", counted


def _number(unit: str) -> Callable[[float], str]:
    match unit:
        case "s":
            return lambda value: f"{value * 1e6:,.1f} µs" if value < 1e-3 else format_seconds(value)
        case "B":
            return format_bytes
        case _:
            return lambda value: f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
