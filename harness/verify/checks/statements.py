"""Checks that a server executed the queries that its responses require, using exact statement counts.

The statements belong to a load, or to the concurrent requests of a verification. The checks classify a statement by the
table that it names, and by the number of rows and pages that it touches. An UPDATE of twenty rows counts as much as
twenty UPDATEs of a single row.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from harness.plan.testtypes import TestType
from harness.records.verification_record import Outcome
from harness.verify.checks import LOAD, PAGE_TYPES, Finding, check, excerpt, types_where
from harness.verify.checks.evidence import SEEDED_FORTUNES, Evidence
from harness.verify.checks.statement_counts import MAX_STATEMENTS, NormalisedStatement

PAGES_PER_ROW = 3  # pages that a SELECT for one row touches: the index root, an index leaf, and the row's page
MIN_EQUAL_SHARE = 0.75  # minimum share of requests whose SELECTs touch the same number of additional pages
MIN_PAGE_COUNTS = 16  # with fewer requests, the numbers of additional pages may agree by chance
COUNTER_TOLERANCE = 0.01  # tolerated share of uncounted rows; PostgreSQL loses counts if a session crashes


def counted_types(trait: Callable[[TestType], bool] = lambda _: True) -> Callable[[str], bool]:
    """Return a predicate that accepts LOAD, and test types that have the trait and count statements."""
    counted = types_where(lambda test_type: test_type.counts_statements and trait(test_type))
    return lambda name: name == LOAD or counted(name)


@check("statements.1", counted_types(), lambda e: bool(e.all_statements) or (e.thorough and bool(e.concurrent)))
def statements_counted(evidence: Evidence) -> Iterator[Finding]:
    """Warn if the server's statements could not be counted."""
    if evidence.statements is None:
        reason = evidence.uncounted_reason or "pg_stat_statements.max is too small"
        yield Finding(f"statements were not counted: {reason}", outcome=Outcome.WARN)


@check(
    "statements.2",
    counted_types(),
    lambda e: (_has_counts(e) or _floods_counters(e)) and e.expected_work.reads + e.expected_work.pages > 0,
)
def rows_read(evidence: Evidence) -> Iterator[Finding]:
    """Require that SELECTs read at least as many rows as were returned.

    After the server process has exited, also require that it has fetched at least as many rows through an index.
    """
    expected = evidence.expected_work
    if _floods_counters(evidence):
        yield Finding(
            "the server executes so many different statements that PostgreSQL discards counts. Use bind parameters",
            expected="few different statements, with bind parameters",
            actual=f"{len(evidence.all_statements)} different statements",
        )
    activity = evidence.database_activity
    if activity and activity.fetched is not None and expected.reads:
        yield from _find_shortfall("read", activity.fetched, expected.reads, tolerance=COUNTER_TOLERANCE)
    if evidence.statements is not None:
        # Only SELECTs of unprocessed rows count, because the server, not the database, must build and sort the
        # response.
        selects = _selects(evidence, "world")
        plain = [s for s in selects if s.returns_column("randomnumber")]
        rows = sum(min(s.rows, s.pages // PAGES_PER_ROW) for s in plain)
        yield from _find_shortfall("read", rows, expected.reads, note=_describe_other(selects, plain))
        # Each page needs a separate SELECT of all fortunes. A SELECT with twice as many rows does not count as two.
        selects = _selects(evidence, "fortune")
        plain = [s for s in selects if s.returns_column("message") and s.rows <= SEEDED_FORTUNES * s.calls]
        pages = sum(min(s.calls, s.rows // SEEDED_FORTUNES) for s in plain)
        note = _describe_other(selects, plain)
        yield from _find_shortfall("read", pages, expected.pages, "fortunes pages", note=note)


@check(
    "statements.3",
    counted_types(lambda test_type: test_type.has_rows),
    lambda e: e.statements is not None and e.expected_work.reads > 0,
)
def one_row_a_select(evidence: Evidence) -> Iterator[Finding]:
    """Require a separate SELECT for each row, without IN, joins with lists, or scans."""
    for select in _selects(evidence, "world"):
        actual = f"{select.rows} rows in {select.calls} calls of {excerpt(select.text, 120)}"
        if select.rows > select.calls:
            yield Finding(
                "one SELECT fetches several rows. Execute one SELECT for each row",
                expected="one row for each SELECT",
                actual=actual,
            )
        elif select.accepts_list:  # a call that finds no row may offset a call that finds several
            yield Finding(
                "a SELECT takes a list of ids. Execute one SELECT for each id",
                expected="one id for each SELECT",
                actual=actual,
            )


@check("statements.4", types_where(lambda test_type: test_type.counts_statements), lambda e: e.statements is not None)
def no_needless_select(evidence: Evidence) -> Iterator[Finding]:
    """Warn if the number of SELECTs exceeds the number of returned rows."""
    table = "fortune" if PAGE_TYPES(evidence.test_type) else "world"
    calls = sum(select.calls for select in _selects(evidence, table))
    expected = sum(exchange.case.count or 1 for exchange in evidence.concurrent)
    if calls > expected and all(exchange.ok for exchange in evidence.concurrent):
        yield Finding(
            f"{calls - expected} more SELECTs than requested rows. Execute one SELECT for each row",
            expected=f"at most {expected}",
            actual=f"{calls}",
            outcome=Outcome.WARN,
        )


@check(
    "statements.5",
    counted_types(lambda test_type: test_type.writes_database),
    lambda e: _has_counts(e) and e.expected_work.writes > 0,
)
def rows_written(evidence: Evidence) -> Iterator[Finding]:
    """Require that all returned rows are written, with at least one statement per request. Warn about extra writes."""
    expected, activity = evidence.expected_work, evidence.database_activity
    if activity and activity.updated is not None:
        yield from _find_shortfall("written", activity.updated, expected.writes, tolerance=COUNTER_TOLERANCE)
    if evidence.statements is None:
        return
    # A server writes either to "world" or to "World". Use the table with more written rows.
    writes = [s for s in evidence.statements if s.names_table("world") and s.writes]
    by_table = [[s for s in writes if s.names_quoted_table == quoted] for quoted in (False, True)]
    # A call that writes no row does not count as a request's statement.
    rows, calls = max((sum(s.rows for s in table), sum(min(s.calls, s.rows) for s in table)) for table in by_table)
    yield from _find_shortfall("written", rows, expected.writes)
    if calls < expected.updates:
        yield Finding(
            f"{calls} statements wrote the rows of {expected.updates} requests. Write each request's rows separately",
            expected=f"at least {expected.updates} (one for each request)",
            actual=f"{calls}",
        )
    returned = sum(len(exchange.rows) for exchange in evidence.concurrent)
    if evidence.concurrent and rows > returned and all(e.ok and e.rows for e in evidence.concurrent):
        # Only warn, because rows are counted twice if a transaction was rolled back and repeated.
        yield Finding(
            "more rows were written than returned. Write each row once",
            expected=f"at most {returned} rows",
            actual=f"{rows} rows",
            outcome=Outcome.WARN,
        )


@check(
    "statements.2",
    types_where(lambda test_type: test_type.writes_database),
    lambda evidence: len(evidence.pages_read) >= MIN_PAGE_COUNTS,
)
def returned_rows_read(evidence: Evidence) -> Iterator[Finding]:
    """Require that updates read the rows that they write.

    ``moved_rows`` has spread old row versions over the table, so the number of pages to read varies from row to row. If
    a server reads the returned rows, the SELECTs touch their pages, plus a nearly constant number of additional pages.
    If it reads other rows, or a single row repeatedly, the number of additional pages varies: no value occurs in more
    than half of the requests. The check allows for scans that end at a row's current version (LIMIT 1), and for object
    mappers that read each row twice.
    """
    differences = [
        Counter(read - reads * pages[scan] for read, *pages in evidence.pages_read)
        for scan in (0, 1)
        for reads in (1, 2)
    ]
    excess, times = max((each.most_common(1)[0] for each in differences), key=lambda each: each[1])
    if times < MIN_EQUAL_SHARE * len(evidence.pages_read):
        yield Finding(
            "the SELECTs of updates do not read the returned rows. Read each row before writing it",
            expected="the same number of additional pages in most requests",
            actual=f"{excess} additional pages in only {times} of {len(evidence.pages_read)} requests",
        )


@check("statements.7", counted_types(), lambda e: bool(e.all_statements))
def counting_unwatched(evidence: Evidence) -> Iterator[Finding]:
    """Find queries that ask whether statements are counted. Only a cheating server needs them.

    Drivers query other settings when they connect, and PostgreSQL records most names of settings as ``$1``. If the name
    is unknown, the check therefore only warns, and only about queries during requests.
    """
    asked = [text for text in evidence.all_statements if NormalisedStatement(text=text).asks_for_counting]
    unclear = [s.text for s in evidence.statements or () if s.asks_for_counting is None]
    for text, outcome in [*((t, Outcome.FAIL) for t in asked), *((t, Outcome.WARN) for t in unclear)]:
        yield Finding(
            "the server queries the database's configuration while it serves requests. Remove this statement",
            expected="only statements that the test types require",
            actual=excerpt(text, 120),
            outcome=outcome,
        )


def _has_counts(evidence: Evidence) -> bool:
    return evidence.statements is not None or evidence.database_activity is not None


def _floods_counters(evidence: Evidence) -> bool:
    """Return whether PostgreSQL lost counts because this server used more than half of the counters."""
    return evidence.statements is None and len(evidence.all_statements) > MAX_STATEMENTS // 2


def _find_shortfall(
    verb: str, actual: int, expected: int, unit: str = "rows", *, note: str = "", tolerance: float = 0.0
) -> Iterator[Finding]:
    """Yield a finding if fewer rows were read (or written) than returned. Append ``note`` to the actual number.

    ``tolerance`` is the share of rows that may be missing.
    """
    if actual < expected * (1 - tolerance):
        advice = "Query the database for every row" if verb == "read" else "Write every row before responding"
        yield Finding(
            f"{expected - actual} of {expected} {unit} were returned without being {verb}. {advice}",
            expected=f"{expected} {unit} {verb}",
            actual=f"{actual} {unit} {verb}{note}",
        )


def _describe_other(selects: Sequence[NormalisedStatement], counted: Sequence[NormalisedStatement]) -> str:
    """Return a note about the first SELECT that does not count as a read, or an empty string."""
    return "".join(
        f"; this SELECT does not count: {excerpt(select.text, 120)}"
        for select in [s for s in selects if s not in counted][:1]
    )


def _selects(evidence: Evidence, table: str) -> list[NormalisedStatement]:
    """Return the SELECTs that may have served requests.

    Omit scans of the complete world table, because they may only refresh a cache. Also omit statements that touch less
    than one page per call, because they do not read the table.
    """
    reads = (s for s in evidence.statements or () if s.names_table(table) and not s.writes and s.pages >= s.calls)
    return [statement for statement in reads if table == "fortune" or not statement.reads_whole_table]
