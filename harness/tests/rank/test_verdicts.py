"""What a row says of the terms under which it was measured."""

from harness.rank.verdicts import caveats
from harness.results.records import Build, CheckResult, ImplementationInfo, Outcome, RunInfo, Verdict
from harness.tests.rank import records


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
