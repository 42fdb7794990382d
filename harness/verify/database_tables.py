"""Reads and changes the tables of the database that a server under test uses."""

import random
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import NamedTuple

import psycopg
from psycopg import sql

from harness.runtime import DatabaseAddress
from harness.runtime.database import connect
from harness.verify.checks.evidence import HIGHEST_ID, WorldTables
from harness.verify.checks.statement_counts import StatementSnapshot, find_counting_obstacle, take_snapshot

WORLD_TABLES = ("world", "World")
FORTUNE_TABLES = ("fortune", "Fortune")
MAX_IDLE_WAIT_SECONDS = 10.0  # maximum time until the last requests of a load have written, even on a busy machine
STABLE_READS, STABLE_INTERVAL_SECONDS = 3, 0.01
WRITE_STATE = """
    SELECT (SELECT sum(id::bigint * randomnumber) FROM world), (SELECT sum(id::bigint * randomnumber) FROM "World"),
           (SELECT count(*) FROM pg_stat_activity
            WHERE state = 'active' AND datname = current_database() AND pid <> pg_backend_pid())
"""
CLOCK = sql.SQL("SELECT extract(epoch FROM clock_timestamp())")
AS_TEXT = sql.SQL("string_agg(id || ' ' || randomnumber, ' ')")  # ten times faster than reading rows


class TableChange(NamedTuple):
    """New numbers of rows in a table, which became visible between two points in time in epoch seconds."""

    text: str  # text for ``parse_table_text``
    begun: float
    done: float


def parse_table_text(text: str) -> dict[int, int]:
    """Return the numbers by id from the text of a table."""
    integers = list(map(int, text.split()))
    return dict(zip(integers[::2], integers[1::2], strict=True))


class DatabaseTables:
    """A connection of tfb to the database."""

    def __init__(self, connection: psycopg.Connection, *, admin: bool) -> None:
        self.connection = connection
        self.admin = admin  # whether the connection may change rows and read statement counts
        self._clock_lead = (float("-inf"), float("inf"))  # bounds in seconds; unknown before ``compare_clocks``

    def compare_clocks(self) -> None:
        """Measure the offset between the database's clock and this process's clock, preferably without a load."""
        self._clock_lead = clock_lead_bounds(lambda: float(self.connection.execute(CLOCK).fetchall()[0][0]))

    def commit(self, *statements: sql.Composed) -> tuple[list[list[tuple[int, int]]], tuple[float, float]]:
        """Execute statements in a transaction.

        The database reads the server-side clock before and after the commit, so round trips do not widen the interval.

        Returns:
            The rows of each statement, and an interval in epoch seconds within which the changes became visible.

        Raises:
            psycopg.Error: A statement failed, and no row was changed.
        """
        batch = sql.SQL("; ").join((sql.SQL("BEGIN"), *statements, CLOCK, sql.SQL("COMMIT"), CLOCK))
        begun = time.time()
        try:
            cursor = self.connection.execute(batch)
        except psycopg.Error:
            self.connection.rollback()
            raise
        done = time.time()
        results = [cursor.fetchall() for _ in cursor.results() if cursor.description]
        low, high = self._clock_lead
        interval = max(begun, float(results[-2][0][0]) - high), min(done, float(results[-1][0][0]) - low)
        return results[:-2], interval

    def read_world(self) -> WorldTables:
        """Return the current contents of the world tables."""
        return {name: parse_table_text(text) for name, text in self.read_texts().items()}

    def read_snapshot(self) -> tuple[dict[str, str], float, float]:
        """Return the text of each table at a point in time, and epoch seconds before and after it."""
        with self.connection.transaction():
            self.connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            begun = time.time()
            self.connection.execute("SELECT 1")  # the first statement determines the snapshot
            done = time.time()
            return self.read_texts(), begun, done

    def read_texts(self) -> dict[str, str]:
        """Return the text of each world table for ``parse_table_text``. Under load, reading rows would be too slow."""
        queries = {name: sql.SQL("SELECT {} FROM {}").format(AS_TEXT, sql.Identifier(name)) for name in WORLD_TABLES}
        return {name: str(self.connection.execute(query).fetchall()[0][0] or "") for name, query in queries.items()}

    @cached_property
    def uncounted_reason(self) -> str | None:
        """Return the reason why statements are not counted, or None if they are counted."""
        return find_counting_obstacle(self.connection) if self.admin else "the database's administrator is unknown"

    def snapshot_statements(self) -> StatementSnapshot | None:
        """Return exact counts of the servers' statements until now, or None if statements are not counted."""
        return None if self.uncounted_reason else take_snapshot(self.connection)

    def wait_until_idle(self) -> None:
        """Wait until several consecutive reads find no change of the tables and no active session."""
        deadline, previous, stable = time.monotonic() + MAX_IDLE_WAIT_SECONDS, None, 0
        while stable < STABLE_READS and time.monotonic() < deadline:
            current = self.connection.execute(WRITE_STATE).fetchone()
            stable = stable + 1 if current == previous and current and current[-1] == 0 else 0
            previous = current
            time.sleep(STABLE_INTERVAL_SECONDS)

    def change_rows(self, rows: int, dice: random.Random) -> dict[str, TableChange]:
        """Change the numbers of random rows, using the same rows in both world tables. Requires an administrator.

        Returns:
            The changed rows of each table, with the time of the change.
        """
        changes = {}
        ids, step = dice.sample(range(1, HIGHEST_ID + 1), rows), dice.randrange(1, HIGHEST_ID - 1)
        # The cast permits an index scan. Without it, each row would be compared with an int2[] array, 0.25 s per table.
        array = sql.SQL("{}::int[]").format(sql.Literal(f"{{{','.join(map(str, ids))}}}"))
        for name in WORLD_TABLES:
            # Lock rows in the order of ids, as servers do, to avoid deadlocks.
            statement = sql.SQL(
                "WITH locked AS MATERIALIZED (SELECT id FROM {table} WHERE id = ANY({ids}) ORDER BY id FOR UPDATE), "
                "changed AS (UPDATE {table} AS w SET randomnumber = 1 + (w.randomnumber + {step}) % 10000 "
                "FROM locked WHERE w.id = locked.id RETURNING w.id, w.randomnumber) SELECT {text} FROM changed"
            ).format(table=sql.Identifier(name), step=sql.Literal(step), ids=array, text=AS_TEXT)
            results, (begun, done) = self.commit(statement)
            changes[name] = TableChange(text=str(results[0][0][0] or ""), begun=begun, done=done)
        return changes

    def restore_world(self, world: WorldTables) -> None:
        """Set all rows to the given numbers. Requires an administrator."""
        for name, table in world.items():
            # Lock rows in the order of ids, like ``change_rows``.
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
        """Replace messages by id in both fortune tables within a transaction. Requires an administrator.

        Returns:
            An interval in epoch seconds within which the change became visible.
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
        """Remove dead rows from the world tables. Requires an administrator."""
        self.connection.execute('VACUUM world, "World"')

    def read_fortunes(self) -> dict[int, str]:
        """Return the messages of the fortune table by id; both fortune tables have the same rows."""
        return dict(self.connection.execute("SELECT id, message FROM fortune").fetchall())

    @contextmanager
    def planted_fortunes(self) -> Iterator[dict[int, str]]:
        """Add a fortune and change another one in both tables until the context exits. Requires an administrator.

        The new message is random and sorts between existing messages. It contains all characters that HTML escapes,
        repeated blanks, accents, and characters beyond the basic plane. It is also longer than short buffers. The
        changed message does not affect the number of rows.

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
        planted = {**before, 7: changed, 13: message}
        try:
            self.set_fortunes(planted)
            yield planted
        finally:
            self.set_fortunes(before)


def clock_lead_bounds(read_other: Callable[[], float], reads: int = 8) -> tuple[float, float]:
    """Return the minimum and the maximum number of seconds by which a clock is ahead of this process's clock.

    Each reading of that clock lies between two readings of this process's clock. The bounds are the intersection
    of these intervals.
    """
    low, high = float("-inf"), float("inf")
    for _ in range(reads):
        before, other, after = time.time(), read_other(), time.time()
        low, high = max(low, other - after), min(high, other - before)
    return min(low, high), max(low, high)  # the bounds are reversed if a clock was set during the readings


@contextmanager
def open_tables(database: DatabaseAddress) -> Iterator[DatabaseTables]:
    """Connect to the database, as the administrator if possible.

    The connection never fetches rows by index, because these rows would be attributed to the server.
    """
    with connect(database, admin=database.admin_user is not None) as connection:
        for method in ("indexscan", "indexonlyscan", "bitmapscan"):
            connection.execute(sql.SQL("SET enable_{} = off").format(sql.SQL(method)))
        tables = DatabaseTables(connection, admin=database.admin_user is not None)
        tables.compare_clocks()
        yield tables
