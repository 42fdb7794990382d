"""Verifies each trial: compares a sample of the responses with the database, and counts the executed statements.

A server cannot know which responses are checked. In every load, tfb changes rows, counts statements, and records random
responses.
"""

import base64
import json
import random
import time
from collections import Counter
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Self

import psycopg

from harness.errors import LoadError
from harness.plan.testtypes import TestType
from harness.records.loads import Load, OpenLoop
from harness.records.trial_record import TrialEvidence
from harness.records.verification_record import CheckResult, Outcome
from harness.runtime import DatabaseAddress, Server
from harness.units import NS
from harness.verify.changes import ConcurrentChanges, build_history
from harness.verify.checks import expectations, fan_out
from harness.verify.checks.after_load import DatabaseCounters
from harness.verify.checks.evidence import (
    SEEDED_FORTUNES,
    Evidence,
    Exchange,
    ExpectedWork,
    RequestCounts,
    Sampling,
    TableHistory,
    TableVersion,
)
from harness.verify.checks.registry import DRAWINGS, LOADS, draw_requests
from harness.verify.checks.statement_counts import StatementSnapshot
from harness.verify.checks.values import count_age_pairs
from harness.verify.database_tables import DatabaseTables, open_tables
from harness.verify.verification import PLAIN, rows_variant, run_checks, wait_for_statements
from harness.verify.wire import Response

# Maximum number of checked responses per trial. A check takes about 50 µs per response and 3 µs per row.
MAX_RESPONSES = 2_000
MAX_DECLARED_RESPONSES = 400  # limit for services, because comparing a response with a schema may take milliseconds
MAX_ROWS = 6_000
MAX_WRITTEN_ROWS = 8_000  # tfb checks all responses of a load that writes at most this many rows
RECORDED_PER_CHECKED = 4  # maximum ratio of the responses that the generator records to those that tfb checks
MAX_FILE_BYTES, MAX_SERVICE_FILE_BYTES = 16 << 20, 48 << 20
DEFAULT_ROW_RATE = 50_000.0  # assumed rows per second until the server's rate has been measured
# Assumed requests per second of a service. If the service is faster, the generator lowers the sampled share.
DEFAULT_SERVICE_RATE = 2_000.0
CACHE_SECONDS = 10.0  # longest time for which a server may cache a row


def plan_sampling(test_type: TestType, load: Load, seconds: float, rate: float | None) -> tuple[int, Sampling]:
    """Return how many responses to check, and how the generator samples the responses that it records.

    ``rate`` is the expected number of requests per second, or None if it is unknown.
    """
    rows = load.queries or (SEEDED_FORTUNES if test_type.response_shape == "page" else 1)
    default_rate = DEFAULT_SERVICE_RATE if test_type.requests or test_type.draws_requests else DEFAULT_ROW_RATE / rows
    rate = load.rate if isinstance(load, OpenLoop) else rate
    expected = max(1.0, (default_rate if rate is None else rate) * seconds)
    if test_type.writes_database and rate is not None and expected * rows <= MAX_WRITTEN_ROWS:
        checked, share = 2 * MAX_WRITTEN_ROWS / rows, 1.0
    else:
        checked = min(MAX_DECLARED_RESPONSES if test_type.requests else MAX_RESPONSES, MAX_ROWS / rows)
        share = min(1.0, checked / expected)
    max_recorded = round(RECORDED_PER_CHECKED * checked) + 1
    max_bytes = MAX_SERVICE_FILE_BYTES if test_type.requests else MAX_FILE_BYTES
    return round(checked) + 1, Sampling(share=share, max_responses=max_recorded, max_bytes=max_bytes)


@dataclass(kw_only=True)
class ProcessVerification:
    """Data that verification keeps between the trials of a server process."""

    before: DatabaseCounters | None = None  # counters before the server process started
    # Database work that all successful responses so far require.
    expected_work: ExpectedWork = field(default_factory=ExpectedWork)
    # (time, rows) pairs: the server may have cached the rows and may keep them until this time (epoch seconds).
    cached_rows: list[tuple[float, frozenset[tuple[int, int]]]] = field(default_factory=list)
    # Sum of ``count_age_pairs`` over the trials so far.
    age_pairs: Counter[tuple[float, bool]] = field(default_factory=Counter)
    # Until this time (epoch seconds), the server's cache may contain rows unknown to tfb.
    cache_unknown_until: float = 0.0
    _tables: DatabaseTables | None = None
    _stack: ExitStack = field(default_factory=ExitStack)

    def connect(self, database: DatabaseAddress) -> DatabaseTables:
        """Return the database connection, which stays open between trials. Reconnect if PostgreSQL has closed it."""
        with suppress(psycopg.Error):  # an external PostgreSQL server may have closed the idle session
            if self._tables is not None:
                self._tables.compare_clocks()
                return self._tables
        self.close()
        self._tables = self._stack.enter_context(open_tables(database))
        return self._tables

    def close(self) -> None:
        """Close the connection to the database."""
        with suppress(psycopg.Error):
            self._stack.close()

    def remember_rows(self, history: TableHistory) -> None:
        """Remember the rows of all versions, because the server may have cached any of them."""
        versions = (version for table in history.values() for version in table)
        rows = frozenset(row for version in versions for row in version.rows.items())
        self.cached_rows.append((time.time() + CACHE_SECONDS, rows))

    def recent_rows(self) -> frozenset[tuple[int, int]]:
        """Return the (id, number) pairs that the server's cache may still contain, even if the tables have changed."""
        self.cached_rows = [(until, rows) for until, rows in self.cached_rows if until > time.time()]
        return frozenset().union(*(rows for _, rows in self.cached_rows))


@dataclass(frozen=True, kw_only=True)
class TrialContext:
    """A load that is about to start, and the server that will receive it."""

    server: Server
    test_type: TestType
    load: Load
    database: DatabaseAddress
    seconds: float
    rate: float | None  # expected requests per second; None if unknown
    seed: int


class TrialVerification:
    """A context manager that observes the database during a load. After the load, ``judge`` runs the checks."""

    def __init__(self, *, context: TrialContext, process: ProcessVerification) -> None:
        self.context = context
        self._process = process
        self._test_type, self._load = context.test_type, context.load
        implementation = context.server.implementation
        # Some servers fill their cache only once, so tfb must restore the rows after a load in which it changes them.
        self._has_cache = any(other.cached for other in implementation.test_types.values())
        self._extension = LOADS.get(self._test_type.checked_as)
        self._extension_state: object = None
        self._drawing = DRAWINGS.get(self._test_type.name)
        self.requests = draw_requests(context.server, self._test_type, context.seed)
        self._upstream = context.server.upstream if self._test_type.calls_upstream else None
        self._target = self._test_type.request_target(implementation.urls[self._test_type.name], self._load)
        self._max_checked, self.sampling = plan_sampling(self._test_type, self._load, context.seconds, context.rate)
        self._stack = ExitStack()
        self._changes: ConcurrentChanges | None = None
        self._tables: DatabaseTables | None = None
        self._statements_before: StatementSnapshot | None = None
        self._clock_offsets = (0.0, 0.0)  # results of ``_clock_offset`` before and after the load

    def __enter__(self) -> Self:
        if self._extension:
            self._extension_state = self._stack.enter_context(self._extension.observe_load(self.context.database))
        elif self._test_type.reads_database:
            self._observe_database()
        if self._drawing:
            observation = self._drawing.observe(self.context.server, self.context.seed)
            self._extension_state = self._stack.enter_context(observation)
        if self._upstream:
            fan_out.wait_until_idle(self._upstream)
            self._upstream.reset()
        self._clock_offsets = (_clock_offset(), 0.0)
        return self

    def _observe_database(self) -> None:
        self._tables = tables = self._process.connect(self.context.database)
        if self._test_type.writes_database:
            tables.wait_until_idle()
        if not self._test_type.counts_statements:
            return
        self._statements_before = tables.snapshot_statements()
        if tables.admin or self._test_type.writes_database:
            changes = ConcurrentChanges(
                self._test_type,
                tables,
                seconds=self.context.seconds,
                seed=self.context.seed,
                put_back=self._has_cache,
            )
            self._changes = self._stack.enter_context(changes)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._clock_offsets = (self._clock_offsets[0], _clock_offset())
        self._stack.__exit__(kind, error, traceback)

    def judge(
        self, *, good: int, failed: int, counts: RequestCounts | None, responses_file: Path | None
    ) -> TrialEvidence:
        """Run the checks on the load. The result lists the checks that did not pass.

        ``good`` is the number of responses with a 2xx status, and ``failed`` is the number of other responses. Both
        include responses after the end of the load. If ``counts`` or the recorded responses are missing, only database
        counts are checked. Raises LoadError if the recorded responses have an unknown format, and psycopg.Error if the
        connection to the database was lost.
        """
        results: tuple[CheckResult, ...] = ()
        checked = 0
        if self._extension and responses_file:
            evidence, checked = self._extension.gather_evidence(
                responses_file, self.context.database, self._extension_state
            )
            results = run_checks(evidence)
        elif counts and self._test_type.protocol == "websocket":  # the generator itself has compared every echo
            evidence = Evidence(
                test_type=self._test_type.name,
                rules=self.context.server.implementation.rules,
                thorough=False,
                under_load=True,
                request_counts=counts,
            )
            results, checked = run_checks(evidence), counts.received
        elif counts and responses_file:
            evidence = self._evidence(counts, responses_file)
            results, checked = run_checks(evidence), len(evidence.concurrent)
        queries = self._load.queries or 1
        expected = ExpectedWork.for_responses(self._test_type, queries, good)
        self._process.expected_work += expected
        if self._statements_before and self._tables:
            results += run_checks(wait_for_statements(self._tables, self._statements_before, expected, queries))
        return TrialEvidence(
            judged=checked,
            received=counts.received if counts else good + failed,
            objections=tuple(result for result in results if result.outcome is not Outcome.PASS),
        )

    def _evidence(self, counts: RequestCounts, responses_file: Path) -> Evidence:
        """Return the evidence for a random sample of the recorded responses."""
        with responses_file.open(encoding="utf-8") as file:
            lines = list(enumerate(file, 1))
        dice = random.Random(f"judged {self.context.seed}")
        sample = sorted(dice.sample(lines, min(len(lines), self._max_checked)))
        evidence = Evidence(
            test_type=self._test_type.checked_as,
            rules=self.context.server.implementation.rules,
            thorough=False,
            under_load=True,
            request_counts=counts,
            concurrent=[self._parse_response(line, f"{responses_file.name} line {number}") for number, line in sample],
            complete=counts.all_recorded and len(sample) == len(lines) and counts.sent == counts.received,
            extension=self._extension_state,
        )
        if self._upstream:
            fan_out.wait_until_idle(self._upstream)
            evidence.upstream = self._upstream.stats()
        elif self._tables and self._test_type.response_shape == "page":
            changes = self._changes
            evidence.fortunes = changes.fortunes if changes else [TableVersion(rows=self._tables.read_fortunes())]
        elif self._changes and self._test_type.writes_database:
            self._add_written_rows(evidence, counts, self._changes)
        elif self._tables and (time.time() > self._process.cache_unknown_until or not self._test_type.cached):
            self._add_read_rows(evidence, self._tables)
        return evidence

    def _add_written_rows(self, evidence: Evidence, counts: RequestCounts, changes: ConcurrentChanges) -> None:
        evidence.snapshots = changes.snapshots
        if evidence.concurrent and not evidence.complete:
            evidence.rows_per_response = counts.received * (self._load.queries or 1) / len(evidence.concurrent)
            evidence.age_pairs = self._process.age_pairs = self._process.age_pairs + count_age_pairs(evidence)
        if self._has_cache:
            tables = (table for snapshot in evidence.snapshots for table in snapshot.world.values())
            rows = {row for table in tables for row in table.items()}
            until = time.time() + CACHE_SECONDS
            self._process.cached_rows.append((until, frozenset(rows.union(*(e.rows for e in evidence.concurrent)))))
            if not evidence.complete:
                self._process.cache_unknown_until = until

    def _add_read_rows(self, evidence: Evidence, tables: DatabaseTables) -> None:
        if not self._changes:
            evidence.history = build_history(tables.read_world())
            evidence.cached_rows = self._process.recent_rows()
            return
        evidence.history = self._changes.history
        if self._has_cache:
            self._process.remember_rows(evidence.history)

    def _parse_response(self, line: str, location: str) -> Exchange:
        """Parse a line of the file in which the generator records responses."""
        # The two offsets differ if the system clock was set during the load. Use the wider interval.
        min_offset, max_offset = sorted(self._clock_offsets)
        try:
            entry = json.loads(line)
            headers = tuple((str(name), str(value)) for name, value in entry["headers"])
            body = base64.b64decode(entry["body_base64"], validate=True)
            status, size = int(entry["status"]), int(entry["size_bytes"])
            case = PLAIN if self._load.queries is None else rows_variant(self._load.queries)
            request = self.requests[int(entry["request"])] if self.requests else None
            if request and self._drawing:
                case = replace(PLAIN, drawn=request)
            elif request:
                case = expectations.declared_variant(request)
            return Exchange(
                case=case,
                target=request.target if request else self._target,
                sent_at=min_offset + int(entry["sent_ns"]) * NS,
                received_at=max_offset + int(entry["received_ns"]) * NS,
                connection=int(entry["connection"]),
                response=Response(status, "", headers, body, size, "unknown"),
            )
        except (ValueError, LookupError, TypeError) as error:
            raise LoadError(
                f"{location}: the load generator wrote an invalid response record: {error}. Rebuild the load generator"
            ) from error


def _clock_offset() -> float:
    """Return the number of seconds to add to the generator's monotonic clock to obtain epoch seconds."""
    # A delay between the two readings reduces the offset, so the largest of several offsets is the most accurate.
    return max(time.time() - time.monotonic() for _ in range(5))
