"""Exports a run's ranking as text for people and as data for other programs."""

from dataclasses import dataclass

from harness.records.run_records import RunRecords
from harness.stats.ranking_model import Ranking


@dataclass(frozen=True, kw_only=True)
class Report:
    """The input of an exporter: a run's records and ranking."""

    records: RunRecords
    ranking: Ranking
    every_load: bool = False  # also export a table per load
