"""Formats a run's ranking for people and for other programs."""

from dataclasses import dataclass

from harness.records.run_records import RunRecords
from harness.stats.ranking_model import Ranking


@dataclass(frozen=True, kw_only=True)
class Report:
    """Input of an exporter: the records and the ranking of a run."""

    records: RunRecords
    ranking: Ranking
    every_load: bool = False  # also export one table per load
