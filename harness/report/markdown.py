"""The ranking as Markdown tables; and functions that escape untrusted text for Markdown and CI logs."""

import re
from collections.abc import Iterable
from typing import TextIO

from harness.plain_text import escape_markdown, printable
from harness.report import Report, summary
from harness.report.tables import TextTable, ranking_tables
from harness.report.terminal import footnotes, heading


def export(report: Report, out: TextIO) -> None:
    """The whole report, with the tables of every load."""
    info, ranking = report.records.info, report.ranking
    parts = [
        "\n\n".join(map(escape_markdown, heading(info).plain.split("\n"))),
        escape_markdown(str(summary.summarize_run(info, ranking))),
    ]
    parts += [table_section(each) for each in ranking_tables(info, ranking, every_load=True)]
    parts.append(_list((*ranking.notes, *footnotes(info, ranking), *info.problems)))
    out.write("\n\n".join(part for part in parts if part) + "\n")


def table_section(table: TextTable) -> str:
    """A heading, the table, and what is remarked of its rows."""
    header, rule = [column.header for column in table.columns], ["---"] * len(table.columns)
    rows = zip(*(column.cells for column in table.columns), strict=True)
    lines = [[*map(escape_markdown, header)], rule, *([*map(escape_markdown, row)] for row in rows)]
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"## {escape_markdown(table.title)}\n\n{text}" + (f"\n\n{_list(table.remarks)}" if table.remarks else "")


def _list(items: Iterable[str]) -> str:
    return "\n".join(f"- {escape_markdown(item)}" for item in items)


# ---- untrusted text -------------------------------------------------------------------------------------------------

# Words and figures without a meaning in Markdown: no links, mentions, issue numbers, commits or lists.
_WORD = re.compile(r"(?!www\b|GH-)[A-Za-z]{1,40}[,;:]?|\[?[-+]?\d{1,6}([.,]\d{1,6})*[×%]?\]?[,;:]?|[–·→÷×±%]")
# Replacements in code spans: | would end a table cell, and some viewers interpret HTML.
_LOOKALIKES = str.maketrans({"|": "\u2502", "<": "\u2039", ">": "\u203a"})
_COMMIT = re.compile(r"\b[0-9a-f]{7,}\b")
_ORDER = re.compile(r"^(\s*)(?=::)", re.MULTILINE)  # a command of GitHub or GitLab
_ORDER_ANYWHERE = re.compile(r"##(?=\w*\[)")  # a command of GitHub, Azure or TeamCity


def one_line(text: str) -> str:
    """Return a text as one line without control characters."""
    return printable(" ".join(text.split()))


def without_orders(text: str) -> str:
    """Return a text without commands for CI services, which read them in logs."""
    return _ORDER_ANYWHERE.sub("## ", _ORDER.sub(r"\1: ", text))


def inert(text: str) -> str:
    """Return a text as one line of Markdown, also for tables: plain words as they are, other text as a code span."""
    text = without_orders(one_line(text))
    if not text or (all(_WORD.fullmatch(word) for word in text.split(" ")) and not _COMMIT.search(text)):
        return text
    text = text.translate(_LOOKALIKES)
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    blank = " " if text[0] == "`" or text[-1] == "`" else ""
    return f"{fence}{blank}{text}{blank}{fence}"


def fenced(lines: Iterable[str]) -> str:
    """Return lines as a block of code whose fence is longer than any within."""
    text = "\n".join(without_orders(printable(line)) for line in lines)
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{fence}text\n{text}\n{fence}"
