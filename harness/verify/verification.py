"""Gathers evidence about one test type of a running server, and runs all registered checks on the evidence."""

import random
import time
from contextlib import ExitStack, nullcontext
from dataclasses import replace

from harness.records.verification_record import CheckResult, Outcome, worst_outcome
from harness.runtime import DatabaseAddress
from harness.verify.changes import build_history
from harness.verify.checks import LOAD
from harness.verify.checks.evidence import (
    Evidence,
    ExpectedWork,
    QueryVariant,
    TableSnapshot,
    TableVersion,
    append_version,
    clamp_parameter,
    parameter_variants,
)
from harness.verify.checks.registry import CHECKS, GATHERERS
from harness.verify.checks.statement_counts import HIGHEST_ID, StatementSnapshot, take_snapshot
from harness.verify.checks.verification_client import (
    CONCURRENT_CONNECTIONS,
    MAX_FAILURES,
    ReconnectingConnection,
    VerificationTask,
    always_fails,
)
from harness.verify.database_tables import DatabaseTables, open_tables

FRESH_CONNECTIONS = 24  # new connections, each with two requests; enough to reach a single defective worker process
CHANGED_ROWS = HIGHEST_ID // 2  # number of rows that tfb changes after the server's first requests
REQUESTS_BEFORE_CHANGE, REQUESTS_AFTER_CHANGE = 3, 30  # requests per connection
PAGE_COUNTS = 40  # number of update requests for which tfb counts the pages that the SELECTs touch
# These requests ask for a random number of rows in this range, because a server could recognise a fixed number.
ROWS_PER_PAGE_COUNT = (6, 12)
SNAPSHOTS_OF_UPDATES = 10  # tfb takes a snapshot of the tables after each of this many update requests
# PostgreSQL may count a statement only after the server has responded. tfb polls the counts with this time limit and
# interval.
MAX_COUNT_DELAY_SECONDS, COUNT_POLL_SECONDS = 0.3, 0.02

# Requests with valid and invalid numbers of rows. ``count`` is the number of rows that a correct server returns.
COUNT_VARIANTS = (
    *(
        replace(case, count=clamp_parameter(f"={case.suffix}", 1, 500) or 1)
        for case in parameter_variants(1, 2, 500, 501)
    ),
    QueryVariant(name="digits and letters", suffix="5abc", count=1),
    QueryVariant(name="a plus sign", suffix="%2B5", count=1, alternative_count=5),
)
PLAIN = QueryVariant(name="plain")

# Mean number of decimal digits in a uniformly drawn value from 1 to 10000.
MEAN_DIGITS = sum(len(str(value)) for value in range(1, HIGHEST_ID + 1)) / HIGHEST_ID
# Tolerance for the mean number of digits. The standard error is 0.35 / sqrt(number of values), and the shortest loads
# contain only a few dozen requests. Also, the mean of the initial table differs from MEAN_DIGITS by up to 0.01.
DIGITS_MARGIN = 0.25
FRAMING_MARGIN = 1.0  # bytes; Content-Length or a chunk's size may be one digit longer or shorter


def rows_variant(count: int) -> QueryVariant:
    """Return the variant that requests ``count`` rows."""
    return QueryVariant(name=f"{count} rows", suffix=f"{count}", count=count)


def run_checks(evidence: Evidence) -> tuple[CheckResult, ...]:
    """Run all applicable checks in the registry's order. Omit passes that rest on too little evidence."""
    results = ((check, check.run(evidence)) for check in CHECKS.values() if check.applies_to(evidence))
    return tuple(
        result for check, result in results if result.outcome is not Outcome.PASS or check.has_evidence(evidence)
    )


def wait_for_statements(
    tables: DatabaseTables, before: StatementSnapshot, expected: ExpectedWork, rows: int
) -> Evidence:
    """Wait until the statements since ``before`` pass the checks, or until a time limit.

    Return evidence with these statements.
    """
    deadline = time.monotonic() + MAX_COUNT_DELAY_SECONDS
    while True:
        snapshot = take_snapshot(tables.connection)
        # Statements in open transactions are not counted yet. Ignore transactions that were already
        # open in the snapshot ``before``.
        pending = ExpectedWork.in_open_transactions(snapshot.open_statements, rows)
        pending -= ExpectedWork.in_open_transactions(before.open_statements, rows)
        evidence = Evidence(
            test_type=LOAD,
            expected_work=expected - pending,
            statements=snapshot.since(before),
            all_statements=[text for _, text in snapshot.counted],
        )
        passes = worst_outcome(result.outcome for result in run_checks(evidence)) is Outcome.PASS
        if passes or time.monotonic() > deadline:
            return evidence
        time.sleep(COUNT_POLL_SECONDS)


class EvidenceGatherer:
    """A client that gathers the evidence for a test type. The constructor sends the requests."""

    def __init__(self, task: VerificationTask) -> None:
        self._test_type = task.test_type
        self._thorough = task.thorough
        self._client = task.load_client()
        self._ordinary = rows_variant(20) if self._test_type.counts_rows else PLAIN
        rules, database = task.server.implementation.rules, task.database
        self.evidence = Evidence(test_type=self._test_type.checked_as, thorough=task.thorough, rules=rules)
        if gather := GATHERERS.get(self._test_type.checked_as):
            gather(task, self.evidence)
            return
        with open_tables(database) if database else nullcontext() as tables:
            if self._test_type.writes_database:
                self._gather_updates(tables, database)
            elif self._test_type.response_shape == "page":
                self._gather_fortunes(tables)
            else:
                self._gather_reads(tables)

    def response_size(self, queries: int | None) -> tuple[float, float] | None:
        """Return bounds on the mean response size (bytes on the wire) of loads that request ``queries`` rows.

        If no earlier request asked for this number of rows, send two such requests. A row's size depends on the number
        of digits in the values. The bounds are therefore the measured size without digits, plus the expected number of
        digits, with a margin for chance. There is no margin for responses without rows.

        Returns:
            The bounds, or None if the server does not respond or if its response sizes are not predictable.
        """
        if self._test_type.requests or self._test_type.draws_requests:
            return None  # response sizes are not predictable
        case = PLAIN if queries is None else rows_variant(queries)
        # Exclude variants with responses of a different size, for example a page with an additional fortune.
        good = [
            e for e in self.evidence.ok_exchanges if e.case == case or (case.suffix and e.case.suffix == case.suffix)
        ]
        if not good and any(exchange.response for exchange in self.evidence.all_exchanges):
            good = [exchange for exchange in self._client.send_in_order([case] * 2) if exchange.ok]
        if not good:
            return None
        fixed = [e.response.size - sum(len(f"{i}{number}") for i, number in e.rows) for e in good if e.response]
        values = 2 * len(good[-1].rows)
        middle, margin = values * MEAN_DIGITS, values * DIGITS_MARGIN + FRAMING_MARGIN if values else 0.0
        return min(fixed) + middle - margin, max(fixed) + middle + margin

    # ---- test types --------------------------------------------------------------------------------------------------

    def _gather_reads(self, tables: DatabaseTables | None) -> None:
        evidence = self.evidence
        evidence.exchanges = self._client.send_in_order(self._single_requests())
        self._gather_concurrent(tables)
        if self._thorough and self._responds():
            evidence.exchanges += self._client.send_concurrently(
                [self._ordinary] * FRESH_CONNECTIONS * 2, FRESH_CONNECTIONS
            )
        if tables is None:
            return
        if tables.admin and self._thorough and self._test_type.counts_statements and self._responds():
            self._gather_after_change(tables)
        else:
            evidence.history = build_history(tables.read_world())

    def _gather_after_change(self, tables: DatabaseTables) -> None:
        """Change rows after the first requests on each connection, so that rows in a cache become stale."""
        first = tables.read_world()
        with ExitStack() as stack:
            connections = [
                stack.enter_context(ReconnectingConnection(self._client, number))
                for number in range(CONCURRENT_CONNECTIONS)
            ]

            def send_on_all(times: int) -> None:
                for connection in connections * times:
                    if self._responds():
                        self.evidence.exchanges.append(connection.send(self._ordinary))

            send_on_all(REQUESTS_BEFORE_CHANGE)
            change = tables.change_rows(CHANGED_ROWS, random.Random())
            send_on_all(REQUESTS_AFTER_CHANGE)
        self.evidence.history = build_history(first, [change])
        tables.restore_world(first)  # a server that fills a cache only once keeps returning the old rows
        tables.vacuum()

    def _gather_updates(self, tables: DatabaseTables | None, database: DatabaseAddress | None) -> None:
        evidence = self.evidence
        evidence.snapshots = [TableSnapshot(tables.read_world())] if tables else []

        def add_snapshot() -> None:
            if tables:
                begun = time.time()
                evidence.snapshots.append(TableSnapshot(tables.read_world(), begun, time.time()))

        with ReconnectingConnection(self._client) as connection:
            cases = [*[rows_variant(5)] * SNAPSHOTS_OF_UPDATES, *self._single_requests()]
            for number, case in enumerate(cases):
                evidence.exchanges += [connection.send(case)] if self._responds() else []
                if number < SNAPSHOTS_OF_UPDATES:
                    add_snapshot()
        add_snapshot()
        self._gather_concurrent(tables)
        if tables and database and tables.admin and self._thorough and not tables.uncounted_reason:
            self._gather_pages_read(tables, database)
        add_snapshot()

    def _gather_pages_read(self, tables: DatabaseTables, database: DatabaseAddress) -> None:
        """Record how many pages the SELECTs of update requests touch, and how many pages the returned rows need.

        Do not record a request that returns an earlier request's row, because that update has changed the row's pages.
        """
        with tables.moved_rows(database) as pages_by_table, ReconnectingConnection(self._client) as connection:
            # A database session's first statements read additional pages. Warm up all connections of the server's pool.
            first = self._client.send_in_order([rows_variant(1)] * 100)
            self.evidence.exchanges += first
            returned = {identifier for exchange in first for identifier, _ in exchange.rows}
            count = random.Random().randint(*ROWS_PER_PAGE_COUNT)
            for _ in range(PAGE_COUNTS):
                before = take_snapshot(tables.connection)
                exchange = connection.send(rows_variant(count))
                self.evidence.exchanges.append(exchange)
                work = ExpectedWork.for_exchanges(self._test_type, [exchange])
                statements = wait_for_statements(tables, before, work, 1).statements or ()
                ids = {identifier for identifier, _ in exchange.rows}
                if not self._responds():
                    return
                if len(ids) == count and not ids & returned:
                    selects = [s for s in statements if s.names_table("world") and not s.writes]
                    pages = pages_by_table["World" if any(s.names_quoted_table for s in selects) else "world"]
                    every, until_current = map(sum, zip(*(pages.get(i, (1, 1)) for i in ids), strict=True))
                    self.evidence.pages_read.append((sum(s.pages for s in selects), every, until_current))
                returned |= ids

    def _gather_fortunes(self, tables: DatabaseTables | None) -> None:
        evidence = self.evidence
        evidence.fortunes = versions = [TableVersion(rows=tables.read_fortunes())] if tables else []
        evidence.exchanges = self._client.send_in_order([PLAIN] * 3)
        self._gather_concurrent(tables)
        if tables and tables.admin and self._thorough:
            now = time.time()
            with tables.injected_fortunes() as injected:
                append_version(versions, injected, now, now)
                evidence.exchanges += self._client.send_in_order([QueryVariant(name="one fortune more")])

    def _single_requests(self) -> list[QueryVariant]:
        if not self._test_type.counts_rows:
            return [PLAIN] * (120 if self._thorough else 3)  # 120 requests find a failure rate of 1 % in 70 % of cases
        cases = list(COUNT_VARIANTS) if self._thorough else [rows_variant(1), rows_variant(2), rows_variant(20)]
        url = self._client.url
        if "?" not in url:  # in a path like /updates/, the parameter cannot be omitted or repeated
            return [case for case in cases if case.name != "absent"]
        if self._thorough:
            parameter = url.partition("?")[2].rstrip("=")
            cases.append(QueryVariant(name="repeated", suffix=f"2&{parameter}=3", count=2, alternative_count=3))
        return cases

    def _gather_concurrent(self, tables: DatabaseTables | None) -> None:
        """Send many requests concurrently. In a thorough verification, count the SQL statements that they cause."""
        evidence = self.evidence
        if not self._responds():
            return
        before = None
        if tables and self._thorough and self._test_type.counts_statements:
            evidence.uncounted_reason, before = tables.uncounted_reason, tables.snapshot_statements()
        batches = self._test_type.thorough if self._thorough else self._test_type.brief
        cases = [
            PLAIN if batch.rows is None else rows_variant(batch.rows) for batch in batches for _ in range(batch.times)
        ]
        evidence.concurrent = self._client.send_concurrently(cases, CONCURRENT_CONNECTIONS)
        if tables and before:
            expected = ExpectedWork.for_exchanges(self._test_type, evidence.concurrent)
            counted = wait_for_statements(tables, before, expected, 1)
            evidence.statements, evidence.expected_work = counted.statements, counted.expected_work
            evidence.all_statements = counted.all_statements

    def _responds(self) -> bool:
        """Return whether the server has responded to every request, and not always with an error."""
        exchanges = self.evidence.exchanges
        return all(exchange.response is not None for exchange in exchanges) and not (
            len(exchanges) >= MAX_FAILURES and always_fails(exchanges)
        )
