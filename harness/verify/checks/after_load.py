"""Did a load leave nothing behind, and was each of its requests answered? What generator and PostgreSQL counted.

The tables' own counters are published by sessions about once a second and when they end, so they are read before a
process starts and after it has stopped: every row that it fetched or updated is in them then.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import psycopg

from harness.plan.testtypes import DECLARED
from harness.records.outcome import Outcome
from harness.runtime import DatabaseAddress
from harness.runtime.database import connect
from harness.runtime.database.state import read_server_state
from harness.verify.checks import ALL_TYPES, LOAD, Finding, check
from harness.verify.checks.evidence import Evidence, TableUse

STILL_SECONDS, STILL_INTERVAL = 2.0, 0.05  # in which a stopped server's sessions end

UNANSWERED = "requests without an answer (lost, or slower than the limit of 8 s)"

HERE = frozenset({LOAD})
KEPT_OPEN = (
    "connections that stay open until the client closes them: look for the server's limits of requests per connection "
    "and of connections"
)


@check("load.5", HERE, lambda evidence: evidence.due.writes > 0 and evidence.use is not None)
def no_deadlocks(evidence: Evidence) -> Iterator[Finding]:
    """No update was ended as a deadlock; whether its server wrote it again, or said that it failed, is not seen here.

    Rows that are missing then are objected to by the checks of rows and statements.
    """
    if deadlocks := (evidence.use and evidence.use.deadlocks) or 0:
        yield Finding(
            f"PostgreSQL ended {deadlocks} transactions of update as deadlocks",
            expected="writes in the order of ids; else each is to be written again, or answered with an error status",
            actual=f"{deadlocks} rolled back",
            outcome=Outcome.WARN,
        )


@check("load.6", HERE, lambda evidence: evidence.use is not None)
def nothing_left_behind(evidence: Evidence) -> Iterator[Finding]:
    """The database is as it was but for the numbers of world."""
    for name, before, after in (evidence.use and evidence.use.left_behind) or ():
        yield Finding(f"the server has changed {name}", expected=before, actual=after)


@check("load.7", lambda name: name == DECLARED or ALL_TYPES(name), lambda evidence: evidence.account is not None)
def one_answer_a_request(evidence: Evidence) -> Iterator[Finding]:
    """Find requests without a response, unrequested responses, other statuses, and hung or closed connections.

    A service may close connections, and declares the status of its responses. Under TechEmpower's rules any server may
    close connections, because wrk opens new ones.
    """
    account = evidence.account
    assert account is not None  # noqa: S101 - needs
    service = evidence.test_type == DECLARED
    others = account.failed if service else sum(n for status, n in account.statuses.items() if status != "200")
    statuses = ", ".join(f"{number} × {status}" for status, number in sorted(account.statuses.items()))
    cut = 0 if service else account.cut
    for count, message, accepted in (
        (account.sent - account.received - account.unfinished - cut, UNANSWERED, False),
        (0 if service else account.hung, "connections that hung", False),
        (0 if service else account.closed, "connections that the server closed", True),
        (cut, "requests under way on connections that the server closed", True),
        (account.unsound, "answers not framed as HTTP asks, or of another body", False),
        (others, "answers of another status than expected", False),
        (account.unasked, "responses that nobody had asked for", False),
        (0 if service else account.unasked_bytes, "bytes outside of the answers", False),
    ):
        if count > 0:
            yield Finding(
                f"of a load of {account.sent} requests, {message}: {count}",
                expected=KEPT_OPEN if accepted else f"{account.sent} whole answers to {account.sent} requests",
                actual=f"{account.received} answers: {statuses or 'none'}",
                accepted=accepted,
            )


# ---- over a process --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class DatabaseCounters:
    """What the database has counted so far, and what stands in it."""

    counted: tuple[int, int, int] | None  # rows of world fetched by index and updated, and deadlocks; None: not known
    state: Mapping[str, str]  # empty: not known

    def since(self, earlier: "DatabaseCounters") -> TableUse:
        """What came between two readings."""
        fetched = updated = deadlocks = None
        if self.counted and earlier.counted:
            fetched, updated, deadlocks = (a - b for a, b in zip(self.counted, earlier.counted, strict=True))
        before = earlier.state
        left = tuple((n, before[n], now) for n, now in self.state.items() if before.get(n, now) != now)
        return TableUse(fetched=fetched, updated=updated, deadlocks=deadlocks, left_behind=left)


def read_counters(database: DatabaseAddress) -> DatabaseCounters:
    """What all sessions did to the tables since the database was made, and what stands in it.

    Sessions publish their counters when they end, so those of a server that has stopped are waited for.
    """
    admin = database.admin_user is not None
    with connect(database, admin=admin) as connection:
        ended = not admin or _ended(connection)
        row = connection.execute(
            "SELECT coalesce(sum(idx_tup_fetch), 0)::bigint, coalesce(sum(n_tup_upd), 0)::bigint, "
            "coalesce((SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()), 0) "
            "FROM pg_stat_user_tables WHERE lower(relname) = 'world'"
        ).fetchone()
        return DatabaseCounters(
            counted=(row[0], row[1], row[2]) if row and ended else None,
            state=read_server_state(connection, database.user) if admin else {},
        )


def _ended(admin: psycopg.Connection) -> bool:
    """Whether no session of another role is left in this database, soon."""
    until = time.monotonic() + STILL_SECONDS
    query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND usename <> current_user"
    while (found := admin.execute(query).fetchone()) and found[0] and time.monotonic() < until:
        time.sleep(STILL_INTERVAL)
    return not (found and found[0])
