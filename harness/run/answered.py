"""Rows that a process was asked for under load, to be held against what its database did."""

from dataclasses import dataclass, field

from harness.measure.testbed import Audited
from harness.request.testtypes import TestType
from harness.request.testtypes.registry import TEST_TYPES
from harness.results.records import Level, Sample, Verdict
from harness.verify.checks.load import DatabaseCounters, rows_due


@dataclass
class Answered:
    """Rows that the generator and verification were answered, to be held against what the database did."""

    before: DatabaseCounters
    reads: int = 0
    writes: int = 0
    fortunes: int = 0  # pages
    failed: int = 0  # responses to update with another status than 2xx
    verdicts: list[Verdict] = field(default_factory=list)  # of the test types that the counters speak of

    def add(self, sample: Sample, warmed: Level) -> None:
        """Count a sample, and the warm-up before it at the level that it used."""
        kind = TEST_TYPES[sample.test_type]
        good = sample.requests - sample.errors.status
        if kind.answer == "page":
            self.fortunes += good + (sample.warm_up.requests if sample.warm_up else 0)
        if not (kind.has_rows and kind.counts_statements):
            return
        rows = good * (sample.level.queries or 1)
        if sample.warm_up:
            rows += sample.warm_up.requests * (warmed.queries or 1)
        self.reads += rows
        if kind.writes_database:
            self.writes += rows
            self.failed += sample.errors.status

    def add_verification(self, kind: TestType, before: DatabaseCounters, after: DatabaseCounters) -> None:
        """Count what a verification made the database do: it is no row of the load."""
        reads, writes, pages = rows_due(after.since(before))
        if kind.answer == "page":
            self.fortunes += pages
        elif kind.counts_statements:
            self.reads += reads
            self.writes += writes if kind.writes_database else 0

    def add_audit(self, name: str, level: Level, audited: Audited) -> None:
        """Count an audited sample."""
        kind = TEST_TYPES[name]
        if kind.answer == "page":
            self.fortunes += audited.successes
        if kind.has_rows and kind.counts_statements:
            self.reads += audited.successes * (level.queries or 1)
        if kind.writes_database:
            self.writes += audited.successes * (level.queries or 1)
            self.failed += audited.failed
