"""Exports a run's ranking as CSV. Each test type has a headline table and, for several loads, a table per load."""

import csv
from typing import TextIO

from harness.report import Report
from harness.report.tables import row_standing
from harness.stats.ranking_model import Quantity, Row, Table

FIGURES: dict[str, Quantity] = {"cpu_seconds_per_request": "cpu", "requests_per_second": "throughput"}
COLUMNS = (
    *("table", "test_type", "load", "implementation", "rank_low", "rank_high"),
    *(f"{name}{end}" for name in FIGURES for end in ("", "_low", "_high", "_to_reference")),
    *("rss_peak_bytes", "startup_time_seconds", "latency_p50_seconds", "latency_p99_seconds", "errors"),
    *("flags", "reason"),
)
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")  # spreadsheets evaluate cells with these first characters


def export(report: Report, out: TextIO) -> None:
    """Write all tables in SI units. Cells with unknown values are empty."""
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for test in report.ranking.test_types.values():
        for table in (test.headline, *(test.tables if len(test.tables) > 1 else ())):
            kind = "headline" if table is test.headline else "load"
            writer.writerows(map(_guard, [kind, *_cells(row, table, report.ranking.leading)]) for row in table.rows)


def _cells(row: Row, table: Table, quantity_of_rank: Quantity) -> list[object]:
    leading = row_standing(row, quantity_of_rank)
    load = row.load or table.load
    percentiles = row.latency.percentiles if row.latency else {}
    cells: list[object] = [table.test_type, load.label if load else None, row.implementation]
    cells += (leading.rank.low, leading.rank.high) if leading else (None, None)
    for quantity in FIGURES.values():
        standing = row_standing(row, quantity)
        estimate, ratio = (standing.estimate, standing.to_reference) if standing else (None, None)
        cells += [estimate.median, estimate.low, estimate.high] if estimate else [None] * 3
        cells.append(ratio.value if ratio else None)
    cells += [row.rss_peak, row.startup_time]
    cells += [percentiles[point].median if point in percentiles else None for point in ("50", "99")]
    return [*cells, row.errors, "; ".join(row.flags), row.reason]


def _guard(cell: object) -> object:
    """Add a leading apostrophe to text that a spreadsheet would evaluate as a formula."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA_STARTS) else cell
