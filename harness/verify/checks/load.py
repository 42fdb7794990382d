"""Did the load itself reach the table, and was nothing left behind? What PostgreSQL counted over a whole replicate.

The counters are always on. Sessions publish theirs about once a second and when they end, so the second reading is
taken after the server has stopped: then every row that it fetched or updated is in them (measured: 0 to 2 % more than
the generator's answers, which is what was under way when it stopped). Statements are counted exactly, by their text:
rows that an UPDATE looked up are no rows that a SELECT read.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import psycopg

from harness.runtime import DatabaseAddress
from harness.runtime.database import connect
from harness.runtime.database.state import read_state
from harness.verify.checks import LOAD, Finding, check
from harness.verify.checks.evidence import Evidence, TableUse
from harness.verify.checks.statement_counts import (
    NotCountedError,
    Snapshot,
    Statement,
    StatementCounts,
    require_counting,
    snapshot,
)

# Responses are counted by the generator, rows by the database; an answer is counted after its rows were. Nothing may be
# missing but what a crash of a session loses; the allowance is for that.
ALLOWANCE = 0.01
SEEDED_FORTUNES = 12

HERE = frozenset({LOAD})


@dataclass(frozen=True, kw_only=True)
class DatabaseCounters:
    """Everything that the database has counted so far, and what stands in it."""

    fetched: int | None = 0  # rows of the world tables, by index; None: not looked at, since sessions publish it late
    updated: int | None = 0  # likewise
    deadlocks: int | None = 0  # likewise
    sessions: int | None = None  # of servers, which publish their counters when they end; None: cannot be seen
    statements: Snapshot | None = None  # None where statements are not counted
    state: Mapping[str, str] | None = None  # None: not looked at

    def since(self, earlier: "DatabaseCounters") -> TableUse:
        """What came between two readings."""
        counted = self.statements and earlier.statements and self.statements.since(earlier.statements)
        return TableUse(
            fetched=_more(self.fetched, earlier.fetched),
            updated=_more(self.updated, earlier.updated),
            deadlocks=_more(self.deadlocks, earlier.deadlocks),
            statements=counted or None,
            left_behind=_changed(earlier.state, self.state),
        )


@check("load.5", HERE, lambda evidence: evidence.use is not None and evidence.answered_reads > 0)
def load_reads_the_table(evidence: Evidence) -> Iterator[Finding]:
    """As many rows were read by SELECTs, by index, as db, query and update answered under load."""
    use = _use(evidence)
    yield from _short("read", use.fetched, _selects(use.statements), evidence.answered_reads)


@check("load.6", HERE, lambda evidence: evidence.use is not None and evidence.answered_writes > 0)
def load_writes_the_table(evidence: Evidence) -> Iterator[Finding]:
    """As many rows were updated as update answered under load."""
    use = _use(evidence)
    writes = use.statements.writes("world") if use.statements and not use.statements.evicted else None
    yield from _short("written", use.updated, writes, evidence.answered_writes)


@check("load.7", HERE, lambda evidence: _counted(evidence) and evidence.answered_reads > 0)
def load_selects_row_by_row(evidence: Evidence) -> Iterator[Finding]:
    """Each row has a SELECT of its own under load, too."""
    calls = sum(s.calls for s in _selects(_use(evidence).statements) or ())
    if calls < evidence.answered_reads * (1 - ALLOWANCE):
        yield Finding(
            message=f"{evidence.answered_reads} rows were answered under load by {calls} SELECTs",
            expected=f"{evidence.answered_reads} SELECTs, one a row",
            actual=f"{calls}",
        )


@check("load.8", HERE, lambda evidence: _counted(evidence) and evidence.answered_fortunes > 0)
def load_reads_the_fortunes(evidence: Evidence) -> Iterator[Finding]:
    """Every page of fortunes that was answered under load was read from the table."""
    counted = _use(evidence).statements
    assert counted is not None  # noqa: S101 - needs
    read = sum(s.rows for s in _pages(counted))
    pages = read // SEEDED_FORTUNES
    if pages < evidence.answered_fortunes * (1 - ALLOWANCE):
        yield Finding(
            message=f"{evidence.answered_fortunes - pages} of {evidence.answered_fortunes} pages of fortunes were "
            "answered under load without the table being read",
            expected=f"{evidence.answered_fortunes * SEEDED_FORTUNES} rows read",
            actual=f"{read} rows read",
        )


@check("load.9", HERE, lambda evidence: _deadlocks(evidence) is not None and evidence.answered_writes > 0)
def no_deadlock_answered(evidence: Evidence) -> Iterator[Finding]:
    """An update that PostgreSQL ended as a deadlock was not written: it is no answer."""
    deadlocks = _deadlocks(evidence) or 0
    if deadlocks > evidence.failed_responses:
        yield Finding(
            message=f"PostgreSQL ended {deadlocks} transactions as deadlocks, and {evidence.failed_responses} "
            "responses said that something failed",
            expected="writes in the order of ids, or an error status for each that was lost",
            actual=f"{deadlocks - evidence.failed_responses} lost updates answered with 200",
        )


@check("load.10", HERE, lambda evidence: evidence.use is not None and evidence.use.left_behind is not None)
def nothing_left_behind(evidence: Evidence) -> Iterator[Finding]:
    """The database is as it was but for the numbers of world."""
    for name, before, after in _use(evidence).left_behind or ():
        yield Finding(message=f"the server has changed {name}", expected=before, actual=after)


def read_table_use(database: DatabaseAddress) -> DatabaseCounters:
    """What all sessions did to the tables since the database was made, and what stands in it."""
    admin = database.admin_user is not None
    with connect(database, admin=admin) as connection:
        sessions = _sessions(connection) if admin else None  # looked at first: who has ended has published
        row = connection.execute(
            "SELECT coalesce(sum(idx_tup_fetch), 0)::bigint, coalesce(sum(n_tup_upd), 0)::bigint, "
            "(SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()) "
            "FROM pg_stat_user_tables WHERE lower(relname) = 'world'"
        ).fetchone()
        fetched, updated, deadlocks = row or (0, 0, 0)
        return DatabaseCounters(
            fetched=fetched,
            updated=updated,
            deadlocks=deadlocks or 0,
            sessions=sessions,
            statements=_statements(connection) if admin else None,
            state=read_state(connection, database.user) if admin else None,
        )


def _sessions(admin: psycopg.Connection) -> int:
    """Sessions of other roles in this database; one that is gone here has published what it did."""
    row = admin.execute(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND usename <> current_user"
    ).fetchone()
    return int(row[0]) if row else 0


def _statements(admin: psycopg.Connection) -> Snapshot | None:
    try:
        require_counting(admin)
    except NotCountedError:
        return None
    return snapshot(admin)


def read_statements(database: DatabaseAddress) -> Snapshot | None:
    """What servers' statements came to so far, exact at this moment; None where they are not counted.

    Cheap enough for the beginning and the end of every load: some milliseconds.
    """
    if database.admin_user is None:
        return None
    with connect(database, admin=True) as connection:
        return snapshot(connection)


def rows_due(counted: StatementCounts, late: int = 0) -> tuple[int, int, int]:
    """Rows read, rows written and pages of fortunes that came outside of any load, as counted.

    A slow server is asked for as much by verification as by a load: left in, that would pay for what the load lost.
    SELECTs of many rows, which fill a cache, count as one row. ``late`` sessions were within a transaction when the
    load before ended, the last statement of which is counted at its end only: it may be the load's.
    """
    if counted.evicted:
        return 0, 0, 0
    found = (
        sum(min(s.rows, s.calls) for s in _selects(counted) or ()),
        sum(s.rows for s in counted.writes("world")),
        sum(s.rows for s in _pages(counted)) // SEEDED_FORTUNES,
    )
    read, written, pages = (max(0, rows - late) for rows in found)
    return read, written, pages


def _changed(
    before: Mapping[str, str] | None, after: Mapping[str, str] | None
) -> tuple[tuple[str, str, str], ...] | None:
    if before is None or after is None:
        return None
    return tuple((name, before[name], now) for name, now in after.items() if name in before and before[name] != now)


def _more(now: int | None, earlier: int | None) -> int | None:
    return None if now is None or earlier is None else now - earlier


def _deadlocks(evidence: Evidence) -> int | None:
    return evidence.use.deadlocks if evidence.use else None


def _use(evidence: Evidence) -> TableUse:
    assert evidence.use is not None  # noqa: S101 - needs
    return evidence.use


def _counted(evidence: Evidence) -> bool:
    return evidence.use is not None and evidence.use.statements is not None and not evidence.use.statements.evicted


def _selects(counted: StatementCounts | None) -> tuple[Statement, ...] | None:
    """SELECTs that read rows of world; None where they are not counted.

    Those that fetch the whole table at once are none: a cache may be refreshed so, no row answered. Nor are those that
    name the table and touch no page of it.
    """
    if counted is None or counted.evicted:
        return None
    return tuple(s for s in counted.reads("world") if not s.scans and s.pages >= s.calls)


def _pages(counted: StatementCounts) -> tuple[Statement, ...]:
    """SELECTs that read fortunes."""
    return tuple(s for s in counted.reads("fortune") if s.pages >= s.calls)


def _short(what: str, by_table: int | None, by_text: Sequence[Statement] | None, answered: int) -> Iterator[Finding]:
    """Fewer rows than answered, by the table's counter or by the statements, whichever has fewer."""
    known = [by_table] if by_table is not None else []
    if by_text is not None:
        known.append(sum(statement.rows for statement in by_text))
    if not known:
        return
    came = min(known)
    if came < answered * (1 - ALLOWANCE):
        yield Finding(
            message=f"{answered - came} of {answered} rows that were answered under load were not {what}",
            expected=f"{answered} rows {what}",
            actual=f"{came} rows {what}",
        )


CHECKS = (
    load_reads_the_table,
    load_writes_the_table,
    load_selects_row_by_row,
    load_reads_the_fortunes,
    no_deadlock_answered,
    nothing_left_behind,
)
