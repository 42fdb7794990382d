"""What a viewer of a run in progress is told, and when."""

import asyncio
import json
import os
import time
from pathlib import Path

import pytest

from harness.dashboard import live
from harness.dashboard.documents import LiveEvent
from harness.dashboard.live import SILENT_SECONDS, Watch


@pytest.fixture
def running(results: Path) -> Path:
    """A run in progress with all trials but the last ten, which stand in a file beside."""
    folder = results / "run"
    become(folder, "running")
    lines = (folder / "trials.jsonl").read_text().splitlines(keepends=True)
    (folder / "trials.jsonl").write_text("".join(lines[:-10]))
    (folder / "rest.jsonl").write_text("".join(lines[-10:]))
    return folder


def become(folder: Path, status: str) -> None:
    path = folder / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"status": status}))


def seen(watch: Watch) -> LiveEvent:
    event = watch.look()
    assert event is not None
    return event


def test_the_first_look_tells_where_the_run_stands(running: Path) -> None:
    (running / "progress.json").write_text('{"status": "running", "stage": "measuring", "done": 3, "total": 20}')
    watch = Watch(running)
    event = seen(watch)
    assert event.status == "running"
    assert event.progress is not None
    assert (event.progress.stage, event.progress.done, event.progress.total) == ("measuring", 3, 20)
    assert len(event.trials) == 12
    assert not event.ranking_changed
    assert watch.look() is None


def test_appended_trials_are_told_once_and_without_their_windows(running: Path) -> None:
    watch = Watch(running)
    watch.look()
    with (running / "trials.jsonl").open("a") as file:
        file.write((running / "rest.jsonl").read_text() + '{"half')
    event = seen(watch)
    assert len(event.trials) == 10
    assert all(trial.windows == () and trial.warm_up is None for trial in event.trials)
    assert event.ranking_changed
    assert watch.look() is None


def test_of_a_long_file_the_first_look_reads_the_end_alone(running: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = seen(Watch(running)).trials
    monkeypatch.setattr(live, "TAIL_BYTES", (running / "trials.jsonl").stat().st_size // 4)
    assert seen(Watch(running)).trials == whole


def test_the_end_is_told(running: Path) -> None:
    watch = Watch(running)
    watch.look()
    become(running, "complete")
    assert seen(watch).status == "complete"


def test_a_run_that_writes_nothing_for_long_is_called_silent(running: Path) -> None:
    long_ago = time.time() - SILENT_SECONDS - 30
    for path in running.iterdir():
        os.utime(path, (long_ago, long_ago))
    silent_for = seen(Watch(running)).silent_for
    assert silent_for is not None
    assert silent_for >= SILENT_SECONDS


def test_viewers_are_told_the_same_and_all_of_them_the_end(running: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "SECONDS", 0.01)

    async def viewer(told: list[bytes]) -> None:
        async for text in live.watch(running):
            told.append(text)
            if len(told) == 1:
                await asyncio.sleep(0.1)  # behind the others
                become(running, "complete")
                os.utime(running / "ranking.json", ns=(1, 1))

    async def all_viewers() -> list[list[bytes]]:
        told: list[list[bytes]] = [[], [], []]
        await asyncio.wait_for(asyncio.gather(*map(viewer, told)), 30)
        late: list[bytes] = []
        await asyncio.wait_for(viewer(late), 30)
        return [*told, late]

    first, second, third, late = asyncio.run(all_viewers())
    assert first[0] == second[0] == third[0]
    assert first[0].startswith(b"event: live")
    assert {told[-1].split(b"\r\n")[0] for told in (first, second, third, late)} == {b"event: end"}
    assert len(late) == 1
