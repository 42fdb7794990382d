"""The ranking as CSV: one line a row of every table, numbers in SI units, unknowns empty."""

import csv
from typing import TextIO

from harness.plain_text import cell
from harness.records.models import ImplementationInfo
from harness.report import Report, closed_loop
from harness.report.columns import COLUMNS
from harness.stats.model import Row, Standing, Table


def export(report: Report, out: TextIO) -> None:
    """All tables, the headline one of each test type marked ``headline``."""
    info = report.records.info
    known = {implementation.name: implementation for implementation in info.implementations}
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for test_type in report.ranking.test_types.values():
        for kind, tables in (("headline", (test_type.headline,)), ("level", test_type.levels)):
            for table in tables:
                for row in table.rows:
                    values = _row(table, row, known.get(row.implementation))
                    writer.writerow(
                        "" if v is None else cell(v) for v in (info.run_id, test_type.test_type, kind, *values)
                    )


def _row(table: Table, row: Row, known: ImplementationInfo | None) -> list[object]:
    """The values after the first three, in the order of COLUMNS."""
    level = row.level or table.level
    what = (known.language, known.platform or None) if known else (None, None)
    replicates = row.throughput.estimate.replicates if row.throughput else 0
    return [
        *(level.label if level else None, row.implementation, *what, row.ranked, row.reason or None),
        *(*_standing(row.throughput), *_standing(row.cpu_per_request)),
        *closed_loop.values(row),
        *(replicates, row.rss_peak, row.response_time, row.throughput_per_memory, row.threads),
        *(row.first_answer, row.errors, "; ".join(row.words)),
    ]


def _standing(standing: Standing | None) -> list[object]:
    if standing is None:
        return [None] * 9
    estimate, ratio = standing.estimate, standing.to_reference
    return [
        *(standing.rank.low, standing.rank.high, standing.tie_group),
        *(estimate.median, estimate.low, estimate.high),
        *((ratio.value, ratio.low, ratio.high) if ratio else (None, None, None)),
    ]
