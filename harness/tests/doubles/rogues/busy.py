"""Rogues that cheat only while many connections are open."""

import contextlib
import threading
import time
from collections.abc import Callable
from functools import partial, partialmethod
from typing import Any

import psycopg

from harness.tests.doubles.http_double import ClientSession, ReceivedRequest, Reply
from harness.tests.doubles.reference import DatabaseConnection, Ids, ReferenceServer, WorldRows
from harness.tests.doubles.rogues import Change, under_load
from harness.tests.doubles.rogues.http import close_each

LASTING = 12  # more lasting connections mean a load; verification opens 8
STILL_BUSY_SECONDS = 2.0  # a load may have few connections for a moment
OPEN = 30  # more open connections mean a load; verification opens 24, with two requests each

When = Callable[[ReferenceServer, ClientSession], bool]


def busy(server: ReferenceServer) -> bool:
    """Return whether the server is under load, or was within the last STILL_BUSY_SECONDS.

    The delay bridges moments in which a load has few connections, for example because all of them close together. On a
    stalled machine, connections have sent too few requests to count as lasting, so the number of open ones decides.
    """
    now = time.monotonic()
    if server.lasting_connections > LASTING or server.open_connections > OPEN:
        server.state["busy until"] = now + STILL_BUSY_SECONDS
    until: float = server.state.get("busy until", 0.0)
    return now < until


def while_busy(change: Change, base: type[ReferenceServer] = ReferenceServer) -> Change:
    """Return replacements that take effect only under load."""

    def chosen(cheat: Callable[..., Any] | partialmethod[Any], honest: Callable[..., Any]) -> Callable[..., Any]:
        # Bind the selected function to the server, like a method.
        return lambda self, *args: (cheat if busy(self) else honest).__get__(self)(*args)

    return {name: chosen(cheat, getattr(base, name)) for name, cheat in change.items()}


def remembered(self: ReferenceServer, connection: DatabaseConnection) -> dict[int, int]:
    """Return the world table as it was at the first call."""
    with self.lock:
        if "table" not in self.state:
            self.state["table"] = dict(connection.execute("SELECT id, randomnumber FROM world").fetchall())
        table: dict[int, int] = self.state["table"]
        return table


def deadlocking(self: ReferenceServer, session: ClientSession, connection: DatabaseConnection, rows: WorldRows) -> None:
    """Lock two rows in opposite orders on two connections and ignore the deadlock error."""
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


def rolled_back(self: ReferenceServer, session: ClientSession, connection: DatabaseConnection, rows: WorldRows) -> None:
    """Write and roll back. PostgreSQL's counters still include the statements, rows and updates."""
    with connection.transaction(force_rollback=True):
        ReferenceServer.write(self, session, connection, rows)


def leaving(statement: str) -> Change:

    def rows(self: ReferenceServer, session: ClientSession, connection: DatabaseConnection, ids: Ids) -> WorldRows:
        with self.lock:
            first = "left" not in self.state
            self.state["left"] = True
        if first:
            connection.execute(statement.encode())
        return ReferenceServer.rows(self, session, connection, ids)

    return while_busy({"rows": rows})


def fast(self: ReferenceServer, session: ClientSession, after: int = 20) -> bool:
    """Return whether the server is under load and this connection has sent more than ``after`` requests."""
    session.state["sent"] = session.state.get("sent", 0) + 1
    return busy(self) and session.state["sent"] > after


def instead(step: str, when: When, cheat: Callable[..., Any]) -> Change:
    """Replace a step of the server with ``cheat``, effective while ``when`` returns True."""
    honest: Callable[..., Any] = getattr(ReferenceServer, step)

    def taken(self: ReferenceServer, session: ClientSession, *arguments: Any) -> Any:
        return (cheat if when(self, session) else honest)(self, session, *arguments)

    return {step: taken}


def twice(self: ReferenceServer, request: ReceivedRequest | None, reply: Reply) -> bytes:
    answer = ReferenceServer.encode(self, request, reply)
    return answer * 2 if busy(self) and reply.status == 200 else answer


ROGUES = (
    under_load("swallows-deadlocks", "update", "no-deadlocks", "reports deadlocks as successes", {"write": deadlocking}),
    under_load("leaves-a-setting", "db", "nothing-left-behind", "changes a setting of its database role", leaving("ALTER ROLE CURRENT_USER SET enable_indexscan = off")),
    under_load("answers-twice", "json", "one-answer-a-request", "sends each response twice", {"encode": twice}),
    under_load("no-content", "json", "status-ok", "responds with 204", instead("reply", fast, lambda *_: Reply(status=204))),
    under_load("closes-in-between", "json", "one-answer-a-request", "closes connections after 25 requests", instead("reply", partial(fast, after=25), close_each)),
    under_load("rolls-back", "update", "update-stored", "rolls back its writes", while_busy({"write": rolled_back})),
)  # fmt: skip
