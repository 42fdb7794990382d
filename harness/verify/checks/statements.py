"""Are the queries really made? Exact counts around a known number of answers: verification's crowd, or a load.

Statements are told by the table that they name and by the rows and pages that they touch, never by a ratio of calls:
a bulk UPDATE of twenty rows and twenty UPDATEs of one are the same here.
"""

from collections.abc import Callable, Iterator, Sequence

from harness.plan.testtypes import TestType
from harness.records.outcome import Outcome
from harness.verify.checks import LOAD, PAGE_TYPES, Finding, check, having, shown
from harness.verify.checks.evidence import Evidence
from harness.verify.checks.statement_counts import MOST_STATEMENTS, NormalisedStatement

SEEDED_FORTUNES = 12
PAGES_OF_A_ROW = 3  # that a SELECT of one touches: the root and a leaf of the index, and the row's own
ALLOWANCE = 0.01  # of the tables' own counters: what the crash of a session loses


def counted(trait: Callable[[TestType], bool] = lambda _: True) -> Callable[[str], bool]:
    """Test types with a trait whose statements are counted, and the load of any."""
    return lambda name: name == LOAD or having(lambda kind: kind.counts_statements and trait(kind))(name)


@check("statements.1", counted(), lambda e: e.different > 0 or (e.thorough and bool(e.crowd)))
def statements_counted(evidence: Evidence) -> Iterator[Finding]:
    """The statements of the server can be counted at all."""
    if evidence.counts is None:
        why = evidence.uncounted or "pg_stat_statements.max is too small"
        yield Finding(f"statements were not counted: {why}", outcome=Outcome.WARN)


@check("statements.2", counted(), lambda e: (_looked(e) or _flooded(e)) and e.due.reads + e.due.pages > 0)
def rows_read(evidence: Evidence) -> Iterator[Finding]:
    """As many rows were read by SELECTs as were answered, and over a process as many by index."""
    due = evidence.due
    if _flooded(evidence):
        yield Finding(
            "the server makes so many different statements that the database forgets some before they are counted",
            expected="the same statements again and again, with parameters",
            actual=f"{evidence.different} different statements",
        )
    if evidence.use and evidence.use.fetched is not None and due.reads:
        yield from _short("read", evidence.use.fetched, due.reads, allowance=ALLOWANCE)
    if evidence.counts is not None:
        # Rows as they are: of a document, a page or an order that the database makes the work would be nobody's.
        selects = _reads(evidence, "world")
        found = [s for s in selects if s.takes("randomnumber")]
        rows = sum(min(s.rows, s.pages // PAGES_OF_A_ROW) for s in found)
        yield from _short("read", rows, due.reads, but=_others(selects, found))
        # Each page has its own SELECT of all fortunes: neither many rows of one nor few of many make up for another.
        selects = _reads(evidence, "fortune")
        found = [s for s in selects if s.takes("message") and s.rows <= SEEDED_FORTUNES * s.calls]
        whole = sum(min(s.calls, s.rows // SEEDED_FORTUNES) for s in found)
        yield from _short("read", whole, due.pages, "pages of fortunes", but=_others(selects, found))


@check("statements.3", counted(lambda kind: kind.has_rows), lambda e: e.counts is not None and e.due.reads > 0)
def one_row_a_select(evidence: Evidence) -> Iterator[Finding]:
    """Each row is fetched by a SELECT of its own: no IN, no join with a list, no scan."""
    for select in _reads(evidence, "world"):
        actual = f"{select.rows} rows in {select.calls} calls of {shown(select.text, 120)}"
        if select.rows > select.calls:
            yield Finding("one SELECT fetches several rows", expected="one row a SELECT", actual=actual)
        elif select.takes_list:  # many rows of one call, and none of others, would look the same
            yield Finding("a SELECT takes a list of ids", expected="one id a SELECT", actual=actual)


@check("statements.4", having(lambda kind: kind.counts_statements), lambda e: e.counts is not None)
def no_needless_select(evidence: Evidence) -> Iterator[Finding]:
    """No more is read than answered."""
    table = "fortune" if PAGE_TYPES(evidence.test_type) else "world"
    calls = sum(select.calls for select in _reads(evidence, table))
    expected = sum(exchange.case.count or 1 for exchange in evidence.crowd)
    if calls > expected and all(exchange.ok for exchange in evidence.crowd):
        message = f"{calls - expected} SELECTs more than rows were asked for"
        yield Finding(message, expected=f"{expected}", actual=f"{calls}", outcome=Outcome.WARN)


@check("statements.5", counted(lambda kind: kind.writes_database), lambda e: _looked(e) and e.due.writes > 0)
def rows_written(evidence: Evidence) -> Iterator[Finding]:
    """Every row that is answered was written, by a statement of its request at least, and in verification no other."""
    due = evidence.due
    if evidence.use and evidence.use.updated is not None:
        yield from _short("written", evidence.use.updated, due.writes, allowance=ALLOWANCE)
    if evidence.counts is None:
        return
    # Of the one twin that the server uses: rows that went into the other are not those that were answered.
    writes = [s for s in evidence.counts if s.names("world") and s.writes]
    twins = [[s for s in writes if s.twin == twin] for twin in (False, True)]
    # A call that writes no row stands for no request.
    rows, calls = max((sum(s.rows for s in of), sum(min(s.calls, s.rows) for s in of)) for of in twins)
    yield from _short("written", rows, due.writes)
    if calls < due.updates:
        message = f"{due.updates} requests were written by {calls} statements"
        yield Finding(message, expected=f"{due.updates}, one a request at least", actual=f"{calls}")
    named = sum(len(exchange.rows) for exchange in evidence.crowd)
    if evidence.crowd and rows > named and all(e.ok and e.rows for e in evidence.crowd):
        # Written again after a deadlock, perhaps: what was rolled back is counted too.
        message, actual = "more rows were written than answered", f"{rows} rows"
        yield Finding(message, expected=f"{named} rows", actual=actual, outcome=Outcome.WARN)


def _looked(evidence: Evidence) -> bool:
    return evidence.counts is not None or evidence.use is not None


def _flooded(evidence: Evidence) -> bool:
    """Were counts lost, and is it this server that fills the counters? Those beside it have a share of them."""
    return evidence.counts is None and evidence.different > MOST_STATEMENTS // 2


def _short(
    what: str, came: int, due: int, of: str = "rows", but: str = "", allowance: float = 0.0
) -> Iterator[Finding]:
    """Fewer rows than answered, by more than the allowance; ``but``: by what others may have been meant to be."""
    if came < due * (1 - allowance):
        message = f"{due - came} of {due} {of} were answered without being {what}"
        yield Finding(message, expected=f"{due} {of} {what}", actual=f"{came} {of} {what}{but}")


def _others(selects: Sequence[NormalisedStatement], found: Sequence[NormalisedStatement]) -> str:
    """One of the SELECTs that do not count."""
    return "".join(f", not by {shown(select.text, 120)}" for select in [s for s in selects if s not in found][:1])


def _reads(evidence: Evidence, table: str) -> list[NormalisedStatement]:
    """The SELECTs that can have answered requests.

    A scan of the whole of world is none of them, whoever makes it (the cache of cached-query is refreshed by one now
    and then): it counts neither for nor against, so that rows answered out of what it fetched are found missing. Nor
    is a statement that names the table and touches no page of it.
    """
    found = (s for s in evidence.counts or () if s.names(table) and not s.writes and s.pages >= s.calls)
    return [statement for statement in found if table == "fortune" or not statement.scans]
