"""Watches the files of a run in progress: a few stat calls a second for all viewers, and reads what was appended."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator
from functools import cached_property, lru_cache
from pathlib import Path

from pydantic import ValidationError
from sse_starlette import ServerSentEvent
from starlette.concurrency import run_in_threadpool

from harness.dashboard.documents import LiveEvent
from harness.errors import StoreError
from harness.records.bounded import open_regular
from harness.records.lines import Lines, grown
from harness.records.models import Progress, RunInfo, Sample
from harness.records.reader import bounded

SECONDS = 1.0  # between looks
SILENT_SECONDS = 60.0  # without a write, a run that calls itself running is shown as silent
TAIL_BYTES = 2 << 20  # of samples.jsonl, in which a new viewer's samples are looked for
KEPT_EVENTS = 64  # for viewers that are slow
LAST_SAMPLES = 12  # that a new viewer gets at once
WATCHED = ("progress.json", "samples.jsonl", "ranking.json", "replicates.jsonl", "run.json")


class Watch:
    """What was seen of a run so far."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lines = Lines()
        self.seen: dict[str, tuple[int, int]] = {}
        self.first = True
        self.was_silent = False
        self.renewed = False  # newer documents are there than those that viewers were given

    def look(self) -> LiveEvent | None:
        """What is new since the last look, or None."""
        changed = {name for name in WATCHED if self._changed(name)}
        silent = self._silent_for()
        was_silent, self.was_silent = self.was_silent, silent is not None
        renewed, self.renewed = self.renewed, False
        if not changed and not self.first and self.was_silent == was_silent and not renewed:
            return None
        samples: list[Sample] = []
        if "samples.jsonl" in changed:
            samples = self._samples()
        event = LiveEvent(
            progress=self._progress(),
            samples=tuple(samples[-LAST_SAMPLES:]),
            ranking_changed=not self.first and bool(changed & {"ranking.json"} or samples or renewed),
            status=self._status() if self.first or "run.json" in changed else "",
            silent_for=silent,
        )
        self.first = False
        return event

    def _samples(self) -> list[Sample]:
        """Those since the last look; at the first look the last few, whatever the file's size."""
        path = self.folder / "samples.jsonl"
        size = self.seen["samples.jsonl"][0]
        if self.first or size < self.lines.offset:
            self.lines = last_lines(path, size)
        found, offset, number = _grown(path, self.lines.offset, self.lines.number, *self.seen["samples.jsonl"])
        self.lines = Lines(offset=offset, number=number)
        return list(found)

    def _changed(self, name: str) -> bool:
        try:
            state = (self.folder / name).stat()
        except OSError:
            return self.seen.pop(name, None) is not None
        now = state.st_size, state.st_mtime_ns
        before, self.seen[name] = self.seen.get(name), now
        return before != now

    def _silent_for(self) -> float | None:
        """Seconds since the last write, when that is long; a killed run never says that it ended."""
        written = max((time_ns for _, time_ns in self.seen.values()), default=0) / 1e9
        silence = time.time() - written
        return round(silence) if written and silence > SILENT_SECONDS else None

    def _progress(self) -> Progress | None:
        try:
            return Progress.model_validate_json(bounded(self.folder / "progress.json"))
        except (OSError, ValidationError):
            return None

    def _status(self) -> str:
        try:
            return RunInfo.model_validate_json(bounded(self.folder / "run.json")).status
        except (OSError, ValidationError):
            return "running"


@lru_cache(maxsize=64)
def _grown(path: Path, offset: int, number: int, _size: int, _changed_ns: int) -> tuple[tuple[Sample, ...], int, int]:
    """Compact samples behind an offset, and where the next ones stand; read once for all viewers that are there."""
    lines = Lines(offset=offset, number=number)
    found = tuple(compact(sample) for sample, _, _ in grown(path, lines, Sample))
    return found[-LAST_SAMPLES:], lines.offset, lines.number


def last_lines(path: Path, size: int) -> Lines:
    """Where the last lines of a file begin."""
    if size <= TAIL_BYTES:
        return Lines()
    try:
        with open_regular(path) as file:
            file.seek(size - TAIL_BYTES)
            return Lines(offset=size - TAIL_BYTES + len(file.readline(TAIL_BYTES)))
    except OSError:
        return Lines()


def compact(sample: Sample) -> Sample:
    """A sample without what fills pages: windows, histogram, the warm-up's windows."""
    return sample.without_histograms().model_copy(update={"windows": (), "warm_up": None})


class Channel:
    """What all viewers of a run are told: the files are looked at once a second, however many they are."""

    def __init__(self, folder: Path) -> None:
        self._watch = Watch(folder)
        self._events: deque[Told] = deque(maxlen=KEPT_EVENTS)
        self._samples: deque[Sample] = deque(maxlen=LAST_SAMPLES)
        self._last: LiveEvent | None = None
        self._status = "running"  # once the run has ended, whatever is written after that
        self._looked_at = 0.0
        self._looking = asyncio.Lock()
        self.count = 0  # of all events
        self.viewers = 0

    async def look(self) -> None:
        """Look, unless somebody has within the last second."""
        async with self._looking:
            if self._last is not None and time.monotonic() - self._looked_at < SECONDS:
                return
            event = await run_in_threadpool(self._watch.look)
            self._looked_at = time.monotonic()
            if event is not None:
                self._samples += event.samples
                self._last = event
                self._status = event.status or self._status
                self._events.append(Told(event))
                self.count += 1

    def renewed(self) -> None:
        """The next look tells the viewers to ask again."""
        self._watch.renewed = True

    def now(self) -> "Told":
        """What a new viewer is told."""
        assert self._last is not None  # noqa: S101 - the first look has always something to tell
        changed = {"samples": tuple(self._samples), "ranking_changed": False, "status": self._status}
        return Told(self._last.model_copy(update=changed))

    def since(self, count: int) -> list["Told"]:
        """The events after so many; the oldest of very many are forgotten."""
        news = min(self.count - count, len(self._events))
        return list(self._events)[len(self._events) - news :]


class Told:
    """An event, and its bytes, made when first asked for."""

    def __init__(self, event: LiveEvent) -> None:
        self.event = event

    @cached_property
    def text(self) -> bytes:
        """As a server-sent event: ``end`` closes the stream."""
        return ServerSentEvent(self.event.model_dump_json(), event="end" if self.ends else "live").encode()

    @property
    def ends(self) -> bool:
        """Whether the run has ended, and nothing comes after it."""
        return bool(self.event.status) and self.event.status != "running"


_channels: dict[Path, Channel] = {}


def renewed(folder: Path) -> None:
    """Newer documents of a run are there than those that its viewers were given."""
    channel = _channels.get(folder)
    if channel is not None:
        channel.renewed()


async def watch(folder: Path) -> AsyncIterator[Told]:
    """Events of a run until it ends."""
    if not folder.is_dir():
        raise StoreError(f"{folder.name}: no such run")
    channel = _channels.setdefault(folder, Channel(folder))
    channel.viewers += 1
    try:
        await channel.look()
        count, first = channel.count, channel.now()
        yield first
        if first.ends:
            return
        while True:
            await asyncio.sleep(SECONDS)  # since this viewer came: not all of them are told, and ask, in one moment
            await channel.look()
            news, count = channel.since(count), channel.count
            for told in news:
                yield told
                if told.ends:
                    return
    finally:
        channel.viewers -= 1
        if not channel.viewers:
            _channels.pop(folder, None)
