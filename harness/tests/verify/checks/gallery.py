"""Runs rogues past verification: which checks object to which rogue."""

import time
from collections.abc import Mapping

from harness.plan.testtypes.registry import TEST_TYPES
from harness.records.models import CheckResult, Closed, Outcome
from harness.runtime import DatabaseAddress, Upstream
from harness.runtime.database import connect
from harness.tests.doubles.reference import URLS, ReferenceServer
from harness.tests.doubles.rogues import Rogue
from harness.tests.doubles.upstream import FakeUpstream
from harness.verify import verification
from harness.verify.checks.asking import Client
from harness.verify.checks.load import DatabaseCounters, read_table_use
from harness.verify.probe import Probe

PATIENCE = 0.7  # seconds to wait for bytes: the servers are in this process
WAITING_PATIENCE = 5.0  # for servers that wait or call others
CROWDED = 16  # connections of a load
ENOUGH = 8  # requests of the probe
LOAD_SECONDS = 10.0  # at most


def objections(rogue: Rogue, database: DatabaseAddress | None) -> Mapping[str, CheckResult]:
    """The results of a rogue's verification that are not passes, by the name of the check."""
    if rogue.under_load and database:
        results = under_load(rogue, database)
    else:
        with FakeUpstream() as upstream, rogue.server(database, upstream.url) as server:
            results = verified(server, rogue.test_type, upstream)
    return {result.check: result for result in results if result.outcome is not Outcome.PASS}


def verified(
    server: ReferenceServer, test_type: str, upstream: Upstream | None = None, *, thorough: bool = True
) -> tuple[CheckResult, ...]:
    """All results of one verification."""
    if test_type == "http":
        return verification.check_connection(
            implementation="test",
            urls=server.urls,
            endpoint=server.endpoint,
            replicate=0,
            thorough=thorough,
            patience=PATIENCE,
        ).results
    return verification.check(
        implementation="test",
        urls=server.urls,
        endpoint=server.endpoint,
        test_type=TEST_TYPES[test_type],
        database=server.database,
        thorough=thorough,
        replicate=0,
        levels=[Closed(connections=8)],
        patience=WAITING_PATIENCE if test_type in ("delay", "fan-out", "order") else PATIENCE,
        upstream=upstream,
    ).results


def under_load(rogue: Rogue, database: DatabaseAddress) -> tuple[CheckResult, ...]:
    """What the probe finds during a small load, verification after it, and the table's counters once all is over."""
    kind, url = TEST_TYPES[rogue.test_type], URLS[rogue.test_type]
    level = Closed(connections=CROWDED, queries=20 if kind.sweep == "query" else None)
    case = verification.PLAIN if level.queries is None else verification.rows(level.queries)
    before = read_table_use(database)
    answered = pages = 0
    with rogue.server(database) as server:
        probe = Probe(endpoint=server.endpoint, test_type=kind, url=url, level=level, database=database, period=0.02)
        client = Client(server.endpoint, kind, url, PATIENCE)
        until = time.monotonic() + LOAD_SECONDS
        with probe:
            while probe.requests < ENOUGH and time.monotonic() < until:
                exchanges = client.crowd([case] * CROWDED * 20, CROWDED)
                if rogue.test_type == "fortune":
                    pages += sum(exchange.ok for exchange in exchanges)
                else:
                    answered += sum(len(exchange.items) for exchange in exchanges if exchange.ok)
        after = verification.after_load(
            urls=URLS,
            endpoint=server.endpoint,
            test_type=kind,
            database=database,
            patience=PATIENCE,
        )
    use = settled_table_use(database)
    counted = verification.check_load(
        before,
        use,
        answered_reads=answered,
        answered_writes=answered if kind.writes_database else 0,
        answered_fortunes=pages,
    )
    return (*probe.failures, *after, *counted)


def settled_table_use(database: DatabaseAddress) -> DatabaseCounters:
    """The counters once the sessions of the server have ended: they publish theirs on the way out."""
    with connect(database, admin=True) as admin:
        until = time.monotonic() + 2
        while time.monotonic() < until:
            row = admin.execute("SELECT count(*) FROM pg_stat_activity WHERE usename = %s", (database.user,)).fetchone()
            if row == (0,):
                break
            time.sleep(0.02)
    return read_table_use(database)
