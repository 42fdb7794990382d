"""Exports a run's ranking as Markdown."""

from collections.abc import Iterable
from typing import TextIO

from harness.plain_text import escape_markdown
from harness.report import Report, summary
from harness.report.tables import TextTable, ranking_tables, separate_common_remarks
from harness.report.terminal import caveats, footnotes, heading


def export(report: Report, file: TextIO) -> None:
    """Write the summary, a table per test type, and notes. ``report.every_load`` adds a table per load."""
    info, ranking = report.records.info, report.ranking
    parts = [
        "\n\n".join(map(escape_markdown, heading(info).plain.split("\n"))),
        escape_markdown(str(summary.summarize_run(info, ranking))),
    ]
    tables, remarks = separate_common_remarks(ranking_tables(info, ranking, every_load=report.every_load))
    parts += map(table_section, tables)
    parts.append(_list((*remarks, *caveats(info, ranking), *footnotes(info, ranking), *info.problems)))
    file.write("\n\n".join(part for part in parts if part) + "\n")


def table_section(table: TextTable) -> str:
    """Return a Markdown section with the table's title, cells and remarks."""
    header, rule = [column.header for column in table.columns], ["---"] * len(table.columns)
    rows = zip(*(column.cells for column in table.columns), strict=True)
    lines = [[*map(escape_markdown, header)], rule, *([*map(escape_markdown, row)] for row in rows)]
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"## {escape_markdown(table.title)}\n\n{text}" + (f"\n\n{_list(table.remarks)}" if table.remarks else "")


def _list(items: Iterable[str]) -> str:
    return "\n".join(f"- {escape_markdown(item)}" for item in items)
