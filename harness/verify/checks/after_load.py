"""Checks after a load or a process: whether each request has a response, and what has changed in the database.

PostgreSQL sessions publish table counters about once per second, and when they end. The counters are therefore read
before a process starts and after it has stopped. The difference contains every row that the process fetched or updated.
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
from harness.verify.checks.evidence import DatabaseActivity, Evidence

# Time limit for the end of a stopped server's sessions, and interval of checking.
SESSION_END_SECONDS, POLL_SECONDS = 2.0, 0.05

UNANSWERED = "requests without a response (lost, or slower than the limit of 8 s)"

LOAD_ONLY = frozenset({LOAD})
KEEP_OPEN = (
    "connections that stay open until the client closes them: look for the server's limits of requests per connection "
    "and of connections"
)


@check(
    "load.5",
    LOAD_ONLY,
    lambda evidence: evidence.expected_work.writes > 0 and evidence.database_activity is not None,
)
def no_deadlocks(evidence: Evidence) -> Iterator[Finding]:
    """Warn about updates that PostgreSQL aborted because of deadlocks.

    The server may have repeated the updates, or responded with an error. Checks of rows and statements detect lost
    rows.
    """
    if deadlocks := (evidence.database_activity and evidence.database_activity.deadlocks) or 0:
        yield Finding(
            f"PostgreSQL ended {deadlocks} transactions of update as deadlocks. Write rows in the order of ids, or "
            "repeat a transaction that PostgreSQL ended",
            expected="no deadlocks",
            actual=f"{deadlocks} rolled back",
            outcome=Outcome.WARN,
        )


@check("load.6", LOAD_ONLY, lambda evidence: evidence.database_activity is not None)
def nothing_left_behind(evidence: Evidence) -> Iterator[Finding]:
    """Find changes to the database other than changed numbers in the world tables."""
    for name, before, after in (evidence.database_activity and evidence.database_activity.left_behind) or ():
        yield Finding(f"the server has changed {name}. Leave the database as it was", expected=before, actual=after)


@check("load.7", lambda name: name == DECLARED or ALL_TYPES(name), lambda evidence: evidence.request_counts is not None)
def one_answer_a_request(evidence: Evidence) -> Iterator[Finding]:
    """Find requests without a response, unrequested responses, wrong statuses, and hung or closed connections.

    A service may close connections, and its requests declare the expected status. Under TechEmpower's rules, every
    server may close connections, because wrk reconnects.
    """
    counts = evidence.request_counts
    assert counts is not None  # noqa: S101 - needs
    service = evidence.test_type == DECLARED
    unexpected = counts.failed if service else sum(n for status, n in counts.statuses.items() if status != "200")
    statuses = ", ".join(f"{number} × {status}" for status, number in sorted(counts.statuses.items()))
    interrupted = 0 if service else counts.interrupted
    for count, problem, accepted in (
        (counts.sent - counts.received - counts.unfinished - interrupted, UNANSWERED, False),
        (0 if service else counts.hung_connections, "connections that hung", False),
        (0 if service else counts.closed_connections, "connections that the server closed", True),
        (interrupted, "requests in progress on connections that the server closed", True),
        (counts.malformed, "responses with invalid framing, or with an unexpected body", False),
        (unexpected, "responses with an unexpected status", False),
        (counts.unsolicited, "responses without a request", False),
        (0 if service else counts.unsolicited_bytes, "bytes outside of responses", False),
    ):
        if count > 0:
            yield Finding(
                f"{problem}, in a load of {counts.sent} requests: {count}",
                expected=KEEP_OPEN if accepted else f"{counts.sent} complete responses to {counts.sent} requests",
                actual=f"{counts.received} responses: {statuses or 'none'}",
                accepted=accepted,
            )


# ---- over a process --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class DatabaseCounters:
    """PostgreSQL's counters of the world tables, and the definitions of all database objects."""

    counted: tuple[int, int, int] | None  # rows fetched by index, rows updated, and deadlocks; None if unknown
    state: Mapping[str, str]  # object -> definition; empty if unknown

    def since(self, earlier: "DatabaseCounters") -> DatabaseActivity:
        """Return the difference from an earlier reading."""
        fetched = updated = deadlocks = None
        if self.counted and earlier.counted:
            fetched, updated, deadlocks = (a - b for a, b in zip(self.counted, earlier.counted, strict=True))
        before = earlier.state
        left = tuple((name, before[name], now) for name, now in self.state.items() if before.get(name, now) != now)
        return DatabaseActivity(fetched=fetched, updated=updated, deadlocks=deadlocks, left_behind=left)


def read_counters(database: DatabaseAddress) -> DatabaseCounters:
    """Return the counters of all sessions since the database was created.

    First wait for the sessions of a stopped server, because sessions publish counters when they end.
    """
    admin = database.admin_user is not None
    with connect(database, admin=admin) as connection:
        ended = not admin or _wait_for_sessions(connection)
        row = connection.execute(
            "SELECT coalesce(sum(idx_tup_fetch), 0)::bigint, coalesce(sum(n_tup_upd), 0)::bigint, "
            "coalesce((SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()), 0) "
            "FROM pg_stat_user_tables WHERE lower(relname) = 'world'"
        ).fetchone()
        return DatabaseCounters(
            counted=(row[0], row[1], row[2]) if row and ended else None,
            state=read_server_state(connection, database.user) if admin else {},
        )


def _wait_for_sessions(admin: psycopg.Connection) -> bool:
    """Wait until all sessions of other roles in this database have ended, and return whether they have."""
    deadline = time.monotonic() + SESSION_END_SECONDS
    query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND usename <> current_user"
    while (sessions := admin.execute(query).fetchone()) and sessions[0] and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    return not (sessions and sessions[0])
