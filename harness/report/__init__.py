"""Writes a run down for people and programs: one exporter a file, behind one Protocol and one registry."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TextIO

from harness.records.models import RunRecords
from harness.stats.model import Ranking


@dataclass(frozen=True, kw_only=True)
class Report:
    """What an exporter writes down: a run as it was read, and its ranking."""

    folder: Path
    records: RunRecords
    ranking: Ranking
    every_load: bool = False  # each load's table beside the headline, where the format has a choice


class Exporter(Protocol):
    """One format; a module with this function is one."""

    def export(self, report: Report, out: TextIO) -> None:
        """Write the run to ``out``, UTF-8 text."""
