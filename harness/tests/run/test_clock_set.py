"""Somebody sets the machine's clock under a load: what it spoilt is measured again, and nobody is blamed for it."""

import json
import logging
from pathlib import Path

import pytest

from harness.errors import LoadError
from harness.measure import observe
from harness.measure.loadgen import Load
from harness.measure.loadgen.wrk import Wrk
from harness.plan import profile as profiles
from harness.tests.doubles.fakes_run import FakeRun
from harness.tests.doubles.fakes_world import Behaviour, FakeClock

DAY = 86_400.0
LOAD = Load(url="http://127.0.0.1:8080/json", host="127.0.0.1", accept="*/*", seconds=1, connections=8, threads=2)
NO_LATENCY = {"mean": 0.0, "stdev": 0.0, "min": 0, "max": 0, "percentiles": {"50": 0}, "histogram": []}
NO_ERRORS = {"connect": 0, "read": 0, "write": 0, "status": 0, "timeout": 0}


def printed(seconds: float) -> str:
    """What report.lua prints of a load of so many seconds by the time of day."""
    line = {"duration_us": round(seconds * 1e6), "requests": 1000, "bytes": 154_000, "cpu_seconds": 0.5}
    return json.dumps({**line, "errors": NO_ERRORS, "latency_us": NO_LATENCY})


@pytest.mark.parametrize(
    ("seconds", "jump", "duration"),
    [
        (1.25, 0.0, 1.25),
        (DAY + 1.25, DAY, 1.25),
        (-DAY + 1.25, -DAY, 1.25),
        (1.25, DAY, 1.25),  # before wrk began, or after it had ended
        (1.25, -DAY, 1.25),
    ],
)
def test_the_duration_is_without_what_the_clock_was_set_by(seconds: float, jump: float, duration: float) -> None:
    found = observe._result(Wrk(), LOAD, printed(seconds), 1.5, jump)
    assert found.duration == pytest.approx(duration)
    assert found.requests == 1000


@pytest.mark.parametrize(("seconds", "jump"), [(-DAY, 0.0), (-DAY, -60.0), (-1.0, DAY)])
def test_a_negative_duration_that_no_jump_explains_is_no_result(seconds: float, jump: float) -> None:
    with pytest.raises(LoadError, match="negative duration"):
        observe._result(Wrk(), LOAD, printed(seconds), 1.5, jump)


def run(folder: Path, set_at_load: int | None, monkeypatch: pytest.MonkeyPatch) -> FakeRun:
    """A run in which somebody sets the clock while that load is on."""
    fake = FakeRun(folder, {"a": Behaviour()}, profiles.load("smoke"))
    if set_at_load is not None:
        real = FakeClock.time

        def time(clock: FakeClock) -> float:
            return real(clock) + (DAY if len(fake.world.loads) > set_at_load else 0.0)

        monkeypatch.setattr(FakeClock, "time", time)
    return fake


def test_a_sample_under_which_the_clock_was_set_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    plain = run(tmp_path / "plain", None, monkeypatch)
    samples = plain.run().records.samples
    begins = [began for _, _, began in plain.world.loads]
    first = min(range(len(begins)), key=lambda n: abs(1_700_000_000.0 + begins[n] - samples[0].started_at))
    fake = run(tmp_path / "set", first, monkeypatch)
    with caplog.at_level(logging.WARNING, "tfb"):
        outcome = fake.run()
    assert "the machine's clock was set by +86400.0 s under a load: measured again" in caplog.text
    assert len(fake.world.loads) == len(plain.world.loads) + 1
    assert [sample.id for sample in outcome.records.samples] == [sample.id for sample in samples]
    assert outcome.failures == ()
    assert all(sample.started_at > 1_700_000_000.0 + DAY for sample in outcome.records.samples)
