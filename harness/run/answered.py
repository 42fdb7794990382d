"""Rows that a process was asked for under load, to be held against what its database did.

Statements are counted exactly, at any moment. So the database's work is told apart by when it came: what came while no
load was on, for whatever verification and watch asked then, is taken off as it was counted, however much that was; what
came during a load has to cover what the generator and the watch beside it were answered.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from harness.plan.testtypes import TestType
from harness.records.models import Level, Verdict
from harness.verify.checks.evidence import Exchange
from harness.verify.checks.load import DatabaseCounters, rows_due
from harness.verify.checks.statement_counts import Snapshot


@dataclass(frozen=True, kw_only=True)
class Due:
    """What the database has to have done, at least."""

    reads: int = 0  # rows of world
    writes: int = 0
    fortunes: int = 0  # pages

    def __add__(self, other: "Due") -> "Due":
        return Due(
            reads=self.reads + other.reads,
            writes=self.writes + other.writes,
            fortunes=self.fortunes + other.fortunes,
        )

    @classmethod
    def of(cls, kind: TestType, level: Level, answers: int) -> "Due":
        """For so many good answers of a test type at a level."""
        if not kind.counts_statements:
            return cls()
        if kind.answer == "page":
            return cls(fortunes=answers)
        rows = answers * (level.queries or 1) if kind.has_rows else 0
        return cls(reads=rows, writes=rows if kind.writes_database else 0)


@dataclass(kw_only=True)
class Answered:
    """The ledger of one process (``measure.testbed.Ledger``)."""

    before: DatabaseCounters  # when it started
    look: Callable[[], Snapshot | None] = lambda: None  # at the statements counted so far
    now: Callable[[], float] = time.time  # epoch seconds
    owed: Due = Due()
    failed: int = 0  # responses to update with another status than 2xx
    verdicts: list[Verdict] = field(default_factory=list)  # of the test types that the counters speak of
    _idle_since: Snapshot | None = field(default=None, init=False)  # None while a load is on
    _load: Snapshot | None = field(default=None, init=False)  # when the last one began
    _times: tuple[float, float] = field(default=(0.0, 0.0), init=False)  # of its beginning and end
    _watched: Sequence[Exchange] = field(default=(), init=False)  # beside it

    def __post_init__(self) -> None:
        self._idle_since = self.before.statements

    def load_begins(self, kind: TestType) -> None:
        """What came since the last load is none of this one's."""
        if not self._counts(kind):
            return
        self._load = self.look()
        self.owed += self._outside(self._load)
        self._idle_since = None
        self._times = (self.now(), 0.0)
        self._watched = ()

    def load_ends(self, kind: TestType) -> None:
        """What comes from now on is not the load's, but for what was under way."""
        if self._counts(kind):
            self._times = (self._times[0], self.now())
            self._idle_since = self.look()

    def load_answered(self, kind: TestType, level: Level, good: int, failed: int) -> None:
        """Responses of a load: 2xx, and others."""
        self.owed += Due.of(kind, level, good)
        if kind.writes_database:
            self.failed += failed

    def watched(self, kind: TestType, level: Level, exchanges: Sequence[Exchange]) -> None:
        """Rows that the watch was answered within the load; others are taken off as counted."""
        begun, ended = self._times
        self._watched = tuple(e for e in exchanges if e.ok and e.sent_at >= begun)
        self.owed += Due.of(kind, level, sum(e.received_at <= ended for e in self._watched))

    def audit_alone(
        self, kind: TestType, level: Level, good: int
    ) -> tuple[DatabaseCounters, DatabaseCounters, Due] | None:
        """The counters around the audit just made, and what is due for its good answers; None: not counted.

        Each of its requests has its answer by now, so that nothing is under way.
        """
        after = self.look() if self._counts(kind) and self._load else None
        if self._load is None or after is None:
            return None
        due = Due.of(kind, level, good + len(self._watched))
        late = after.open_portals  # each may hold back one statement of its transaction
        due = Due(
            reads=max(0, due.reads - late), writes=max(0, due.writes - late), fortunes=max(0, due.fortunes - late)
        )
        counters = (
            DatabaseCounters(fetched=None, updated=None, deadlocks=None, statements=each)
            for each in (self._load, after)
        )
        return next(counters), next(counters), due

    def due(self, after: DatabaseCounters) -> Due:
        """All that was answered under load, and what came outside of it, once the server has stopped."""
        return self.owed + self._outside(after.statements) if self._load else self.owed

    def _counts(self, kind: TestType) -> bool:
        return self.before.statements is not None and kind.counts_statements

    def _outside(self, now: Snapshot | None) -> Due:
        if now is None or self._idle_since is None:
            return Due()
        reads, writes, pages = rows_due(now.since(self._idle_since), late=self._idle_since.open_portals)
        return Due(reads=reads, writes=writes, fortunes=pages)
