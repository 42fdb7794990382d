"""Documents as they are sent, each made once for all who ask, and again when a file that it was made of has changed."""

import asyncio
import gzip
import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from starlette.concurrency import run_in_threadpool

KEPT = 256  # documents; the latest tables of 500 implementations are half a megabyte each
FILES = ("run.json", "ranking.json", "trials.jsonl", "processes.jsonl", "verdicts.jsonl")
LEAST_SECONDS = 5.0  # that a document of a growing run is shown for
SHARE = 20.0  # and so many times as long as it took to make: its viewers cost the run a twentieth of a CPU at most
LEVEL = 5  # of gzip

FileState = tuple[int, int]
State = tuple[tuple[FileState, ...], ...]  # of each run's files, run.json first


@dataclass(frozen=True, kw_only=True)
class Body:
    """A document with gzip, and what changes when it does."""

    packed: bytes
    tag: str  # of HTTP: ETag

    def answer(self, accepts: str, known: str) -> tuple[int, bytes, Mapping[str, str]]:
        """Status, bytes and headers, by a request's Accept-Encoding and If-None-Match."""
        headers = {"cache-control": "no-cache", "etag": self.tag, "vary": "accept-encoding"}
        if self.tag in (each.strip().removeprefix("W/") for each in known.split(",")):
            return 304, b"", headers
        if "gzip" in accepts:
            return 200, self.packed, headers | {"content-encoding": "gzip"}
        return 200, gzip.decompress(self.packed), headers


def body(plain: bytes) -> Body:
    """Of a document's JSON."""
    tag = hashlib.blake2b(plain, digest_size=12).hexdigest()
    return Body(packed=gzip.compress(plain, LEVEL, mtime=0), tag=f'"{tag}"')


@dataclass(frozen=True, kw_only=True)
class Made:
    """A document of some runs, as their files were before they were read."""

    state: State
    body: Body
    until: float  # monotonic; of a run in progress: before this it is shown, whatever its files have gained


class Kept:
    """The documents asked for last. Belongs to one event loop; they are made in threads."""

    def __init__(self) -> None:
        self._made: dict[str, Made] = {}
        self._making: dict[str, asyncio.Task[Made]] = {}

    async def get(self, key: str, folders: tuple[Path, ...], make: Callable[[], tuple[bytes, bool]]) -> Body:
        """The document; ``make`` gives its JSON, and whether its run is still growing."""
        state = tuple(_state(folder) for folder in folders)
        found = self._made.get(key)
        if found and (
            found.state == state or (_heads(found.state) == _heads(state) and time.monotonic() < found.until)
        ):
            return found.body
        if key not in self._making:
            self._making[key] = asyncio.create_task(run_in_threadpool(_make, state, make))
            self._making[key].add_done_callback(lambda task: self._keep(key, task))
        return (await asyncio.shield(self._making[key])).body

    def _keep(self, key: str, task: asyncio.Task[Made]) -> None:
        del self._making[key]
        if task.cancelled() or task.exception():
            return
        self._made.pop(key, None)
        self._made[key] = task.result()
        if len(self._made) > KEPT:
            del self._made[next(iter(self._made))]


def _make(state: State, make: Callable[[], tuple[bytes, bool]]) -> Made:
    began = time.monotonic()
    plain, growing = make()
    made = body(plain)
    now = time.monotonic()
    return Made(state=state, body=made, until=now + max(LEAST_SECONDS, SHARE * (now - began)) if growing else now)


def _heads(state: State) -> tuple[FileState, ...]:
    """The states of each run.json, which tells the end of a run."""
    return tuple(files[0] for files in state)


def _state(folder: Path) -> tuple[FileState, ...]:
    return tuple(state_of(folder / name) for name in FILES)


def state_of(path: Path) -> FileState:
    """Size and time of a file; -1 for one that is not there."""
    try:
        found = path.stat()
    except OSError:
        return -1, -1
    return found.st_size, found.st_mtime_ns
