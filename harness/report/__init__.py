"""Writes a run down for people and programs: one exporter a file, behind one Protocol and one registry."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TextIO

from harness.errors import StoreError
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


def put(target: Path, text: str) -> None:
    """Write a file by rename, so that nobody sees half of it. Raises StoreError."""
    part = target.with_name(f".{target.name}.part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(target)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise StoreError(f"{target}: cannot be written: {error.strerror}") from error
