"""Rogues that only an audit sees: honest on slow connections and to every counter of the database."""

from collections.abc import Sequence
from typing import Any

import psycopg

from harness.tests.doubles.reference import ReferenceServer, Reply, Request, Row, Session
from harness.tests.doubles.rogues import Change, Rogue
from harness.tests.doubles.rogues.busy import busy


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


def rogue(name: str, test_type: str, caught_by: str, does: str, change: Change, **more: Any) -> Rogue:
    return Rogue(
        name=name,
        test_type=test_type,
        caught_by=caught_by,
        does=f"{does} while many ask",
        change=change,
        under_load=True,
    )


AUDITED = (
    rogue("answers-twice", "json", "one-answer-a-request", "answers each request twice", {"encode": twice}),
    rogue("no-content", "json", "status-ok", "answers 204", {"reply": other_status}),
    rogue(
        "another-message", "json", "json-message", "answers another message of the same size", {"reply": other_message}
    ),
    rogue("closes-in-between", "json", "one-answer-a-request", "closes after 25 requests", {"reply": closes}),
    rogue("two-dates", "json", "date-form", "sends a second Date, of long ago", {"reply": fixed_date}),
    rogue("another-number", "db", "equals-row", "reads the row and answers another number", {"rows": other_number}),
    rogue("another-number-of-many", "query", "equals-row", "the same for 20 rows", {"rows": other_number}),
    rogue("rolls-back", "update", "update-stored-in-a-crowd", "rolls its writes back", {"write": rolled_back}),
)
