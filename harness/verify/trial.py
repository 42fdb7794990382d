"""Every trial audits itself: a share of its answers, the rows behind them and the statements that were made for them.

The server sees one kind of load: in each, rows change behind it, statements are counted, and answers are written out
that a seed has drawn. No time, connection, place or number of requests tells it which are looked at.
"""

import base64
import json
import random
import time
from collections import Counter
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import psycopg

from harness.errors import LoadError
from harness.plan.testtypes import TestType
from harness.records.loads import Load, OpenLoop
from harness.records.outcome import Outcome
from harness.records.trial_record import TrialEvidence
from harness.records.verification_record import CheckResult
from harness.runtime import DatabaseAddress, Server
from harness.verify.changes import ConcurrentChanges, history_of
from harness.verify.checks import expectations, fan_out
from harness.verify.checks.after_load import DatabaseCounters
from harness.verify.checks.evidence import Due, Evidence, Exchange, History, RequestAccount, Sampling, Version
from harness.verify.checks.registry import LOADS
from harness.verify.checks.statement_counts import Snapshot
from harness.verify.checks.values import pairs
from harness.verify.database_tables import DatabaseTables, tables
from harness.verify.verification import PLAIN, counted, judge, rows
from harness.verify.wire import Response

NS = 1e-9
# What is judged of one trial at most, chosen by what it costs: some 50 µs an answer and 3 µs a row.
MOST_ANSWERS = 2_000
MOST_DECLARED = 400  # of a service: a schema costs up to some ms an answer
MOST_ROWS = 6_000
MOST_WRITTEN = 8_000  # rows of update: all of its answers together say more than a share of them
SPARE = 4  # times as many are written out before the generator stops: a server may be quicker than it was
MOST_BYTES = 16 << 20  # of the file
PAGE_ROWS = 12
UNKNOWN_RATE = 50_000.0  # rows a second, of a server of which nothing is known yet
SERVICE_RATE = 2_000.0  # requests a second, of a service; of a quicker one the generator lowers the share
CACHED_SECONDS = 10.0  # that a row may be kept for by cached-query


def sampling(test_type: TestType, load: Load, seconds: float, rate: float | None) -> tuple[int, Sampling]:
    """How many answers are judged, and how they are sampled from the whole load; ``rate`` in requests/s."""
    rows = load.queries or (PAGE_ROWS if test_type.response_shape == "page" else 1)
    unknown = SERVICE_RATE if test_type.requests else UNKNOWN_RATE / rows
    rate = load.rate if isinstance(load, OpenLoop) else rate
    expected = max(1.0, (unknown if rate is None else rate) * seconds)
    if test_type.writes_database and rate is not None and expected * rows <= MOST_WRITTEN:
        wanted, share = 2 * MOST_WRITTEN / rows, 1.0
    else:
        wanted = min(MOST_DECLARED if test_type.requests else MOST_ANSWERS, MOST_ROWS / rows)
        share = min(1.0, wanted / expected)
    return round(wanted) + 1, Sampling(share=share, answers=round(SPARE * wanted) + 1, bytes=MOST_BYTES)


@dataclass(kw_only=True)
class ProcessAudit:
    """What the trials of one process have done to its database so far."""

    before: DatabaseCounters | None = None  # when it had not started yet
    due: Due = field(default_factory=Due)  # for all good answers
    rows: list[tuple[float, frozenset[tuple[int, int]]]] = field(default_factory=list)  # until when, and what was there
    pairs: Counter[tuple[float, bool]] = field(default_factory=Counter)  # of rows that were updated: values.pairs
    unknown_until: float = 0.0  # epoch seconds until which a cache may hold rows that nobody here has seen
    _view: DatabaseTables | None = None
    _open: ExitStack = field(default_factory=ExitStack)

    def view(self, database: DatabaseAddress) -> DatabaseTables:
        """The harness's own view of its database, kept: trials come every few seconds."""
        with suppress(psycopg.Error):  # somebody else's PostgreSQL may end a session that idles
            if self._view is not None:
                self._view.compare_clocks()
                return self._view
        self.close()
        self._view = self._open.enter_context(tables(database))
        return self._view

    def close(self) -> None:
        """Leave the database."""
        with suppress(psycopg.Error):
            self._open.close()

    def note(self, history: History) -> None:
        """What a cache may have been filled with while rows were changed."""
        versions = (version for of_table in history.values() for version in of_table)
        seen = frozenset(row for version in versions for row in version.rows.items())
        self.rows.append((time.time() + CACHED_SECONDS, seen))

    def recent(self) -> frozenset[tuple[int, int]]:
        """Rows (id, number) that a cache may still hold although the tables do not."""
        self.rows = [(until, rows) for until, rows in self.rows if until > time.time()]
        return frozenset().union(*(rows for _, rows in self.rows))


@dataclass(kw_only=True)
class TrialAudit:
    """Context manager around one load: what the database holds and counts before and after it, then the judgement.

    Entered before the generator starts, left when it has ended. ``rate``: requests/s that are expected, None where
    nothing is known yet.
    """

    server: Server
    test_type: TestType
    load: Load
    database: DatabaseAddress
    process: ProcessAudit
    seconds: float
    rate: float | None
    seed: int
    _open: ExitStack = field(default_factory=ExitStack)
    _watched: object = None  # what a test type whose loads are judged by a module of its own sees of one
    _changes: ConcurrentChanges | None = None
    _view: DatabaseTables | None = None
    _counted: Snapshot | None = None  # when it begins
    _offsets: tuple[float, float] = (0.0, 0.0)  # of the clocks, around the load

    def __post_init__(self) -> None:
        # Whether the server keeps rows that it may not refresh: they are right again once the load is over.
        self._caches = any(kind.cached for kind in self.server.implementation.test_types.values())
        self._own = LOADS.get(self.test_type.checked_as)
        self._upstream = self.server.upstream if self.test_type.calls_upstream else None
        self._target = self.test_type.request_target(self.server.implementation.urls[self.test_type.name], self.load)
        self._most, self.sampling = sampling(self.test_type, self.load, self.seconds, self.rate)

    def __enter__(self) -> Self:
        if self._own:
            self._watched = self._open.enter_context(self._own.watched(self.database))
        elif self.test_type.reads_database:
            self._view = view = self.process.view(self.database)
            if self.test_type.writes_database:
                view.settle()
            self._counted = view.statements() if self.test_type.counts_statements else None
            if self.test_type.counts_statements and (view.admin or self.test_type.writes_database):
                changes = ConcurrentChanges(
                    self.test_type, view, seconds=self.seconds, seed=self.seed, put_back=self._caches
                )
                self._changes = self._open.enter_context(changes)
        if self._upstream:
            fan_out.at_rest(self._upstream)
            self._upstream.reset()
        self._offsets = (_offset(), 0.0)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._offsets = (self._offsets[0], _offset())
        self._open.__exit__(kind, error, traceback)

    def judge(self, *, good: int, failed: int, account: RequestAccount | None, answers: Path | None) -> TrialEvidence:
        """What the checks object to, once the load is over.

        ``good`` and ``failed`` are answers of 2xx and of other statuses, those after the load's end included. Without
        an account and a file of answers, of a generator that writes none, only the database's counts are judged.
        Raises LoadError for a file that is not as documented, and the psycopg.Error of a lost database.
        """
        results: tuple[CheckResult, ...] = ()
        looked_at = 0
        if self._own and answers:
            evidence, looked_at = self._own.seen(answers, self.database, self._watched)
            results = judge(evidence)
        elif account and answers:
            evidence = self._evidence(account, answers)
            results, looked_at = judge(evidence), len(evidence.crowd)
        due = Due.of(self.test_type, self.load.queries or 1, good)
        self.process.due += due
        if self._counted and self._view:  # whether the database did what was answered: each request has its answer now
            results += judge(counted(self._view, self._counted, due, self.load.queries or 1))
        return TrialEvidence(
            judged=looked_at,
            received=account.received if account else good + failed,
            objections=tuple(result for result in results if result.outcome is not Outcome.PASS),
        )

    def _evidence(self, account: RequestAccount, answers: Path) -> Evidence:
        """For the checks of answers."""
        with answers.open(encoding="utf-8") as file:
            lines = list(enumerate(file, 1))
        chosen = sorted(random.Random(f"judged {self.seed}").sample(lines, min(len(lines), self._most)))
        evidence = Evidence(
            test_type=self.test_type.checked_as,
            rules=self.server.implementation.rules,
            thorough=False,
            under_load=True,
            account=account,
            crowd=[self._exchange(line, f"{answers.name} line {number}") for number, line in chosen],
            whole=account.whole and len(chosen) == len(lines) and account.sent == account.received,
        )
        if self._upstream:
            fan_out.at_rest(self._upstream)
            evidence.upstream = self._upstream.stats()
        elif self._view and self.test_type.response_shape == "page":
            evidence.fortunes = self._changes.fortunes if self._changes else [Version(rows=self._view.fortunes())]
        elif self._changes and self.test_type.writes_database:
            self._written(evidence, account, self._changes)
        elif self._view and (time.time() > self.process.unknown_until or not self.test_type.cached):
            self._read(evidence, self._view)
        return evidence

    def _written(self, evidence: Evidence, account: RequestAccount, changes: ConcurrentChanges) -> None:
        evidence.looks = changes.looks
        if evidence.crowd and not evidence.whole:
            evidence.rows_each = account.received * (self.load.queries or 1) / len(evidence.crowd)
            evidence.pairs = self.process.pairs = self.process.pairs + pairs(evidence)
        if self._caches:
            seen = {row for look in evidence.looks for table in look.world.values() for row in table.items()}
            until = time.time() + CACHED_SECONDS
            self.process.rows.append((until, frozenset(seen.union(*(e.rows for e in evidence.crowd)))))
            self.process.unknown_until = self.process.unknown_until if evidence.whole else until

    def _read(self, evidence: Evidence, view: DatabaseTables) -> None:
        if not self._changes:
            evidence.history, evidence.cached = history_of(view.world()), self.process.recent()
            return
        evidence.history = self._changes.history
        if self._caches:
            self.process.note(evidence.history)

    def _exchange(self, line: str, place: str) -> Exchange:
        """An answer as the generator writes it."""
        # A clock that was set in between makes times of day uncertain by as much: no server pays for that.
        least, most = sorted(self._offsets)
        try:
            entry = json.loads(line)
            headers = tuple((str(name), str(value)) for name, value in entry["headers"])
            body = base64.b64decode(entry["body_base64"], validate=True)
            status, size = int(entry["status"]), int(entry["size_bytes"])
            asked = self.test_type.requests[int(entry["request"])] if self.test_type.requests else None
            plain = PLAIN if self.load.queries is None else rows(self.load.queries)
            return Exchange(
                case=expectations.case(asked) if asked else plain,
                target=asked.target if asked else self._target,
                sent_at=least + int(entry["sent_ns"]) * NS,
                received_at=most + int(entry["received_ns"]) * NS,
                connection=int(entry["connection"]),
                response=Response(status, "", headers, body, size, "content-length"),
            )
        except (ValueError, LookupError, TypeError) as error:
            raise LoadError(f"{place}: not an answer as the generator writes it: {error}") from error


def _offset() -> float:
    """From the clock of the generator, which counts from the machine's start, to the time of day."""
    # The narrowest of some looks: between the two clocks this process may have to wait.
    return max(time.time() - time.monotonic() for _ in range(5))
