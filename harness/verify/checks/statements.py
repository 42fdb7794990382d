"""Are the queries really made? Exact counts of a phase in which the harness sent a known number of requests.

Statements are told by the table that they name and by the rows and pages that they touch, never by a ratio of calls:
a bulk UPDATE of twenty rows and twenty UPDATEs of one are the same here.
"""

from collections.abc import Iterator

from harness.records.models import Outcome
from harness.verify.checks import PAGE_TYPES, Finding, check, having, shown
from harness.verify.checks.evidence import Evidence
from harness.verify.checks.statement_counts import Statement, StatementCounts

COUNTED = having(lambda kind: kind.counts_statements)
COUNTED_ROWS = having(lambda kind: kind.counts_statements and kind.has_rows)


def _counted(evidence: Evidence) -> bool:
    return evidence.counts is not None and all(exchange.ok for exchange in evidence.crowd)


@check("statements.1", COUNTED, lambda evidence: evidence.thorough and bool(evidence.crowd))
def statements_counted(evidence: Evidence) -> Iterator[Finding]:
    """The statements of the server can be counted at all."""
    if evidence.counts is None or evidence.counts.evicted:
        why = evidence.uncounted or "pg_stat_statements.max is too small"
        yield Finding(f"statements were not counted: {why}", outcome=Outcome.WARN)


@check("statements.2", COUNTED, _counted)
def rows_read(evidence: Evidence) -> Iterator[Finding]:
    """Every row that is answered was read from the table for this request."""
    expected = expected_reads(evidence)
    read = sum(statement.rows for statement in _reads(evidence))
    # A statement of an open transaction is counted at its end: one a session may be missing, which spares nobody work.
    each = len(evidence.fortunes or ()) if PAGE_TYPES(evidence.test_type) else 1
    if read + _counts(evidence).open_portals * each < expected:
        yield Finding(
            f"{expected - read} of {expected} rows were answered without being read: cached, or not from the database",
            expected=f"{expected} rows read by {len(evidence.crowd)} requests",
            actual=f"{read} rows read",
        )


@check("statements.3", COUNTED_ROWS, _counted)
def one_row_a_select(evidence: Evidence) -> Iterator[Finding]:
    """Each row is fetched by a SELECT of its own: no IN, no join with a list, no scan."""
    for statement in _reads(evidence):
        if statement.rows > statement.calls:
            actual = f"{statement.rows} rows in {statement.calls} calls of {shown(statement.text, 120)}"
            yield Finding("one SELECT fetches several rows", expected="one row a SELECT", actual=actual)


@check("statements.4", COUNTED, _counted)
def no_needless_select(evidence: Evidence) -> Iterator[Finding]:
    """No more is read than answered."""
    calls = sum(statement.calls for statement in _reads(evidence))
    expected = len(evidence.crowd) if PAGE_TYPES(evidence.test_type) else expected_reads(evidence)
    if calls > expected:
        message = f"{calls - expected} SELECTs more than rows were asked for"
        yield Finding(message, expected=f"{expected}", actual=f"{calls}", outcome=Outcome.WARN)


@check("statements.5", COUNTED, _counted)
def selects_touch_the_table(evidence: Evidence) -> Iterator[Finding]:
    """A SELECT that counts reads pages of the table: naming it in a comment does not."""
    for statement in _reads(evidence):
        if statement.pages < statement.calls:
            actual = f"{statement.pages} pages in {statement.calls} calls of {shown(statement.text, 120)}"
            message = "a SELECT names the table but does not read it"
            yield Finding(message, expected="at least one page a call", actual=actual)


@check("statements.6", frozenset({"update"}), _counted)
def rows_written(evidence: Evidence) -> Iterator[Finding]:
    """Every row that is answered was written, whatever the form of the statement, and no other."""
    answered = sum(len({identifier for identifier, _ in exchange.rows}) for exchange in evidence.crowd)
    named = sum(len(exchange.rows) for exchange in evidence.crowd)
    written = sum(statement.rows for statement in _counts(evidence).writes("world"))
    # A row whose new number equals the old one need not be written: by chance one in 10,000, so of 1,500 rows more than
    # six less than once in 10^9 verifications. A write lost beyond that is also found in the table itself.
    spared = max(6, answered // 250)
    if written < answered - spared or written > named:
        yield Finding(
            "the rows written are not the rows answered",
            expected=f"{answered} rows written by {len(evidence.crowd)} requests",
            actual=f"{written} rows written",
        )


def expected_reads(evidence: Evidence) -> int:
    """Rows that the counted requests had to read."""
    if PAGE_TYPES(evidence.test_type):
        return len(evidence.crowd) * len(evidence.fortunes or ())
    return sum(exchange.case.count or 1 for exchange in evidence.crowd)


def _counts(evidence: Evidence) -> StatementCounts:
    assert evidence.counts is not None  # noqa: S101 - needs
    return evidence.counts


def _reads(evidence: Evidence) -> tuple[Statement, ...]:
    """The SELECTs that can have answered the requests.

    A scan of the whole of world is none of them, whoever makes it (the cache of cached-query is refreshed by one now
    and then): it counts neither for nor against, so that rows answered out of what it fetched are found missing.
    """
    if PAGE_TYPES(evidence.test_type):
        return _counts(evidence).reads("fortune")
    return tuple(statement for statement in _counts(evidence).reads("world") if not statement.scans)
