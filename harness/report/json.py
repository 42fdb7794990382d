"""The ranking itself as JSON: the model of ``harness.stats.model``, as ranking.json holds it."""

from typing import TextIO

from harness.report import Report


def export(report: Report, out: TextIO) -> None:
    """One JSON document."""
    out.write(report.ranking.recorded(indent=1) + "\n")
