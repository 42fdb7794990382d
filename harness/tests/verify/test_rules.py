"""What fails under TechEmpower's rules, and what only warns."""

from dataclasses import replace

import pytest

from harness.plan.discovery import Rules
from harness.records.models import CheckResult, Outcome
from harness.tests.verify.subjects import exchange
from harness.verify.checks import shown
from harness.verify.checks.evidence import Case, Evidence, Look, Version
from harness.verify.checks.registry import CHECKS

TABLE = Version(rows=dict.fromkeys(range(1, 10001), 5))


def judged(check: str, rules: Rules, test_type: str, body: str, case: Case, *headers: tuple[str, str]) -> CheckResult:
    evidence = Evidence(test_type=test_type, rules=rules, exchanges=[exchange(body, case, headers)])
    evidence.history = {"world": [TABLE]}
    return CHECKS[check].run(evidence)


PLAIN, TWO = Case(name="plain"), Case(name="2", suffix="2", count=2)
FRACTION = Case(name="1.5", suffix="1.5", count=1)
DATE = ("Date", "Sun Nov 22 01:00:00 2026")


@pytest.mark.parametrize(
    ("check", "test_type", "body", "case", "headers", "accepted"),
    [
        ("rows-exact", "db", '{"Id":7,"RandomNumber":5}', PLAIN, (), True),
        ("rows-exact", "db", '{"id":7,"randomNumber":5,"more":1}', PLAIN, (), True),
        ("rows-exact", "db", '{"id":"7","randomNumber":5.0}', PLAIN, (), True),
        ("rows-exact", "db", '{"id":7}', PLAIN, (), False),
        ("rows-exact", "db", '{"id":7,"randomNumber":null}', PLAIN, (), False),
        ("rows-exact", "db", '{"id":7,"randomNumber":true}', PLAIN, (), False),
        ("rows-exact", "db", '{"id":7,"randomnumber":5,"randomNumber":5}', PLAIN, (), False),
        ("rows-exact", "db", '{"id":10001,"randomNumber":6}', PLAIN, (), False),
        ("rows-exact", "db", '{"ID":7,"randomNumber":-6}', PLAIN, (), False),
        ("json-message", "json", '{"Message":"hello, world!"}', PLAIN, (), True),
        ("json-message", "json", '{"message":"Hi"}', PLAIN, (), False),
        ("json-message", "json", '{"message":"Hello, World!","id":1}', PLAIN, (), False),
        ("json-message", "json", '{"Message":"Hi","message":"Hello, World!"}', PLAIN, (), False),
        ("calls-and-sum", "fan-out", '{"calls":1,"sum":5,"more":1}', PLAIN, (), False),
        ("plaintext-body", "plaintext", "Hello, World!\n", PLAIN, (), True),
        ("plaintext-body", "plaintext", "Hi", PLAIN, (), False),
        ("count-exact", "query", "[]", FRACTION, (), True),
        ("count-exact", "query", "[]", TWO, (), False),
        ("date-form", "json", "{}", PLAIN, (DATE,), True),
        ("date-form", "json", "{}", PLAIN, (), False),
        ("server-header", "json", "{}", PLAIN, (), False),
        ("equals-row", "db", '{"id":7,"randomNumber":6}', PLAIN, (), False),
        ("equals-row", "db", '{"ID":"7","RANDOMNUMBER":"6"}', PLAIN, (), False),
        ("rows-are-objects", "db", '[{"id":7,"randomNumber":5}]', PLAIN, (), True),
        ("rows-are-objects", "db", '[{"id":7,"randomNumber":5},{"id":7,"randomNumber":5}]', PLAIN, (), False),
        ("rows-are-objects", "db", "[7]", PLAIN, (), False),
        ("rows-are-objects", "query", '{"id":7,"randomNumber":5}', TWO, (), False),
        ("equals-row", "db", '[{"id":7,"randomNumber":6}]', PLAIN, (), False),
        ("date-form", "json", "{}", PLAIN, (DATE, DATE), True),
        ("nothing-else-on-the-page", "fortune", "<script src=/x.js></script><link href=/x.css>", PLAIN, (), True),
        ("nothing-else-on-the-page", "fortune", "<script src=/x></script><iframe></iframe>", PLAIN, (), False),
    ],
)
def test_under_techempower_s_rules_what_it_accepts_warns_and_what_is_missing_or_wrong_in_data_fails(
    check: str, test_type: str, body: str, case: Case, headers: tuple[tuple[str, str], ...], accepted: bool
) -> None:
    ours, theirs = (judged(check, rules, test_type, body, case, *headers) for rules in ("tfb", "techempower"))
    assert (ours.outcome, ours.waived) == (Outcome.FAIL, False)
    assert (theirs.outcome, theirs.waived) == (Outcome.WARN if accepted else Outcome.FAIL, accepted)


def test_an_odd_number_of_rows_that_nobody_there_tries_may_go_unanswered_or_fail() -> None:
    silent = exchange(response=None, error="nothing came", error_kind="silent")
    for case, outcome in ((FRACTION, Outcome.WARN), (TWO, Outcome.FAIL)):
        evidence = Evidence(test_type="query", rules="techempower", exchanges=[replace(silent, case=case)])
        assert CHECKS["answered"].run(evidence).outcome is outcome


def test_an_answer_that_cannot_be_read_is_none_under_either_rules() -> None:
    unreadable = exchange(response=None, error="not a status line: b'<html>'", error_kind="grammar")
    for rules in ("tfb", "techempower"):
        evidence = Evidence(test_type="db", rules=rules, exchanges=[unreadable])
        assert CHECKS["answered"].run(evidence).outcome is Outcome.FAIL


def test_one_violation_that_binds_outweighs_others_that_do_not() -> None:
    evidence = Evidence(test_type="query", rules="techempower")
    evidence.exchanges = [exchange("[]", FRACTION), exchange("[]", TWO)]
    result = CHECKS["count-exact"].run(evidence)
    assert result.outcome is Outcome.FAIL
    assert "(2)" in result.message


@pytest.mark.parametrize("rules", ["tfb", "techempower"])
def test_a_row_drawn_twice_may_hold_either_of_its_numbers_and_only_warns_under_techempower_s_rules(
    rules: Rules,
) -> None:
    body = '[{"id":1,"randomNumber":2},{"id":1,"randomNumber":3}]'
    asked = exchange(body, Case(name="rows", count=2))
    evidence = Evidence(test_type="update", rules=rules, exchanges=[asked])
    for stored in (2, 3, 4):
        evidence.looks = [Look({"world": {1: 9}, "World": {}}), Look({"world": {1: stored}, "World": {}}, 1.0, 1.0)]
        assert CHECKS["update-stored"].run(evidence).outcome is (Outcome.FAIL if stored == 4 else Outcome.PASS)
    found = CHECKS["one-number-a-row"].run(evidence)
    assert found.outcome is (Outcome.FAIL if rules == "tfb" else Outcome.WARN)


def test_what_an_answer_of_another_status_carries_is_the_status_checks_business() -> None:
    for status, objecting in ((200, {"json-valid"}), (500, {"status-ok"})):
        evidence = Evidence(test_type="json", exchanges=[exchange("no JSON", status=status)])
        names = ("json-valid", "json-message", "status-ok")
        assert {name for name in names if list(CHECKS[name].find(evidence))} == objecting


def test_what_is_shown_of_a_long_body_says_how_long_it_is() -> None:
    assert shown("a" * 160) == "a" * 160
    assert shown(b"a" * 161) == "a" * 160 + "… (161 characters)"
