"""Reads and changes the database tables that a server under test uses."""

import random
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import NamedTuple

import psycopg
from psycopg import sql

from harness.runtime import DatabaseAddress
from harness.runtime.database import connect
from harness.verify.checks.evidence import WorldTables
from harness.verify.checks.statement_counts import HIGHEST_ID, StatementSnapshot, find_counting_obstacle, take_snapshot

WORLD_TABLES = ("world", "World")
FORTUNE_TABLES = ("fortune", "Fortune")
MAX_IDLE_WAIT_SECONDS = 10.0  # time limit for a load's last writes; generous, for busy machines
STABLE_READS, STABLE_INTERVAL_SECONDS = 3, 0.01
WRITE_STATE = """
    SELECT (SELECT sum(id::bigint * randomnumber) FROM world), (SELECT sum(id::bigint * randomnumber) FROM "World"),
           (SELECT count(*) FROM pg_stat_activity
            WHERE state = 'active' AND datname = current_database() AND pid <> pg_backend_pid())
"""
CLOCK = sql.SQL("SELECT extract(epoch FROM clock_timestamp())")
# Reading a table as a single string is ten times as fast as reading rows.
AS_TEXT = sql.SQL("string_agg(id || ' ' || randomnumber, ' ')")


class TableChange(NamedTuple):
    """New numbers for rows of a table. The change became visible between ``started_at`` and ``ended_at``."""

    text: str  # ids and numbers in the format of ``parse_table_text``
    started_at: float  # epoch seconds
    ended_at: float


def parse_table_text(text: str) -> dict[int, int]:
    """Parse a table in the format of ``AS_TEXT`` and return the numbers by id."""
    integers = list(map(int, text.split()))
    return dict(zip(integers[::2], integers[1::2], strict=True))


class DatabaseTables:
    """tfb's connection to the database, for reading and changing tables and for reading statement counts."""

    def __init__(self, connection: psycopg.Connection, *, admin: bool) -> None:
        self.connection = connection
        self.admin = admin  # whether the connection may change rows and read statement counts
        self._clock_lead = (float("-inf"), float("inf"))  # bounds in seconds; see ``clock_lead_bounds``

    def compare_clocks(self) -> None:
        """Measure the offset between the database's clock and this process's clock. Load makes the result inexact."""
        self._clock_lead = clock_lead_bounds(lambda: float(self.connection.execute(CLOCK).fetchall()[0][0]))

    def commit(self, *statements: sql.Composed) -> tuple[list[list[tuple[int, int]]], tuple[float, float]]:
        """Execute statements in a transaction. Return their rows, and bounds on when the changes became visible.

        The bounds are epoch seconds. The database, not tfb, reads the clock before and after the commit, so the
        interval contains no round trip. If a statement fails, no row changes, and psycopg.Error is raised.
        """
        batch = sql.SQL("; ").join((sql.SQL("BEGIN"), *statements, CLOCK, sql.SQL("COMMIT"), CLOCK))
        started_at = time.time()
        try:
            cursor = self.connection.execute(batch)
        except psycopg.Error:
            self.connection.rollback()
            raise
        done = time.time()
        results = [cursor.fetchall() for _ in cursor.results() if cursor.description]
        low, high = self._clock_lead
        interval = max(started_at, float(results[-2][0][0]) - high), min(done, float(results[-1][0][0]) - low)
        return results[:-2], interval

    def read_world(self) -> WorldTables:
        """Return the current contents of the world tables."""
        return {name: parse_table_text(text) for name, text in self.read_texts().items()}

    def read_snapshot(self) -> tuple[dict[str, str], float, float]:
        """Read both world tables at a single point in time. Return their rows as text, and bounds on the time.

        The bounds are epoch seconds.
        """
        with self.connection.transaction():
            self.connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            begun = time.time()
            self.connection.execute("SELECT 1")  # PostgreSQL takes the snapshot at the first statement
            done = time.time()
            return self.read_texts(), begun, done

    def read_texts(self) -> dict[str, str]:
        """Return each world table's rows as text. Call ``parse_table_text`` only after the load, because it is slow."""
        queries = {name: sql.SQL("SELECT {} FROM {}").format(AS_TEXT, sql.Identifier(name)) for name in WORLD_TABLES}
        return {name: str(self.connection.execute(query).fetchall()[0][0] or "") for name, query in queries.items()}

    @cached_property
    def uncounted_reason(self) -> str | None:
        """Return why PostgreSQL does not count statements, or None if it counts them."""
        return find_counting_obstacle(self.connection) if self.admin else "the database has no administrator account"

    def snapshot_statements(self) -> StatementSnapshot | None:
        """Return the counts of all servers' statements so far, or None if statements are not counted."""
        return None if self.uncounted_reason else take_snapshot(self.connection)

    def wait_until_idle(self) -> None:
        """Wait until several readings find unchanged tables and no other active session, or until a time limit."""
        deadline, previous, stable = time.monotonic() + MAX_IDLE_WAIT_SECONDS, None, 0
        while stable < STABLE_READS and time.monotonic() < deadline:
            current = self.connection.execute(WRITE_STATE).fetchone()
            stable = stable + 1 if current == previous and current and current[-1] == 0 else 0
            previous = current
            time.sleep(STABLE_INTERVAL_SECONDS)

    def change_rows(self, rows: int, dice: random.Random) -> dict[str, TableChange]:
        """Change the numbers of random ids in both world tables. Return the new numbers and the time of the change."""
        changes = {}
        ids, step = dice.sample(range(1, HIGHEST_ID + 1), rows), dice.randrange(1, HIGHEST_ID - 1)
        # The cast lets PostgreSQL use an index scan. Without the cast, comparing each row with the array would take
        # 0.25 s per table.
        array = sql.SQL("{}::int[]").format(sql.Literal(f"{{{','.join(map(str, ids))}}}"))
        for name in WORLD_TABLES:
            # Lock rows in id order, as servers do, to avoid deadlocks.
            statement = sql.SQL(
                "WITH locked AS MATERIALIZED (SELECT id FROM {table} WHERE id = ANY({ids}) ORDER BY id FOR UPDATE), "
                "changed AS (UPDATE {table} AS w SET randomnumber = 1 + (w.randomnumber + {step}) % 10000 "
                "FROM locked WHERE w.id = locked.id RETURNING w.id, w.randomnumber) SELECT {text} FROM changed"
            ).format(table=sql.Identifier(name), step=sql.Literal(step), ids=array, text=AS_TEXT)
            results, (started_at, ended_at) = self.commit(statement)
            changes[name] = TableChange(text=str(results[0][0][0] or ""), started_at=started_at, ended_at=ended_at)
        return changes

    def restore_world(self, world: WorldTables) -> None:
        """Reset all rows to the given numbers. Requires an administrator connection."""
        for name, table in world.items():
            # Lock rows in id order, like ``change_rows``.
            self.connection.execute(
                sql.SQL(
                    "WITH old AS MATERIALIZED (SELECT w.id, o.number FROM {table} AS w "
                    "JOIN unnest(%s::int[], %s::int[]) AS o (id, number) ON o.id = w.id "
                    "WHERE w.randomnumber <> o.number ORDER BY w.id FOR UPDATE OF w) "
                    "UPDATE {table} AS w SET randomnumber = old.number FROM old WHERE w.id = old.id"
                ).format(table=sql.Identifier(name)),
                (list(table), list(table.values())),
            )

    def set_fortunes(self, rows: Mapping[int, str]) -> tuple[float, float]:
        """Set the contents of both fortune tables.

        Return bounds on the time when the change became visible, in epoch seconds.
        """
        current = self.read_fortunes()
        changed = [(i, message) for i, message in rows.items() if current.get(i) != message]
        upsert = sql.SQL("INSERT INTO {} VALUES ({}, {}) ON CONFLICT (id) DO UPDATE SET message = excluded.message")
        delete = sql.SQL("DELETE FROM {} WHERE id = {}")
        statements: list[sql.Composed] = []
        for table in map(sql.Identifier, FORTUNE_TABLES):
            statements += (upsert.format(table, sql.Literal(i), sql.Literal(message)) for i, message in changed)
            statements += (delete.format(table, sql.Literal(i)) for i in current.keys() - rows.keys())
        return self.commit(*statements)[1]

    def vacuum(self) -> None:
        """Remove dead rows from the world tables. Requires an administrator connection."""
        self.connection.execute('VACUUM world, "World"')

    @contextmanager
    def moved_rows(self, database: DatabaseAddress) -> Iterator[Mapping[str, Mapping[int, tuple[int, int]]]]:
        """Move about half of the rows to other pages, and keep the old versions until the block ends.

        Requires an administrator connection. A second session uses a snapshot from before the move. PostgreSQL
        therefore keeps the old versions, and an index scan for a row also visits them. The server cannot see which rows
        need additional pages.

        Yields:
            For each table and id, two page counts. The first covers all pages that contain versions of the row, because
            an index scan touches all of them. The second covers only the pages up to that of the current version,
            because a scan for a single row stops there.
        """
        ids = random.Random().sample(range(1, HIGHEST_ID + 1), HIGHEST_ID // 2)
        self.vacuum()
        with connect(database, admin=True) as keeper:
            keeper.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            keeper.execute("SELECT 1")  # the first statement determines the snapshot
            yield {name: self._spread_rows(sql.Identifier(name), ids) for name in WORLD_TABLES}
        self.vacuum()

    def _spread_rows(self, table: sql.Identifier, ids: Sequence[int]) -> dict[int, tuple[int, int]]:
        """Rewrite rows until most have versions on several pages. Return page counts by id; see ``moved_rows``."""
        pages: dict[int, set[int]] = {}
        current: dict[int, int] = {}
        read = sql.SQL("SELECT id, (ctid::text::point)[0]::int FROM {}").format(table)
        rewrite = sql.SQL("UPDATE {} SET randomnumber = randomnumber WHERE id = ANY(%s)").format(table)
        for rewrites in range(8):  # eight rewrites suffice, even if they must first fill free space in the table
            current = dict(self.connection.execute(read).fetchall())
            for identifier, page in current.items():
                pages.setdefault(identifier, set()).add(page)
            if rewrites and sum(len(pages[identifier]) > 1 for identifier in ids) > len(ids) // 2:
                break
            self.connection.execute(rewrite, (list(ids),))
        # PostgreSQL scans the versions of a row in page order.
        return {i: (len(own), sum(page <= current[i] for page in own)) for i, own in pages.items()}

    def read_fortunes(self) -> dict[int, str]:
        """Return the fortunes by id. Both fortune tables have the same rows."""
        return dict(self.connection.execute("SELECT id, message FROM fortune").fetchall())

    @contextmanager
    def injected_fortunes(self) -> Iterator[dict[int, str]]:
        """Add fortunes and change an existing fortune in both tables. Restore the tables when the block ends.

        Requires an administrator connection. The first new message sorts between existing messages. It contains all
        characters that HTML escapes, repeated spaces, accents, and characters outside the Basic Multilingual Plane. Its
        random length reveals buffers that are too small for long messages. The other new messages reveal servers that
        sort by locale or ignore case.

        Yields:
            All messages by id.
        """
        message = (
            f"B{secrets.token_hex(4)} <b onclick='alert(1)'>&amp;\"é\"</b>  two  blanks, ÅÄÖ ß \u0131 "
            "\U0001d518\U0001d52b\U0001d526 \U0001f469\u200d\U0001f4bb "
            + "and so on " * secrets.randbelow(60)
            + "<!-- -->`${7*7}` {{7*7}} %s \\ end"
        )
        changed = f"Changed {secrets.token_hex(4)}: any program that runs right is <i>obsolete</i>"
        before = self.read_fortunes()
        others = (f"{secrets.choice('bcde')}{secrets.token_hex(4)} in lower case", f"\u00c4{secrets.token_hex(4)}")
        injected = {**before, 7: changed, 13: message, **dict(enumerate(others, 14))}
        try:
            self.set_fortunes(injected)
            yield injected
        finally:
            self.set_fortunes(before)


def clock_lead_bounds(read_other: Callable[[], float], reads: int = 8) -> tuple[float, float]:
    """Return bounds on how many seconds another clock is ahead of this process's clock.

    Each reading of the other clock falls between two readings of this process's clock, so the two differences are
    bounds. The result is the intersection of the bounds from ``reads`` readings.
    """
    low, high = float("-inf"), float("inf")
    for _ in range(reads):
        before, other, after = time.time(), read_other(), time.time()
        low, high = max(low, other - after), min(high, other - before)
    return min(low, high), max(low, high)  # setting a clock during the readings can reverse the bounds


@contextmanager
def open_tables(database: DatabaseAddress) -> Iterator[DatabaseTables]:
    """Connect, if possible as administrator. Disable tfb's index scans, which would count as the server's reads."""
    with connect(database, admin=database.admin_user is not None) as connection:
        for method in ("indexscan", "indexonlyscan", "bitmapscan"):
            connection.execute(sql.SQL("SET enable_{} = off").format(sql.SQL(method)))
        tables = DatabaseTables(connection, admin=database.admin_user is not None)
        tables.compare_clocks()
        yield tables
