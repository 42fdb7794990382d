"""A profile's load, what it asks of the profiler, and the figures beside the flame graph, on the fakes."""

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from harness.errors import LoadError, StartError
from harness.extras.profiler import profilers
from harness.measure.loadgen.registry import GENERATORS
from harness.plan import discovery
from harness.records.models import Closed
from harness.experiment import profiling
from harness.experiment.profiling import Profiled
from harness.runtime import Runtime
from harness.tests.doubles.fakes_run import FakeRun
from harness.tests.doubles.fakes_runtime import FakeGenerator, FakeRunning
from harness.tests.doubles.fakes_world import Behaviour

LEVEL = Closed(connections=16, depth=1)
STACKS = {("main", "work"): 6, ("main", "write", "tcp_sendmsg_[k]"): 2}


def sampled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stacks: Mapping[tuple[str, ...], int] = STACKS
) -> tuple[FakeRun, Profiled, list[object]]:
    """Ten seconds of a server that costs 1 ms a request on two CPUs, and fails every tenth."""
    fake = FakeRun(tmp_path, {"a": Behaviour(cpu_per_request=1e-3, status_errors=0.1)})
    fake._write()
    asked: list[object] = []

    def record(pids: Sequence[int], seconds: float, folder: Path) -> profilers.Profile:
        asked.append((seconds, folder))
        return profilers.Profile(tool="perf", stacks=dict(stacks))

    monkeypatch.setattr(profilers, "record", record)
    monkeypatch.setattr(time, "sleep", asked.append)
    monkeypatch.setitem(GENERATORS, "fake", lambda _: FakeGenerator())
    settings = fake.settings()
    (implementation,) = discovery.scan(*settings.frameworks).implementations
    runtime: Runtime = fake.runtime
    with (
        runtime.database() as database,
        runtime.start(implementation, database.address, tmp_path / "log", ready_path="/json") as server,
    ):
        return fake, profiling._sample(settings, runtime, server, "json", LEVEL, 10.0), asked


def test_a_profile_s_figures_are_those_of_the_load_that_was_on_while_it_looked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake, found, asked = sampled(tmp_path, monkeypatch)
    assert found.folder.parent == tmp_path / "results" / "profiles"
    assert found.folder.name.endswith("-a-json")
    assert found.figures == {
        "implementation": "a",
        "test_type": "json",
        "level": LEVEL.label,
        "profiler": "perf",
        "samples": 8,
        "kernel_share": 0.25,
        "requests_per_second": pytest.approx(1800, rel=0.01),
        "cpu_seconds_per_request": pytest.approx(1e-3 / 0.9, rel=0.01),
    }
    assert json.loads((found.folder / "sample.json").read_text(encoding="utf-8")) == dict(found.figures)
    assert "tcp_sendmsg_[k] 2" in (found.folder / "stacks.txt").read_text(encoding="utf-8")
    assert "a, json at" in (found.folder / "flame.svg").read_text(encoding="utf-8")
    assert asked == [2.0, (10.0, found.folder)]
    loads = [load for _, load, _ in fake.world.loads]
    assert [(load.seconds, load.connections, load.threads, load.depth) for load in loads] == [
        (8.0, 16, 2, 1),
        (14.0, 16, 2, 1),
    ]
    assert {load.url.rpartition("/")[2] for load in loads} == {"json"}
    assert {load.host for load in loads} == {"fake"}
    assert all("json" in load.accept for load in loads)


def test_a_profiler_that_saw_nothing_is_an_error_and_writes_no_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(StartError, match="saw nothing"):
        sampled(tmp_path, monkeypatch, {})
    assert not list(tmp_path.glob("results/profiles/*/*"))


def test_a_load_that_does_not_end_is_an_error_with_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []

    def never(_: FakeRunning, seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr(FakeRunning, "wait", never)
    with pytest.raises(LoadError, match="not done 23 s after its start"):
        sampled(tmp_path, monkeypatch)
    assert waited == [23.0]
