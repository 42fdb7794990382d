"""Preparation of a run: selection, rules, warm-up on JIT platforms, builds, and the announcement."""

import json
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.errors import Exit, UsageError
from harness.experiment import run_setup
from harness.experiment.first_use import FirstUseTask
from harness.experiment.predicted import dry_run
from harness.experiment.progress import ProgressTracker
from harness.experiment.run_setup import choose_baseline, read_revision
from harness.experiment.selection import JIT_PLATFORMS, limit_memory, make_plan
from harness.experiment.stage_build import build_all
from harness.experiment.stage_prepare import clear_leftovers, describe_run
from harness.host import process
from harness.host.leftovers import Leftover
from harness.plan import profile as profiles
from harness.plan.discovery import Selection
from harness.plan.hosts import hosts_from_flags
from harness.plan.implementation import Implementation
from harness.plan.run_settings import ControlCopy, Settings
from harness.records.loads import ClosedLoop
from harness.records.run_info import BuildRecord
from harness.records.store import RunStore
from harness.runtime import Runtime
from harness.tests.approve import approve
from harness.tests.doubles.fakes_run import FakeRun, SilentDisplay
from harness.tests.doubles.fakes_world import Behaviour
from harness.tests.runtime.test_docker import settings as usual


@pytest.mark.parametrize(
    ("stack", "jit"),
    [
        ("javascript node.js none express", False),
        ("javascript es4x vert.x es4x", True),
        ("typescript bun", False),
        ("java netty undertow", True),
        ("kotlin netty ktor", True),
        ("scala akka/pekko play", True),
        ("ruby jruby-jvm puma", True),
        ("c none none javanais", False),
    ],
)
def test_jit_platforms_match_whole_words(stack: str, jit: bool) -> None:
    assert bool(JIT_PLATFORMS.search(stack)) is jit


def tree(root: Path) -> Path:
    folder = root / "frameworks" / "C" / "x"
    folder.mkdir(parents=True)
    entry = {"language": "C", "json_url": "/json"}
    tests = {
        "default": entry,
        "mysql": {**entry, "database": "MySQL"},
        "old": {**entry, "tags": ["broken"]},
        "fan": {
            **entry,
            "language": "Java",
            "db_url": "/db",
            "fan_out_url": "/fan-out?calls=",
            "local": {"build": [], "run": ["./x"]},
        },
    }
    (folder / "benchmark_config.json").write_text(json.dumps({"framework": "x", "tests": [tests]}))
    return root / "frameworks"


def settings(frameworks: Path, *names: str, **values: Any) -> Settings:
    return usual(frameworks=(frameworks,), selection=Selection(test=names), **values)


def planned(root: Path, *names: str, **values: Any) -> list[str]:
    """Return the planned cells and the reported problems, or the lines of the error message."""
    chosen = settings(root / "frameworks", *names, **{"test_types": ("json", "db"), **values})
    try:
        plan = make_plan(chosen)
    except UsageError as error:
        return str(error).replace(str(root), "ROOT").splitlines()
    cells = [
        f"{made.name} by {made.rules} {made.allowed}{' jit' if candidate.jit else ''}: "
        + ", ".join(f"{kind} {[load.label for load in loads]}" for kind, loads in candidate.test_types.items())
        for candidate, made in zip(plan.candidates, plan.implementations, strict=True)
    ]
    problems = [problem.replace(str(root), "ROOT") for problem in plan.problems]
    return [*cells, *problems, f"reference {choose_baseline(chosen, plan)}{', reversed' if plan.reverse else ''}"]


def test_settings_become_the_approved_plan(tmp_path: Path) -> None:
    """Rejections are reported only for implementations that the user named.

    Broken files are reported only if they may matter.
    """
    tree(tmp_path)
    plans_without_errors = {
        "all": planned(tmp_path, "all", reverse_order=True),
        "of another type": planned(tmp_path, "x", test_types=("fortune",)),
    }
    broken = tmp_path / "frameworks" / "C" / "y"
    broken.mkdir()
    (broken / "benchmark_config.json").write_text("[]")
    copy = ControlCopy(suffix="@base", frameworks=(tmp_path / "frameworks",))
    load = (ClosedLoop(connections=3),)
    profile = profiles.load_profile("smoke").model_copy(update={"reference": "x"})
    plans = {
        **plans_without_errors,
        "all beside a broken file": planned(tmp_path, "all"),
        "run": planned(tmp_path, "run", profile=profile),
        "no name": planned(tmp_path),
        "one": planned(tmp_path, "x"),
        "one that is broken": planned(tmp_path, "x", "x-old"),
        "one of another database": planned(tmp_path, "x-mysql"),
        "an unknown one": planned(tmp_path, "z"),
        "with rules and consent": planned(tmp_path, "x", rules="tfb", allow={"x": ("io_uring",)}, control_copy=copy),
        "consent for another": planned(tmp_path, "x", allow={"y": ("io_uring",), "x": ()}),
        "a control copy that lacks": planned(
            tmp_path, "x", control_copy=ControlCopy(suffix="@", frameworks=(tmp_path / "b", tmp_path / "a"))
        ),
        "cells": planned(tmp_path, "x", "x-fan", cells={"x-fan": {"db": load}}),
    }
    approve("experiment-preparation", plans)


def test_memory_sizes_come_from_recent_runs(tmp_path: Path) -> None:
    for rss in (9e8, 3e8, 7e8, 2e8, 1e8, 1e8):
        FakeRun(tmp_path, {"a": Behaviour(rss=rss), "b": Behaviour(rss=5e7)}).run()
    (tmp_path / "results" / "20000101-000000").mkdir()
    plan = limit_memory(make_plan(settings(tree(tmp_path / "x"), "x")), tmp_path / "results", 1e9)
    assert plan.memory_sizes == {"a": 7e8, "b": 5e7}
    assert plan.memory_limit == pytest.approx(7e8)


def test_fan_out_needs_a_reachable_upstream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.runtime.upstream.available", lambda: True)
    frameworks, types = tree(tmp_path), ("json", "fan-out")

    def chosen(*names: str, **values: Any) -> list[set[str]]:
        work = make_plan(settings(frameworks, *names, test_types=types, **values))
        return [set(candidate.test_types) for candidate in work.candidates]

    assert chosen("x-fan") == [{"json", "fan-out"}]
    assert chosen("x-fan", network_mode="bridge") == [{"json"}]
    assert chosen("x-fan", hosts=hosts_from_flags("app", "app", ("app",))) == [{"json"}]
    assert chosen("x-fan", "x") == [{"json"}, {"json"}]


def test_a_run_records_commit_and_local_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def git(*words: str) -> str:
        own = ("git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@example.org")
        return process.run([*own, *words], seconds=30).stdout.strip()

    monkeypatch.setattr(run_setup, "REPOSITORY", tmp_path)
    assert read_revision() == (None, None)
    git("init")
    (tmp_path / "file").write_text("a")
    git("add", "file")
    git("commit", "--message", "a")
    commit = git("rev-parse", "HEAD")
    (tmp_path / "notes").write_text("nobody else's")
    assert read_revision() == (commit, False)
    (tmp_path / "file").write_text("b")
    assert read_revision() == (commit, True)


@pytest.mark.parametrize(
    ("asked", "name", "place"),
    [
        ("auto", "docker", "docker runtime (auto: a container engine responds)"),
        ("auto", "local", "local runtime (auto: no container engine responds)"),
        ("local", "local", "local runtime"),
    ],
)
def test_the_opening_line_describes_the_run(asked: Any, name: str, place: str, tmp_path: Path) -> None:
    chosen = settings(tree(tmp_path), "x")
    chosen = replace(chosen, runtime=asked)
    line = describe_run(chosen, make_plan(chosen), cast("Runtime", SimpleNamespace(name=name)), 90.0, 0.0)
    assert line.startswith(
        f"1 implementation, {place}, profile {chosen.profile.name}, seed {chosen.seed}; expected end"
    )
    assert line.endswith("(1 min 30 s, including builds)")


@pytest.mark.parametrize(
    ("asked", "latest", "now", "told"),
    [
        (
            "auto",
            "docker",
            "local",
            "runtime: local, because no container engine responds. The latest run used docker,",
        ),
        ("auto", "local", "docker", "runtime: docker, because a container engine responds. The latest run used local,"),
        ("auto", "local", "local", ""),
        ("local", "docker", "local", ""),
    ],
)
def test_a_changed_runtime_is_announced(asked: Any, latest: str, now: str, told: str, tmp_path: Path) -> None:
    for name in (latest, now):
        fake = FakeRun(tmp_path, {"a": Behaviour()}, asked={"runtime": asked})
        fake.runtime.name = name
        fake.run()
    lines = [line for line in fake.display.lines if line.startswith("runtime: ")]
    assert [line[: len(told)] for line in lines] == ([told] if told else [])
    assert all("not comparable" in line and f"--runtime {latest}" in line for line in lines)


def test_recorded_build_failures_contain_no_local_path(tmp_path: Path) -> None:
    problems, folder = list[str](), RunStore(tmp_path / "run", started_at=0.0)
    progress = cast("ProgressTracker", SimpleNamespace(problem=problems.append, building=lambda *_: nullcontext()))
    failed = BuildRecord(status="failed", reason=f"no compiler\nlog: {folder.folder}/logs/x/build.log")

    def build(implementation: Implementation, log: Path) -> BuildRecord:
        return failed.model_copy(update={"log": f"{implementation.name} {log.name}"})

    runtime = cast("Runtime", SimpleNamespace(build=build))
    builds = build_all(runtime, make_plan(settings(tree(tmp_path), "x")), progress, folder)
    assert (builds["x"].reason, builds["x"].log) == ("no compiler\nlog: logs/x/build.log", "x build.log")
    assert problems == [f"x failed: {failed.reason}"]


@pytest.mark.parametrize("consent", ["yes", "no"])
def test_leftovers_are_removed_with_consent_or_reported(consent: Any, tmp_path: Path) -> None:
    removed, lines = list[str](), list[str]()

    def cannot() -> None:
        raise OSError(13, "Permission denied")

    found_leftovers = [
        Leftover(kind="folder", name="a", is_certain=True, remove=lambda: removed.append("a")),
        Leftover(kind="process", name="b", is_certain=True, remove=cannot),
        Leftover(kind="folder", name="c", is_certain=False, remove=lambda: removed.append("c")),
    ]
    progress = cast("ProgressTracker", SimpleNamespace(note=lines.append, problem=lines.append))
    chosen = replace(settings(tree(tmp_path), "x"), consent=consent)
    clear_leftovers(chosen, progress, found_leftovers[2:])
    assert lines == []
    clear_leftovers(chosen, progress, found_leftovers)
    assert removed == (["a"] if consent == "yes" else [])
    assert "folder a, process b" in lines[0]
    assert lines[1:] == (["cannot remove process b: [Errno 13] Permission denied"] if consent == "yes" else [])


def test_a_dry_run_prints_plan_and_duration(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profile, frameworks = profiles.load_profile("standard"), tree(tmp_path)
    copy = ControlCopy(suffix="@base", frameworks=(frameworks,))
    chosen = settings(frameworks, "x", "x-mysql", results=tmp_path, profile=profile, control_copy=copy, runtime="local")
    first_use_tasks = (
        FirstUseTask(
            description="build the load generator (cargo build)", seconds=60.0, in_runtime=False, crate="loadgen"
        ),
    )
    assert dry_run(chosen, lambda *_: first_use_tasks) == Exit.OK
    output: dict[str, Any] = {"text": "\n".join(capsys.readouterr()).replace(str(tmp_path), "ROOT").splitlines()}
    assert dry_run(replace(chosen, json=True), lambda *_: first_use_tasks) == Exit.OK
    document = json.loads(capsys.readouterr().out)
    output["json"] = {**document, "cells": document["cells"][:1]}
    short = profile.interleaved.model_copy(update={"time_seconds": 5.0})
    once = profiles.load_profile("smoke").model_copy(update={"interleaved": short})
    assert dry_run(replace(chosen, profile=once, selection=Selection(test=("x",))), lambda *_: ()) == Exit.OK
    output["short"] = "\n".join(capsys.readouterr()).splitlines()
    approve("experiment-preparation-dry-run", output)


@pytest.mark.parametrize(("port", "groups"), [(None, 1), (8080, 2)])
def test_a_dry_run_groups_servers_like_a_run(
    port: int | None, groups: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frameworks = tree(tmp_path)
    copy = ControlCopy(suffix="@base", frameworks=(frameworks,))
    chosen = settings(frameworks, "x", results=tmp_path, server_port=port, runtime="local", control_copy=copy)
    assert dry_run(chosen, lambda *_: ()) == Exit.OK
    assert capsys.readouterr().out.count("group ") == groups


def test_shared_builds_run_and_fail_once(tmp_path: Path) -> None:
    local = {"build": [["make"]], "run": ["./x"]}
    entry = {"language": "C", "json_url": "/json", "local": local}
    other = {**entry, "local": {**local, "build": [["make", "other"]]}}
    tests = {"default": entry, "a": {**entry, "local": {**local, "run": ["./a"]}}, "b": other, "c": entry}
    path = tmp_path / "C" / "x" / "benchmark_config.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"framework": "x", "tests": [tests]}))
    plan = make_plan(settings(tmp_path, "x", "x-a", "x-b", "x-c"))
    for status in ("ok", "failed"):
        built: list[str] = []

        def build(
            implementation: Implementation, log: Path, status: str = status, built: list[str] = built
        ) -> BuildRecord:
            built.append(implementation.name)
            return BuildRecord(status=cast("Any", status), reason="" if status == "ok" else "make failed:\nlog")

        progress = ProgressTracker(SilentDisplay())
        runtime = cast("Runtime", SimpleNamespace(name="local", build=build))
        builds = build_all(runtime, plan, progress, RunStore(tmp_path, started_at=1.0))
        assert built == ["x", "x-b"]
        assert {name: each.status for name, each in builds.items()} == dict.fromkeys(("x", "x-a", "x-b", "x-c"), status)
    assert progress.problems == [
        "x failed: make failed:\nlog\nthis build is shared by x-a, x-c",
        "x-b failed: make failed:\nlog",
    ]
    assert builds["x-c"].reason == "it shares the failed build of x: make failed:\nlog"
