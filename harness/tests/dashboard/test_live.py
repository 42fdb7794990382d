"""What a page is told of a run in progress, each time that it asks."""

import json
import os
import time
from pathlib import Path

import pytest

from harness.dashboard.runs import SILENT_SECONDS, Run


@pytest.fixture
def running(results: Path) -> Path:
    """A run in progress with all trials but the last ten, which stand in a file beside."""
    folder = results / "run"
    path = folder / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"status": "running"}))
    lines = (folder / "trials.jsonl").read_text().splitlines(keepends=True)
    (folder / "trials.jsonl").write_text("".join(lines[:-10]))
    (folder / "rest.jsonl").write_text("".join(lines[-10:]))
    return folder


def test_new_trials_are_the_first_of_the_last_ones_and_without_their_windows(running: Path) -> None:
    before = Run(running).live()
    assert (before.status, before.silent_for) == ("running", None)
    assert Run(running).live() == before
    rest = (running / "rest.jsonl").read_text()
    with (running / "trials.jsonl").open("a") as file:
        file.write(rest + '{"half')
    told = Run(running).live()
    assert told.version != before.version
    newest = [json.loads(line)["id"] for line in rest.splitlines()[:-9:-1]]
    assert [trial.id for trial in told.trials] == newest
    assert all(trial.windows == () and trial.warm_up is None for trial in told.trials)


def test_a_run_that_writes_nothing_for_long_is_called_silent(running: Path) -> None:
    long_ago = time.time() - SILENT_SECONDS - 30
    for path in running.iterdir():
        os.utime(path, (long_ago, long_ago))
    silent_for = Run(running).live().silent_for
    assert silent_for is not None
    assert silent_for >= SILENT_SECONDS
