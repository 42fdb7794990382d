"""Reads and, for one check, plants rows: the harness's own view of the database under the server."""

import random
import secrets
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

import psycopg
from psycopg import sql

from harness.runtime import DatabaseAddress
from harness.runtime.database import connect
from harness.verify.checks.evidence import HIGHEST_ID, World

WORLDS = ("world", "World")
FORTUNES = ("fortune", "Fortune")
SETTLE_SECONDS = 10.0  # requests that a load has left behind are written within a moment, on a busy machine too
STILL_LOOKS = 4
CLOCK_LOOKS = 8
SEVENTH = "Any program that runs right is obsolete."  # as toolset/database/seed.sql has it
STILL_INTERVAL = 0.1


class Tables:
    """One connection of the harness to the shared database."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection
        self._ahead = (float("-inf"), float("inf"))  # of the database's clock: not looked at

    def compare_clocks(self) -> None:
        """Find out how the database's clock stands to this process's; best before a load, when it answers promptly."""
        self._ahead = ahead(self._time)

    def _time(self) -> float:
        row = self._connection.execute("SELECT extract(epoch FROM clock_timestamp())").fetchone()
        return float(row[0]) if row else 0.0

    def committed(self, *statements: sql.Composed) -> tuple[float, float]:
        """Run these in one transaction; epoch seconds before and after it became visible, by this process's clock.

        The database itself reads its clock on both sides of the commit, so that neither a round trip nor a busy machine
        widens them. Raises the psycopg.Error of a statement, with nothing changed.
        """
        clock = sql.SQL("SELECT extract(epoch FROM clock_timestamp())")
        batch = sql.SQL("; ").join((sql.SQL("BEGIN"), *statements, clock, sql.SQL("COMMIT"), clock))
        begun = time.time()
        try:
            cursor = self._connection.execute(batch)
        except psycopg.Error:
            self._connection.rollback()
            raise
        done = time.time()
        times = [float(cursor.fetchall()[0][0])] if cursor.description else []
        while cursor.nextset():
            times += [float(cursor.fetchall()[0][0])] if cursor.description else []
        low, high = self._ahead
        return max(begun, times[0] - high), min(done, times[1] - low)

    def world(self, ids: Collection[int] | None = None) -> World:
        """The world tables now, or some of their rows."""
        tables: dict[str, dict[int, int]] = {}
        for name in WORLDS:
            where = sql.SQL("") if ids is None else sql.SQL(" WHERE id = ANY({})").format(sql.Literal(list(ids)))
            query = sql.SQL("SELECT id, randomNumber FROM {}").format(sql.Identifier(name)) + where
            try:
                tables[name] = dict(self._connection.execute(query).fetchall())
            except psycopg.errors.UndefinedTable:
                continue
        return World(tables=tables)

    def settle(self, seconds: float = SETTLE_SECONDS) -> World:
        """The world tables once nobody writes any more: the same in ``STILL_LOOKS`` looks in a row, or time is up."""
        until = time.monotonic() + seconds
        last, still = self.world(), 1
        while still < STILL_LOOKS and time.monotonic() < until:
            time.sleep(STILL_INTERVAL)
            now = self.world()
            last, still = now, still + 1 if now == last else 1
        return last

    def change(self, share: float, seed: int) -> dict[str, tuple[float, float]]:
        """Give a random share of the rows other numbers, in both twins alike; needs the administrator.

        Returns, for each table, epoch seconds before and after its change became visible.

        A few thousand rows cost the database some ten milliseconds, and what is dead afterwards is vacuumed at once.
        (The cast counts: ids that come as int2[] are of another type than the column, and are compared one by one with
        each row, for a quarter of a second a table.)
        """
        draw = random.Random(seed)
        ids = draw.sample(range(1, HIGHEST_ID + 1), round(share * HIGHEST_ID))
        step = draw.randrange(1, 9_998)
        times = {}
        for name in WORLDS:
            try:
                times[name] = self.committed(
                    # Locked in the order of ids, as servers that lock rows do: nobody is made to meet a deadlock.
                    sql.SQL(
                        "WITH locked AS MATERIALIZED "
                        "(SELECT id FROM {table} WHERE id = ANY({ids}::int[]) ORDER BY id FOR UPDATE) "
                        "UPDATE {table} AS w SET {number} = 1 + (w.{number} + {step}) % 10000 "
                        "FROM locked WHERE w.id = locked.id"
                    ).format(
                        table=sql.Identifier(name),
                        number=sql.Identifier("randomnumber"),
                        step=sql.Literal(step),
                        ids=sql.Literal(ids),
                    )
                )
            except psycopg.errors.UndefinedTable:
                continue
        return times

    def restore(self, world: World) -> None:
        """Give every row the number that it had then, locked in the order of ids; needs the administrator."""
        for name, table in world.tables.items():
            self._connection.execute(
                sql.SQL(
                    "WITH old AS MATERIALIZED (SELECT w.id, o.number FROM {table} AS w "
                    "JOIN unnest(%s::int[], %s::int[]) AS o (id, number) ON o.id = w.id "
                    "WHERE w.{number} <> o.number ORDER BY w.id FOR UPDATE OF w) "
                    "UPDATE {table} AS w SET {number} = old.number FROM old WHERE w.id = old.id"
                ).format(table=sql.Identifier(name), number=sql.Identifier("randomnumber")),
                (list(table), list(table.values())),
            )

    def change_fortune(self, seed: int) -> tuple[dict[int, str], tuple[float, float]]:
        """Give one fortune another message of about its length, in both twins at once; needs the administrator.

        Returns all rows, and epoch seconds before and after the change became visible.
        """
        times = self._set_seventh(f"Any program that runs is obsolete: {seed}.")
        return self.fortunes(), times

    def seeded_fortune(self) -> None:
        """The message of the seed again."""
        self._set_seventh(SEVENTH)

    def _set_seventh(self, message: str) -> tuple[float, float]:
        change = sql.SQL("UPDATE {} SET message = {} WHERE id = 7")
        return self.committed(*(change.format(sql.Identifier(name), sql.Literal(message)) for name in FORTUNES))

    def vacuum(self) -> None:
        """Leave no dead rows behind; needs the administrator."""
        self._connection.execute('VACUUM world, "World"')

    def fortunes(self) -> dict[int, str]:
        """The rows of the fortune table, id -> message; the twins hold the same."""
        return dict(self._connection.execute("SELECT id, message FROM fortune").fetchall())

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
        planted = []
        try:
            for name in FORTUNES:
                table = sql.Identifier(name)
                try:
                    self._connection.execute(
                        sql.SQL("UPDATE {} SET message = {} WHERE id = 7").format(table, sql.Literal(changed))
                    )
                    self._connection.execute(
                        sql.SQL("INSERT INTO {} (id, message) VALUES (13, {})").format(table, sql.Literal(message))
                    )
                except psycopg.errors.UndefinedTable:
                    continue
                planted.append(table)
            yield self.fortunes()
        finally:
            for table in planted:
                self._connection.execute(sql.SQL("DELETE FROM {} WHERE id = 13").format(table))
                self._connection.execute(
                    sql.SQL("UPDATE {} SET message = {} WHERE id = 7").format(table, sql.Literal(SEVENTH))
                )


def ahead(other: Callable[[], float], looks: int = CLOCK_LOOKS) -> tuple[float, float]:
    """By how many seconds another clock is ahead of this process's, at least and at most.

    Each look at it lies between two at our own, whatever takes its time: what all looks allow is what is true.
    """
    low, high = float("-inf"), float("inf")
    for _ in range(looks):
        before, there, after = time.time(), other(), time.time()
        low, high = max(low, there - after), min(high, there - before)
    return min(low, high), max(low, high)  # a clock that was set in between leaves them crossed


@contextmanager
def tables(database: DatabaseAddress) -> Iterator[Tables]:
    """Connect as the administrator where known: its statements are told apart from the server's.

    Its rows are not fetched by index, since those that are count as the server's.
    """
    with connect(database, admin=database.admin_user is not None) as connection:
        for way in ("indexscan", "indexonlyscan", "bitmapscan"):
            connection.execute(sql.SQL("SET enable_{} = off").format(sql.SQL(way)))
        view = Tables(connection)
        if database.admin_user is not None:
            view.compare_clocks()
        yield view
