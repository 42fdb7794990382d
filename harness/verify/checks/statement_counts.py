"""Exact statement counts: the difference of two readings of pg_stat_statements, which counts throughout a run.

Counting is never switched: a server that could see it on and off would know when it is watched. What it costs the
database is the same for every implementation and in every sample (docs/method.md has the figure).
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import psycopg

from harness.runtime import DatabaseAddress
from harness.runtime.database import connect
from harness.verify.checks import sql

SETTLE_SECONDS = 0.3  # a statement is counted when its portal is closed, which may be after its answer was sent
TABLE_ROWS = 10_000  # of world: a statement that returns as many a call reads the table as a whole


class NotCountedError(Exception):
    """Statements can't be counted here: says why."""


@dataclass(frozen=True, kw_only=True)
class Statement:
    """One normalised statement of the server under test."""

    text: str
    calls: int
    rows: int  # retrieved or affected
    pages: int  # table and index pages that it touched

    def names(self, table: str) -> bool:
        """Does it name this table, quoted or not?"""
        return sql.names(self.text, table)

    @cached_property
    def writes(self) -> bool:
        """Does it change rows?"""
        return sql.writes(self.text)

    @property
    def twin(self) -> bool:
        """Does it name the quoted twin of the table?"""
        return '"World"' in sql.bare(self.text)

    @property
    def scans(self) -> bool:
        """Does it fetch the whole table, as the refreshing of a cache does?"""
        return self.calls > 0 and self.rows >= TABLE_ROWS * self.calls


@dataclass(frozen=True, kw_only=True)
class StatementCounts:
    """All statements that the server under test ran within the counted phase."""

    statements: tuple[Statement, ...]
    evicted: bool = False  # the view was too small: the counts are not exact
    open_portals: int = 0  # sessions within an open transaction, whose last statement is counted only at its end

    def reads(self, table: str) -> tuple[Statement, ...]:
        """Those that read a table without changing it."""
        return tuple(s for s in self.statements if s.names(table) and not s.writes)

    def writes(self, table: str) -> tuple[Statement, ...]:
        """Those that change rows of a table."""
        return tuple(s for s in self.statements if s.names(table) and s.writes)


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """Everything counted so far: (query id, text) -> calls, rows, pages."""

    counted: Mapping[tuple[int, str], tuple[int, int, int]]
    deallocated: int
    open_portals: int

    def since(self, earlier: "Snapshot") -> StatementCounts:
        """What was counted between two snapshots."""
        found = []
        for key, now in self.counted.items():
            before = earlier.counted.get(key, (0, 0, 0))
            calls, rows, pages = (a - b for a, b in zip(now, before, strict=True))
            if calls > 0:
                found.append(Statement(text=key[1], calls=calls, rows=rows, pages=pages))
        return StatementCounts(
            statements=tuple(found),
            evicted=self.deallocated != earlier.deallocated,
            open_portals=self.open_portals,
        )


class Counter:
    """Filled when the counted phase is over."""

    counts: StatementCounts | None = None


@contextmanager
def counting(database: DatabaseAddress, complete: Callable[[StatementCounts], bool]) -> Iterator[Counter]:
    """Count the statements that other sessions run inside the block; raises NotCountedError before anything is sent.

    ``complete`` tells that everything expected has been counted, which saves waiting for stragglers.
    """
    if database.admin_user is None:
        raise NotCountedError("no administrator's account for the database is known")
    counter = Counter()
    with connect(database, admin=True) as admin:
        require_counting(admin)
        before = snapshot(admin)
        yield counter
        counter.counts = _settled(admin, before, complete)


def require_counting(admin: psycopg.Connection) -> None:
    """Raise NotCountedError where this database does not count every statement."""
    try:
        track = _setting(admin, "pg_stat_statements.track")
        if track not in ("top", "all"):
            raise NotCountedError(f"pg_stat_statements.track is {track or 'not known'}: it must be top from the start")
        admin.execute("SELECT 1 AS tfb_is_this_counted")
        row = admin.execute(
            "SELECT EXISTS (SELECT FROM pg_stat_statements WHERE query LIKE '%is_this_counted')"
        ).fetchone()
    except psycopg.Error as error:
        raise NotCountedError(f"pg_stat_statements: {str(error).strip().splitlines()[0]}") from error
    if not row or not row[0]:
        # Statements are told apart by what is computed when they are prepared: only the database's start mends it.
        raise NotCountedError("compute_query_id must be auto or on when the database starts")


def snapshot(admin: psycopg.Connection) -> Snapshot:
    """What has been counted so far of all roles but the administrator's."""
    rows = admin.execute(
        """
        SELECT queryid, query, sum(calls)::bigint, sum(rows)::bigint, sum(shared_blks_hit + shared_blks_read)::bigint
        FROM pg_stat_statements
        WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
          AND userid <> (SELECT oid FROM pg_roles WHERE rolname = current_user)
          AND query IS NOT NULL
        GROUP BY queryid, query
        """
    ).fetchall()
    deallocated = admin.execute("SELECT dealloc FROM pg_stat_statements_info").fetchone()
    waiting = admin.execute(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND usename <> current_user "
        "AND state LIKE 'idle in transaction%'"
    ).fetchone()
    return Snapshot(
        counted={(number, text): (calls, n, pages) for number, text, calls, n, pages in rows},
        deallocated=int(deallocated[0]) if deallocated else 0,
        open_portals=int(waiting[0]) if waiting else 0,
    )


def _settled(
    admin: psycopg.Connection, before: Snapshot, complete: Callable[[StatementCounts], bool]
) -> StatementCounts:
    until = time.monotonic() + SETTLE_SECONDS
    while True:
        counts = snapshot(admin).since(before)
        if complete(counts) or time.monotonic() > until:
            return counts
        time.sleep(0.02)


def _setting(admin: psycopg.Connection, name: str) -> str:
    row = admin.execute("SELECT current_setting(%s, true)", (name,)).fetchone()
    return str(row[0] or "") if row else ""
