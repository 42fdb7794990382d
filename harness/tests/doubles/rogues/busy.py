"""Rogues that are honest until many connections are open: what they spare or spoil then."""

import contextlib
import threading
import time
from collections.abc import Callable
from functools import partial, partialmethod
from typing import Any

import psycopg

from harness.tests.doubles.reference import Ids, Line, ReferenceServer, Reply, Request, Rows, Session
from harness.tests.doubles.rogues import Change, under_load
from harness.tests.doubles.rogues.http import close_each

LASTING = 12  # connections that are asked again and again; verification opens 8 of them
OPEN = 30  # connections at once; verification opens 24, which ask twice each

When = Callable[[ReferenceServer, Session], bool]


def busy(server: ReferenceServer) -> bool:
    """Whether there is a load, on a machine that stands still for most of it, too."""
    return server.lasting_connections > LASTING or server.open_connections > OPEN


def chosen(
    cheat: Callable[..., Any] | partialmethod[Any], honest: Callable[..., Any], when: Callable[[ReferenceServer], bool]
) -> Callable[..., Any]:
    """A method that cheats only then; either way it is bound to its server as Python binds a method."""
    return lambda self, *args: (cheat if when(self) else honest).__get__(self)(*args)


def while_busy(change: Change) -> Change:
    """The same replacements, each in force only while many ask."""
    return {name: chosen(cheat, getattr(ReferenceServer, name), busy) for name, cheat in change.items()}


def remembered(self: ReferenceServer, connection: Line) -> dict[int, int]:
    """The table, read once."""
    with self.lock:
        if "table" not in self.state:
            self.state["table"] = dict(connection.execute("SELECT id, randomnumber FROM world").fetchall())
        table: dict[int, int] = self.state["table"]
        return table


def empty_selects(self: ReferenceServer, session: Session, connection: Line, ids: Ids) -> Rows:
    """A SELECT a row that finds nothing; the answer comes out of memory."""
    table = remembered(self, connection)
    for _ in ids:
        connection.execute("SELECT id, randomnumber FROM world WHERE id = 0")
    return [(i, table[i]) for i in ids]


def range_scan(self: ReferenceServer, session: Session, connection: Line, ids: Ids) -> Rows:
    """One range for many rows' worth of counters; the answer comes out of memory."""
    table = remembered(self, connection)
    connection.execute("SELECT id, randomnumber FROM world WHERE id BETWEEN 1 AND 400")
    return [(i, table[i]) for i in ids]


def any_of(self: ReferenceServer, session: Session, connection: Line, ids: Ids) -> Rows:
    query = "SELECT world.id, randomnumber FROM unnest(%s::int[]) AS wanted (id) JOIN world USING (id)"
    return connection.execute(query, (list(ids),)).fetchall()


def any_of_and_decoys(self: ReferenceServer, session: Session, connection: Line, ids: Ids) -> Rows:
    """All rows by one statement, and SELECTs of row 1 up to the number that is due."""
    ReferenceServer.rows(self, session, connection, [1] * (len(ids) - 1))
    return any_of(self, session, connection, ids)


def written_together(self: ReferenceServer, session: Session, connection: Line, rows: Rows) -> None:
    """Requests that come within 5 ms are written by one statement, before they are answered."""
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


def fortunes_read_ahead(self: ReferenceServer, connection: Line) -> list[tuple[int, str]]:
    """The fortunes that were read for the connection's request before."""
    rows = ReferenceServer.fortunes(self, connection)
    with self.lock:
        kept: dict[int, list[tuple[int, str]]] = self.state.setdefault("ahead", {})
        before, kept[threading.get_ident()] = kept.get(threading.get_ident(), rows), rows
    return before if busy(self) else rows


def page_out_of_memory(self: ReferenceServer, connection: Line) -> list[tuple[int, str]]:
    if "fortunes" not in self.state:
        self.state["fortunes"] = ReferenceServer.fortunes(self, connection)
    return list(self.state["fortunes"])


def deadlocking(self: ReferenceServer, session: Session, connection: Line, rows: Rows) -> None:
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
    line = self.connect()
    with line, contextlib.suppress(psycopg.errors.DeadlockDetected), line.transaction():
        line.execute("UPDATE world SET randomnumber = randomnumber WHERE id = %s", (pair[0],))
        meeting.wait()
        line.execute("UPDATE world SET randomnumber = randomnumber WHERE id = %s", (pair[1],))


def rolled_back(self: ReferenceServer, session: Session, connection: Line, rows: Rows) -> None:
    """Writes, and takes it back: statements, rows and updates are counted all the same."""
    with connection.transaction(force_rollback=True):
        ReferenceServer.write(self, session, connection, rows)


def leaving(statement: str) -> Change:

    def rows(self: ReferenceServer, session: Session, connection: Line, ids: Ids) -> Rows:
        with self.lock:
            first = "left" not in self.state
            self.state["left"] = True
        if first:
            connection.execute(statement.encode())
        return ReferenceServer.rows(self, session, connection, ids)

    return while_busy({"rows": rows})


def fast(self: ReferenceServer, session: Session, after: int = 20) -> bool:
    """Whether many ask and this connection has asked often: the probe's never does."""
    session.state["asked"] = session.state.get("asked", 0) + 1
    return busy(self) and session.state["asked"] > after


def instead(step: str, when: When, cheat: Callable[..., Any]) -> Change:
    """Another way to take a step of a connection, then."""
    honest: Callable[..., Any] = getattr(ReferenceServer, step)

    def taken(self: ReferenceServer, session: Session, *arguments: Any) -> Any:
        return (cheat if when(self, session) else honest)(self, session, *arguments)

    return {step: taken}


def twice(self: ReferenceServer, request: Request | None, reply: Reply) -> bytes:
    answer = ReferenceServer.encode(self, request, reply)
    return answer * 2 if busy(self) and reply.status == 200 else answer


def two_dates(self: ReferenceServer, session: Session, request: Request) -> Reply:
    reply = ReferenceServer.reply(self, session, request)
    reply.headers.append(("Date", "Sun, 06 Nov 1994 08:49:37 GMT"))
    return reply


ROGUES = (
    under_load("empty-selects-when-busy", "db", "rows-read", "makes SELECTs that find nothing", while_busy({"rows": empty_selects})),
    under_load("scans-a-range-when-busy", "query", "one-row-a-select", "scans a range for show", while_busy({"rows": range_scan})),
    under_load("selects-at-once-and-decoys", "query", "one-row-a-select", "reads 20 rows by one SELECT and row 1 by 19 more", while_busy({"rows": any_of_and_decoys})),
    under_load("writes-requests-together", "update", "rows-written", "writes several requests by one statement", while_busy({"write": written_together})),
    under_load("caches-the-page-when-busy", "fortune", "rows-read", "renders fortunes out of memory", while_busy({"fortunes": page_out_of_memory})),
    under_load("reads-fortunes-ahead-when-busy", "fortune", "fortunes-in-order", "renders what was read for the connection's request before", {"fortunes": fortunes_read_ahead}),
    under_load("swallows-deadlocks", "update", "no-deadlocks", "takes deadlocks for successes", {"write": deadlocking}),
    under_load("leaves-a-setting", "db", "nothing-left-behind", "leaves a setting of the role behind", leaving("ALTER ROLE CURRENT_USER SET enable_indexscan = off")),
    under_load("changes-the-password", "db", "nothing-left-behind", "changes the role's password", leaving("ALTER ROLE CURRENT_USER PASSWORD 'mine'")),
    under_load("answers-twice", "json", "one-answer-a-request", "answers each request twice", {"encode": twice}),
    under_load("no-content", "json", "status-ok", "answers 204", instead("reply", fast, lambda *_: Reply(status=204))),
    under_load("closes-in-between", "json", "one-answer-a-request", "closes after 25 requests", instead("reply", partial(fast, after=25), close_each)),
    under_load("two-dates", "json", "date-form", "sends a second Date, of long ago", instead("reply", fast, two_dates)),
    under_load("rolls-back", "update", "written-before-answered", "rolls its writes back", while_busy({"write": rolled_back})),
)  # fmt: skip
