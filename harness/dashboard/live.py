"""Watches the files of a run in progress: a few stat calls a second for all viewers, and reads what was appended."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator
from pathlib import Path

from pydantic import ValidationError
from sse_starlette import ServerSentEvent
from starlette.concurrency import run_in_threadpool

from harness.dashboard.documents import LiveEvent
from harness.errors import StoreError
from harness.records.bounded import open_regular
from harness.records.models import Progress, RunInfo, Trial
from harness.records.reader import Lines, bounded, grown

SECONDS = 1.0  # between looks
SILENT_SECONDS = 60.0  # without a write, a run that calls itself running is shown as silent
TAIL_BYTES = 2 << 20  # of trials.jsonl, in which a new viewer's trials are looked for
LAST_TRIALS = 12  # that a new viewer gets at once
WATCHED = ("progress.json", "trials.jsonl", "ranking.json", "processes.jsonl", "run.json")


class Watch:
    """What was seen of a run so far."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lines = Lines()
        self.seen: dict[str, tuple[int, int]] = {}
        self.first = True
        self.was_silent = False

    def look(self) -> LiveEvent | None:
        """What is new since the last look, or None."""
        changed = {name for name in WATCHED if self._changed(name)}
        silent = self._silent_for()
        was_silent, self.was_silent = self.was_silent, silent is not None
        if not changed and not self.first and self.was_silent == was_silent:
            return None
        trials = self._trials() if "trials.jsonl" in changed else []
        event = LiveEvent(
            progress=self._progress(),
            trials=tuple(trials[-LAST_TRIALS:]),
            ranking_changed=not self.first and ("ranking.json" in changed or bool(trials)),
            status=self._status() if self.first or "run.json" in changed else "",
            silent_for=silent,
        )
        self.first = False
        return event

    def _trials(self) -> list[Trial]:
        """Those since the last look; at the first look the last few, whatever the file's size."""
        path, size = self.folder / "trials.jsonl", self.seen["trials.jsonl"][0]
        if self.first or size < self.lines.offset:
            self.lines = last_lines(path, size)
        short = {"windows": (), "warm_up": None, "arrivals": None}
        return [trial.without_histograms().model_copy(update=short) for trial in grown(path, self.lines, Trial)]

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


class Channel:
    """What all viewers of a run are told: the files are looked at once a second, however many they are."""

    def __init__(self, folder: Path) -> None:
        self._watch = Watch(folder)
        # For slow viewers: the latest events.
        self._events: deque[tuple[bytes, bool]] = deque(maxlen=64)  # and whether it is the last one
        self._trials: deque[Trial] = deque(maxlen=LAST_TRIALS)
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
                self._trials += event.trials
                self._last = event
                self._status = event.status or self._status
                self._events.append(_sent(event))
                self.count += 1

    def now(self) -> tuple[bytes, bool]:
        """What a new viewer is told."""
        assert self._last is not None  # noqa: S101 - the first look has always something to tell
        changed = {"trials": tuple(self._trials), "ranking_changed": False, "status": self._status}
        return _sent(self._last.model_copy(update=changed))

    def since(self, count: int) -> list[tuple[bytes, bool]]:
        """The events after so many; the oldest of very many are forgotten."""
        news = min(self.count - count, len(self._events))
        return list(self._events)[len(self._events) - news :]


def _sent(event: LiveEvent) -> tuple[bytes, bool]:
    """As a server-sent event; ``end`` closes the stream."""
    ends = bool(event.status) and event.status != "running"
    return ServerSentEvent(event.model_dump_json(), event="end" if ends else "live").encode(), ends


_channels: dict[Path, Channel] = {}


async def watch(folder: Path) -> AsyncIterator[bytes]:
    """Events of a run until it ends."""
    if not folder.is_dir():
        raise StoreError(f"{folder.name}: no such run")
    channel = _channels.setdefault(folder, Channel(folder))
    channel.viewers += 1
    try:
        await channel.look()
        count, (text, ends) = channel.count, channel.now()
        yield text
        while not ends:
            await asyncio.sleep(SECONDS)  # since this viewer came: not all of them are told, and ask, in one moment
            await channel.look()
            news, count = channel.since(count), channel.count
            for text, ends in news:
                yield text
                if ends:
                    break
    finally:
        channel.viewers -= 1
        if not channel.viewers:
            _channels.pop(folder, None)
