"""On first use, tfb predicts, announces and completes installations and builds before it measures."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.errors import BuildError, EnvironmentLacksError
from harness.experiment import first_use
from harness.experiment.first_use import (
    FirstUseTask,
    describe_builds,
    describe_first_use_tasks,
    expected_build_seconds,
    find_first_use_tasks,
    past_build_seconds,
)
from harness.experiment.selection import make_plan
from harness.plan.hosts import hosts_from_flags
from harness.plan.plan import Plan
from harness.plan.run_settings import Settings
from harness.provisioning import crates, requirements
from harness.provisioning.requirements import ToolRequirement
from harness.provisioning.toolchain import Tool
from harness.records import store
from harness.records.run_folders import list_runs
from harness.records.run_info import BuildRecord
from harness.records.store import RunStore
from harness.runtime import upstream
from harness.tests.doubles.fakes_run import FakeRun
from harness.tests.doubles.fakes_world import Behaviour
from harness.tests.doubles.implementations import implementation

GENERATOR = FirstUseTask(
    description="build the load generator (cargo build)", seconds=60.0, in_runtime=False, crate="loadgen"
)
UPSTREAM = FirstUseTask(description="build the upstream service", seconds=30.0, in_runtime=False, crate="upstream")


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Simulate a machine without a container engine. Return the set of built programs, which the test may extend."""
    have: set[str] = set()
    monkeypatch.setattr(first_use, "uses_local_runtime", lambda _: True)
    monkeypatch.setattr(crates, "find_built", lambda crate, _: Path(crate) if crate in have else None)
    monkeypatch.setattr(upstream, "available", lambda: True)
    monkeypatch.setattr(requirements, "tool_requirements", lambda *_, **__: ())
    return have


def planned(folder: Path, *types: str) -> tuple[Settings, Plan]:
    fake = FakeRun(folder, {"a": Behaviour()}, test_types=types or ("json",))
    fake.write_folders()
    chosen = fake.settings()
    return chosen, make_plan(chosen)


def test_the_load_generator_is_built_once(bare: set[str], tmp_path: Path) -> None:
    chosen, plan = planned(tmp_path)
    assert [task.crate for task in find_first_use_tasks(chosen, plan)] == ["loadgen"]
    bare.add("loadgen")
    assert find_first_use_tasks(chosen, plan) == ()


def test_verification_builds_no_load_generator(bare: set[str], tmp_path: Path) -> None:
    chosen, plan = planned(tmp_path)
    assert find_first_use_tasks(replace(chosen, mode="verify"), plan) == ()


@pytest.mark.usefixtures("bare")
def test_other_machines_have_no_first_use_here(tmp_path: Path) -> None:
    chosen, plan = planned(tmp_path)
    assert find_first_use_tasks(replace(chosen, hosts=hosts_from_flags("ssh://a", "ssh://b", ("ssh://c",))), plan) == ()


@pytest.mark.parametrize("consent", ["yes", "ask", "no"])
def test_installable_packages_are_predicted(
    bare: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, consent: Any
) -> None:
    bare.add("loadgen")
    missing = ToolRequirement(kind="wrk", condition=">=4.1", required_by=(), tool=None)
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(requirements, "tool_requirements", lambda *_, **__: (missing,))
    chosen, plan = planned(tmp_path)
    first_use_tasks = find_first_use_tasks(replace(chosen, consent=consent), plan)
    assert [task.description for task in first_use_tasks] == ([] if consent == "no" else ["install wrk (apt-get)"])
    assert all(task.in_runtime for task in first_use_tasks)


def test_existing_tools_are_no_chore(bare: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bare.add("loadgen")
    tool = Tool(kind="wrk", version=(4, 2), program=Path("/usr/bin/wrk"))
    there = ToolRequirement(kind="wrk", condition=">=4.1", required_by=(), tool=tool)
    monkeypatch.setattr(requirements, "tool_requirements", lambda *_, **__: (there,))
    chosen, plan = planned(tmp_path)
    assert find_first_use_tasks(replace(chosen, consent="yes"), plan) == ()


@pytest.mark.parametrize("mode", ["benchmark", "verify"])
def test_missing_images_are_predicted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: Any) -> None:
    monkeypatch.setattr(first_use, "uses_local_runtime", lambda _: False)
    monkeypatch.setattr(first_use, "engine_version", lambda: "28.0")
    there = ("debian:trixie-slim", "tfb/wrk")
    monkeypatch.setattr(first_use, "inspect", lambda _, name: {} if name in there else None)
    chosen, plan = planned(tmp_path)
    first_use_tasks = {
        task.description: task.in_runtime for task in find_first_use_tasks(replace(chosen, mode=mode), plan)
    }
    generator = {"build the image tfb/loadgen": False} if mode == "benchmark" else {}
    assert first_use_tasks == {"build the image tfb/database": True, **generator}


def test_a_dry_run_needs_no_container_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking() -> str:
        raise EnvironmentLacksError("no container engine responds")

    monkeypatch.setattr(first_use, "uses_local_runtime", lambda _: False)
    monkeypatch.setattr(first_use, "engine_version", lacking)
    chosen, plan = planned(tmp_path)
    assert find_first_use_tasks(replace(chosen, runtime="docker"), plan) == ()


def run_with(folder: Path, first_use_tasks: Sequence[FirstUseTask], monkeypatch: pytest.MonkeyPatch) -> FakeRun:
    fake = FakeRun(folder, {"a": Behaviour()})
    real: Callable[[], Any] = fake.dependencies
    known = replace(real(), first_use=lambda *_: first_use_tasks)
    monkeypatch.setattr(fake, "dependencies", lambda: known)
    return fake


def test_a_run_announces_its_first_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usual, first = FakeRun(tmp_path / "usual", {"a": Behaviour()}), run_with(tmp_path, [GENERATOR], monkeypatch)
    usual.run()
    first.run()
    assert first.display.lines[0] == describe_first_use_tasks([GENERATOR])
    assert (
        "about 1 min 00 s before measurement starts: build the load generator (cargo build)"
        in describe_first_use_tasks([GENERATOR])
    )
    ends = [next(line for line in fake.display.lines if "expected end" in line) for fake in (usual, first)]
    seconds = [end.rpartition("(")[2].partition(",")[0] for end in ends]
    assert seconds[0] != seconds[1]
    assert not any("first use" in line for line in usual.display.lines)


def test_the_upstream_is_built_before_the_first_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started_before: list[int] = []
    fake = run_with(tmp_path, [UPSTREAM], monkeypatch)
    monkeypatch.setattr(crates, "upstream_program", lambda: started_before.append(sum(fake.world.started.values())))
    fake.run()
    assert started_before == [0]
    FakeRun(tmp_path / "usual", {"a": Behaviour()}).run()
    assert len(started_before) == 1


def test_a_failed_upstream_build_keeps_the_run_alive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> None:
        raise BuildError("toolset/upstream: cargo build failed")

    fake = run_with(tmp_path, [UPSTREAM], monkeypatch)
    monkeypatch.setattr(crates, "upstream_program", fails)
    assert fake.run().records.trials
    assert "! toolset/upstream: cargo build failed" in fake.display.lines


def test_build_seconds_come_from_the_latest_build(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path, {"a": Behaviour(), "b": Behaviour()})
    fake.run()
    info = store.read_run(list_runs(tmp_path / "results")[0]).info
    a, b = info.implementations
    builds: tuple[BuildRecord, ...] = (
        BuildRecord(status="ok", duration=80.0),
        BuildRecord(status="ok", duration=40.0),
        BuildRecord(status="failed", duration=1.0),
    )
    for number, build in enumerate(builds):
        folder = tmp_path / "results" / f"2099010{number}-000000"
        known = (a.model_copy(update={"build": build}), b.model_copy(update={"build": None}))
        RunStore(folder, started_at=0.0).write_info(info.model_copy(update={"implementations": known}))
    plan = make_plan(fake.settings())
    assert past_build_seconds(plan, tmp_path / "results") == {"a": 40.0, "b": None}
    (tmp_path / "results" / "20990102-000000" / "run.json").write_text("{")
    assert past_build_seconds(plan, tmp_path / "results")["a"] == 40.0


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        ({"a": 40.0, "b": 80.0}, "about 2 min 00 s, based on earlier runs"),
        ({"a": 40.0, "b": None}, "about 1 min 40 s; 1 of 2 for the first time, at about 1 min each"),
        ({"a": None, "b": None}, "about 2 min 00 s; 2 of 2 for the first time, at about 1 min each"),
    ],
)
def test_builds_are_part_of_the_expected_time(seconds: dict[str, float | None], told: str, tmp_path: Path) -> None:
    fake = FakeRun(tmp_path, {"a": Behaviour(), "b": Behaviour()})
    fake.write_folders()
    expected = sum(expected_build_seconds(make_plan(fake.settings()).implementations, seconds).values())
    assert (
        describe_builds(seconds, expected) == f"builds run first and do not count towards the measuring time ({told})"
    )


def test_builds_that_implementations_share_count_once() -> None:
    local = {"build": ["make"], "run": ["./x"]}
    first, second = (implementation(name=name, local=local) for name in ("a", "b"))
    assert expected_build_seconds([first, second], {}) == {"a": first_use.FIRST_BUILD_SECONDS, "b": 0.0}


def test_nothing_is_announced_without_chores() -> None:
    assert describe_first_use_tasks(()) == ""
