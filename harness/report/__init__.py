"""Formats the ranking of a run for people and for programs."""

from dataclasses import dataclass

from harness.records.run_records import RunRecords
from harness.stats.ranking_model import Ranking


@dataclass(frozen=True, kw_only=True)
class Report:
    """Input of an exporter: the records of a run, and its ranking."""

    records: RunRecords
    ranking: Ranking
    every_load: bool = False  # whether to export a table for each load, too
