"""Runs rogues past verification: which checks object to which rogue."""

import time
from collections.abc import Mapping

from harness import verify
from harness.checks.asking import Client
from harness.model import CheckResult, Level, Outcome
from harness.probe import Probe
from harness.runtime import DatabaseAddress
from harness.testing.reference import URLS, ReferenceServer
from harness.testing.rogues import Rogue
from harness.testtypes.registry import TEST_TYPES

PATIENCE = 0.7  # seconds to wait for bytes: the servers are in this process
CROWDED = 16  # connections of a load
ENOUGH = 8  # requests of the probe
LOAD_SECONDS = 10.0  # at most


def objections(rogue: Rogue, database: DatabaseAddress | None) -> Mapping[str, CheckResult]:
    """The results of a rogue's verification that are not passes, by the name of the check."""
    with rogue.server(database) as server:
        results = (
            under_load(server, rogue.test_type, database) if rogue.under_load else verified(server, rogue.test_type)
        )
    return {result.check: result for result in results if result.outcome is not Outcome.PASS}


def verified(server: ReferenceServer, test_type: str, *, thorough: bool = True) -> tuple[CheckResult, ...]:
    """All results of one verification."""
    if test_type == "http":
        return verify.check_connection(
            implementation="test",
            urls=URLS,
            endpoint=server.endpoint,
            replicate=0,
            thorough=thorough,
            patience=PATIENCE,
        ).results
    return verify.check(
        implementation="test",
        urls=URLS,
        endpoint=server.endpoint,
        test_type=TEST_TYPES[test_type],
        database=server.database,
        thorough=thorough,
        replicate=0,
        levels=[Level(concurrency=8)],
        patience=PATIENCE,
    ).results


def under_load(server: ReferenceServer, test_type: str, database: DatabaseAddress | None) -> tuple[CheckResult, ...]:
    """What the probe finds during a small load, and verification after it."""
    kind = TEST_TYPES[test_type]
    level = Level(concurrency=CROWDED, queries=20 if kind.sweep == "query" else None)
    case = verify.PLAIN if level.queries is None else verify.rows(level.queries)
    probe = Probe(
        endpoint=server.endpoint, test_type=kind, url=URLS[test_type], level=level, database=database, period=0.02
    )
    client = Client(server.endpoint, kind, URLS[test_type], PATIENCE)
    until = time.monotonic() + LOAD_SECONDS
    with probe:
        while probe.requests < ENOUGH and time.monotonic() < until:
            client.crowd([case] * CROWDED * 20, CROWDED)
    return probe.failures + verify.after_load(
        implementation="test",
        urls=URLS,
        endpoint=server.endpoint,
        test_type=kind,
        database=database,
        patience=PATIENCE,
    )
