"""A run ranked by any one metric: as text, Markdown and JSON."""

from typing import TextIO

from harness.errors import UsageError
from harness.records.models import RunRecords
from harness.report import markdown, tables, terminal
from harness.stats.by_metric import rank_by

FORMATS = ("text", "markdown", "json")


def export(records: RunRecords, metric: str, form: str, out: TextIO) -> None:
    """Write the tables of every load. Raises UsageError for a format that has none of a metric."""
    if form not in FORMATS:
        raise UsageError(f"--metric: comes as {', '.join(FORMATS)}")
    ranking = rank_by(records, metric)
    if form == "json":
        out.write(ranking.recorded(indent=1) + "\n")
        return
    shown = terminal.console(out)
    for table in tables.by_metric(ranking):
        if form == "markdown":
            out.write(f"{markdown.section(table)}\n\n")
        else:
            terminal.print_table(table, shown)
