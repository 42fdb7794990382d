"""A compiler still at work makes an audit dear and is nobody's fault; a server that works harder when watched is."""

from pathlib import Path

import pytest

from harness.records.models import Outcome
from harness.tests.doubles.fakes_run import FakeRun
from harness.tests.doubles.fakes_world import Behaviour


def objections(fake: FakeRun) -> list[tuple[str, Outcome]]:
    fake.run()
    return [
        (verdict.implementation, result.outcome)
        for verdict in {(v.implementation, v.test_type): v for v in fake.records().verdicts}.values()
        for result in verdict.results
        if result.check == "audited-cost-agrees" and result.outcome is not Outcome.PASS
    ]


@pytest.mark.parametrize("seed", [4, 5, 6])  # the audit comes before the sample, before it, behind it
def test_a_route_that_warms_up_between_the_samples_is_not_blamed(tmp_path: Path, seed: int) -> None:
    cooling = Behaviour(cpu_per_request=1e-3, cold=60.0, warm_cpu_seconds=1.5)
    assert objections(FakeRun(tmp_path, {"a": cooling}, seed=seed, audited_cost={"a": 1.0})) == []


@pytest.mark.parametrize("seed", [0, 1])
def test_a_server_that_does_more_when_it_is_audited_fails(tmp_path: Path, seed: int) -> None:
    servers = {"honest": Behaviour(cpu_per_request=1e-3), "lazy": Behaviour(cpu_per_request=1e-3, cold=1.0)}
    fake = FakeRun(tmp_path, servers, seed=seed, audited_cost={"honest": 1.0, "lazy": 2.5})
    assert objections(fake) == [("lazy", Outcome.FAIL)]


def test_a_smaller_difference_is_told(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path, {"a": Behaviour(cpu_per_request=1e-3)}, audited_cost={"a": 1.6})
    assert objections(fake) == [("a", Outcome.WARN)]


def test_a_compiler_that_is_not_done_with_a_route_is_no_reason_to_fail(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path, {"a": Behaviour(cpu_per_request=1e-3)}, jit=frozenset("a"), audited_cost={"a": 2.5})
    assert objections(fake) == [("a", Outcome.WARN)]
    assert not any(sample.steady for sample in fake.records().samples)


def test_what_a_second_look_was_answered_counts_against_the_table(tmp_path: Path) -> None:
    fake = FakeRun(
        tmp_path,
        {"a": Behaviour(cpu_per_request=1e-3)},
        test_types=("db", "update"),
        audited_cost={"a": 1.6},
    )
    fake.run()
    (verdict,) = [v for v in fake.records().verdicts if v.test_type == "load"]
    assert verdict.outcome is Outcome.PASS
