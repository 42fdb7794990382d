"""Tests for the checks after a load, which use the generator's request counts and the database's counters."""

from dataclasses import fields
from typing import Any

import pytest

from harness.plan.implementation import Rules
from harness.plan.testtypes import DECLARED
from harness.records.verification_record import CheckResult, Outcome
from harness.verify.checks import LOAD
from harness.verify.checks.after_load import UNANSWERED, DatabaseCounters
from harness.verify.checks.evidence import DatabaseActivity, Evidence, ExpectedWork, RequestCounts
from harness.verify.checks.registry import CHECKS
from harness.verify.verification import run_checks


def check_counts(rules: Rules, test_type: str = "json", **counts: int) -> CheckResult:
    """Check a load with 100 requests and 100 responses. ``counts`` overrides individual counts."""
    zeros: dict[str, Any] = {field.name: 0 for field in fields(RequestCounts)}
    received = 100 - counts.get("interrupted", 0) - counts.pop("missing", 0)
    of_load = RequestCounts(**{**zeros, "sent": 100, "received": received, "statuses": {"200": received}, **counts})
    evidence = Evidence(test_type=test_type, rules=rules, under_load=True, request_counts=of_load)
    return CHECKS["one-answer-a-request"].run(evidence)


@pytest.mark.parametrize(
    ("test_type", "counts", "techempower", "problem"),
    [
        ("json", {"closed_connections": 1}, "warn", "connections that the server closed"),
        ("json", {"closed_connections": 1, "interrupted": 12}, "warn", "connections that the server closed"),
        ("json", {"closed_connections": 1, "interrupted": 12, "missing": 2}, "fail", UNANSWERED),
        ("json", {"hung_connections": 1}, "fail", "connections that hung"),
        (DECLARED, {"closed_connections": 1, "hung_connections": 1, "unsolicited_bytes": 1}, "pass", ""),
        (DECLARED, {"closed_connections": 1, "interrupted": 1}, "fail", UNANSWERED),
    ],
)
def test_closed_connections_fail_only_under_tfb_rules(
    test_type: str, counts: dict[str, int], techempower: str, problem: str
) -> None:
    strict, lenient = (check_counts(rules, test_type, **counts) for rules in ("tfb", "techempower"))
    assert [strict.outcome, lenient.outcome] == ["fail" if problem else "pass", techempower]
    assert lenient.message.partition(": ")[0] == problem


def test_only_closed_connections_suggest_checking_limits() -> None:
    closed, hung, missing = (
        check_counts("tfb", "json", **{name: 1}).expected
        for name in ("closed_connections", "hung_connections", "missing")
    )
    assert "limits on requests per connection" in str(closed)
    assert hung == missing == "100 complete responses to 100 requests"


@pytest.mark.parametrize(
    ("updated", "deadlocks", "objections"),
    [
        (2000, 0, {}),
        (2000, 3, {"no-deadlocks": Outcome.WARN}),  # the server may have repeated the deadlocked transactions
        (1900, 5, {"no-deadlocks": Outcome.WARN, "rows-written": Outcome.FAIL}),
    ],
)
def test_deadlocks_warn_and_missing_rows_fail(updated: int, deadlocks: int, objections: dict[str, Outcome]) -> None:
    activity = DatabaseActivity(fetched=2000, updated=updated, deadlocks=deadlocks, left_behind=())
    evidence = Evidence(
        test_type=LOAD, expected_work=ExpectedWork(reads=2000, writes=2000, updates=100), database_activity=activity
    )
    assert {r.check: r.outcome for r in run_checks(evidence) if r.outcome is not Outcome.PASS} == objections


def test_activity_is_the_difference_of_two_readings() -> None:
    earlier = DatabaseCounters(counted=(10, 20, 1), state={"rows of fortune": "12", "indexes": "a"})
    later = DatabaseCounters(counted=(15, 22, 1), state={"rows of fortune": "13", "indexes": "a", "new": "b"})
    left = (("rows of fortune", "12", "13"),)
    assert later.since(earlier) == DatabaseActivity(fetched=5, updated=2, deadlocks=0, left_behind=left)
    unknown = DatabaseCounters(counted=None, state={})
    nothing = DatabaseActivity(fetched=None, updated=None, deadlocks=None, left_behind=())
    assert later.since(unknown) == unknown.since(earlier) == nothing
