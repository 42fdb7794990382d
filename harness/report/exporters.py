"""Registers the exporters under the names that ``--format`` accepts. Plugins can add exporters."""

from collections.abc import Callable
from typing import TextIO

from harness.plain_text import json_text
from harness.plugins import Extensions
from harness.report import Report, markdown, spreadsheet, techempower, terminal


def export_ranking(report: Report, out: TextIO) -> None:
    """Write the ranking as JSON, in the format of ranking.json (``harness.stats.ranking_model``)."""
    out.write(json_text(report.ranking.to_json(indent=1)) + "\n")


EXPORTERS: dict[str, Callable[[Report, TextIO], None]] = {
    "text": terminal.export,
    "markdown": markdown.export,
    "json": export_ranking,
    "techempower": techempower.export,
    "csv": spreadsheet.export,
    **Extensions[Callable[[Report, TextIO], None]]("exporters").load_all(),
}
