"""Tests for the client that sends verification's requests, and for its limits."""

import itertools
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from harness.plan.testtypes.registry import TEST_TYPES
from harness.records.verification_record import Outcome
from harness.runtime import Upstream, UpstreamStats
from harness.tests.doubles.http_double import ClientSession, ReceivedRequest, Reply
from harness.tests.doubles.reference import ReferenceServer
from harness.tests.verify.subjects import as_server
from harness.verify.checks import verification_client
from harness.verify.checks.evidence import Evidence, QueryVariant
from harness.verify.checks.fan_out import MAX_POLLS, wait_until_idle
from harness.verify.checks.verification_client import Client, VerificationTask
from harness.verify.verification import EvidenceGatherer, run_checks


class Large(ReferenceServer):
    def reply(self, session: ClientSession, request: ReceivedRequest) -> Reply:
        return Reply(status=200, body=b"x" * 1000)


def test_large_responses_reach_the_memory_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verification_client, "MAX_RETAINED_BYTES", 4000)
    with Large() as server:
        found = Client(server.endpoint, TEST_TYPES["json"], "/json").send_in_order([QueryVariant(name="plain")] * 20)
    assert [exchange.response is not None for exchange in found] == [True] * 3 + [
        False
    ] * verification_client.MAX_FAILURES
    assert "exceed 0 MiB" in (found[-1].error or "")


class Fails(ReferenceServer):
    """A server that responds to a connection's first ``failing`` requests with status 500."""

    failing = 1 << 30

    def reply(self, session: ClientSession, request: ReceivedRequest) -> Reply:
        return Reply(status=500) if session.requests <= self.failing else super().reply(session, request)


@pytest.mark.parametrize(("failing", "sent"), [(1 << 30, verification_client.MAX_SERVER_ERRORS), (11, 100)])
def test_a_server_that_always_fails_gets_few_requests(failing: int, sent: int) -> None:
    with Fails() as server:
        server.failing = failing
        found = Client(server.endpoint, TEST_TYPES["json"], "/json").send_in_order([QueryVariant(name="plain")] * 100)
    assert len(found) == sent


@pytest.mark.parametrize("name", ["json", "plaintext"])
def test_verification_of_a_failing_server_ends_early(name: str) -> None:
    with Fails() as server:
        asked = VerificationTask(server=as_server(server), test_type=TEST_TYPES[name], timeout=8.0, thorough=True)
        evidence = EvidenceGatherer(asked).evidence
    assert len(list(evidence.all_exchanges)) == verification_client.MAX_SERVER_ERRORS
    (status,) = [each for each in run_checks(evidence) if each.check == "status-ok"]
    assert status.outcome is Outcome.FAIL


class ClosesAfter(ReferenceServer):
    """A server that closes each connection after three requests."""

    def reply(self, session: ClientSession, request: ReceivedRequest) -> Reply:
        return replace(super().reply(session, request), close=session.requests == 3)


def test_limits_of_requests_per_connection_are_reported() -> None:
    with ClosesAfter() as server:
        exchanges = Client(server.endpoint, TEST_TYPES["json"], "/json").send_in_order([QueryVariant(name="plain")] * 4)
    (finding,) = [
        each for each in run_checks(Evidence(test_type="json", exchanges=exchanges)) if each.check == "keep-alive"
    ]
    assert finding.actual == "Connection: close after 3 requests"


class ClosesUnasked(ReferenceServer):
    """A server that closes each connection instead of responding to the second request, as after an idle timeout."""

    def reply(self, session: ClientSession, request: ReceivedRequest) -> Reply:
        if session.requests > 1:
            raise ConnectionAbortedError
        return super().reply(session, request)


def test_requests_on_closed_idle_connections_are_repeated() -> None:
    with ClosesUnasked() as server:
        found = Client(server.endpoint, TEST_TYPES["json"], "/json").send_in_order([QueryVariant(name="plain")] * 3)
    assert [(one.ok, one.case.name, one.reconnected) for one in found] == [(True, "plain", n > 0) for n in range(3)]


@pytest.mark.parametrize(("calls_left", "looks"), [(15, 15), (10**9, MAX_POLLS)])
def test_waiting_for_the_upstream_has_a_limit(calls_left: int, looks: int) -> None:
    calls, slept = itertools.count(1), list[float]()
    busy = SimpleNamespace(stats=lambda: UpstreamStats(calls=min(next(calls), calls_left), sum=0))
    wait_until_idle(cast("Upstream", busy), slept.append)
    assert len(slept) == looks
