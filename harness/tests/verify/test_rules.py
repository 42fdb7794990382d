"""Tests for outcomes under TechEmpower's rules, where some findings are only warnings."""

from dataclasses import replace

from harness.tests.approve import approve
from harness.tests.verify.subjects import exchange, finding_lines
from harness.verify.checks.evidence import Evidence, Exchange, QueryVariant, TableSnapshot, TableVersion
from harness.verify.checks.registry import CHECKS

TABLE = TableVersion(rows=dict.fromkeys(range(1, 10001), 5))
TWO, FRACTION = QueryVariant(name="2", suffix="2", count=2), QueryVariant(name="1.5", suffix="1.5", count=1)
DATE = ("Date", "Sun Nov 22 01:00:00 2026")
SILENT = exchange(response=None, error="nothing came", error_kind="silent")
TWICE = exchange('[{"id":1,"randomNumber":2},{"id":1,"randomNumber":3}]', QueryVariant(name="rows", count=2))
JUDGED: list[tuple[str, str, list[Exchange]]] = [
    ("rows-exact", "db", [exchange('{"Id":7,"RandomNumber":5}')]),
    ("rows-exact", "db", [exchange('{"id":7,"randomNumber":5,"more":1}')]),
    ("rows-exact", "db", [exchange('{"id":"7","randomNumber":5.0}')]),
    ("rows-exact", "db", [exchange('{"id":7}')]),
    ("rows-exact", "db", [exchange('{"id":7,"randomNumber":true}')]),
    ("rows-exact", "db", [exchange('{"id":7,"randomnumber":5,"randomNumber":5}')]),
    ("rows-exact", "db", [exchange('{"id":10001,"randomNumber":6}')]),
    ("rows-exact", "db", [exchange('{"ID":7,"randomNumber":-6}')]),
    ("json-message", "json", [exchange('{"Message":"hello, world!"}')]),
    ("json-message", "json", [exchange('{"message":"Hi"}')]),
    ("json-message", "json", [exchange('{"message":"Hello, World!","id":1}')]),
    ("json-message", "json", [exchange('{"Message":"Hi","message":"Hello, World!"}')]),
    ("calls-and-sum", "fan-out", [exchange('{"calls":1,"sum":5,"more":1}')]),
    ("plaintext-body", "plaintext", [exchange("Hello, World!\n")]),
    # The longest excerpt that is quoted in full, and one character more.
    *(("plaintext-body", "plaintext", [exchange("a" * size)]) for size in (160, 161)),
    ("count-exact", "query", [exchange("[]", FRACTION)]),
    ("count-exact", "query", [exchange("[]", TWO)]),
    ("date-form", "json", [exchange("{}", headers=[DATE])]),
    ("date-form", "json", [exchange("{}")]),
    ("server-header", "json", [exchange("{}")]),
    ("equals-row", "db", [exchange('{"id":7,"randomNumber":6}')]),
    ("equals-row", "db", [exchange('{"ID":"7","RANDOMNUMBER":"6"}')]),
    ("rows-are-objects", "db", [exchange('[{"id":7,"randomNumber":5}]')]),
    ("rows-are-objects", "db", [exchange('[{"id":7,"randomNumber":5},{"id":7,"randomNumber":5}]')]),
    ("rows-are-objects", "query", [exchange('{"id":7,"randomNumber":5}', TWO)]),
    ("date-form", "json", [exchange("{}", headers=[DATE, DATE])]),
    ("nothing-else-on-the-page", "fortune", [exchange("<script src=/x.js></script><link href=/x.css>")]),
    ("nothing-else-on-the-page", "fortune", [exchange("<script src=/x></script><iframe></iframe>")]),
    ("answered", "query", [replace(SILENT, case=FRACTION)]),
    ("answered", "query", [replace(SILENT, case=TWO)]),
    ("answered", "db", [replace(SILENT, error="not a status line: b'<html>'", error_kind="grammar")]),
    # A failure takes precedence over a warning.
    ("count-exact", "query", [exchange("[]", FRACTION), exchange("[]", TWO)]),
    ("one-number-a-row", "update", [TWICE]),
    *((name, "json", [exchange("no JSON", status=500)]) for name in ("json-valid", "json-message", "status-ok")),
    *(("update-stored", "update", [replace(TWICE, sent_at=-stored)]) for stored in (2.0, 3.0, 4.0)),
]


def judged(name: str, test_type: str, exchanges: list[Exchange]) -> str:
    """Return the finding under TechEmpower's rules. Assert that the same finding is a failure under tfb's rules."""
    evidence = Evidence(test_type=test_type, exchanges=exchanges, history={"world": [TABLE]})
    world = {1: -int(exchanges[0].sent_at)}
    evidence.snapshots = [
        TableSnapshot({"world": {1: 9}, "World": {}}),
        TableSnapshot({"world": world, "World": {}}, 1.0, 1.0),
    ]
    ours, theirs = (CHECKS[name].run(replace(evidence, rules=rules)) for rules in ("tfb", "techempower"))
    assert (ours.outcome, ours.waived) == ("fail" if ours.message else "pass", False)
    return "".join(finding_lines(theirs)).replace(f" | {theirs.expected} | ", " | got ")


def test_outcomes_under_techempower_rules_are_as_approved() -> None:
    """Missing or wrong data fails a check. Responses with a status other than 200 fail only the check status-ok."""
    approve("verify-rules", [judged(*one) for one in JUDGED])
