"""Rogues that are honest until many connections are open: what they spare or spoil then."""

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import psycopg

from harness.tests.doubles.reference import ReferenceServer, Reply, Request, Row, Session
from harness.tests.doubles.rogues import Change, Rogue

LASTING = 12  # connections that are asked again and again; verification opens 8 of them
OPEN = 30  # connections at once; verification opens 24, which ask twice each


def busy(server: ReferenceServer) -> bool:
    """Whether there is a load, on a machine that stands still for most of it, too."""
    return server.lasting_connections > LASTING or server.open_connections > OPEN


Rows = Callable[[ReferenceServer, Session, psycopg.Connection, Sequence[int]], list[Row]]


def when_busy(cheat: Rows) -> Change:
    """Read rows so while many ask, honestly otherwise."""

    def rows(self: ReferenceServer, session: Session, connection: psycopg.Connection, ids: Sequence[int]) -> list[Row]:
        chosen = cheat if busy(self) else ReferenceServer.rows
        return chosen(self, session, connection, ids)

    return {"rows": rows}


def remembered(self: ReferenceServer, connection: psycopg.Connection) -> dict[int, int]:
    """The table, read once."""
    with self.lock:
        if "table" not in self.state:
            self.state["table"] = dict(connection.execute("SELECT id, randomnumber FROM world").fetchall())
        table: dict[int, int] = self.state["table"]
        return table


def empty_selects(
    self: ReferenceServer, session: Session, connection: psycopg.Connection, ids: Sequence[int]
) -> list[Row]:
    """A SELECT a row that finds nothing; the answer comes out of memory."""
    table = remembered(self, connection)
    for _ in ids:
        connection.execute("SELECT id, randomnumber FROM world WHERE id = 0")
    return [(i, table[i]) for i in ids]


def range_scan(
    self: ReferenceServer, session: Session, connection: psycopg.Connection, ids: Sequence[int]
) -> list[Row]:
    """One range for many rows' worth of counters; the answer comes out of memory."""
    table = remembered(self, connection)
    connection.execute("SELECT id, randomnumber FROM world WHERE id BETWEEN 1 AND 400")
    return [(i, table[i]) for i in ids]


def any_of(self: ReferenceServer, session: Session, connection: psycopg.Connection, ids: Sequence[int]) -> list[Row]:
    """All rows by one statement, each as often as it was drawn."""
    query = "SELECT world.id, randomnumber FROM unnest(%s::int[]) AS wanted (id) JOIN world USING (id)"
    return connection.execute(query, (list(ids),)).fetchall()


def any_of_and_decoys(
    self: ReferenceServer, session: Session, connection: psycopg.Connection, ids: Sequence[int]
) -> list[Row]:
    """All rows by one statement, and SELECTs of row 1 up to the number that is due."""
    ReferenceServer.rows(self, session, connection, [1] * (len(ids) - 1))
    return any_of(self, session, connection, ids)


def written_together(
    self: ReferenceServer, session: Session, connection: psycopg.Connection, rows: Sequence[Row]
) -> None:
    """Requests that come within 5 ms are written by one statement, before they are answered."""
    if not busy(self):
        ReferenceServer.write(self, session, connection, rows)
        return
    with self.lock:
        first = "together" not in self.state
        written, together = self.state.setdefault("together", (threading.Event(), {}))
        alone = not first and not together.keys().isdisjoint(i for i, _ in rows)
        if not alone:
            together.update(rows)
    if first:
        time.sleep(0.005)
        with self.lock:
            del self.state["together"]
        ReferenceServer.write(self, session, connection, sorted(together.items()))
        written.set()
    elif alone:
        ReferenceServer.write(self, session, connection, rows)
    else:
        written.wait(5)


def fortunes_read_ahead(self: ReferenceServer, connection: psycopg.Connection) -> list[tuple[int, str]]:
    """The fortunes that were read for the connection's request before."""
    rows = ReferenceServer.fortunes(self, connection)
    with self.lock:
        kept: dict[int, list[tuple[int, str]]] = self.state.setdefault("ahead", {})
        before, kept[threading.get_ident()] = kept.get(threading.get_ident(), rows), rows
    return before if busy(self) else rows


def page_out_of_memory(self: ReferenceServer, connection: psycopg.Connection) -> list[tuple[int, str]]:
    with self.lock:
        kept: list[tuple[int, str]] | None = self.state.get("fortunes")
    if kept is None or not busy(self):
        kept = ReferenceServer.fortunes(self, connection)
        with self.lock:
            self.state["fortunes"] = kept
    return kept


def unread(self: ReferenceServer, session: Session, connection: psycopg.Connection, count: int) -> list[Row]:
    """Writes numbers without reading the rows."""
    if not busy(self):
        return ReferenceServer.update(self, session, connection, count)
    rows = [(i, session.dice.randint(1, 10_000)) for i in sorted(self.draw_different(session, count))]
    self.write(session, connection, rows)
    return rows


def dropped_one_in_five(
    self: ReferenceServer, session: Session, connection: psycopg.Connection, rows: Sequence[Row]
) -> None:
    """Loses one update in five, whoever asks."""
    with self.lock:
        self.state["writes"] = self.state.get("writes", 0) + 1
        kept = self.state["writes"] % 5
    if kept or not busy(self):
        ReferenceServer.write(self, session, connection, rows)


def deadlocking(self: ReferenceServer, session: Session, connection: psycopg.Connection, rows: Sequence[Row]) -> None:
    """Writes two rows in both orders at the same time beside its answers, and swallows the deadlock."""
    ReferenceServer.write(self, session, connection, rows)
    with self.lock:
        first = busy(self) and "locked" not in self.state
        if first:
            self.state["locked"] = True
    if first:
        meeting = threading.Barrier(2)
        for pair in ((1, 2), (2, 1)):
            threading.Thread(target=locked, args=(self, meeting, pair)).start()


def locked(self: ReferenceServer, meeting: threading.Barrier, pair: tuple[int, int]) -> None:
    """One side of a deadlock."""
    line = self.connect()
    with line, contextlib.suppress(psycopg.errors.DeadlockDetected), line.transaction():
        line.execute("UPDATE world SET randomnumber = randomnumber WHERE id = %s", (pair[0],))
        meeting.wait()
        line.execute("UPDATE world SET randomnumber = randomnumber WHERE id = %s", (pair[1],))


def role_setting(
    self: ReferenceServer, session: Session, connection: psycopg.Connection, ids: Sequence[int]
) -> list[Row]:
    """Leaves a setting of the role behind for whoever logs in next."""
    with self.lock:
        first = "left" not in self.state
        self.state["left"] = True
    if first:
        connection.execute("ALTER ROLE benchmarkdbuser SET enable_indexscan = off")
    return ReferenceServer.rows(self, session, connection, ids)


def new_password(
    self: ReferenceServer, session: Session, connection: psycopg.Connection, ids: Sequence[int]
) -> list[Row]:
    """Changes the password, so that the next server cannot log in."""
    with self.lock:
        first = "left" not in self.state
        self.state["left"] = True
    if first:
        connection.execute("ALTER ROLE benchmarkdbuser PASSWORD 'mine'")
    return ReferenceServer.rows(self, session, connection, ids)


def fast(self: ReferenceServer, session: Session, after: int = 20) -> bool:
    """Whether many ask and this connection has asked often: the probe's never does."""
    session.state["asked"] = session.state.get("asked", 0) + 1
    return busy(self) and session.state["asked"] > after


def twice(self: ReferenceServer, request: Request | None, reply: Reply) -> bytes:
    """Two answers to each request while many ask."""
    answer = ReferenceServer.encode(self, request, reply)
    return answer * 2 if busy(self) and reply.status == 200 else answer


def other_status(self: ReferenceServer, session: Session, request: Request) -> Reply:
    reply = ReferenceServer.reply(self, session, request)
    return Reply(status=204) if fast(self, session) else reply


def other_message(self: ReferenceServer, session: Session, request: Request) -> Reply:
    """The right size and the wrong content, on fast connections only."""
    reply = ReferenceServer.reply(self, session, request)
    if fast(self, session):
        reply.body = reply.body.replace(b"Hello", b"Hullo")
    return reply


def other_number(
    self: ReferenceServer, session: Session, connection: psycopg.Connection, ids: Sequence[int]
) -> list[Row]:
    """Reads each row and answers the number after it, on fast connections only."""
    rows = ReferenceServer.rows(self, session, connection, ids)
    return [(i, number % 10_000 + 1) for i, number in rows] if fast(self, session) else rows


def closes(self: ReferenceServer, session: Session, request: Request) -> Reply:
    """Closes a connection after its 25th request while many ask."""
    reply = ReferenceServer.reply(self, session, request)
    reply.close = fast(self, session, 25)
    return reply


def rolled_back(self: ReferenceServer, session: Session, connection: psycopg.Connection, rows: Sequence[Row]) -> None:
    """Writes, and takes it back: statements, rows and updates are counted all the same."""
    if not busy(self):
        ReferenceServer.write(self, session, connection, rows)
        return
    with connection.transaction(force_rollback=True):
        ReferenceServer.write(self, session, connection, rows)


def fixed_date(self: ReferenceServer, session: Session, request: Request) -> Reply:
    """Answers a Date of long ago on fast connections."""
    reply = ReferenceServer.reply(self, session, request)
    if fast(self, session):
        reply.headers.append(("Date", "Sun, 06 Nov 1994 08:49:37 GMT"))
    return reply


def rogue(name: str, test_type: str, caught_by: str, does: str, change: Change) -> Rogue:
    return Rogue(
        name=name,
        test_type=test_type,
        caught_by=caught_by,
        does=f"{does} while many ask",
        change=change,
        under_load=True,
    )


def left(name: str, does: str, rows: Any) -> Rogue:
    return Rogue(
        name=name, test_type="db", caught_by="nothing-left-behind", does=does, change=when_busy(rows), under_load=True
    )


ROGUES = (
    rogue(
        "empty-selects-when-busy",
        "db",
        "rows-read",
        "makes SELECTs that find nothing",
        when_busy(empty_selects),
    ),
    rogue("scans-a-range-when-busy", "query", "one-row-a-select", "scans a range for show", when_busy(range_scan)),
    rogue(
        "selects-at-once-when-busy",
        "query",
        "one-row-a-select",
        "reads 20 rows by one SELECT",
        when_busy(any_of),
    ),
    rogue(
        "selects-at-once-and-decoys",
        "query",
        "one-row-a-select",
        "reads 20 rows by one SELECT and row 1 by 19 more",
        when_busy(any_of_and_decoys),
    ),
    rogue(
        "writes-requests-together",
        "update",
        "rows-written",
        "writes several requests by one statement",
        {"write": written_together},
    ),
    rogue(
        "caches-the-page-when-busy",
        "fortune",
        "rows-read",
        "renders fortunes out of memory",
        {"fortunes": page_out_of_memory},
    ),
    rogue(
        "reads-fortunes-ahead-when-busy",
        "fortune",
        "fortunes-in-order",
        "renders what was read for the connection's request before",
        {"fortunes": fortunes_read_ahead},
    ),
    rogue("does-not-read-when-busy", "update", "rows-read", "writes without reading", {"update": unread}),
    rogue(
        "drops-some-when-busy",
        "update",
        "rows-written",
        "loses one update in five",
        {"write": dropped_one_in_five},
    ),
    rogue(
        "swallows-deadlocks", "update", "no-deadlock-answered", "takes deadlocks for successes", {"write": deadlocking}
    ),
    left("leaves-a-setting", "leaves a setting of the role behind", role_setting),
    left("changes-the-password", "changes the role's password", new_password),
    rogue("answers-twice", "json", "one-answer-a-request", "answers each request twice", {"encode": twice}),
    rogue("no-content", "json", "status-ok", "answers 204", {"reply": other_status}),
    rogue(
        "another-message", "json", "json-message", "answers another message of the same size", {"reply": other_message}
    ),
    rogue("closes-in-between", "json", "one-answer-a-request", "closes after 25 requests", {"reply": closes}),
    rogue("two-dates", "json", "date-form", "sends a second Date, of long ago", {"reply": fixed_date}),
    rogue("another-number", "db", "equals-row", "reads the row and answers another number", {"rows": other_number}),
    rogue("another-number-of-many", "query", "equals-row", "the same for 20 rows", {"rows": other_number}),
    rogue("rolls-back", "update", "written-before-answered", "rolls its writes back", {"write": rolled_back}),
)
