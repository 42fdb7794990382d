"""A claim in the fake world: measured by the one loop, on its cells alone, and judged by what is true there."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.errors import EnvironmentLacksError, StartError
from harness.extras.claims import judge
from harness.extras.claims.claim import Claim, Program
from harness.extras.claims.measure import begun, figures_of, settings_of
from harness.plan import profile as profiles
from harness.plan.config import Settings
from harness.tests.doubles.fakes_run import FakeRun
from harness.tests.doubles.fakes_world import Behaviour
from harness.tests.extras.claims.records import claim, side

TRUE = {"a": Behaviour(cpu_per_request=40e-6, process_spread=0.01), "b": Behaviour(cpu_per_request=100e-6)}


@dataclass
class ClaimRun(FakeRun):
    """Of one claim, for five minutes."""

    claim: Claim = claim(ratio=2.5)  # noqa: RUF009 - frozen

    def settings(self) -> Settings:
        return settings_of(self.claim, super().settings(), 300.0)


@pytest.mark.parametrize(("ratio", "word"), [(2.5, "supported"), (8.0, "direction only"), (0.4, "refuted")])
def test_a_claim_is_judged_by_what_is_true(tmp_path: Path, ratio: float, word: str) -> None:
    said = claim(metric="cpu-per-request", of=side("b"), to=side("a"), ratio=ratio)
    run = ClaimRun(tmp_path, TRUE, profile=profiles.load("claims"), claim=said)
    verdict = judge.of_run(said, run.run().records)
    (statement,) = verdict.statements
    assert (verdict.verdict, statement.processes) == (word, 3)
    assert statement.value == pytest.approx(2.5, rel=0.05)


def test_both_loads_of_a_server_are_measured_as_often_and_nothing_else_is(tmp_path: Path) -> None:
    said = claim(of=side("a", 100), to=side("a", 10), order="higher")
    run = ClaimRun(tmp_path, TRUE, profile=profiles.load("claims"), claim=said)
    trials = [trial for trial in run.run().records.trials if trial.purpose == "measure"]
    visits = {trial.load.label: len([each for each in trials if each.load == trial.load]) for trial in trials}
    assert {trial.implementation for trial in trials} == {"a"}
    assert set(visits) == {"c100", "c10"}
    assert len(set(visits.values())) == 1


def test_a_claim_s_run_is_found_again_and_no_other(tmp_path: Path) -> None:
    said = claim(ratio=2.5)
    run = ClaimRun(tmp_path, TRUE, profile=profiles.load("claims"), claim=said)
    assert begun(said, run.settings()) is None
    made = run.run().records.info.run_id
    found = begun(said, run.settings())
    assert found is not None
    assert found.info.run_id == made
    assert begun(said.model_copy(update={"name": "other"}), run.settings()) is None
    other_cells = claim(of=side("a", 10), ratio=2.5)
    assert begun(other_cells, run.settings()) is None


def test_a_program_prints_one_object_of_numbers_or_says_what_it_printed() -> None:
    assert figures_of("c", Program(command=("printf", '{"slow": 2, "quick": 0.5}'))) == {"slow": 2.0, "quick": 0.5}
    for command in (("printf", "no"), ("printf", '{"slow": "2"}'), ("false",)):
        with pytest.raises(StartError, match=r"claim c: .* has to print one JSON object of numbers"):
            figures_of("c", Program(command=command))
    with pytest.raises(EnvironmentLacksError, match="needs java >=999"):
        figures_of("c", Program(command=("java",), needs={"java": ">=999"}))
