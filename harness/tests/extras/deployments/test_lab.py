"""The same run on several deployments, here and behind an ssh of the test's own, and one run of all."""

import json
import os
from pathlib import Path

import pytest

from harness import cli
from harness.errors import ConfigError, Exit, UsageError
from harness.extras.deployments import lab
from harness.extras.deployments.lab import merge
from harness.records import store
from harness.records.models import Outcome
from harness.records.store import RunStore
from harness.tests import records

# What a checkout's ./tfb does: the run that was prepared for its results folder; the first time it breaks off if asked.
TFB = """#!/bin/sh
echo "$*" >> "$ASKED"
while [ $# != 0 ]; do [ "$1" = --results ] && place=$2; [ "$1" = --resume ] && again=yes; shift; done
name=$(basename "$place")

mkdir -p "$place/20261124-120000" && cp -r "$RUNS/$name/." "$place/20261124-120000"
[ -z "$again" ] && [ -e "$RUNS/$name.breaks" ] || exit 0
sed -i 's/"complete"/"interrupted"/' "$place/20261124-120000/run.json"
exit 3
"""
# Its options, then a login and a command, for a shell in that login's home; "gone" does not answer.
SSH = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do [ "$1" = -tt ] && shift || shift 2; done
login=$1
shift
[ "$login" = gone ] && echo "connection refused" && exit 255
cd "$HOMES/$login" && exec sh -c "$*"
"""
FLAGS = ("run", "a", "--profile", "smoke", "--type", "json")


def program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def prepared(folder: Path, *, fails: str = "", duration: float = 15.0, processes: int = 1, revision: str = "") -> Path:
    """A run of two implementations as a deployment would make it."""
    written = RunStore(folder, started_at=0.0)
    known = records.info()
    names = ("ref", "a")
    of = [known.implementations[0].model_copy(update={"name": name, "test_types": ("json",)}) for name in names]
    told = {"implementations": tuple(of), "reference": "ref", "revision": revision or known.revision}
    settings = {"profile": {"duration_seconds": duration, "processes": {"minimum": processes}}}
    written.write_info(known.model_copy(update={**told, "status": "complete", "settings": settings}))
    for name in names:
        for number in range(processes):
            written.add_trial(records.trial(name, number, 1000.0))
            written.add_process(records.process(name, number))
        written.add_verdict(records.verdict(name, "json", Outcome.FAIL if name == fails else Outcome.PASS))
    return folder


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Checkouts here and at one login, a run prepared for each of three deployments, and an ssh of the test's own."""
    program(tmp_path / "bin" / "ssh", SSH)
    for checkout in ("here", "homes/one/bench"):
        program(tmp_path / checkout / "tfb", TFB)
    for name in ("near", "far", "away"):
        prepared(tmp_path / "runs" / name, processes=2)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    for name, value in {"HOMES": "homes", "RUNS": "runs", "ASKED": "asked"}.items():
        monkeypatch.setenv(name, str(tmp_path / value))
    monkeypatch.setattr(lab, "REPOSITORY", tmp_path / "here")
    return tmp_path


def written(folder: Path, **logins: str) -> str:
    """A lab's file: each deployment with its login, this machine where that is empty."""
    text = 'directory = "bench"\n'
    for name, login in logins.items():
        text += f'[[deployment]]\nname = "{name}"\nflags = ["--server-host", "{name}"]\n'
        text += f'login = "{login}"\n' if login else ""
    (folder / "lab.toml").write_text(text)
    return str(folder / "lab.toml")


def run(place: Path, *flags: str) -> tuple[int, Path]:
    code = cli.main([*FLAGS, "--results", str(place / "results"), *flags])
    return code, next(iter((place / "results").glob("*-lab")), place)


def test_each_deployment_carries_out_the_command_with_its_flags_and_all_become_one_run(place: Path) -> None:
    code, folder = run(place, "--lab", written(place, near="", far="one"))
    assert code == Exit.OK
    asked = sorted((place / "asked").read_text().splitlines())
    far, near = (f"{folder.name}/{name}" for name in ("far", "near"))
    assert asked == sorted([
        f"{' '.join(FLAGS)} --server-host near --results {place}/results/{near} --quiet",
        f"{' '.join(FLAGS)} --server-host far --results results/{far} --quiet",
    ])  # fmt: skip
    found = store.read(store.find(place / "results", None))
    assert [(each.name, each.processes) for each in found.info.sets] == [("near", (0, 1)), ("far", (2, 3))]
    assert {(each.implementation, each.process) for each in found.trials} == {
        (name, number) for name in ("ref", "a") for number in range(4)
    }
    assert store.finished(found) == {(each.implementation, each.process) for each in found.trials}
    assert found.problems == ()


def test_what_has_not_ended_is_named_and_gone_on_with(place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (place / "runs" / "far.breaks").touch()
    lab_file = written(place, near="", far="one", away="gone")
    code, folder = run(place, "--lab", lab_file)
    assert code == Exit.FAILED
    assert f"not complete: far, away; go on with the same command and --resume {folder}" in capfd.readouterr().err
    assert [each.name for each in store.read(folder).info.sets] == ["near", "far"]
    assert "far: the run is interrupted" in str(store.read(folder).info.problems)
    (place / "asked").unlink()
    (place / "homes" / "gone").symlink_to(place / "homes" / "one")
    assert run(place, "--lab", written(place, near="", far="one"), "--resume", str(folder))[0] == Exit.OK
    there = f"results/{folder.name}/far"
    assert (place / "asked").read_text() == f"run --resume {there}/20261124-120000 --results {there} --quiet\n"
    assert [each.name for each in store.read(folder).info.sets] == ["near", "far"]


def test_a_dry_run_shows_each_deployment_s_command_and_starts_none(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("run", "express", "--profile", "smoke", "--type", "json", "--dry-run")
    assert cli.main([*words, "--lab", written(place, far="one")]) == Exit.OK
    assert "far: ssh -o BatchMode=yes" in capsys.readouterr().out
    assert not (place / "asked").exists()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('[[deployment]]\nname = "a"\n[[deployment]]\nname = "a"\n', "two deployments have the name 'a'"),
        ('[[deployment]]\nname = "a b"\n', "deployment.0.name"),
        ('[[deployment]]\nname = "a"\nhost = "x"\n', "deployment.0.host"),
        ("", "deployment: is missing"),
        ("[[deployment", "not valid TOML"),
    ],
)
def test_a_broken_lab_is_refused_with_its_key(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "lab.toml").write_text(text)
    with pytest.raises(ConfigError, match=complaint):
        lab.load(tmp_path / "lab.toml")


@pytest.mark.parametrize(
    ("other", "complaint"),
    [
        ({"duration": 5.0}, r"another profile \(duration_seconds differs\)"),
        ({"revision": "f" * 40}, "was measured at ffffffffffff"),
    ],
)
def test_runs_that_are_not_of_one_thing_are_refused(tmp_path: Path, other: dict[str, object], complaint: str) -> None:
    runs = {"x": prepared(tmp_path / "1"), "y": prepared(tmp_path / "2", **other)}  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=complaint):
        merge(runs, "all")


def test_a_verdict_of_any_deployment_is_kept(tmp_path: Path) -> None:
    runs = {"x": prepared(tmp_path / "1", fails="a"), "y": prepared(tmp_path / "2")}
    found = merge(runs, "all")
    assert {(each.implementation, each.process, each.outcome) for each in found.verdicts} == {
        *(("ref", 0, Outcome.PASS), ("ref", 1, Outcome.PASS)),
        *(("a", 0, Outcome.FAIL), ("a", 1, Outcome.PASS)),
    }
    assert json.loads(found.info.recorded())["processes_expected"] == 2
