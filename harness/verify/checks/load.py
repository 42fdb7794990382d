"""Did the load itself reach the table, and was nothing left behind? What PostgreSQL counted over a whole replicate.

The counters are always on. Sessions publish theirs about once a second and when they end, so the second reading is
taken after the server has stopped: then every row that it fetched or updated is in them (measured: 0 to 2 % more than
the generator's answers, which is what was under way when it stopped). Statements are counted exactly, by their text:
rows that an UPDATE looked up are no rows that a SELECT read.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import psycopg

from harness.servers import DatabaseAddress
from harness.servers.database import connect
from harness.servers.database.state import read_state
from harness.verify.checks import LOAD, Finding, check
from harness.verify.checks.evidence import Evidence, TableUse
from harness.verify.checks.statement_counts import NotCountedError, Snapshot, Statement, require_counting, snapshot

# Responses are counted by the generator, rows by the database; an answer is counted after its rows were. Nothing may be
# missing but what a crash of a session loses; the allowance is for that.
ALLOWANCE = 0.01
SEEDED_FORTUNES = 12

HERE = frozenset({LOAD})


@dataclass(frozen=True, kw_only=True)
class DatabaseCounters:
    """Everything that the database has counted so far, and what stands in it."""

    fetched: int = 0  # rows of the world tables, by index
    updated: int = 0
    deadlocks: int = 0
    sessions: int | None = None  # of servers, which publish their counters when they end; None: cannot be seen
    statements: Snapshot | None = None  # None where statements are not counted
    state: Mapping[str, str] = field(default_factory=dict)

    def since(self, earlier: "DatabaseCounters") -> TableUse:
        """What came between two readings."""
        counted = self.statements and earlier.statements and self.statements.since(earlier.statements)
        return TableUse(
            fetched=self.fetched - earlier.fetched,
            updated=self.updated - earlier.updated,
            deadlocks=self.deadlocks - earlier.deadlocks,
            statements=counted or None,
            left_behind=tuple(
                (name, earlier.state[name], now)
                for name, now in self.state.items()
                if name in earlier.state and earlier.state[name] != now
            ),
        )


@check("load.5", HERE, lambda evidence: evidence.use is not None and evidence.answered_reads > 0)
def load_reads_the_table(evidence: Evidence) -> Iterator[Finding]:
    """As many rows were read by SELECTs, by index, as db, query and update answered under load."""
    use = _use(evidence)
    read = min(use.fetched, sum(s.rows for s in _selects(use))) if use.statements else use.fetched
    yield from _short("read", read, evidence.answered_reads)


@check("load.6", HERE, lambda evidence: evidence.use is not None and evidence.answered_writes > 0)
def load_writes_the_table(evidence: Evidence) -> Iterator[Finding]:
    """As many rows were updated as update answered under load."""
    use = _use(evidence)
    counted = use.statements
    written = min(use.updated, sum(s.rows for s in counted.writes("world"))) if counted else use.updated
    yield from _short("written", written, evidence.answered_writes)


@check("load.7", HERE, lambda evidence: _counted(evidence) and evidence.answered_reads > 0)
def load_selects_row_by_row(evidence: Evidence) -> Iterator[Finding]:
    """Each row has a SELECT of its own under load, too."""
    calls = sum(s.calls for s in _selects(_use(evidence)))
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
    read = sum(s.rows for s in counted.reads("fortune"))
    pages = read // SEEDED_FORTUNES
    if pages < evidence.answered_fortunes * (1 - ALLOWANCE):
        yield Finding(
            message=f"{evidence.answered_fortunes - pages} of {evidence.answered_fortunes} pages of fortunes were "
            "answered under load without the table being read",
            expected=f"{evidence.answered_fortunes * SEEDED_FORTUNES} rows read",
            actual=f"{read} rows read",
        )


@check("load.9", HERE, lambda evidence: evidence.use is not None and evidence.answered_writes > 0)
def no_deadlock_answered(evidence: Evidence) -> Iterator[Finding]:
    """An update that PostgreSQL ended as a deadlock was not written: it is no answer."""
    use = _use(evidence)
    if use.deadlocks > evidence.failed_responses:
        yield Finding(
            message=f"PostgreSQL ended {use.deadlocks} transactions as deadlocks, and {evidence.failed_responses} "
            "responses said that something failed",
            expected="writes in the order of ids, or an error status for each that was lost",
            actual=f"{use.deadlocks - evidence.failed_responses} lost updates answered with 200",
        )


@check("load.10", HERE, lambda evidence: evidence.use is not None)
def nothing_left_behind(evidence: Evidence) -> Iterator[Finding]:
    """The database is as it was but for the numbers of world."""
    for name, before, after in _use(evidence).left_behind:
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
            state=read_state(connection, database.user) if admin else {},
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


def rows_due(use: TableUse) -> tuple[int, int, int]:
    """Rows read, rows written and pages of fortunes that a look at the server alone accounts for, as counted.

    A slow server is asked for as much by verification as by a load: left in, that would pay for what the load lost.
    Where statements are not counted nothing is known; SELECTs of many rows, which fill a cache, count as one row.
    """
    counted = use.statements
    if counted is None or counted.evicted:
        return 0, 0, 0
    return (
        sum(min(s.rows, s.calls) for s in _selects(use)),
        sum(s.rows for s in counted.writes("world")),
        sum(s.rows for s in counted.reads("fortune")) // SEEDED_FORTUNES,
    )


def _use(evidence: Evidence) -> TableUse:
    assert evidence.use is not None  # noqa: S101 - needs
    return evidence.use


def _counted(evidence: Evidence) -> bool:
    return evidence.use is not None and evidence.use.statements is not None and not evidence.use.statements.evicted


def _selects(use: TableUse) -> tuple[Statement, ...]:
    """SELECTs of world but those that fetch the whole table at once: a cache may be refreshed so, no row answered."""
    counted = use.statements
    return tuple(s for s in counted.reads("world") if not s.scans) if counted else ()


def _short(what: str, came: int, answered: int) -> Iterator[Finding]:
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
