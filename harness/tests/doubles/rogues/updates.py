"""Rogues of the update test: lost, late, stale, doubled and misplaced writes."""

import threading
import time
from collections.abc import Sequence
from typing import Any

import psycopg

from harness.tests.doubles.reference import ROWS, ReferenceServer, Row, Session
from harness.tests.doubles.rogues import Change, Rogue
from harness.tests.doubles.rogues.busy import busy

LATE_SECONDS = 0.02


def half(self: ReferenceServer, session: Session, connection: psycopg.Connection, rows: Sequence[Row]) -> None:
    ReferenceServer.write(self, session, connection, rows[: (len(rows) + 1) // 2])


def not_single(self: ReferenceServer, session: Session, connection: psycopg.Connection, rows: Sequence[Row]) -> None:
    if len(rows) > 1:
        ReferenceServer.write(self, session, connection, rows)


def stale(self: ReferenceServer, session: Session, connection: psycopg.Connection, count: int) -> list[Row]:
    """Writes the new numbers, answers the old ones."""
    old = self.rows(session, connection, sorted(self.draw_different(session, count)))
    self.write(session, connection, [(i, self.new_number(session, number)) for i, number in old])
    return old


def late(self: ReferenceServer, session: Session, connection: psycopg.Connection, rows: Sequence[Row]) -> None:
    """Puts small writes off."""
    if len(rows) != 5:
        ReferenceServer.write(self, session, connection, rows)
        return

    def write() -> None:
        time.sleep(LATE_SECONDS)
        with self.connection() as another:
            ReferenceServer.write(self, session, another, rows)

    threading.Thread(target=write, daemon=True).start()


def wrong_in_a_crowd(
    self: ReferenceServer, session: Session, connection: psycopg.Connection, rows: Sequence[Row]
) -> None:
    """Writes something else while another request is being answered: a race."""
    if self.open_connections > 4:
        rows = [(i, number % ROWS + 1) for i, number in rows]
    ReferenceServer.write(self, session, connection, rows)


def twin_too(self: ReferenceServer, session: Session, connection: psycopg.Connection, rows: Sequence[Row]) -> None:
    ReferenceServer.write(self, session, connection, rows)
    if len(rows) == 1:
        connection.execute('UPDATE "World" SET randomnumber = 1 WHERE id = %s', (rows[0][0] % ROWS + 1,))


def two_numbers(self: ReferenceServer, session: Session, connection: psycopg.Connection, count: int) -> list[Row]:
    """The last of a few rows is the one before it again, with another number; the last write wins."""
    rows = ReferenceServer.update(self, session, connection, count - 1 if count == 5 else count)
    if count != 5:
        return rows
    again = self.rows(session, connection, [rows[-1][0]])[0]
    last = (again[0], self.new_number(session, again[1]))
    ReferenceServer.write(self, session, connection, [last])
    return [*rows, last]


def unchanged(self: ReferenceServer, session: Session, old: int) -> int:
    return old


def small(self: ReferenceServer, session: Session, old: int) -> int:
    return session.dice.choice([n for n in (session.dice.randint(1, 5000) for _ in range(3)) if n != old])


def twice(self: ReferenceServer, session: Session, connection: psycopg.Connection, rows: Sequence[Row]) -> None:
    for _ in range(2):
        ReferenceServer.write(self, session, connection, rows)


def unread(self: ReferenceServer, session: Session, connection: psycopg.Connection, count: int) -> list[Row]:
    ids = sorted(self.draw_different(session, count))
    rows = [(i, session.dice.randint(1, ROWS)) for i in ids]
    self.write(session, connection, rows)
    return rows


def nothing(self: ReferenceServer, session: Session, connection: psycopg.Connection, rows: Sequence[Row]) -> None:
    """Writes nothing."""


def zero_when_busy(
    self: ReferenceServer, session: Session, connection: psycopg.Connection, rows: Sequence[Row]
) -> None:
    many = busy(self)
    ReferenceServer.write(self, session, connection, [(i, 0 if many else number) for i, number in rows])


def skipped_when_busy(
    self: ReferenceServer, session: Session, connection: psycopg.Connection, rows: Sequence[Row]
) -> None:
    if not busy(self):
        ReferenceServer.write(self, session, connection, rows)


def rogue(name: str, caught_by: str, does: str, change: Change, **more: Any) -> Rogue:
    return Rogue(name=name, test_type="update", caught_by=caught_by, does=does, change=change, **more)


ROGUES = (
    rogue("loses-half", "update-stored", "writes half of the rows", {"write": half}),
    rogue("never-writes", "update-stored", "answers without writing", {"write": nothing}),
    rogue("loses-single-rows", "update-stored", "does not write when asked for one row", {"write": not_single}),
    rogue("answers-stale-numbers", "update-stored", "writes, but answers the old numbers", {"update": stale}),
    rogue("writes-late", "written-before-answered", "writes after it has answered", {"write": late}),
    rogue("races", "update-stored-in-a-crowd", "writes other numbers while others ask", {"write": wrong_in_a_crowd}),
    rogue("touches-others", "no-other-row-changed", "also writes a row that was not asked for", {"write": twin_too}),
    rogue("two-numbers-for-a-row", "one-number-a-row", "answers a row twice, differently", {"update": two_numbers}),
    rogue("writes-what-it-read", "numbers-change", "keeps the numbers", {"new_number": unchanged}),
    rogue("small-numbers", "numbers-uniform", "new numbers up to 5000 only", {"new_number": small}),
    rogue("writes-twice", "rows-written", "writes every row twice", {"write": twice}),
    rogue("does-not-read", "rows-read", "writes without reading", {"update": unread}),
    rogue(
        "skips-when-busy",
        "rows-written",
        "does not write while many ask",
        {"write": skipped_when_busy},
        under_load=True,
    ),
    rogue("spoils-when-busy", "table-sound", "writes zeros while many ask", {"write": zero_when_busy}, under_load=True),
)
