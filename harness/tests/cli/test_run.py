"""Messages during a run: how to resume it, other active runs, and verdicts."""

from dataclasses import replace
from pathlib import Path

import pytest

from harness.cli import guarded, run
from harness.cli.resume import find_interrupted
from harness.cli.settings import resolve_settings
from harness.cli.verbs import parse_recorded
from harness.errors import Exit
from harness.experiment import workflow
from harness.experiment.progress import ProgressTracker
from harness.plan import profile as profiles
from harness.plan.implementation import Implementation
from harness.plan.run_settings import Settings
from harness.records.run_info import BuildRecord
from harness.records.store import RunStore
from harness.tests.doubles import records
from harness.tests.doubles.fakes_run import FakeRun
from harness.tests.doubles.fakes_world import Behaviour


def begun(results: Path, name: str) -> Path:
    folder = results / name
    folder.mkdir(parents=True)
    (folder / "run.json").write_text("{}")
    return folder


@pytest.mark.parametrize(
    ("words", "began", "resumable"), [("run", True, True), ("run", False, False), ("compare --copy", True, False)]
)
def test_an_interrupted_run_says_how_to_continue(
    words: str,
    began: bool,
    resumable: bool,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun(tmp_path, "20260101-1")

    def interrupted(_: Settings, shown: ProgressTracker, _needs: None) -> None:
        if began:
            begun(tmp_path, "20260103-1")
        shown.store = RunStore(tmp_path / "20260103-1", started_at=0.0)
        raise KeyboardInterrupt

    monkeypatch.setattr(workflow, "benchmark", interrupted)
    chosen = replace(resolve_settings(parse_recorded(["run"])), command=tuple(words.split()), results=tmp_path)
    assert guarded(lambda: run.run_benchmark(chosen).exit_code) == Exit.INTERRUPTED
    messages = [
        "tfb: interrupted; all started processes have been stopped, and the measurements are kept",
        f"tfb: Continue: ./tfb run --resume 20260103-1 --results {tmp_path}",
        f"tfb: Show the results so far: ./tfb report 20260103-1 --results {tmp_path}",
    ]
    output = capsys.readouterr().err.splitlines()
    assert output == (messages if resumable else ["tfb: interrupted; all started processes have been stopped"])


def test_active_runs_are_those_with_a_lock(tmp_path: Path) -> None:
    begun(tmp_path, "20260101-1")
    folder = begun(tmp_path, "20260102-1")
    assert run.active_runs(tmp_path) == ()
    with RunStore(folder, started_at=0.0).lock():
        assert run.active_runs(tmp_path) == ("20260102-1",)
    assert run.active_runs(tmp_path) == ()


def test_resume_skips_unreadable_runs(tmp_path: Path) -> None:
    info = records.info("20260101-1")
    folder = begun(tmp_path, "20260101-1")
    RunStore(folder, started_at=0.0).write_info(info.model_copy(update={"status": "interrupted", "command": ()}))
    begun(tmp_path, "20260102-1")
    assert find_interrupted(tmp_path) == folder


@pytest.mark.parametrize("seconds", [12.0, 120.0])
def test_a_run_prints_every_verdict(seconds: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The run's status and the exit code must agree with the printed verdicts."""
    profile = profiles.load_profile("quick")
    limit = profile.interleaved.model_copy(update={"time_seconds": seconds})
    once = profile.processes.model_copy(update={"minimum": 1, "maximum": 1})
    servers = {"a": Behaviour(), "b": Behaviour()}
    fake = FakeRun(tmp_path, servers, profile.model_copy(update={"interleaved": limit, "processes": once}))
    real = fake.runtime.build
    if seconds > 60.0:
        servers = {**servers, "c": Behaviour()}
        fake = FakeRun(tmp_path, servers, fake.profile)

        def build(implementation: Implementation, log: Path) -> BuildRecord:
            failed = BuildRecord(status="failed", reason="make failed (exit status 2):\nmain.c:3: error")
            return failed if implementation.name == "c" else real(implementation, log)

        fake.runtime.build = build  # type: ignore[method-assign]
    chosen = fake.settings()
    fake.write_folders()
    outcome = run.run_benchmark(replace(chosen, quiet=True), fake.dependencies())
    run._print_outcome(chosen, outcome)
    printed = capsys.readouterr().out
    assert "\na: verified\nb: verified\n" in printed
    assert ("c: build failed: make failed (exit status 2)\n" in printed) is (seconds > 60.0)
    assert ("  incomplete, profile quick" in printed) is (seconds < 60.0)
    assert ("not reached: time was up" in printed) is (seconds < 60.0)
    assert outcome.exit_code == Exit.FAILED
