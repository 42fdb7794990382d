"""The files of a run, results/<run-id>/: appended or renamed into place, so that a kill loses at most one sample."""

import fcntl
import json
import os
import shutil
import stat
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TypeVar

from harness.errors import StoreError, UsageError
from harness.records.bounded import open_regular
from harness.records.lines import LINE_BYTES
from harness.records.models import SCHEMA_VERSION, Record, ReplicateRecord, RunInfo, RunRecords, Sample, Verdict
from harness.records.reader import RunReader

LOCK = ".lock"

RecordT = TypeVar("RecordT", bound=Record)


class RunStore:
    """Writes the records of one run."""

    def __init__(self, folder: Path, *, started_at: float) -> None:
        self.folder = folder
        self.started_at = started_at  # epoch seconds
        self._samples: Counter[tuple[str, int]] = Counter()  # by replicate, of this process
        try:
            (folder / "logs").mkdir(parents=True, exist_ok=True)
            (folder / "verify").mkdir(exist_ok=True)
        except OSError as error:
            raise StoreError(
                f"{folder}: cannot be made: {error.strerror}; free space or choose another folder"
            ) from error

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder's lock, which the kernel releases however this process ends."""
        with _lock(self.folder, os.O_RDONLY | os.O_CREAT) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UsageError(f"run {self.run_id} is still going on in another process") from None
            yield

    @property
    def begun(self) -> bool:
        """Whether run.json is there: without it the folder is no run."""
        return (self.folder / "run.json").exists()

    def discard_if_empty(self) -> None:
        """Remove the folder of a run that never began, unless it holds the log of an installation."""
        if not self.begun and not any(self.folder.glob("logs/install.log")):
            shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def run_id(self) -> str:
        """The folder's name."""
        return self.folder.name

    def log(self, implementation: str, name: str) -> Path:
        """Path of a log below logs/."""
        path = self.folder / "logs" / implementation
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _cannot_write(path, error) from error
        return path / f"{name}.log"

    def write_info(self, info: RunInfo) -> None:
        """Replace run.json; what is written from now on is of this version, also of a run that an older one began."""
        self.write_text("run.json", info.model_copy(update={"schema_version": SCHEMA_VERSION}).recorded(indent=1))

    def write_text(self, name: str, text: str) -> None:
        """Replace a file by rename, so that a reader never sees half of it."""
        target = self.folder / name
        temporary = target.with_name(f".{target.name}.new")
        try:
            temporary.write_text(text + "\n", encoding="utf-8")
            temporary.replace(target)
        except OSError as error:
            temporary.unlink(missing_ok=True)  # half of it would take room that the records need
            raise _cannot_write(target, error) from error

    def add_sample(self, sample: Sample) -> None:
        """Append to samples.jsonl."""
        self._append("samples.jsonl", sample)
        self._samples[sample.implementation, sample.process] += 1

    def add_line(self, name: str, record: Record) -> None:
        """Append to a JSON-lines file of this name."""
        self._append(name, record)

    def add_replicate(self, replicate: ReplicateRecord) -> None:
        """Append to replicates.jsonl."""
        written = self._samples.pop((replicate.implementation, replicate.process), 0)
        self._append("replicates.jsonl", replicate.model_copy(update={"samples": written}))

    def add_verdict(self, verdict: Verdict) -> None:
        """Write verify/<implementation>/<test type>-r<replicate>.json."""
        folder = self.folder / "verify" / verdict.implementation
        try:
            folder.mkdir(exist_ok=True)
        except OSError as error:
            raise _cannot_write(folder, error) from error
        name = f"verify/{verdict.implementation}/{verdict.test_type}-r{verdict.replicate}.json"
        self.write_text(name, verdict.recorded(indent=1))

    def _append(self, name: str, record: Record) -> None:
        path = self.folder / name
        try:
            with path.open("ab") as file:
                size = file.tell()
                try:
                    file.write(record.recorded().encode() + b"\n")
                    file.flush()
                    os.fsync(file.fileno())
                except OSError:
                    os.ftruncate(file.fileno(), size)  # no half line: the file stays readable
                    raise
        except OSError as error:
            raise _cannot_write(path, error) from error


def _cannot_write(path: Path, error: OSError) -> StoreError:
    return StoreError(
        f"{path}: cannot be written: {error.strerror}; what was measured before is kept: --resume continues"
    )


def read(folder: Path) -> RunRecords:
    """Read a run by the one reader; what cannot be read is in ``problems``. Raises StoreError without a run.json."""
    if not (folder / "run.json").exists():
        raise StoreError(f"{folder / 'run.json'}: not there; {folder} is no run")
    try:
        return RunReader(folder).records()
    except StoreError as error:
        raise StoreError(f"{folder}/{error}") from error


def read_whole(folder: Path) -> RunRecords:
    """As ``read``, for a run that is to go on: raises StoreError when any key of run.json cannot be read."""
    records = read(folder)
    damaged = [problem for problem in records.problems if problem.startswith(f"{folder / 'run.json'}: ")]
    if damaged:
        raise StoreError(f"{damaged[0]}; a run whose settings are not known cannot go on")
    return records


def is_locked(folder: Path) -> bool:
    """Whether a live harness works in this folder; none does behind what is no lock."""
    try:
        with _lock(folder, os.O_RDONLY) as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except (FileNotFoundError, StoreError):
        return False
    return False


def _lock(folder: Path, how: int) -> IO[bytes]:
    """The file that is locked: nothing is written to it, nor to what a link there leads to.

    Raises FileNotFoundError where there is none, StoreError where something else is in its place.
    """
    path = folder / LOCK
    try:
        descriptor = os.open(path, how | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise StoreError(
            f"{path}: cannot be locked: {error.strerror}; it is an empty file: remove what is there"
        ) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise StoreError(f"{path}: is no regular file: remove what is there")
    return os.fdopen(descriptor, "rb")


def require_unlocked(folder: Path) -> None:
    """Raise UsageError when a live harness works in this folder."""
    if is_locked(folder):
        raise UsageError(f"run {folder.name} is still going on in another process")


def set_aside_unfinished(folder: Path, done: frozenset[tuple[str, int]]) -> None:
    """Move the records of replicates (implementation, process) that did not finish out of the ranking's files.

    They are kept in ``*.unfinished.jsonl``. Those replicates are run again from the beginning, in a fresh server; a
    replicate is never a patchwork of two.
    """
    _set_aside(folder, lambda replicate: replicate not in done)


def set_aside(folder: Path, lost: Collection[tuple[str, int]]) -> None:
    """As ``set_aside_unfinished``, for replicates that lost their database."""
    _set_aside(folder, lambda replicate: replicate in lost)


def _set_aside(folder: Path, unwanted: Callable[[tuple[str, int]], bool]) -> None:
    for name in ("samples", "rates", "capacities", "orders", "order_capacities", "replicates"):
        path = folder / f"{name}.jsonl"
        if not path.exists():
            continue
        temporary = folder / f".{name}.jsonl.new"
        moved = False
        with open_regular(path) as lines, temporary.open("wb") as kept:
            with (folder / f"{name}.unfinished.jsonl").open("ab") as aside:
                while line := lines.readline(LINE_BYTES):
                    try:
                        record = json.loads(line)
                        process = record.get("process", record.get("block"))
                        unfinished = unwanted((record["implementation"], process))
                    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                        unfinished = True  # no record: kept aside, whatever it is
                    moved |= unfinished
                    (aside if unfinished else kept).write(line)
                empty = not aside.tell()
        temporary.replace(path)
        if empty and not moved:
            (folder / f"{name}.unfinished.jsonl").unlink()


def finished(records: RunRecords) -> frozenset[tuple[str, int]]:
    """The replicates (implementation, process) of which all is there: as many samples as their record says."""
    there = Counter((sample.implementation, sample.process) for sample in records.samples)
    ended = [(r, there[r.implementation, r.process]) for r in records.replicates if r.status == "ok"]
    return frozenset(
        (r.implementation, r.process) for r, samples in ended if samples >= (1 if r.samples is None else r.samples)
    )


def runs(results: Path) -> tuple[Path, ...]:
    """The folders of all runs, oldest first (their names are times)."""
    return tuple(sorted(path.parent for path in results.glob("*/run.json")))


def find(results: Path, wanted: str | None) -> Path:
    """A run by id, unique beginning of an id, or path; the latest without one. Raises UsageError."""
    known = runs(results)
    if wanted is None or wanted == "latest":
        if not known:
            raise UsageError(f"no run in {results}; make one with ./tfb --test run")
        return known[-1]
    if (Path(wanted) / "run.json").exists():
        return Path(wanted)
    fitting = [path for path in known if path.name == wanted] or [p for p in known if p.name.startswith(wanted)]
    if len(fitting) != 1:
        names = ", ".join(path.name for path in (fitting or known)[-5:]) or "none"
        what = "is not unique" if fitting else "does not exist"
        raise UsageError(f"run {wanted!r} {what} in {results}; there are {names}")
    return fitting[0]
