"""What the generator's account and the database's counters of a load say of a server."""

from dataclasses import fields
from typing import Any

import pytest

from harness.plan.discovery import Rules
from harness.plan.testtypes import DECLARED
from harness.records.outcome import Outcome
from harness.records.verification_record import CheckResult
from harness.verify.checks import LOAD
from harness.verify.checks.after_load import UNANSWERED, DatabaseCounters
from harness.verify.checks.evidence import Due, Evidence, RequestAccount, TableUse
from harness.verify.checks.registry import CHECKS
from harness.verify.verification import judge


def accounted(rules: Rules, test_type: str = "json", **counts: int) -> CheckResult:
    """A load of a hundred requests, all answered but for these."""
    nothing: dict[str, Any] = {one.name: 0 for one in fields(RequestAccount)}
    received = 100 - counts.get("cut", 0) - counts.pop("missing", 0)
    account = RequestAccount(**{**nothing, "sent": 100, "received": received, "statuses": {"200": received}, **counts})
    evidence = Evidence(test_type=test_type, rules=rules, under_load=True, account=account)
    return CHECKS["one-answer-a-request"].run(evidence)


@pytest.mark.parametrize(
    ("test_type", "counts", "theirs", "message"),
    [
        ("json", {"closed": 1}, "warn", "connections that the server closed: 1"),
        ("json", {"closed": 1, "cut": 12}, "warn", "connections that the server closed: 1 (and 1 more like it)"),
        ("json", {"closed": 1, "cut": 12, "missing": 2}, "fail", f"{UNANSWERED}: 2 (and 2 more like it)"),
        ("json", {"hung": 1}, "fail", "connections that hung: 1"),
        (DECLARED, {"closed": 1, "hung": 1, "unasked_bytes": 1}, "pass", ""),  # behind an answer, not before it
        (DECLARED, {"closed": 1, "cut": 1}, "fail", f"{UNANSWERED}: 1"),
    ],
)
def test_a_server_that_closes_connections_now_and_then_fails_under_our_rules_alone(
    test_type: str, counts: dict[str, int], theirs: str, message: str
) -> None:
    found = [accounted(rules, test_type, **counts) for rules in ("tfb", "techempower")]
    assert [one.outcome for one in found] == ["fail" if message else "pass", theirs]
    assert found[1].message.removeprefix("of a load of 100 requests, ") == message


def test_closed_connections_alone_ask_for_the_server_s_limits() -> None:
    expected = {name: accounted("tfb", "json", **{name: 1}).expected for name in ("closed", "hung", "missing")}
    assert "limits of requests per connection" in str(expected["closed"])
    assert expected["hung"] == expected["missing"] == "100 whole answers to 100 requests"


@pytest.mark.parametrize(
    ("updated", "deadlocks", "objections"),
    [
        (2000, 0, {}),
        (2000, 3, {"no-deadlocks": Outcome.WARN}),  # a server may have written again
        (1900, 5, {"no-deadlocks": Outcome.WARN, "rows-written": Outcome.FAIL}),
    ],
)
def test_deadlocks_warn_and_rows_that_were_not_written_again_are_missed(
    updated: int, deadlocks: int, objections: dict[str, Outcome]
) -> None:
    use = TableUse(fetched=2000, updated=updated, deadlocks=deadlocks, left_behind=())
    evidence = Evidence(test_type=LOAD, due=Due(reads=2000, writes=2000, updates=100), use=use)
    assert {r.check: r.outcome for r in judge(evidence) if r.outcome is not Outcome.PASS} == objections


def test_counters_and_what_was_changed_are_told_between_two_readings() -> None:
    earlier = DatabaseCounters(counted=(10, 20, 1), state={"rows of fortune": "12", "indexes": "a"})
    later = DatabaseCounters(counted=(15, 22, 1), state={"rows of fortune": "13", "indexes": "a", "new": "b"})
    left = (("rows of fortune", "12", "13"),)
    assert later.since(earlier) == TableUse(fetched=5, updated=2, deadlocks=0, left_behind=left)
    unknown = DatabaseCounters(counted=None, state={})
    nothing = TableUse(fetched=None, updated=None, deadlocks=None, left_behind=())
    assert later.since(unknown) == unknown.since(earlier) == nothing
