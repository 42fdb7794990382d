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
    """A run in progress with all samples but the last ten, which are returned by the tests."""
    folder = results / "run"
    path = folder / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"status": "running"}))
    lines = (folder / "samples.jsonl").read_text().splitlines(keepends=True)
    (folder / "samples.jsonl").write_text("".join(lines[:-10]))
    (folder / "rest.jsonl").write_text("".join(lines[-10:]))
    return folder


def test_the_first_look_tells_where_the_run_stands(running: Path) -> None:
    (running / "progress.json").write_text('{"status": "running", "stage": "measuring", "done": 3, "total": 20}')
    event = Watch(running).look()
    assert event is not None
    assert event.status == "running"
    assert event.progress is not None
    assert (event.progress.stage, event.progress.done, event.progress.total) == ("measuring", 3, 20)
    assert len(event.samples) == 12
    assert not event.ranking_changed


def test_nothing_new_is_nothing_to_tell(running: Path) -> None:
    watch = Watch(running)
    watch.look()
    assert watch.look() is None


def test_appended_samples_are_told_once_and_without_their_windows(running: Path) -> None:
    watch = Watch(running)
    watch.look()
    with (running / "samples.jsonl").open("a") as file:
        file.write((running / "rest.jsonl").read_text() + '{"half')
    event = watch.look()
    assert event is not None
    assert len(event.samples) == 10
    assert all(sample.windows == () and sample.warm_up is None for sample in event.samples)
    assert event.ranking_changed
    assert watch.look() is None


def test_the_end_is_told(running: Path) -> None:
    watch = Watch(running)
    watch.look()
    path = running / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"status": "complete"}))
    event = watch.look()
    assert event is not None
    assert event.status == "complete"


def test_a_run_that_writes_nothing_for_long_is_called_silent(running: Path) -> None:
    long_ago = time.time() - SILENT_SECONDS - 30
    for path in running.iterdir():
        os.utime(path, (long_ago, long_ago))
    event = Watch(running).look()
    assert event is not None
    assert event.silent_for is not None
    assert event.silent_for >= SILENT_SECONDS


def test_viewers_of_a_run_share_one_look_and_are_told_the_same(running: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[Path] = []
    look = Watch.look

    def counted(self: Watch) -> LiveEvent | None:
        looks.append(self.folder)
        return look(self)

    async def two() -> list[bytes]:
        viewers = [live.watch(running), live.watch(running)]
        first = [await anext(viewer) for viewer in viewers]
        for viewer in viewers:
            await viewer.aclose()  # type: ignore[attr-defined]
        return [told.text for told in first]

    monkeypatch.setattr(Watch, "look", counted)
    texts = asyncio.run(two())
    assert texts[0] == texts[1]
    assert looks == [running]
    assert live._channels == {}


def test_who_comes_after_the_end_is_told_of_it_whatever_was_written_since(
    running: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "SECONDS", 0.0)
    channel = live.Channel(running)

    async def looks() -> live.Told:
        await channel.look()
        path = running / "run.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"status": "complete"}))
        await channel.look()
        os.utime(running / "ranking.json", ns=(1, 1))
        await channel.look()
        return channel.now()

    assert asyncio.run(looks()).ends
    assert channel.count == 3


def test_viewers_are_told_when_newer_documents_are_there(running: Path) -> None:
    watched = Watch(running)
    watched.look()
    watched.renewed = True
    event = watched.look()
    assert event is not None
    assert event.ranking_changed
    assert watched.look() is None
