"""What a row says of the terms under which it was measured."""

import pytest

from harness.records.models import (
    AUDITS,
    NO_AUDITS,
    AuditedLoad,
    Build,
    CheckResult,
    ImplementationInfo,
    Outcome,
    RunInfo,
    Scenario,
    Verdict,
)
from harness.stats.verdicts import UNAUDITED, caveats
from harness.tests.stats import records
from harness.verify.checks.audit import one_answer_a_request


def info(name: str, **facts: object) -> ImplementationInfo:
    known = {"name": name, "framework": name, "language": "C", "folder": "x", "display_name": name}
    return ImplementationInfo.model_validate({**known, "test_types": ("json",), **facts})


def run(*implementations: ImplementationInfo) -> RunInfo:
    return records.run().model_copy(update={"implementations": implementations})


def verdict(test_type: str, *checks: str, replicate: int = 0) -> Verdict:
    results = tuple(
        CheckResult(check=name, rule="http.1", outcome=Outcome.WARN, waived=not name.startswith("mild"))
        for name in checks
    )
    return Verdict(
        implementation="x",
        test_type=test_type,
        replicate=replicate,
        thorough=True,
        outcome=Outcome.WARN,
        results=results,
        duration=1.0,
    )


def test_an_implementation_of_ours_says_nothing() -> None:
    assert caveats(run(info("x")), [], []) == {}


def test_what_techempower_does_not_ask_is_counted_once_a_check_with_the_server_s_own() -> None:
    verdicts = [verdict("http", "a", "mild"), verdict("json", "b"), verdict("json", "b", replicate=1)]
    found = caveats(run(info("x", rules="techempower")), [], verdicts)
    assert found == {("x", "json"): ("TechEmpower's rules: 2 of ours broken",)}


def test_stand_ins_and_consents_are_named() -> None:
    build = Build(status="ok", stand_ins=("golang:1.24",))
    found = caveats(run(info("x", build=build, allowed=("io_uring",))), [], [])
    assert found == {("x", "json"): ("built on stand-ins for golang:1.24", "allowed io_uring")}


AUDIT = AuditedLoad(duration=2.0, requests=400, cpu_per_request=None, latency=None)


def audited_by(tool: str) -> RunInfo:
    return run(info("x")).model_copy(update={"tools": {AUDITS: tool}})


@pytest.mark.parametrize("tool", ["loadgen", NO_AUDITS])
def test_a_row_without_an_audit_says_so(tool: str) -> None:
    assert caveats(audited_by(tool), [records.sample("x", 0, 1e4)], []) == {("x", "json"): (UNAUDITED,)}


def test_one_audit_of_any_of_its_loads_is_enough() -> None:
    samples = [records.sample("x", 0, 1e4), records.sample("x", 1, 1e4).model_copy(update={"audited": AUDIT})]
    assert caveats(audited_by("loadgen"), samples, []) == {}


def test_an_audit_is_known_by_its_check_where_no_sample_stands_beside_it() -> None:
    samples = [records.sample("x", 0, 1e4)]
    assert caveats(audited_by("loadgen"), samples, [verdict("json", one_answer_a_request.name)]) == {}


def test_nothing_is_said_of_audits_while_a_run_goes_on_or_where_files_do_not_tell() -> None:
    samples = [records.sample("x", 0, 1e4)]
    assert caveats(audited_by(NO_AUDITS).model_copy(update={"status": "running"}), samples, []) == {}
    assert caveats(run(info("x")), samples, []) == {}


def test_arrivals_at_given_rates_are_looked_at_in_whole() -> None:
    level = Scenario(connections=64, factor=4.0)
    assert caveats(audited_by("loadgen"), [records.sample("x", 0, 1e4, level=level)], []) == {}
