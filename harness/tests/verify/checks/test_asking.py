"""What is asked in verification, and what is kept of it."""

import pytest

from harness.plan.testtypes.registry import TEST_TYPES
from harness.tests.doubles.reference import ReferenceServer, Reply, Request, Session
from harness.verify.checks import asking
from harness.verify.checks.asking import Client
from harness.verify.checks.evidence import Case


class Large(ReferenceServer):
    def reply(self, session: Session, request: Request) -> Reply:
        return Reply(status=200, body=b"x" * 1000)


def test_of_large_answers_no_more_is_kept_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "KEPT_BYTES", 4000)
    with Large() as server:
        found = Client(server.endpoint, TEST_TYPES["json"], "/json").ask([Case(name="plain")] * 20)
    assert [exchange.response is not None for exchange in found] == [True] * 3 + [False] * asking.GIVE_UP_AFTER
    assert "more than 0 MiB" in (found[-1].error or "")
