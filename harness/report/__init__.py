"""Writes a run down for people and programs."""

from dataclasses import dataclass

from harness.records.run_records import RunRecords
from harness.stats.ranking_model import Ranking


@dataclass(frozen=True, kw_only=True)
class Report:
    """What an exporter writes down: a run as it was read, and its ranking."""

    records: RunRecords
    ranking: Ranking
    every_load: bool = False  # each load's table beside the headline, where the format has a choice
