"""Checks that queries were executed, by exact statement counts for a given number of responses.

The statements belong to a load, or to concurrent requests in a verification. They are classified by the table that they
name, and by the number of rows and pages that they touch. Ratios of calls do not matter: a bulk UPDATE of twenty rows
counts as much as twenty single UPDATEs.
"""

from collections.abc import Callable, Iterator, Sequence

from harness.plan.testtypes import TestType
from harness.records.outcome import Outcome
from harness.verify.checks import LOAD, PAGE_TYPES, Finding, check, excerpt, types_where
from harness.verify.checks.evidence import Evidence
from harness.verify.checks.statement_counts import MAX_STATEMENTS, NormalisedStatement

SEEDED_FORTUNES = 12
PAGES_PER_ROW = 3  # pages that a SELECT of a row touches: root and leaf of the index, and the row's page
COUNTER_TOLERANCE = 0.01  # share of the table counters that may be lost if a session crashes


def counted_types(trait: Callable[[TestType], bool] = lambda _: True) -> Callable[[str], bool]:
    """Return a predicate for LOAD, and for test types with the trait whose statements are counted."""
    counted = types_where(lambda test_type: test_type.counts_statements and trait(test_type))
    return lambda name: name == LOAD or counted(name)


@check("statements.1", counted_types(), lambda e: e.distinct_statements > 0 or (e.thorough and bool(e.concurrent)))
def statements_counted(evidence: Evidence) -> Iterator[Finding]:
    """Require that the server's statements can be counted."""
    if evidence.statements is None:
        reason = evidence.uncounted_reason or "pg_stat_statements.max is too small"
        yield Finding(f"statements were not counted: {reason}", outcome=Outcome.WARN)


@check(
    "statements.2",
    counted_types(),
    lambda e: (_has_counts(e) or _floods_counters(e)) and e.expected_work.reads + e.expected_work.pages > 0,
)
def rows_read(evidence: Evidence) -> Iterator[Finding]:
    """Require that SELECTs read as many rows as were returned. For a process, also check rows fetched by index."""
    expected = evidence.expected_work
    if _floods_counters(evidence):
        yield Finding(
            "the server executes so many different statements that PostgreSQL forgets counts. Use parameters",
            expected="the same statements repeatedly, with parameters",
            actual=f"{evidence.distinct_statements} different statements",
        )
    activity = evidence.database_activity
    if activity and activity.fetched is not None and expected.reads:
        yield from _find_shortfall("read", activity.fetched, expected.reads, tolerance=COUNTER_TOLERANCE)
    if evidence.statements is not None:
        # Only plain rows count. If the database builds a document, a page or an order, the server does no work.
        selects = _selects(evidence, "world")
        plain = [s for s in selects if s.returns_column("randomnumber")]
        rows = sum(min(s.rows, s.pages // PAGES_PER_ROW) for s in plain)
        yield from _find_shortfall("read", rows, expected.reads, note=_describe_other(selects, plain))
        # Each page needs a separate SELECT of all fortunes. Additional rows do not compensate for a missing SELECT.
        selects = _selects(evidence, "fortune")
        plain = [s for s in selects if s.returns_column("message") and s.rows <= SEEDED_FORTUNES * s.calls]
        pages = sum(min(s.calls, s.rows // SEEDED_FORTUNES) for s in plain)
        note = _describe_other(selects, plain)
        yield from _find_shortfall("read", pages, expected.pages, "pages of fortunes", note=note)


@check(
    "statements.3",
    counted_types(lambda test_type: test_type.has_rows),
    lambda e: e.statements is not None and e.expected_work.reads > 0,
)
def one_row_a_select(evidence: Evidence) -> Iterator[Finding]:
    """Require a separate SELECT for each row, without IN, joins with a list, or scans."""
    for select in _selects(evidence, "world"):
        actual = f"{select.rows} rows in {select.calls} calls of {excerpt(select.text, 120)}"
        if select.rows > select.calls:
            yield Finding(
                "one SELECT fetches several rows. Execute a SELECT for each row",
                expected="one row for each SELECT",
                actual=actual,
            )
        elif select.accepts_list:  # calls with many rows and calls without rows cannot be distinguished
            yield Finding(
                "a SELECT takes a list of ids. Execute a SELECT for each id",
                expected="one id for each SELECT",
                actual=actual,
            )


@check("statements.4", types_where(lambda test_type: test_type.counts_statements), lambda e: e.statements is not None)
def no_needless_select(evidence: Evidence) -> Iterator[Finding]:
    """Warn if the server executes more SELECTs than it returns rows."""
    table = "fortune" if PAGE_TYPES(evidence.test_type) else "world"
    calls = sum(select.calls for select in _selects(evidence, table))
    expected = sum(exchange.case.count or 1 for exchange in evidence.concurrent)
    if calls > expected and all(exchange.ok for exchange in evidence.concurrent):
        yield Finding(
            f"{calls - expected} more SELECTs than requested rows. Execute one SELECT for each row",
            expected=f"{expected}",
            actual=f"{calls}",
            outcome=Outcome.WARN,
        )


@check(
    "statements.5",
    counted_types(lambda test_type: test_type.writes_database),
    lambda e: _has_counts(e) and e.expected_work.writes > 0,
)
def rows_written(evidence: Evidence) -> Iterator[Finding]:
    """Require that every returned row was written, with at least one statement per request.

    In a verification, also find rows that were written but not returned.
    """
    expected, activity = evidence.expected_work, evidence.database_activity
    if activity and activity.updated is not None:
        yield from _find_shortfall("written", activity.updated, expected.writes, tolerance=COUNTER_TOLERANCE)
    if evidence.statements is None:
        return
    # Consider only the table that the server uses, because rows in the other table are not the returned rows.
    writes = [s for s in evidence.statements if s.names_table("world") and s.writes]
    by_table = [[s for s in writes if s.names_quoted_table == quoted] for quoted in (False, True)]
    # A call that writes no row does not belong to a request.
    rows, calls = max((sum(s.rows for s in table), sum(min(s.calls, s.rows) for s in table)) for table in by_table)
    yield from _find_shortfall("written", rows, expected.writes)
    if calls < expected.updates:
        yield Finding(
            f"{calls} statements wrote {expected.updates} requests. Write each request's rows separately",
            expected=f"{expected.updates}, at least one for each request",
            actual=f"{calls}",
        )
    returned = sum(len(exchange.rows) for exchange in evidence.concurrent)
    if evidence.concurrent and rows > returned and all(e.ok and e.rows for e in evidence.concurrent):
        # After deadlocks, the server may have repeated transactions, so rolled-back rows are counted as well.
        yield Finding(
            "more rows were written than returned. Write each row once",
            expected=f"{returned} rows",
            actual=f"{rows} rows",
            outcome=Outcome.WARN,
        )


def _has_counts(evidence: Evidence) -> bool:
    return evidence.statements is not None or evidence.database_activity is not None


def _floods_counters(evidence: Evidence) -> bool:
    """Return whether this server caused the loss of counts. Concurrent servers may use a share of the counters."""
    return evidence.statements is None and evidence.distinct_statements > MAX_STATEMENTS // 2


def _find_shortfall(
    verb: str, actual: int, expected: int, unit: str = "rows", *, note: str = "", tolerance: float = 0.0
) -> Iterator[Finding]:
    """Find fewer rows than returned, beyond the tolerance. ``note`` describes statements that do not count."""
    if actual < expected * (1 - tolerance):
        advice = "Query the database for every row" if verb == "read" else "Write every row before responding"
        yield Finding(
            f"{expected - actual} of {expected} {unit} were returned without being {verb}. {advice}",
            expected=f"{expected} {unit} {verb}",
            actual=f"{actual} {unit} {verb}{note}",
        )


def _describe_other(selects: Sequence[NormalisedStatement], counted: Sequence[NormalisedStatement]) -> str:
    """Return a note about the first SELECT that does not count."""
    return "".join(f", not by {excerpt(select.text, 120)}" for select in [s for s in selects if s not in counted][:1])


def _selects(evidence: Evidence, table: str) -> list[NormalisedStatement]:
    """Return the SELECTs that may have served requests.

    A scan of the complete world table refreshes the cache of cached-query. It counts neither for nor against the
    server, so rows returned from a scan are missing. Statements that touch no page of the table do not count either.
    """
    reads = (s for s in evidence.statements or () if s.names_table(table) and not s.writes and s.pages >= s.calls)
    return [statement for statement in reads if table == "fortune" or not statement.reads_whole_table]
