"""Merging runs of several deployments."""

import shutil
import time
from pathlib import Path

import pytest

from harness import cli
from harness.errors import Exit, UsageError
from harness.extras.deployments.merge import merge_runs
from harness.records import store
from harness.records.verification_record import Outcome
from harness.tests.doubles import records


def prepared(folder: Path, *, fails: str = "", duration: float = 15.0, processes: int = 1, **told: object) -> Path:
    """Record a run of two implementations, as one deployment would."""
    known = records.info()
    names = ("ref", "a")
    of = [known.implementations[0].model_copy(update={"name": name, "test_types": ("json",)}) for name in names]
    settings = {"profile": {"duration_seconds": duration, "processes": {"minimum": processes}}}
    own = {"started_at": time.time(), "implementations": tuple(of), "reference": "ref", "settings": settings}
    info = known.model_copy(update={"status": "complete", **own, **told})
    trials = [records.trial(name, number, 1000.0) for name in names for number in range(processes)]
    outcomes = {name: Outcome.FAIL if name == fails else Outcome.PASS for name in names}
    records.stored(folder, info, trials, [records.verdict(name, "json", outcomes[name]) for name in names])
    return folder


def test_merged_run_records_its_deployments(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    near = prepared(tmp_path / "near", processes=2)
    prepared(tmp_path / "far", processes=2, status="interrupted")
    assert cli.main(["report", str(near), "far", "--deployments", "--results", str(tmp_path)]) == Exit.OK
    (folder,) = tmp_path.glob("*-merged")
    assert f"merged 2 deployments into {folder}" in capsys.readouterr().err
    merged = store.read_run(folder)
    assert [(each.name, each.processes) for each in merged.info.sets] == [(str(near), (0, 1)), ("far", (2, 3))]
    every = {(name, number) for name in ("ref", "a") for number in range(4)}
    assert {(each.implementation, each.process) for each in merged.trials} == every
    assert store.finished_processes(merged) == every
    assert merged.problems == ()
    assert merged.info.problems == ("far: the run is interrupted; its completed measurements are included",)


@pytest.mark.parametrize("runs", [["one"], ["one", "one"], ["one", "copy"]])
def test_one_run_is_none_of_several_deployments(
    runs: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(prepared(tmp_path / "one"), tmp_path / "copy")
    assert cli.main(["report", *runs, "--deployments", "--results", str(tmp_path)]) == Exit.USAGE
    assert "pass at least two different runs" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("other", "differs"),
    [
        ({"duration": 5.0}, "duration_seconds"),
        ({"revision": "f" * 40}, "revision"),
        ({"runtime": "docker"}, "runtime"),
        ({"loads": {}}, "loads"),
        ({"dirty": True}, "uncommitted changes"),
        ({"reference": "a"}, "reference"),
    ],
)
def test_incompatible_runs_cannot_be_merged(tmp_path: Path, other: dict[str, object], differs: str) -> None:
    runs = {"x": prepared(tmp_path / "1"), "y": prepared(tmp_path / "2", **other)}  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=rf"y differs from the first run in {differs}:"):
        merge_runs(runs, tmp_path)


def test_a_verdict_of_any_deployment_is_kept(tmp_path: Path) -> None:
    runs = {"x": prepared(tmp_path / "1", fails="a"), "y": prepared(tmp_path / "2")}
    merged = store.read_run(merge_runs(runs, tmp_path))
    assert {(each.implementation, each.process, each.outcome) for each in merged.verdicts} == {
        *(("ref", 0, Outcome.PASS), ("ref", 1, Outcome.PASS)),
        *(("a", 0, Outcome.FAIL), ("a", 1, Outcome.PASS)),
    }
    assert merged.info.processes_expected == 2
