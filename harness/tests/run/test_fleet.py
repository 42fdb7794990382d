"""Loads that fail on a server which lives: once is an accident, twice leaves the test type out on that process."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from harness.errors import LoadError, ServerDiedError
from harness.measure import sweep
from harness.measure.testbed import Target, Testbed
from harness.plan import profile as profiles
from harness.records.models import Load, Sample
from harness.run import rounds
from harness.run.fleet import FAILED_LOADS
from harness.run.workflow import RunOutcome
from harness.tests.doubles.fakes_run import FakeRun
from harness.tests.doubles.fakes_world import Behaviour

TAKE_SAMPLE = sweep.take_sample


def with_failing_loads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: Sequence[int], *, dies: bool = False
) -> tuple[RunOutcome, Counter[tuple[str, str, int]]]:
    """Short rounds in which these windows of b's json fail, counted from 1 on each process; windows that were tried."""
    quick = profiles.load("quick")
    assert quick.rounds is not None
    short = quick.model_copy(update={"rounds": quick.rounds.model_copy(update={"time_seconds": 90.0})})
    fake = FakeRun(tmp_path, {name: Behaviour(cpu_per_request=1e-3) for name in "ab"}, short, ("json", "plaintext"))
    tried: Counter[tuple[str, str, int]] = Counter()

    def take_sample(testbed: Testbed, target: Target, level: Load, *, seconds: float, attempt: int = 0) -> Sample:
        cell = (target.server.implementation.name, target.test_type.name, target.process)
        tried[cell] += 1
        if cell[:2] == ("b", "json") and tried[cell] in failing:
            if dies:
                target.server.meter.dead = True  # type: ignore[attr-defined]
            raise LoadError("the generator ended early")
        return TAKE_SAMPLE(testbed, target, level, seconds=seconds, attempt=attempt)

    monkeypatch.setattr(rounds, "RANKING_SECONDS", float("inf"))
    monkeypatch.setattr(rounds, "ALLOCATION_SECONDS", float("inf"))
    monkeypatch.setattr(sweep, "take_sample", take_sample)
    return fake.run(), tried


def test_a_load_that_failed_once_is_said_and_its_test_type_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome, tried = with_failing_loads(tmp_path, monkeypatch, [1])
    assert any("json: the generator ended early" in failure for failure in outcome.failures)
    assert FAILED_LOADS == 2
    assert all(count > FAILED_LOADS for cell, count in tried.items() if cell[:2] == ("b", "json"))
    measured = Counter((s.implementation, s.test_type) for s in outcome.records.samples)
    lost = sum(cell[:2] == ("b", "json") for cell in tried)  # one on each process
    assert measured["b", "json"] == sum(n for cell, n in tried.items() if cell[:2] == ("b", "json")) - lost


def test_a_test_type_whose_loads_fail_twice_is_left_out_on_that_process_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome, tried = with_failing_loads(tmp_path, monkeypatch, range(1, 100))
    assert {count for cell, count in tried.items() if cell[:2] == ("b", "json")} == {FAILED_LOADS}
    measured = Counter((s.implementation, s.test_type) for s in outcome.records.samples)
    assert measured["b", "json"] == 0
    assert min(measured["a", "json"], measured["a", "plaintext"], measured["b", "plaintext"]) > FAILED_LOADS


def test_a_load_that_failed_since_its_server_died_ends_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome, tried = with_failing_loads(tmp_path, monkeypatch, [1], dies=True)
    assert {count for cell, count in tried.items() if cell[:2] == ("b", "json")} == {1}
    assert any(str(ServerDiedError("killed by SIGKILL")) in failure for failure in outcome.failures)
    assert not any("the generator ended early" in failure for failure in outcome.failures)
