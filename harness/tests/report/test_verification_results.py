"""Tests for machine-readable verification reports that contain hostile responses."""

import json
from xml.etree import ElementTree

import pytest

from harness.paths import REPOSITORY
from harness.records.run_info import BuildRecord
from harness.records.verification_record import CheckResult, Outcome, VerificationRecord
from harness.report.verification_results import (
    FORMATS,
    ImplementationVerdict,
    VerificationReport,
    build_verdict,
    count_violations,
    rule_lines,
    rule_location,
)
from harness.tests.doubles import records
from harness.verify.checks.registry import CHECKS

HOSTILE = "got ]]> </testcase> \x00\x1b[31m\n::error::owned % 100"


@pytest.fixture
def report() -> VerificationReport:
    """Return a report of a passed verdict, a failed verdict that quotes a hostile response, and a failed build."""
    passed = records.verdict("fast", "json")
    failure = {"message": "500", "expected": "200", "actual": HOSTILE}
    results = (
        CheckResult(check="status-ok", rule="http.2", outcome=Outcome.FAIL).model_copy(update=failure),
        CheckResult(check="no-state", rule="http.12", outcome=Outcome.WARN, message="a cookie"),
        CheckResult(check="answered", rule="http.1", outcome=Outcome.PASS),
    )
    failed = records.verdict("slow", "db", Outcome.FAIL).model_copy(update={"results": results})
    return VerificationReport(
        verdicts=(passed, failed),
        problems=("broken failed: exit 1:\nmain.go:3: syntax error",),
        folders={"slow": "frameworks/Go/slow"},
    )


def test_json_is_the_records_themselves(report: VerificationReport) -> None:
    document = json.loads(FORMATS["json"](report))
    assert [VerificationRecord.model_validate(verdict) for verdict in document["verdicts"]] == list(report.verdicts)
    assert document["problems"] == list(report.problems)


def test_junit_separates_failures_and_errors(report: VerificationReport) -> None:
    root = ElementTree.fromstring(FORMATS["junit"](report))  # noqa: S314 - trusted, written by this test
    (suite,) = [suite for suite in root if suite.get("name") == "slow.db"]
    assert (suite.get("tests"), suite.get("failures")) == ("3", "1")
    (failure,) = suite.iter("failure")
    assert failure.text is not None
    assert "expected: 200" in failure.text
    assert "</testcase>" in failure.text  # escaped
    (error,) = root.iter("error")
    assert error.get("message") == "broken failed: exit 1:"


def test_github_annotations_are_one_line_each(report: VerificationReport) -> None:
    lines = FORMATS["github"](report).splitlines()
    assert lines[0] == "::error title=tfb::broken failed: exit 1:%0Amain.go:3: syntax error"
    assert lines[1].startswith(
        "::error file=frameworks/Go/slow/benchmark_config.json,title=slow db%3A status-ok (http.2)::500%0Aexpected: 200"
    )
    assert lines[2].startswith("::warning file=")
    assert lines[3:] == ["1 problem, 1 of 2 test types passed"]
    nothing = FORMATS["github"](VerificationReport(verdicts=(), problems=("a", "b"), folders={}))
    assert nothing.splitlines()[-1] == "2 problems, nothing was verified"


def test_every_rule_has_a_location() -> None:
    page = (REPOSITORY / "docs" / "requirements.md").read_text(encoding="utf-8").splitlines()
    for rule in {check.rule for check in CHECKS.values()}:
        assert page[rule_lines()[rule] - 1].startswith(f"- **{rule}**")
        assert rule_location(rule) == f"docs/requirements.md:{rule_lines()[rule]}"


def test_a_check_of_the_whole_server_counts_once() -> None:
    def failed(test_type: str, *checks: str) -> VerificationRecord:
        results = tuple(CheckResult(check=check, rule="r.1", outcome=Outcome.FAIL) for check in checks)
        return records.verdict("a", test_type, Outcome.FAIL).model_copy(update={"results": results})

    report = [failed("http", "server-header"), failed("json", "server-header", "date"), failed("db", "server-header")]
    assert count_violations(report) == 2
    assert count_violations([*report, *report]) == 2  # as if a second process failed the same checks
    assert count_violations([records.verdict("a", "json")]) == 0


@pytest.mark.parametrize(
    ("build", "line"),
    [
        (
            BuildRecord(status="failed", reason="go build failed (exit status 1):\nx"),
            "a: build failed: go build failed (exit status 1)",
        ),
        (BuildRecord(status="skipped", reason="a: needs go >=1.25"), "a: skipped: needs go >=1.25"),
        (BuildRecord(status="failed"), "a: build failed"),
    ],
)
def test_failed_build_determines_the_verdict(build: BuildRecord, line: str) -> None:
    judged = build_verdict("a", build)
    assert judged
    assert judged.line == line
    assert build_verdict("a", BuildRecord(status="ok")) is None


def test_a_hostile_reason_breaks_no_format() -> None:
    judged = ImplementationVerdict(implementation="a", verdict="not started", reason=HOSTILE, problems=(HOSTILE,))
    report = VerificationReport(
        verdicts=(), problems=(HOSTILE,), folders={"a": "frameworks/C/a"}, implementations=(judged,)
    )
    assert json.loads(FORMATS["json"](report))["implementations"][0]["reason"] == HOSTILE
    root = ElementTree.fromstring(FORMATS["junit"](report))  # noqa: S314 - trusted, written by this test
    assert len(list(root.iter("error"))) == 1
    lines = FORMATS["github"](report).splitlines()
    assert [line for line in lines if line.startswith("::")] == [lines[0]]
    assert "::error::owned" not in lines
