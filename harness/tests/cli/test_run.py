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


@pytest.mark.parametrize(
    ("resumed", "new", "named"),
    [(None, "20260103-1", "20260103-1"), ("20260101-1", None, "20260101-1"), (None, None, None)],
)
def test_an_interrupted_run_says_how_to_go_on_with_it_if_it_ever_became_one(
    resumed: str | None, new: str | None, named: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("20260101-1", "20260102-1"):
        begun(tmp_path, name)

    def command() -> int:
        with run.resumable(tmp_path, resumed and str(tmp_path / resumed)):
            if new:
                begun(tmp_path, new)
            raise KeyboardInterrupt

    assert guarded(command) == Exit.INTERRUPTED
    kept = [
        "tfb: interrupted; everything started is stopped, what was measured is kept",
        f"tfb: Go on: ./tfb run --resume {named} --results {tmp_path}",
        f"tfb: What it has so far: ./tfb report {named} --results {tmp_path}",
    ]
    said = capsys.readouterr().err.splitlines()
    assert said == (kept if named else ["tfb: interrupted; everything started is stopped"])


def test_only_runs_that_go_on_are_named_as_company(tmp_path: Path) -> None:
    begun(tmp_path, "20260101-1")
    folder = begun(tmp_path, "20260102-1")
    assert run.at_work(tmp_path) == ()
    with RunStore(folder, started_at=0.0).locked():
        assert run.at_work(tmp_path) == ("20260102-1",)
    assert run.at_work(tmp_path) == ()
