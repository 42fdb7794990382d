"""Checks that run after a load or after a server's exit: every request got a response, only permitted rows changed.

A PostgreSQL session publishes table counters about once per second, and when it ends. tfb therefore reads the counters
before a server process starts and after it has stopped. The difference contains every row that the process fetched or
updated.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import psycopg

from harness.plan.testtypes import DECLARED
from harness.plan.testtypes.registry import TEST_TYPES
from harness.records.verification_record import Outcome
from harness.runtime import DatabaseAddress
from harness.runtime.database import connect
from harness.runtime.database.table_sets import TABLE_SETS
from harness.verify.checks import ALL_TYPES, LOAD, Finding, check
from harness.verify.checks.evidence import DatabaseActivity, Evidence

# Description for messages -> query that returns the state. %(user)s is the server's role. Long results are hashed.
QUERIES: Mapping[str, str] = {
    "settings of roles or databases (ALTER ROLE … SET)": """
        SELECT coalesce(string_agg(coalesce(r.rolname, '*') || ': ' || array_to_string(s.setconfig, ', '), '; '
                                   ORDER BY r.rolname, s.setdatabase), 'none')
        FROM pg_db_role_setting AS s LEFT JOIN pg_roles AS r ON r.oid = s.setrole
        WHERE r.rolname = %(user)s
           OR s.setrole = 0 AND s.setdatabase IN (0, (SELECT oid FROM pg_database
                                                  WHERE datname = current_database()))""",
    "a role's password or rights": """
        SELECT md5(string_agg(concat_ws(' ', rolname, rolsuper, rolcreaterole, rolcreatedb, rolcanlogin, rolconnlimit)
                              || coalesce(rolpassword, ''), ',' ORDER BY rolname))
        FROM pg_authid WHERE rolname = %(user)s""",
    # Omit other servers' private databases. A server cannot exploit this exclusion by giving a database a matching
    # name, because server roles cannot create databases.
    "databases": r"SELECT string_agg(datname, ', ' ORDER BY datname) FROM pg_database "
    r"WHERE datname NOT LIKE 'hello\_world\_of\_%%'",
    "tables, indexes, views, sequences and their columns": """
        SELECT md5(coalesce(string_agg(
                   n.nspname || '.' || c.relname || c.relkind::text || coalesce(c.reloptions::text, '')
                   || coalesce(c.relacl::text, '') || c.relrowsecurity::text || c.relpersistence::text
                   || (SELECT coalesce(string_agg(concat_ws(' ', a.attname, a.atttypid, a.attnotnull), ','
                                                  ORDER BY a.attnum), '')
                       FROM pg_attribute AS a WHERE a.attrelid = c.oid AND a.attnum > 0),
                   ';' ORDER BY n.nspname, c.relname), ''))
        FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
        WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'""",
    "functions, triggers, rules, schemas and extensions": """
        SELECT md5(concat_ws('|',
            (SELECT string_agg(p.proname || p.prosrc, ',' ORDER BY p.oid) FROM pg_proc AS p
             JOIN pg_namespace AS n ON n.oid = p.pronamespace WHERE n.nspname !~ '^(pg_|information_schema)'),
            (SELECT string_agg(tgname || tgrelid::regclass::text, ',' ORDER BY oid) FROM pg_trigger),
            (SELECT string_agg(rulename, ',' ORDER BY oid) FROM pg_rewrite WHERE ev_class >= 16384),
            (SELECT string_agg(nspname, ',' ORDER BY nspname) FROM pg_namespace WHERE nspname !~ '^pg_'),
            (SELECT string_agg(extname, ',' ORDER BY extname) FROM pg_extension)))""",
    "prepared transactions": "SELECT coalesce(string_agg(gid, ', '), 'none') FROM pg_prepared_xacts "
    "WHERE database = current_database()",
    "advisory locks": "SELECT count(*)::text FROM pg_locks WHERE locktype = 'advisory' "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
    "large objects": "SELECT count(*)::text FROM pg_largeobject_metadata",
    "rows of the fortune tables": """
        SELECT md5((SELECT string_agg(id || message, ',' ORDER BY id) FROM fortune)
                   || (SELECT string_agg(id || message, ',' ORDER BY id) FROM "Fortune"))""",
    **{name: query for tables in TABLE_SETS for name, query in tables.state_queries.items()},
}


def read_server_state(admin: psycopg.Connection, user: str) -> dict[str, str]:
    """Return the database's current state, keyed by the names in ``QUERIES``. ``user`` is the server's role."""
    state = {}
    for name, query in QUERIES.items():
        row = admin.execute(query.encode(), {"user": user}).fetchone()
        state[name] = str(row[0]) if row else ""
    return state


# Time limit for a stopped server's database sessions to end, and interval between polls, in seconds.
SESSION_END_SECONDS, POLL_SECONDS = 2.0, 0.05

UNANSWERED = "requests without a response within 8 s"

LOAD_ONLY = frozenset({LOAD})
KEEP_OPEN = (
    "connections that stay open until the client closes them: check the server's limits on requests per connection "
    "and on open connections"
)


@check(
    "load.5",
    LOAD_ONLY,
    lambda evidence: evidence.expected_work.writes > 0 and evidence.database_activity is not None,
)
def no_deadlocks(evidence: Evidence) -> Iterator[Finding]:
    """Warn about updates aborted by deadlocks. The check only warns, because the server may retry the updates."""
    if deadlocks := (evidence.database_activity and evidence.database_activity.deadlocks) or 0:
        yield Finding(
            f"PostgreSQL aborted {deadlocks} update transactions because of deadlocks. Write rows in id order, "
            "or retry aborted transactions",
            expected="no deadlocks",
            actual=f"{deadlocks} deadlocks",
            outcome=Outcome.WARN,
        )


@check("load.6", LOAD_ONLY, lambda evidence: evidence.database_activity is not None)
def nothing_left_behind(evidence: Evidence) -> Iterator[Finding]:
    """Find permanent changes to the database. Only the random numbers in the world tables may change."""
    for name, before, after in (evidence.database_activity and evidence.database_activity.left_behind) or ():
        yield Finding(
            f"the server has changed {name}. Make only the permanent changes that a test type requires",
            expected=before,
            actual=after,
        )


@check("load.7", lambda name: name == DECLARED or ALL_TYPES(name), lambda evidence: evidence.request_counts is not None)
def one_answer_a_request(evidence: Evidence) -> Iterator[Finding]:
    """Find requests without a response, unrequested responses, wrong statuses, and hung or closed connections.

    A service declares the expected status of each request. It may close connections, and it may be overloaded. Under
    TechEmpower's rules, every server may close connections, because wrk reconnects.
    """
    counts = evidence.request_counts
    assert counts is not None  # noqa: S101 - guaranteed by ``needs``
    service = evidence.test_type == DECLARED
    own_statuses = service or (ALL_TYPES(evidence.test_type) and TEST_TYPES[evidence.test_type].draws_requests)
    unexpected = counts.failed if own_statuses else sum(n for status, n in counts.statuses.items() if status != "200")
    statuses = ", ".join(f"{number} × {status}" for status, number in sorted(counts.statuses.items()))
    interrupted = 0 if service else counts.interrupted
    missing = counts.sent - counts.received - counts.unfinished - interrupted
    for count, problem, accepted in (
        (missing - counts.hung_connections if service else missing, UNANSWERED, False),
        (0 if service else counts.hung_connections, "connections that hung", False),
        (0 if service else counts.closed_connections, "connections that the server closed", True),
        (interrupted, "requests in progress on connections that the server closed", True),
        (counts.malformed, "responses with invalid framing, or with an unexpected body", False),
        (unexpected, "responses with an unexpected status", False),
        (counts.unsolicited, "responses without a request", False),
        (0 if service else counts.unsolicited_bytes, "bytes outside any response", False),
    ):
        if count > 0:
            yield Finding(
                f"{problem}: {count} in a load of {counts.sent} requests",
                expected=KEEP_OPEN if accepted else f"{counts.sent} complete responses to {counts.sent} requests",
                actual=f"{counts.received} responses: {statuses or 'none'}",
                accepted=accepted,
            )


# ---- after the server process has exited -----------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class DatabaseCounters:
    """A reading of PostgreSQL's counters for the world tables, and of the definitions of database objects."""

    counted: tuple[int, int, int] | None  # rows fetched by index, rows updated, and deadlocks; None if unknown
    state: Mapping[str, str]  # name in ``QUERIES`` -> state; empty if unknown

    def since(self, earlier: "DatabaseCounters") -> DatabaseActivity:
        """Return the database activity since an earlier reading."""
        fetched = updated = deadlocks = None
        if self.counted and earlier.counted:
            fetched, updated, deadlocks = (a - b for a, b in zip(self.counted, earlier.counted, strict=True))
        before = earlier.state
        changes = tuple((name, before[name], now) for name, now in self.state.items() if before.get(name, now) != now)
        return DatabaseActivity(fetched=fetched, updated=updated, deadlocks=deadlocks, left_behind=changes)


def read_counters(database: DatabaseAddress) -> DatabaseCounters:
    """Wait for a stopped server's sessions to publish their counters, then return all counters."""
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
    """Wait for other roles' sessions in this database to end. Return whether all ended within the time limit."""
    deadline = time.monotonic() + SESSION_END_SECONDS
    query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND usename <> current_user"
    while (sessions := admin.execute(query).fetchone()) and sessions[0] and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    return not (sessions and sessions[0])
