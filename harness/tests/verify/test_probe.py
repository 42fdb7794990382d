"""The probe sees during the load what verification before it could not."""

import time

import pytest

from harness.plan.testtypes.registry import TEST_TYPES
from harness.records.models import Closed
from harness.runtime import DatabaseAddress
from harness.tests.doubles.reference import URLS, ReferenceServer
from harness.tests.doubles.rogues import Rogue
from harness.tests.doubles.rogues.gallery import ROGUES
from harness.tests.doubles.upstream import FakeUpstream
from harness.verify.probe import Probe

ENOUGH = 8  # requests: what a few of them show is seen
LOAD_SECONDS = 0.5  # at most, of a server that does not answer as many


def probed(server: ReferenceServer, name: str, database: DatabaseAddress | None, *, patience: float = 1.0) -> Probe:
    """A probe of so many requests, or of so long a load."""
    kind = TEST_TYPES[name]
    level = Closed(connections=8, queries=20 if kind.sweep in ("query", "cached-query") else None)
    probe = Probe(
        endpoint=server.endpoint,
        test_type=kind,
        url=URLS[name],
        level=level,
        database=database,
        period=0.005,
        patience=patience,
    )
    until = time.monotonic() + LOAD_SECONDS
    with probe:
        while probe.requests < ENOUGH and time.monotonic() < until:
            time.sleep(0.005)
    return probe


@pytest.mark.parametrize("name", URLS)
def test_a_truthful_server_has_nothing_to_fear(name: str, database: DatabaseAddress) -> None:
    with FakeUpstream() as upstream, ReferenceServer(database, upstream.url) as server:
        probe = probed(server, name, database)
    assert probe.failures == ()
    assert 3 <= probe.requests <= 2 * ENOUGH


@pytest.mark.parametrize(
    "name",
    [
        *("nameless", "date-stale", "json-as-text", "plaintext-line-end", "string-ids", "invents-numbers"),
        *("always-row-42", "identical-rows", "off-by-one", "sorted-by-id", "injected-script", "lower-case-key"),
    ],
)
def test_rogues_are_seen_without_the_help_of_thousands_of_requests(name: str, database: DatabaseAddress) -> None:
    rogue = ROGUES[name]
    with rogue.server(database) as server:
        probe = probed(server, "json" if rogue.test_type == "http" else rogue.test_type, database)
    assert rogue.caught_by in {failure.check for failure in probe.failures}


def late(self: ReferenceServer) -> bytes:
    time.sleep(1)
    return b""


def test_a_server_that_stops_answering_is_reported() -> None:
    stopped = Rogue(
        name="stops",
        test_type="json",
        caught_by="answered",
        does="nothing",
        change={"json_body": late},
    )
    with stopped.server() as server:
        probe = probed(server, "json", None, patience=0.3)
    assert [failure.check for failure in probe.failures] == ["answered"]


def test_a_few_requests_a_second_are_sent_by_default() -> None:
    with ReferenceServer() as server:
        kind = TEST_TYPES["json"]
        with Probe(
            endpoint=server.endpoint, test_type=kind, url="/json", level=Closed(connections=8), database=None
        ) as probe:
            time.sleep(1.0)
    assert 2 <= probe.requests <= 5


def test_an_error_within_the_measurement_is_not_hidden_by_the_probe() -> None:
    with ReferenceServer() as server:
        probe = Probe(
            endpoint=server.endpoint,
            test_type=TEST_TYPES["json"],
            url="/json",
            level=Closed(connections=8),
            database=None,
        )
        with pytest.raises(RuntimeError, match="wrk failed"), probe:
            raise RuntimeError("wrk failed")
