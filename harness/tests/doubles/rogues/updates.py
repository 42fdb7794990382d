"""Rogues for the update test type. Their writes are lost, late, stale, duplicate or misplaced."""

import threading
import time
from collections.abc import Callable

from harness.tests.doubles.http_double import ClientSession
from harness.tests.doubles.reference import ROWS, DatabaseConnection, ReferenceServer, WorldRows
from harness.tests.doubles.rogues import Rogue
from harness.tests.doubles.rogues.busy import while_busy

LATE_SECONDS = 0.02


def later(seconds: float) -> Callable[..., None]:

    def write(self: ReferenceServer, session: ClientSession, connection: DatabaseConnection, rows: WorldRows) -> None:
        with self.lock:
            first = "later" not in self.state
            waiting: list[tuple[float, WorldRows]] = self.state.setdefault("later", [])
            waiting.append((time.monotonic() + seconds, rows))
        if first:
            threading.Thread(target=_write_later, args=(self, waiting), daemon=True).start()

    return write


def _write_later(self: ReferenceServer, waiting: list[tuple[float, WorldRows]]) -> None:
    with self.connect() as line:
        session = ClientSession(number=0)
        while not self.stopped:
            if waiting and time.monotonic() > waiting[0][0]:
                ReferenceServer.write(self, session, line, waiting.pop(0)[1])
            else:
                time.sleep(0.001)


def wrong_in_a_crowd(
    self: ReferenceServer, session: ClientSession, connection: DatabaseConnection, rows: WorldRows
) -> None:
    """Write wrong numbers while other connections are open."""
    if self.open_connections > 4:
        rows = [(i, number % ROWS + 1) for i, number in rows]
    ReferenceServer.write(self, session, connection, rows)


def twin_too(self: ReferenceServer, session: ClientSession, connection: DatabaseConnection, rows: WorldRows) -> None:
    ReferenceServer.write(self, session, connection, rows)
    if len(rows) == 1:
        connection.execute('UPDATE "World" SET randomnumber = 1 WHERE id = %s', (rows[0][0] % ROWS + 1,))


def two_numbers(self: ReferenceServer, session: ClientSession, connection: DatabaseConnection, count: int) -> WorldRows:
    """Return the last row twice, with different numbers."""
    rows = ReferenceServer.update(self, session, connection, count - 1 if count == 5 else count)
    if count != 5:
        return rows
    again = self.rows(session, connection, [rows[-1][0]])[0]
    last = (again[0], self.new_number(session, again[1]))
    ReferenceServer.write(self, session, connection, [last])
    return [*rows, last]


def small(self: ReferenceServer, session: ClientSession, old: int) -> int:
    return session.dice.choice([n for n in (session.dice.randint(1, 5000) for _ in range(3)) if n != old])


def twice(self: ReferenceServer, session: ClientSession, connection: DatabaseConnection, rows: WorldRows) -> None:
    for _ in range(2):
        ReferenceServer.write(self, session, connection, rows)


def unread(self: ReferenceServer, session: ClientSession, connection: DatabaseConnection, count: int) -> WorldRows:
    ids = sorted(self.draw_different(session, count))
    rows = [(i, session.dice.randint(1, ROWS)) for i in ids]
    self.write(session, connection, rows)
    return rows


def reads(choose: Callable[[ReferenceServer, ClientSession, list[int]], list[int]]) -> Callable[..., WorldRows]:
    """Write the drawn rows, but read as many other rows."""

    def update(self: ReferenceServer, session: ClientSession, connection: DatabaseConnection, count: int) -> WorldRows:
        ids = sorted(self.draw_different(session, count))
        self.rows(session, connection, choose(self, session, ids))
        rows = [(i, session.dice.randint(1, ROWS)) for i in ids]
        self.write(session, connection, rows)
        return rows

    return update


def nothing(self: ReferenceServer, session: ClientSession, connection: DatabaseConnection, rows: WorldRows) -> None:
    """Write nothing."""


ROGUES = (
    Rogue("never-writes", "update", "update-stored", "responds without writing", {"write": nothing}),
    Rogue("loses-single-rows", "update", "update-stored", "does not write a single row", {"write": lambda self, session, connection, rows: ReferenceServer.write(self, session, connection, rows if len(rows) > 1 else [])}),
    Rogue("writes-late", "update", "update-stored", "writes after responding", {"write": later(LATE_SECONDS)}),
    Rogue("races", "update", "update-stored", "writes wrong numbers while other connections are open", {"write": wrong_in_a_crowd}),
    Rogue("touches-others", "update", "no-other-row-changed", "also writes a row that it does not return", {"write": twin_too}),
    Rogue("two-numbers-for-a-row", "update", "one-number-a-row", "returns a row twice with different numbers", {"update": two_numbers}),
    Rogue("writes-what-it-read", "update", "numbers-change", "keeps the old numbers", {"new_number": lambda self, session, old: old}),
    Rogue("small-numbers", "update", "numbers-uniform", "draws new numbers up to 5000 only", {"new_number": small}),
    Rogue("writes-twice", "update", "rows-written", "writes every row twice", {"write": twice}),
    Rogue("does-not-read", "update", "rows-read", "writes without reading", {"update": unread}),
    Rogue("reads-other-rows", "update", "returned-rows-read", "reads rows other than those that it writes", {"update": reads(lambda self, session, ids: self.draw_different(session, len(ids)))}),
    Rogue("reads-row-1-only", "update", "returned-rows-read", "reads row 1 instead of each row", {"update": reads(lambda self, session, ids: [1] * len(ids))}),
    Rogue("reads-one-row-repeatedly", "update", "returned-rows-read", "reads the first row as often as it writes rows", {"update": reads(lambda self, session, ids: ids[:1] * len(ids))}),
    Rogue("spoils-when-busy", "update", "table-sound", "writes zeros under load", while_busy({"write": lambda self, session, connection, rows: ReferenceServer.write(self, session, connection, [(i, 0) for i, _ in rows])}), under_load=True),
)  # fmt: skip
