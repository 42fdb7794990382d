"""The explicit list of exporters, by the name that ``--format`` takes; and a run by any one metric."""

from typing import TextIO

from harness.errors import UsageError
from harness.records.models import RunRecords
from harness.report import Exporter, csv, html, json, markdown, tables, techempower, terminal
from harness.stats.ranking import rank_by

EXPORTERS: dict[str, Exporter] = {
    "text": terminal,
    "markdown": markdown,
    "csv": csv,
    "json": json,
    "html": html,
    "techempower": techempower,
}


def by_metric(records: RunRecords, metric: str, form: str, out: TextIO) -> None:
    """Write the tables of every load. Raises UsageError for a format that has none of a metric."""
    if form not in ("text", "markdown", "json"):
        raise UsageError("--metric: comes as text, markdown, json")
    ranking = rank_by(records, metric)
    if form == "json":
        out.write(ranking.recorded(indent=1) + "\n")
        return
    for table in tables.by_metric(ranking):
        if form == "markdown":
            out.write(f"{markdown.section(table)}\n\n")
        else:
            terminal.print_table(table, terminal.console(out))
