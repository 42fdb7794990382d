"""The ranking as Markdown tables; names and messages in it are text and no markup."""

from collections.abc import Iterable
from typing import TextIO

from harness.plain_text import markdown
from harness.report import Report, sentence
from harness.report.tables import Shown, shown
from harness.report.terminal import footnotes, heading


def export(report: Report, out: TextIO) -> None:
    """The whole report, with the tables of every load."""
    info, ranking = report.records.info, report.ranking
    parts = ["\n\n".join(map(markdown, heading(info).plain.split("\n"))), markdown(str(sentence.answer(info, ranking)))]
    parts += [section(each) for each in shown(info, ranking, every_load=True)]
    parts.append(_list((*ranking.notes, *footnotes(info, ranking), *info.problems)))
    out.write("\n\n".join(part for part in parts if part) + "\n")


def section(table: Shown) -> str:
    """A heading, the table, and what is remarked of its rows."""
    header, rule = [column.header for column in table.columns], ["---"] * len(table.columns)
    rows = zip(*(column.cells for column in table.columns), strict=True)
    lines = [[*map(markdown, header)], rule, *([*map(markdown, row)] for row in rows)]
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"## {markdown(table.title)}\n\n{text}" + (f"\n\n{_list(table.remarks)}" if table.remarks else "")


def _list(items: Iterable[str]) -> str:
    return "\n".join(f"- {markdown(item)}" for item in items)
