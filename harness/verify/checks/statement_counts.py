"""Exact statement counts out of pg_stat_statements, turned on only while the harness sends a known number of requests.

Library and extension are loaded by the run's database; ``pg_stat_statements.track`` is ``none`` during measurements.
"""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg

from harness.servers import DatabaseAddress
from harness.servers.database import connect

SETTLE_SECONDS = 0.3  # a statement is counted when its portal is closed, which may be after its answer was sent
RELOAD_SECONDS = 3.0


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
        return re.search(rf'(?<![\w$])"?{table}"?(?![\w$])', self.text, re.IGNORECASE) is not None

    @property
    def writes(self) -> bool:
        """Does it change rows?"""
        return re.search(r"\b(update|insert|delete|merge|copy|truncate)\b", self.text, re.IGNORECASE) is not None


@dataclass(frozen=True, kw_only=True)
class StatementCounts:
    """All statements that the server under test ran within the counted phase."""

    statements: tuple[Statement, ...]
    evicted: bool = False  # the view was too small: the counts are not exact

    def reads(self, table: str) -> tuple[Statement, ...]:
        """Those that read a table without changing it."""
        return tuple(s for s in self.statements if s.names(table) and not s.writes)

    def writes(self, table: str) -> tuple[Statement, ...]:
        """Those that change rows of a table."""
        return tuple(s for s in self.statements if s.names(table) and s.writes)


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
        _switch(database, admin, on=True)
        try:
            admin.execute("SELECT pg_stat_statements_reset()")
            yield counter
            counter.counts = _settled(admin, complete)
        finally:
            _switch(database, admin, on=False)


def _settled(admin: psycopg.Connection, complete: Callable[[StatementCounts], bool]) -> StatementCounts:
    until = time.monotonic() + SETTLE_SECONDS
    while True:
        counts = _read(admin)
        if complete(counts) or time.monotonic() > until:
            return counts
        time.sleep(0.02)


def _read(admin: psycopg.Connection) -> StatementCounts:
    rows = admin.execute(
        """
        SELECT query, sum(calls)::bigint, sum(rows)::bigint, sum(shared_blks_hit + shared_blks_read)::bigint
        FROM pg_stat_statements
        WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
          AND userid <> (SELECT oid FROM pg_roles WHERE rolname = current_user)
          AND query IS NOT NULL
        GROUP BY queryid, query
        """
    ).fetchall()
    evicted = admin.execute("SELECT dealloc FROM pg_stat_statements_info").fetchone()
    return StatementCounts(
        statements=tuple(Statement(text=text, calls=calls, rows=n, pages=pages) for text, calls, n, pages in rows),
        evicted=bool(evicted and evicted[0]),
    )


def _switch(database: DatabaseAddress, admin: psycopg.Connection, *, on: bool) -> None:
    """Turn counting on or off in all sessions that exist, and return when it took effect in every one of them."""
    want = "top" if on else "none"
    try:
        if on:
            admin.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
            admin.execute("SELECT 1 FROM pg_stat_statements LIMIT 1")
        if _setting(admin, "pg_stat_statements.track") != want:
            admin.execute(f"ALTER SYSTEM SET pg_stat_statements.track = {want}".encode())
            admin.execute("SELECT pg_reload_conf()")
        until = time.monotonic() + RELOAD_SECONDS
        while _setting(admin, "pg_stat_statements.track") != want:
            if time.monotonic() > until:
                raise NotCountedError("pg_stat_statements.track could not be changed by reloading")
            time.sleep(0.005)
        if on and not _counts(admin):
            # Statements are told apart by what is computed when they are prepared: only the database's start mends it.
            raise NotCountedError("compute_query_id must be auto or on when the database starts")
    except psycopg.Error as error:
        raise NotCountedError(f"pg_stat_statements: {str(error).strip().splitlines()[0]}") from error
    # The postmaster signals every session before it accepts this one, and a signalled session reloads before its next
    # command: from here on no session counts by the old setting.
    with connect(database, admin=True):
        pass


def _counts(admin: psycopg.Connection) -> bool:
    """Is a statement of this session counted?"""
    admin.execute("SELECT 1 AS tfb_is_this_counted")
    row = admin.execute("SELECT EXISTS (SELECT FROM pg_stat_statements WHERE query LIKE '%is_this_counted')").fetchone()
    return bool(row and row[0])


def _setting(admin: psycopg.Connection, name: str) -> str:
    row = admin.execute("SELECT current_setting(%s)", (name,)).fetchone()
    return str(row[0]) if row else ""
