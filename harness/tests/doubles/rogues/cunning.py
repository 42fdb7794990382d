"""Rogues that try to tell a load from a look: by rates, by connections, by what a database says.

Each is honest to whoever asks slowly, and while few are connected.
"""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import psycopg

from harness.tests.doubles.reference import ROWS, ReferenceServer, Reply, Request, Row, Session
from harness.tests.doubles.rogues import Change, Rogue
from harness.tests.doubles.rogues.busy import busy, remembered, when_busy
from harness.tests.doubles.rogues.stale import read_ahead
from harness.tests.doubles.rogues.updates import nothing

RATE = 60.0  # requests in a second
LATE_SECONDS = 0.03
A_MOMENT_SECONDS = 0.005

When = Callable[[ReferenceServer, Session], bool]


# ---- when ------------------------------------------------------------------------------------------------------------


def at_a_rate(self: ReferenceServer, session: Session) -> bool:
    """While requests come at more than a rate, however many are connected."""
    now = time.monotonic()
    with self.lock:
        times = self.state.setdefault("times", [])
        times.append(now)
        while times and now - times[0] > 0.25:
            times.pop(0)
        return len(times) > RATE and busy(self)


def on_every_fourth_connection(self: ReferenceServer, session: Session) -> bool:
    """A broken worker among four."""
    return busy(self) and session.number % 4 == 0


def one_in_a_hundred(self: ReferenceServer, session: Session) -> bool:
    with self.lock:
        self.state["seldom"] = self.state.get("seldom", 0) + 1
        return busy(self) and self.state["seldom"] % 100 == 0


def one_in_twenty(self: ReferenceServer, session: Session) -> bool:
    with self.lock:
        self.state["turn"] = self.state.get("turn", 0) + 1
        return busy(self) and self.state["turn"] % 20 == 0


def nobody_else_looks(self: ReferenceServer, session: Session) -> bool:
    """While the database has no session but its own, as far as it may see: it may not see any other's."""
    with self.lock:
        asked, others = self.state.get("others", (0.0, 1))
        if time.monotonic() - asked > 0.1:
            others = _other_sessions(self)
            self.state["others"] = (time.monotonic(), others)
    return busy(self) and others == 0


def _other_sessions(self: ReferenceServer) -> int:
    try:
        with self.connect() as line:
            query = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND usename <> user"
            row = line.execute(query).fetchone()
            return int(row[0]) if row else 1
    except psycopg.Error:
        return 0  # it is not told


# ---- what ------------------------------------------------------------------------------------------------------------


def another_greeting(when: When) -> Change:
    """The right size and the wrong content."""

    def reply(self: ReferenceServer, session: Session, request: Request) -> Reply:
        answer = ReferenceServer.reply(self, session, request)
        if when(self, session):
            answer.body = answer.body.replace(b"Hello", b"Hullo")
        return answer

    return {"reply": reply}


def other_numbers(when: When) -> Change:
    """Reads each row, and answers another number."""

    def rows(self: ReferenceServer, session: Session, connection: psycopg.Connection, ids: Sequence[int]) -> list[Row]:
        found = ReferenceServer.rows(self, session, connection, ids)
        return [(i, number % ROWS + 1) for i, number in found] if when(self, session) else found

    return {"rows": rows}


def from_memory(when: When) -> Change:
    """A copy of the table in place of reading."""

    def rows(self: ReferenceServer, session: Session, connection: psycopg.Connection, ids: Sequence[int]) -> list[Row]:
        if not when(self, session):
            return ReferenceServer.rows(self, session, connection, ids)
        table = remembered(self, connection)
        return [(i, table[i]) for i in ids]

    return {"rows": rows}


def decoys(self: ReferenceServer, session: Session, connection: psycopg.Connection, ids: Sequence[int]) -> list[Row]:
    """As many SELECTs as rows, all of row 1, and the answer out of a copy that is read anew each second."""
    if not busy(self):
        return ReferenceServer.rows(self, session, connection, ids)
    with self.lock:
        read, table = self.state.get("copy", (0.0, {}))
        if time.monotonic() - read > 1.0:
            table = dict(connection.execute("SELECT id, randomnumber FROM world").fetchall())
            self.state["copy"] = (time.monotonic(), table)
    ReferenceServer.rows(self, session, connection, [1] * len(ids))
    return [(i, table[i]) for i in ids]


def first_read(
    self: ReferenceServer, session: Session, connection: psycopg.Connection, ids: Sequence[int]
) -> list[Row]:
    """Reads each row as asked, and answers what it first read of it, while many ask."""
    rows = ReferenceServer.rows(self, session, connection, ids)
    kept: dict[int, Row] = self.state.setdefault("kept", {})
    for row in rows:
        kept.setdefault(row[0], row)
    return [kept[i] for i in ids] if busy(self) else rows


def shared_read(
    self: ReferenceServer, session: Session, connection: psycopg.Connection, ids: Sequence[int]
) -> list[Row]:
    """Answers the row that another request has just read."""
    now = time.monotonic()
    with self.lock:
        read, rows = self.state.get("shared", (0.0, []))
        if busy(self) and now - read < 0.01 and len(rows) == len(ids):
            return list(rows)
    rows = ReferenceServer.rows(self, session, connection, ids)
    with self.lock:
        self.state["shared"] = (now, rows)
    return rows


def first_fortunes(self: ReferenceServer, connection: psycopg.Connection) -> list[tuple[int, str]]:
    """Reads the fortunes, and renders those that it read before, while many ask."""
    rows = ReferenceServer.fortunes(self, connection)
    if not busy(self):
        self.state["fortunes"] = rows
    kept: list[tuple[int, str]] = self.state.get("fortunes", rows)
    return kept


def instead(when: When, other: Callable[..., None]) -> Change:
    """Other writes."""

    def write(self: ReferenceServer, session: Session, connection: psycopg.Connection, rows: Sequence[Row]) -> None:
        chosen = other if when(self, session) else ReferenceServer.write
        chosen(self, session, connection, rows)

    return {"write": write}


def same_numbers(self: ReferenceServer, session: Session, connection: psycopg.Connection, rows: Sequence[Row]) -> None:
    """Updates every row to the number that it has."""
    connection.execute("UPDATE world SET randomnumber = randomnumber WHERE id = ANY(%s)", ([i for i, _ in rows],))


def into_the_twin(self: ReferenceServer, session: Session, connection: psycopg.Connection, rows: Sequence[Row]) -> None:
    """Updates the other table of that name."""
    connection.execute(
        'UPDATE "World" AS w SET randomnumber = new.number '
        "FROM unnest(%s::int[], %s::int[]) AS new (id, number) WHERE w.id = new.id",
        ([i for i, _ in rows], [number for _, number in rows]),
    )


def later(seconds: float) -> Callable[..., None]:
    """Writes so long after the answer, everything, and in order."""

    def write(self: ReferenceServer, session: Session, connection: psycopg.Connection, rows: Sequence[Row]) -> None:
        with self.lock:
            first = "later" not in self.state
            waiting: list[tuple[float, Sequence[Row]]] = self.state.setdefault("later", [])
            waiting.append((time.monotonic() + seconds, rows))
        if first:
            threading.Thread(target=_write_later, args=(self, waiting), daemon=True).start()

    return write


def _write_later(self: ReferenceServer, waiting: list[tuple[float, Sequence[Row]]]) -> None:
    with self.connect() as line:
        session = Session(number=0)
        while not self.stopped:
            if waiting and time.monotonic() > waiting[0][0]:
                ReferenceServer.write(self, session, line, waiting.pop(0)[1])
            else:
                time.sleep(0.001)


def rogue(name: str, test_type: str, caught_by: str, does: str, change: Change, **more: Any) -> Rogue:
    return Rogue(name=name, test_type=test_type, caught_by=caught_by, does=does, change=change, under_load=True, **more)


ROGUES = (
    rogue("waits-for-the-rate", "json", "json-message", "another message at more than 240 requests/s", another_greeting(at_a_rate)),
    rogue("broken-worker", "json", "json-message", "another message on every fourth connection, while many ask", another_greeting(on_every_fourth_connection)),
    rogue("one-greeting-in-a-hundred", "json", "json-message", "another message one time in a hundred, while many ask", another_greeting(one_in_a_hundred)),
    rogue("broken-worker-of-rows", "query", "equals-row", "other numbers on every fourth connection, while many ask", other_numbers(on_every_fourth_connection)),
    rogue("looks-who-looks", "db", "equals-row", "other numbers while nobody else is connected to the database", other_numbers(nobody_else_looks)),
    rogue("memory-at-a-rate", "db", "rows-read", "rows out of memory at more than 240 requests/s", from_memory(at_a_rate)),
    rogue("spares-one-in-twenty", "query", "rows-read", "one request in twenty out of memory, while many ask", from_memory(one_in_twenty)),
    rogue("shares-reads", "db", "rows-read", "the row of another request, while many ask", {"rows": shared_read}),
    rogue("decoys-of-one-row", "query", "equals-row", "SELECTs of row 1 and a copy refreshed each second, while many ask", {"rows": decoys}),
    rogue("first-read-when-busy", "db", "equals-row", "reads rows and answers what it read first, while many ask", {"rows": first_read}),
    rogue("reads-ahead-when-busy", "db", "equals-row", "the row read for the connection's request before, while many ask", when_busy(read_ahead)),
    rogue("reads-ahead-of-many-when-busy", "query", "equals-row", "the rows read for the connection's request before, while many ask", when_busy(read_ahead)),
    rogue("first-fortunes-when-busy", "fortune", "fortunes-in-order", "reads fortunes and renders older ones, while many ask", {"fortunes": first_fortunes}),
    rogue("drops-one-in-twenty", "update", "rows-written", "drops one update in twenty, while many ask", instead(one_in_twenty, nothing)),
    rogue("writes-the-same", "update", "written-before-answered", "writes the old numbers back, while many ask", instead(lambda self, _: busy(self), same_numbers)),
    rogue("writes-the-twin", "update", "rows-written", "every fourth connection writes the other table", instead(on_every_fourth_connection, into_the_twin)),
    rogue("writes-late-when-busy", "update", "written-before-answered", "writes 30 ms after the answer, while many ask", instead(lambda self, _: busy(self), later(LATE_SECONDS))),
    rogue("writes-a-moment-late-when-busy", "update", "written-before-answered", "writes 5 ms after the answer, while many ask", instead(lambda self, _: busy(self), later(A_MOMENT_SECONDS))),
)  # fmt: skip
