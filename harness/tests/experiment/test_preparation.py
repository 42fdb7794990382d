"""What stands before the first server: who is chosen, by which rules, and which runtimes get the longer warm-up."""

import json
import re
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.errors import Exit, UsageError
from harness.experiment.preparation import JIT_PLATFORMS, build_all, choose_work, git_state, opening
from harness.experiment.progress import Progress
from harness.experiment.workflow import clear_leftovers, dry_run
from harness.host import process
from harness.host.leftovers import Leftover
from harness.paths import REPOSITORY
from harness.plan.config import Settings, Twins
from harness.plan.discovery import Selection
from harness.plan.hosts import of_flags
from harness.records.models import Build
from harness.records.store import RunStore
from harness.runtime import Runtime
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
def test_a_platform_is_named_by_a_whole_word(stack: str, jit: bool) -> None:
    assert bool(JIT_PLATFORMS.search(stack)) is jit


def tree(root: Path) -> Path:
    folder = root / "frameworks" / "C" / "x"
    folder.mkdir(parents=True)
    entry = {"language": "C", "json_url": "/json"}
    tests = {
        "default": entry,
        "mysql": {**entry, "database": "MySQL"},
        "old": {**entry, "tags": ["broken"]},
        "fan": {**entry, "fan_out_url": "/fan-out?calls=", "local": {"build": [], "run": ["./x"]}},
    }
    (folder / "benchmark_config.json").write_text(json.dumps({"framework": "x", "tests": [tests]}))
    return root / "frameworks"


def settings(frameworks: Path, *names: str, **values: Any) -> Settings:
    return usual(frameworks=(frameworks,), selection=Selection(test=names), **values)


def test_a_test_whose_database_is_not_served_is_refused_by_name_and_the_others_run(tmp_path: Path) -> None:
    frameworks = tree(tmp_path)
    found = choose_work(settings(frameworks, "all"))
    assert [i.name for i in found.implementations] == ["x", "x-fan"]
    (problem,) = found.problems
    assert problem.startswith("x-mysql: asks for MySQL, and only PostgreSQL is served")
    with pytest.raises(UsageError, match="nothing to run: x-mysql: asks for MySQL"):
        choose_work(settings(frameworks, "x-mysql"))


def test_a_broken_test_that_is_named_is_told_of(tmp_path: Path) -> None:
    found = choose_work(settings(tree(tmp_path), "x", "x-old"))
    assert [i.name for i in found.implementations] == ["x"]
    (problem,) = found.problems
    assert problem.startswith("x-old: tagged as broken, so it is never run")


def test_behind_a_bridge_or_on_another_machine_no_server_is_asked_to_call_the_upstream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.runtime.upstream.available", lambda: True)
    frameworks, types = tree(tmp_path), ("json", "fan-out")

    def chosen(*names: str, **values: Any) -> list[set[str]]:
        work = choose_work(settings(frameworks, *names, test_types=types, **values))
        return [set(candidate.test_types) for candidate in work.candidates]

    assert chosen("x-fan") == [{"json", "fan-out"}]
    assert chosen("x-fan", network_mode="bridge") == [{"json"}]
    assert chosen("x-fan", hosts=of_flags("app", "app", ("app",))) == [{"json"}]
    assert chosen("x-fan", "x") == [{"json"}, {"json"}]


def test_rules_and_consents_come_with_the_implementation(tmp_path: Path) -> None:
    frameworks = tree(tmp_path)
    (own,) = choose_work(settings(frameworks, "x")).implementations
    assert (own.rules, own.allowed) == ("techempower", ())
    twins = Twins(suffix="@base", frameworks=(frameworks,))
    chosen = settings(frameworks, "x", rules="tfb", allow={"x": ("io_uring",)}, twins=twins)
    found = [(i.name, i.rules, i.allowed) for i in choose_work(chosen).implementations]
    assert found == [(name, "tfb", ("io_uring",)) for name in ("x", "x@base")]
    with pytest.raises(UsageError, match="--allow y: not among the selected; allowed are x"):
        choose_work(settings(frameworks, "x", allow={"y": ("io_uring",)}))


@pytest.mark.parametrize(
    ("status", "text", "expected"),
    [
        (0, "# branch.oid abc\n# branch.head main\n", ("abc", False)),
        (0, "# branch.oid abc\n1 .M N... 100644 100644 100644 a b README.md\n", ("abc", True)),
        (128, "", (None, None)),
    ],
)
def test_a_run_names_its_commit_and_whether_the_tree_differs_from_it(
    monkeypatch: pytest.MonkeyPatch, status: int, text: str, expected: tuple[str | None, bool | None]
) -> None:
    def run(command: Sequence[str], **_: object) -> SimpleNamespace:
        assert command[:3] == ["git", "-C", str(REPOSITORY)]
        return SimpleNamespace(status=status, stdout=text)

    monkeypatch.setattr(process, "run", run)
    assert git_state() == expected


@pytest.mark.parametrize(
    ("asked", "name", "place"),
    [
        ("auto", "docker", "docker runtime (auto: a container engine answers)"),
        ("auto", "local", "local runtime (auto: no container engine answers)"),
        ("local", "local", "local runtime"),
    ],
)
def test_a_run_opens_with_what_where_how_and_when_it_ends(asked: Any, name: str, place: str, tmp_path: Path) -> None:
    chosen = settings(tree(tmp_path), "x")
    chosen = replace(chosen, runtime=asked)
    said = opening(chosen, choose_work(chosen), cast("Runtime", SimpleNamespace(name=name)), 90.0, 0.0)
    assert said.startswith(
        f"1 implementation, {place}, profile {chosen.profile.name}, seed {chosen.seed}; expected end"
    )
    assert said.endswith("(1 min 30 s, builds apart)")


def test_a_failed_build_is_told_whole_and_recorded_without_the_place_of_the_run(tmp_path: Path) -> None:
    told, folder = list[str](), RunStore(tmp_path / "run", started_at=0.0)
    progress = cast("Progress", SimpleNamespace(problem=told.append, building=lambda *_: nullcontext()))
    failed = Build(status="failed", reason=f"no compiler\nlog: {folder.folder}/logs/x/build.log")
    runtime = cast("Runtime", SimpleNamespace(build=lambda *_: failed))
    builds = build_all(runtime, choose_work(settings(tree(tmp_path), "x")), progress, folder)
    assert builds["x"].reason == "no compiler\nlog: logs/x/build.log"
    assert told == [f"x failed: {failed.reason}"]


@pytest.mark.parametrize("consent", ["yes", "no"])
def test_what_a_killed_run_left_is_removed_with_consent_and_else_named(consent: Any, tmp_path: Path) -> None:
    gone, told = list[str](), list[str]()

    def cannot() -> None:
        raise OSError(13, "Permission denied")

    left = [
        Leftover(kind="folder", name="a", certain=True, remove=lambda: gone.append("a")),
        Leftover(kind="process", name="b", certain=True, remove=cannot),
        Leftover(kind="folder", name="c", certain=False, remove=lambda: gone.append("c")),
    ]
    progress = cast("Progress", SimpleNamespace(note=told.append, problem=told.append))
    chosen = replace(settings(tree(tmp_path), "x"), consent=consent)
    clear_leftovers(chosen, progress, left[2:])
    assert told == []
    clear_leftovers(chosen, progress, left)
    assert gone == (["a"] if consent == "yes" else [])
    assert "folder a, process b" in told[0]
    assert told[1:] == (["could not be removed: process b: [Errno 13] Permission denied"] if consent == "yes" else [])


def test_a_dry_run_says_what_would_be_measured_and_how_long_it_takes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = settings(tree(tmp_path), "x", "x-fan", results=tmp_path, test_types=("json",))
    assert dry_run(chosen) == Exit.OK
    text = capsys.readouterr().out
    cells = r"x  json  c32\nx-fan  json  c32\n2 cells, 1 process of each, 2 trials"
    time = r"about \d+ s, \d+% of it measuring, builds apart"
    assert re.fullmatch(rf"group 1: x(-fan)?, x(-fan)?\n{cells}; {time}\n", text)
    assert dry_run(replace(chosen, json=True)) == Exit.OK
    document = json.loads(capsys.readouterr().out)
    assert document["cells"][0] == {"implementation": "x", "test_type": "json", "loads": ["c32"]}
    assert document.keys() == {"processes", "trials", "seconds", "measuring_seconds", "cells"}
