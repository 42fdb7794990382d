"""What is asked in verification, and what is kept of it."""

import itertools
from types import SimpleNamespace
from typing import cast

import pytest

from harness.plan.testtypes.registry import TEST_TYPES
from harness.runtime import Upstream, UpstreamStats
from harness.tests.doubles.reference import ReferenceServer, Reply, Request, Session
from harness.verify.checks import asking
from harness.verify.checks.asking import Client
from harness.verify.checks.evidence import Case
from harness.verify.checks.fan_out import LOOKS, at_rest


class Large(ReferenceServer):
    def reply(self, session: Session, request: Request) -> Reply:
        return Reply(status=200, body=b"x" * 1000)


def test_of_large_answers_no_more_is_kept_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "KEPT_BYTES", 4000)
    with Large() as server:
        found = Client(server.endpoint, TEST_TYPES["json"], "/json").ask([Case(name="plain")] * 20)
    assert [exchange.response is not None for exchange in found] == [True] * 3 + [False] * asking.GIVE_UP_AFTER
    assert "more than 0 MiB" in (found[-1].error or "")


class ClosesUnasked(ReferenceServer):
    """Ends each connection at its second request, as if it had been idle for too long."""

    def reply(self, session: Session, request: Request) -> Reply:
        if session.asked > 1:
            raise ConnectionAbortedError
        return super().reply(session, request)


def test_a_request_that_met_the_end_of_an_idle_connection_is_sent_again() -> None:
    with ClosesUnasked() as server:
        found = Client(server.endpoint, TEST_TYPES["json"], "/json").ask([Case(name="plain")] * 3)
    assert [(one.ok, one.case.name, one.reconnected) for one in found] == [(True, "plain", n > 0) for n in range(3)]


@pytest.mark.parametrize(("calls_left", "looks"), [(15, 15), (10**9, LOOKS)])
def test_what_a_load_left_behind_is_waited_for_but_not_for_ever(calls_left: int, looks: int) -> None:
    calls, slept = itertools.count(1), list[float]()
    busy = SimpleNamespace(stats=lambda: UpstreamStats(calls=min(next(calls), calls_left), sum=0))
    at_rest(cast("Upstream", busy), slept.append)
    assert len(slept) == looks
