"""A machine that vanishes in the middle: what it took is measured again, or the run ends so that it can go on."""

from collections import Counter
from pathlib import Path

import pytest

from harness.errors import MachineLostError
from harness.plan import profile as profiles
from harness.plan.profile import Profile
from harness.records import store
from harness.run.vanishing import BACK_SECONDS
from harness.tests.doubles.fakes_run import FakeRun
from harness.tests.doubles.fakes_runtime import FakeMachines
from harness.tests.doubles.fakes_world import Behaviour

SERVERS = {"a": Behaviour(cpu_per_request=200e-6), "b": Behaviour(cpu_per_request=300e-6)}


def rounds() -> Profile:
    quick = profiles.load("quick")
    assert quick.rounds is not None
    return quick.model_copy(update={"rounds": quick.rounds.model_copy(update={"time_seconds": 30.0, "processes": 1})})


PROFILES = {"blocks": profiles.load("smoke"), "rounds": rounds()}


def vanishing(folder: Path, profile: Profile, after: float, *, stays_away: bool = False) -> FakeRun:
    fake = FakeRun(folder, SERVERS, profile)
    fake.runtime = FakeMachines(fake.world, stays_away=stays_away)
    fake.world.vanishes_at = fake.world.clock.monotonic() + after
    return fake


@pytest.mark.parametrize(("design", "after"), [("blocks", 2.0), ("rounds", 4.0), ("rounds", 26.0)])
def test_what_a_machine_took_is_measured_from_its_beginning_once_it_is_back(
    tmp_path: Path, design: str, after: float
) -> None:
    fake = vanishing(tmp_path, PROFILES[design], after)
    outcome = fake.run()
    assert outcome.records.info.status == "complete"
    assert isinstance(fake.runtime, FakeMachines)
    assert fake.runtime.waited == [BACK_SECONDS]
    assert any("has not answered for 5 s; waiting up to 30 s" in line for line in fake.display.lines)
    assert any("all machines answer again: " in line for line in fake.display.lines)
    assert Counter((r.implementation, r.process) for r in outcome.records.replicates).most_common(1)[0][1] == 1
    assert {r.status for r in outcome.records.replicates} == {"ok"}
    assert sum(fake.world.started.values()) == len(outcome.records.replicates) + 1
    aside = store.runs(tmp_path / "results")[-1] / "replicates.unfinished.jsonl"
    assert len(aside.read_text().splitlines()) == 1


@pytest.mark.parametrize(("design", "after"), [("blocks", 2.0), ("rounds", 4.0)])
def test_a_machine_that_stays_away_ends_the_run_which_goes_on_later(tmp_path: Path, design: str, after: float) -> None:
    with pytest.raises(MachineLostError, match="machine app"):
        vanishing(tmp_path, PROFILES[design], after, stays_away=True).run()
    again = FakeRun(tmp_path, SERVERS, PROFILES[design], resume="latest")
    again.runtime = FakeMachines(again.world)
    outcome = again.run()
    assert outcome.records.info.status == "complete"
    assert {r.status for r in outcome.records.replicates} == {"ok"}


def test_a_server_that_fails_while_its_machine_is_away_is_not_to_blame(tmp_path: Path) -> None:
    fake = vanishing(tmp_path, PROFILES["blocks"], 1e9)
    real = fake.runtime.start
    failed: list[bool] = []

    def start(*arguments: object, **named: object) -> object:
        if not failed:
            failed.append(True)
            fake.world.vanished = True  # noticed by nobody yet: the start fails for another reason
            fake.world.behaviours["a"] = fake.world.behaviours["b"] = Behaviour(never_starts=True)
        else:
            fake.world.behaviours.update(SERVERS)
        return real(*arguments, **named)  # type: ignore[arg-type]

    fake.runtime.start = start  # type: ignore[method-assign, assignment]
    outcome = fake.run()
    assert {r.status for r in outcome.records.replicates} == {"ok"}
    assert outcome.failures == ()
