"""The ranking as Markdown tables."""

from collections.abc import Iterable
from typing import TextIO

from harness.records.models import ImplementationInfo
from harness.report import Report, latency, orders
from harness.report.cells import HEADERS, OVERALL_HEADERS, cells, overall_cells, title
from harness.report.terminal import footnotes, heading, shown

SIZE_HEADERS = ("implementation", "language", "framework", "lines")


def export(report: Report, out: TextIO) -> None:
    """The whole report."""
    info, ranking = report.records.info, report.ranking
    parts = ["\n\n".join(heading(info).plain.split("\n"))]
    for test_type in shown(ranking):
        for table in (test_type.headline, *(test_type.levels if len(test_type.levels) > 1 else ())):
            rows = [cells(row, show_level=table.level is None) for row in table.rows]
            parts.append(f"## {title(table)}\n\n" + _table(HEADERS, rows))
    parts += [f"## {name}\n\n" + _table(headers, lines) for name, headers, lines in latency.tables(ranking)]
    further = orders.tables(info, ranking, every_operation=True)
    parts += [f"## {name}\n\n" + _table(headers, lines) for name, headers, lines in further]
    if ranking.overall:
        parts.append("## overall\n\n" + _table(OVERALL_HEADERS, [overall_cells(score) for score in ranking.overall]))
    parts.append("## implementations\n\n" + _table(SIZE_HEADERS, map(_size, info.implementations)))
    parts.append("\n".join(f"- {note}" for note in (*ranking.notes, *footnotes(info, ranking), *info.problems)))
    out.write("\n\n".join(parts) + "\n")


def _size(one: ImplementationInfo) -> tuple[str, ...]:
    return one.name, one.language, one.framework, "–" if one.lines is None else f"{one.lines:,}"


def _table(headers: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    names = list(headers)
    lines = [names, ["---"] * len(names), *rows]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in line) + " |" for line in lines
    )
