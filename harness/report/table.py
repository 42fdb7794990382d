"""The ranking as CSV: one line a row of every table, numbers in SI units, unknowns empty."""

import csv
import io

from harness.rank.model import Ranking, Row, Standing, Table
from harness.results.records import RunInfo

COLUMNS = (
    *("run", "test_type", "table", "level", "implementation", "ranked", "reason"),
    *(
        "rank_low",
        "rank_high",
        "tie_group",
        "throughput",
        "throughput_low",
        "throughput_high",
        "throughput_to_reference",
    ),
    *("cpu_rank_low", "cpu_rank_high", "cpu_tie_group", "cpu_per_request", "cpu_per_request_low"),
    *("cpu_per_request_high", "cpu_to_reference", "replicates", "rss_peak", "first_answer", "errors", "words"),
)


def render(info: RunInfo, ranking: Ranking) -> str:
    """All tables, the headline one of each test type marked ``headline``."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for test_type in ranking.test_types.values():
        for kind, tables in (("headline", (test_type.headline,)), ("level", test_type.levels)):
            for table in tables:
                writer.writerows([info.run_id, test_type.test_type, kind, *_row(table, row)] for row in table.rows)
    return out.getvalue()


def _row(table: Table, row: Row) -> list[object]:
    level = row.level or table.level
    throughput, cpu = _standing(row.throughput), _standing(row.cpu_per_request)
    replicates = row.throughput.estimate.replicates if row.throughput else 0
    words = "; ".join(row.words)
    values = [level.label if level else None, row.implementation, row.ranked, row.reason or None, *throughput, *cpu]
    return ["" if v is None else v for v in (*values, replicates, row.rss_peak, row.first_answer, row.errors, words)]


def _standing(standing: Standing | None) -> list[object]:
    if standing is None:
        return [None] * 7
    estimate = standing.estimate
    ratio = standing.to_reference.value if standing.to_reference else None
    return [
        *(standing.rank.low, standing.rank.high, standing.tie_group),
        *(estimate.median, estimate.low, estimate.high, ratio),
    ]
