"""Rogues that recognise verification by its connections or database sessions.

All of them are honest at low rates and with few connections.
"""

import html
import time
from collections.abc import Sequence

import psycopg

from harness.tests.doubles.http_double import ClientSession, ReceivedRequest, Reply
from harness.tests.doubles.reference import DatabaseConnection, Ids, ReferenceServer, WorldRows
from harness.tests.doubles.rogues import Change, every, under_load
from harness.tests.doubles.rogues.busy import When, busy, fast, instead, while_busy
from harness.tests.doubles.rogues.rows import off_by_one, out_of_memory
from harness.tests.doubles.rogues.stale import read_ahead
from harness.tests.doubles.rogues.updates import later, nothing

LATE_SECONDS = 0.03


def on_every_fourth_connection(self: ReferenceServer, session: ClientSession) -> bool:
    return busy(self) and session.number % 4 == 0


def one_in(count: int) -> When:
    return lambda self, _: busy(self) and every(self, count)


def nobody_else_looks(self: ReferenceServer, session: ClientSession) -> bool:
    """Return whether the server is under load and sees no database sessions of other users.

    Its role cannot see the sessions of other roles.
    """
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
        return 0  # the role may not run the query


def hullo(self: ReferenceServer, session: ClientSession, request: ReceivedRequest) -> Reply:
    reply = ReferenceServer.reply(self, session, request)
    reply.body = reply.body.replace(b"Hello", b"Hullo")
    return reply


def another_greeting(when: When) -> Change:
    return instead("reply", when, hullo)


def other_numbers(when: When) -> Change:
    return instead("rows", when, off_by_one)


def from_memory(when: When) -> Change:
    return instead("rows", when, out_of_memory)


def decoys(self: ReferenceServer, session: ClientSession, connection: DatabaseConnection, ids: Ids) -> WorldRows:
    """Select row 1 once for each requested row, but return rows from a copy that is refreshed every second."""
    with self.lock:
        read, table = self.state.get("copy", (0.0, {}))
        if time.monotonic() - read > 1.0:
            table = dict(connection.execute("SELECT id, randomnumber FROM world").fetchall())
            self.state["copy"] = (time.monotonic(), table)
    ReferenceServer.rows(self, session, connection, [1] * len(ids))
    return [(i, table[i]) for i in ids]


def page_with_a_hole(self: ReferenceServer, fortunes: Sequence[tuple[int, str]]) -> bytes:
    """Build the page once. Later, insert only row 7's current message, without escaping it."""
    message = dict(fortunes)[7]
    if "page" not in self.state:
        self.state["page"] = ReferenceServer.page(self, fortunes).replace(html.escape(message).encode(), b"{hole}")
    page: bytes = self.state["page"]
    return page.replace(b"{hole}", message.encode())


def same_numbers(
    self: ReferenceServer, session: ClientSession, connection: DatabaseConnection, rows: WorldRows
) -> None:
    connection.execute("UPDATE world SET randomnumber = randomnumber WHERE id = ANY(%s)", ([i for i, _ in rows],))


def old_numbers(self: ReferenceServer, session: ClientSession, connection: DatabaseConnection, count: int) -> WorldRows:
    """Write rows back with their old numbers and return them, so that table and response agree."""
    rows = self.rows(session, connection, sorted(self.draw_different(session, count)))
    same_numbers(self, session, connection, rows)
    return rows


def into_the_twin(
    self: ReferenceServer, session: ClientSession, connection: DatabaseConnection, rows: WorldRows
) -> None:
    connection.execute(
        'UPDATE "World" AS w SET randomnumber = new.number '
        "FROM unnest(%s::int[], %s::int[]) AS new (id, number) WHERE w.id = new.id",
        ([i for i, _ in rows], [number for _, number in rows]),
    )


ROGUES = (
    under_load("another-message", "json", "json-message", "returns a wrong message of the same length on fast connections", another_greeting(fast)),
    under_load("one-greeting-in-a-hundred", "json", "json-message", "returns a wrong message in every hundredth response, under load", another_greeting(one_in(100))),
    under_load("broken-worker-of-rows", "query", "equals-row", "returns wrong numbers on every fourth connection, under load", other_numbers(on_every_fourth_connection)),
    under_load("looks-who-looks", "db", "equals-row", "returns wrong numbers while it sees no other database session", other_numbers(nobody_else_looks)),
    under_load("spares-one-in-twenty", "query", "rows-read", "serves every twentieth request from memory, under load", from_memory(one_in(20))),
    under_load("decoys-of-one-row", "query", "equals-row", "selects only row 1 and serves a copy refreshed every second, under load", while_busy({"rows": decoys})),
    under_load("reads-ahead-when-busy", "db", "equals-row", "returns the previous request's rows, under load", while_busy({"rows": read_ahead})),
    under_load("page-with-a-hole", "fortune", "fortunes-in-order", "inserts only row 7 into a page that it built once, under load", while_busy({"page": page_with_a_hole})),
    under_load("answers-old-numbers-when-busy", "update", "numbers-change", "returns rows unchanged and writes them back, under load", while_busy({"update": old_numbers})),
    under_load("drops-one-in-twenty", "update", "rows-written", "drops every twentieth update, under load", instead("write", one_in(20), nothing)),
    under_load("writes-the-same", "update", "update-stored", "writes the old numbers back, under load", while_busy({"write": same_numbers})),
    under_load("writes-the-twin", "update", "rows-written", "writes to the wrong table on every fourth connection", instead("write", on_every_fourth_connection, into_the_twin)),
    under_load("writes-late-when-busy", "update", "update-stored", "writes 30 ms after the response, under load", while_busy({"write": later(LATE_SECONDS)})),
)  # fmt: skip
