"""Reads and, for one check, plants rows: the harness's own view of the database under the server."""

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
from harness.verify.checks.statement_counts import Snapshot, snapshot, uncounted

WORLDS = ("world", "World")
FORTUNES = ("fortune", "Fortune")
SETTLE_SECONDS = 10.0  # requests that a load has left behind are written within a moment, on a busy machine too
STILL_LOOKS, STILL_INTERVAL = 3, 0.01
WRITTEN = """
    SELECT (SELECT sum(id::bigint * randomnumber) FROM world), (SELECT sum(id::bigint * randomnumber) FROM "World"),
           (SELECT count(*) FROM pg_stat_activity
            WHERE state = 'active' AND datname = current_database() AND pid <> pg_backend_pid())
"""
CLOCK = sql.SQL("SELECT extract(epoch FROM clock_timestamp())")
AS_TEXT = sql.SQL("string_agg(id || ' ' || randomnumber, ' ')")  # ten times as quick to read as rows


class Changed(NamedTuple):
    """New numbers of rows of one table, which became visible between two moments (epoch seconds)."""

    text: str  # for ``numbers``
    begun: float
    done: float


def numbers(text: str) -> dict[int, int]:
    """By id, of a table's text."""
    found = list(map(int, text.split()))
    return dict(zip(found[::2], found[1::2], strict=True))


class DatabaseTables:
    """One connection of the harness to the shared database."""

    def __init__(self, connection: psycopg.Connection, *, admin: bool) -> None:
        self.connection = connection
        self.admin = admin  # may change rows, and see what others' statements were
        self._ahead = (float("-inf"), float("inf"))  # of the database's clock: not looked at

    def compare_clocks(self) -> None:
        """Find out how the database's clock stands to this process's; best before a load, when it answers promptly."""
        self._ahead = ahead(lambda: float(self.connection.execute(CLOCK).fetchall()[0][0]))

    def committed(self, *statements: sql.Composed) -> tuple[list[list[tuple[int, int]]], tuple[float, float]]:
        """Run these in one transaction; their rows, and epoch seconds before and after it became visible.

        By this process's clock. The database itself reads its clock on both sides of the commit, so that neither a
        round trip nor a busy machine widens them. Raises the psycopg.Error of a statement, with nothing changed.
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
        low, high = self._ahead
        times = max(begun, float(results[-2][0][0]) - high), min(done, float(results[-1][0][0]) - low)
        return results[:-2], times

    def world(self) -> WorldTables:
        """The world tables now."""
        return {name: numbers(text) for name, text in self.texts().items()}

    def look(self) -> tuple[dict[str, str], float, float]:
        """Their texts at one moment, and epoch seconds before and after it: of the snapshot, not of its reading."""
        with self.connection.transaction():
            self.connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            begun = time.time()
            self.connection.execute("SELECT 1")  # takes the snapshot
            done = time.time()
            return self.texts(), begun, done

    def texts(self) -> dict[str, str]:
        """The same, each table as one text for ``numbers``: while a load is on there is no time for rows."""
        queries = {name: sql.SQL("SELECT {} FROM {}").format(AS_TEXT, sql.Identifier(name)) for name in WORLDS}
        return {name: str(self.connection.execute(query).fetchall()[0][0] or "") for name, query in queries.items()}

    @cached_property
    def uncounted(self) -> str | None:
        """Why statements are not counted; None where they are."""
        return uncounted(self.connection) if self.admin else "no administrator's account for the database is known"

    def statements(self) -> Snapshot | None:
        """What servers' statements came to so far, exact at this moment; None where they are not counted."""
        return None if self.uncounted else snapshot(self.connection)

    def settle(self) -> None:
        """Wait until nobody writes any more: the same sums in some looks in a row, and no session at work."""
        until, last, still = time.monotonic() + SETTLE_SECONDS, None, 0
        while still < STILL_LOOKS and time.monotonic() < until:
            now = self.connection.execute(WRITTEN).fetchone()
            still = still + 1 if now == last and now and now[-1] == 0 else 0
            last = now
            time.sleep(STILL_INTERVAL)

    def change(self, rows: int, dice: random.Random) -> dict[str, Changed]:
        """Give so many rows of world other numbers, in both twins alike; needs the administrator.

        Returns what each table was given, and when. (The cast counts: ids that come as int2[] are of another type than
        the column, and are compared one by one with each row, for a quarter of a second a table.)
        """
        changed = {}
        ids, step = dice.sample(range(1, HIGHEST_ID + 1), rows), dice.randrange(1, HIGHEST_ID - 1)
        array = sql.SQL("{}::int[]").format(sql.Literal(f"{{{','.join(map(str, ids))}}}"))
        for name in WORLDS:
            # Locked in the order of ids, as servers that lock rows do: nobody is made to meet a deadlock.
            statement = sql.SQL(
                "WITH locked AS MATERIALIZED (SELECT id FROM {table} WHERE id = ANY({ids}) ORDER BY id FOR UPDATE), "
                "changed AS (UPDATE {table} AS w SET randomnumber = 1 + (w.randomnumber + {step}) % 10000 "
                "FROM locked WHERE w.id = locked.id RETURNING w.id, w.randomnumber) SELECT {text} FROM changed"
            ).format(table=sql.Identifier(name), step=sql.Literal(step), ids=array, text=AS_TEXT)
            results, (begun, done) = self.committed(statement)
            changed[name] = Changed(text=str(results[0][0][0] or ""), begun=begun, done=done)
        return changed

    def restore(self, world: WorldTables) -> None:
        """Give every row the number that it had then; needs the administrator."""
        for name, table in world.items():
            # Locked in the order of ids, as above.
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
        """Have both twins hold these messages by id and no other, all at once; needs the administrator.

        Returns epoch seconds before and after the change became visible.
        """
        now = self.fortunes()
        changed = [(i, message) for i, message in rows.items() if now.get(i) != message]
        put = sql.SQL("INSERT INTO {} VALUES ({}, {}) ON CONFLICT (id) DO UPDATE SET message = excluded.message")
        gone = sql.SQL("DELETE FROM {} WHERE id = {}")
        statements: list[sql.Composed] = []
        for table in map(sql.Identifier, FORTUNES):
            statements += (put.format(table, sql.Literal(i), sql.Literal(message)) for i, message in changed)
            statements += (gone.format(table, sql.Literal(i)) for i in now.keys() - rows.keys())
        return self.committed(*statements)[1]

    def vacuum(self) -> None:
        """Leave no dead rows behind; needs the administrator."""
        self.connection.execute('VACUUM world, "World"')

    def fortunes(self) -> dict[int, str]:
        """The rows of the fortune table, id -> message; the twins hold the same."""
        return dict(self.connection.execute("SELECT id, message FROM fortune").fetchall())

    @contextmanager
    def planted_fortune(self) -> Iterator[dict[int, str]]:
        """A further fortune and a changed one, in both twins for the length of the block; yields all rows.

        Needs the administrator. The new one sorts between others, differs each time and holds every character that HTML
        escapes, runs of blanks, accents, characters beyond the basic plane, and more of them than a short buffer takes;
        the changed one leaves the number of rows as it is.
        """
        message = (
            f"B{secrets.token_hex(4)} <b onclick='alert(1)'>&amp;\"é\"</b>  two  blanks, ÅÄÖ ß \u0131 "
            "\U0001d518\U0001d52b\U0001d526 \U0001f469\u200d\U0001f4bb "
            + "and so on " * secrets.randbelow(60)
            + "<!-- -->`${7*7}` {{7*7}} %s \\ end"
        )
        changed = f"Changed {secrets.token_hex(4)}: any program that runs right is <i>obsolete</i>"
        before = self.fortunes()
        planted = {**before, 7: changed, 13: message}
        try:
            self.set_fortunes(planted)
            yield planted
        finally:
            self.set_fortunes(before)


def ahead(other: Callable[[], float], looks: int = 8) -> tuple[float, float]:
    """By how many seconds another clock is ahead of this process's, at least and at most.

    Each look at it lies between two at our own, whatever takes its time: what all looks allow is what is true.
    """
    low, high = float("-inf"), float("inf")
    for _ in range(looks):
        before, there, after = time.time(), other(), time.time()
        low, high = max(low, there - after), min(high, there - before)
    return min(low, high), max(low, high)  # a clock that was set in between leaves them crossed


@contextmanager
def tables(database: DatabaseAddress) -> Iterator[DatabaseTables]:
    """Connect as the administrator where known: its statements are told apart from the server's.

    Its rows are not fetched by index, since those that are count as the server's.
    """
    with connect(database, admin=database.admin_user is not None) as connection:
        for way in ("indexscan", "indexonlyscan", "bitmapscan"):
            connection.execute(sql.SQL("SET enable_{} = off").format(sql.SQL(way)))
        view = DatabaseTables(connection, admin=database.admin_user is not None)
        view.compare_clocks()
        yield view
