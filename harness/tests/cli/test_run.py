"""A run that is interrupted says how it goes on, and others that go on are named."""

from pathlib import Path

import pytest

from harness.cli import guarded, run
from harness.errors import Exit
from harness.records.store import RunStore


def begun(results: Path, name: str) -> Path:
    folder = results / name
    folder.mkdir(parents=True)
    (folder / "run.json").write_text("{}")
    return folder


def test_an_interrupted_run_says_how_to_go_on_with_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    begun(tmp_path, "20260101-1")

    def command() -> int:
        with run.resumable(tmp_path, None):
            begun(tmp_path, "20260102-1")
            raise KeyboardInterrupt

    assert guarded(command) == Exit.INTERRUPTED
    assert capsys.readouterr().err.splitlines() == [
        "tfb: interrupted; everything started is stopped, what was measured is kept",
        f"tfb: Go on: ./tfb run --resume 20260102-1 --results {tmp_path}",
        f"tfb: What it has so far: ./tfb report 20260102-1 --results {tmp_path}",
    ]


def test_a_resumed_run_that_is_interrupted_again_is_the_one_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = begun(tmp_path, "20260101-1")
    begun(tmp_path, "20260102-1")

    def command() -> int:
        with run.resumable(tmp_path, str(folder)):
            raise KeyboardInterrupt

    guarded(command)
    assert "--resume 20260101-1 " in capsys.readouterr().err


def test_what_never_became_a_run_is_not_offered_to_go_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    begun(tmp_path, "20260101-1")

    def command() -> int:
        with run.resumable(tmp_path, None):
            raise KeyboardInterrupt

    assert guarded(command) == Exit.INTERRUPTED
    assert capsys.readouterr().err == "tfb: interrupted; everything started is stopped\n"


def test_only_runs_that_go_on_are_named_as_company(tmp_path: Path) -> None:
    begun(tmp_path, "20260101-1")
    folder = begun(tmp_path, "20260102-1")
    assert run.at_work(tmp_path) == ()
    with RunStore(folder, started_at=0.0).locked():
        assert run.at_work(tmp_path) == ("20260102-1",)
    assert run.at_work(tmp_path) == ()
