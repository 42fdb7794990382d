"""The files of a run, results/<run-id>/: appended or renamed into place, so that a kill loses at most one trial."""

import fcntl
import itertools
import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import IO, Self, TypeVar

from harness.errors import StoreError, UsageError
from harness.records.bounded import open_regular
from harness.records.models import (
    Machine,
    NoiseFloor,
    ProcessRecord,
    Record,
    RunInfo,
    RunRecords,
    Trial,
    Verdict,
)
from harness.records.reader import LINE_BYTES, RunReader, bounded

LOCK = ".lock"
LINES = ("trials", "processes", "verdicts")  # .jsonl, whose records belong to a process each
KEPT = "what was measured before is kept: --resume continues"
ROOM = "free space or choose another folder"
OfProcess = TypeVar("OfProcess", Trial, ProcessRecord, Verdict)


@contextmanager
def _written(path: Path, step: str = KEPT) -> Iterator[None]:
    """An OSError of the block as a StoreError that names the file or folder, and the next step."""
    try:
        yield
    except OSError as error:
        raise StoreError(f"{path}: cannot be written: {error.strerror}; {step}") from error


class RunStore:
    """Writes the records of one run."""

    def __init__(self, folder: Path, *, started_at: float) -> None:
        self.folder = folder
        self.run_id = folder.name
        self.started_at = started_at  # epoch seconds
        self._trials: Counter[tuple[str, int]] = Counter()  # that this object has written, by process
        with _written(folder, ROOM):
            (folder / "logs").mkdir(parents=True, exist_ok=True)

    @classmethod
    def new(cls, results: Path, *, started_at: float) -> Self:
        """A folder of its own, called by the time; of runs that start in the same second each gets another."""
        name = datetime.fromtimestamp(started_at).strftime("%Y%m%d-%H%M%S")
        folder = results / name
        with _written(folder, ROOM):
            results.mkdir(parents=True, exist_ok=True)
            for number in itertools.count(2):
                try:
                    folder.mkdir()
                    break
                except FileExistsError:
                    folder = results / f"{name}-{number}"
        return cls(folder, started_at=started_at)

    @property
    def begun(self) -> bool:
        """Whether run.json is there: without it the folder is no run."""
        return (self.folder / "run.json").exists()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder's lock, which the kernel releases however this process ends."""
        with _written(self.folder / LOCK):
            file = (self.folder / LOCK).open("ab")
        with file:
            if not _lock(file):
                raise UsageError(f"run {self.run_id} is still going on in another process")
            yield

    def discard_if_empty(self) -> None:
        """Remove the folder of a run that never began, unless it holds the log of an installation."""
        if not self.begun and not (self.folder / "logs" / "install.log").exists():
            shutil.rmtree(self.folder, ignore_errors=True)

    def log(self, implementation: str, name: str) -> Path:
        """Path of a log below logs/."""
        path = self.folder / "logs" / implementation
        with _written(path):
            path.mkdir(parents=True, exist_ok=True)
        return path / f"{name}.log"

    def write_info(self, info: RunInfo) -> None:
        """Replace run.json."""
        self.write_text("run.json", info.recorded(indent=1))

    def write_text(self, name: str, text: str) -> None:
        """Replace a file by rename, so that a reader never sees half of it."""
        target = self.folder / name
        temporary = target.with_name(f".{target.name}.new")
        with _written(target):
            try:
                temporary.write_text(text + "\n", encoding="utf-8")
                temporary.replace(target)
            except OSError:
                temporary.unlink(missing_ok=True)  # half of it would take room that the records need
                raise

    def add_trial(self, trial: Trial) -> None:
        """Append to trials.jsonl."""
        self._append("trials.jsonl", trial)
        self._trials[trial.implementation, trial.process] += 1

    def add_process(self, record: ProcessRecord) -> None:
        """Append to processes.jsonl, with the number of trials that were written of it."""
        written = self._trials.pop((record.implementation, record.process), 0)
        self._append("processes.jsonl", record.model_copy(update={"trials": written}))

    def add_verdict(self, verdict: Verdict) -> None:
        """Append to verdicts.jsonl; the last one of an implementation, test type and process counts."""
        self._append("verdicts.jsonl", verdict)

    def _append(self, name: str, record: Record) -> None:
        path = self.folder / name
        # A buffer would be written once more when the file is closed.
        with _written(path), path.open("ab", buffering=0) as file:
            size, line = file.tell(), memoryview(record.recorded().encode() + b"\n")
            try:
                while line:
                    line = line[file.write(line) :]
                os.fsync(file.fileno())
            except OSError:
                os.ftruncate(file.fileno(), size)  # no half line: the file stays readable
                raise


def read(folder: Path) -> RunRecords:
    """Read a run by the one reader; what cannot be read is in ``problems``. Raises StoreError without a run.json."""
    try:
        return RunReader(folder).records()
    except StoreError as error:
        raise StoreError(f"{folder}/{error}") from error


def _lock(file: IO[bytes]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_locked(folder: Path) -> bool:
    """Whether a live harness works in this folder."""
    try:
        with open_regular(folder / LOCK) as file:
            return not _lock(file)
    except OSError:
        return False  # there is none


def numbered(runs: Iterable[RunRecords]) -> list[RunRecords]:
    """Runs whose processes are numbered on from one to the next; those that stood side by side still do."""
    found: list[RunRecords] = []
    before = 0
    for records in runs:
        moved = replace(
            records,
            trials=[_after(before, each) for each in records.trials],
            processes=[_after(before, each) for each in records.processes],
            verdicts=[_after(before, each) for each in records.verdicts],
        )
        found.append(moved)
        before = max((number + 1 for number in numbers(moved)), default=before)
    return found


def numbers(records: RunRecords) -> set[int]:
    """Of the processes of a run."""
    return {each.process for each in records.trials} | {each.process for each in records.processes}


def _after(before: int, record: OfProcess) -> OfProcess:
    return record.model_copy(update={"process": before + record.process})


def joined(runs: Collection[RunRecords], info: RunInfo) -> RunRecords:
    """What they hold as of one run; the logs of its processes lie with theirs."""
    return RunRecords(
        info=info,
        trials=[each for records in runs for each in records.trials],
        processes=[each.model_copy(update={"log": None}) for records in runs for each in records.processes],
        verdicts=[each for records in runs for each in records.verdicts],
    )


def finished(records: RunRecords, statuses: Collection[str] = ("ok", "failed")) -> frozenset[tuple[str, int]]:
    """The processes (implementation, number) that came up and ended so, with as many trials as their record says."""
    there = Counter((trial.implementation, trial.process) for trial in records.trials)
    return frozenset(
        (each.implementation, each.process)
        for each in records.processes
        if each.status in statuses
        and (each.status == "ok" or each.startup_time is not None)
        and there[each.implementation, each.process] >= each.trials
    )


def set_aside(folder: Path, unwanted: Callable[[tuple[str, int]], bool]) -> None:
    """Move the records of the processes (implementation, number) that are unwanted to ``*.unfinished.jsonl``.

    Those processes are run again from the beginning, in a fresh server: none is a patchwork of two. What is no record
    goes with them.
    """
    for name in LINES:
        path = folder / f"{name}.jsonl"
        if not path.exists():
            continue
        temporary = folder / f".{name}.jsonl.new"
        moved = []
        with open_regular(path) as lines, temporary.open("wb") as kept:
            while line := lines.readline(LINE_BYTES):
                try:
                    record = json.loads(line)
                    aside = unwanted((record["implementation"], record["process"]))
                except (ValueError, KeyError, TypeError, RecursionError):
                    aside = True
                if aside:
                    moved.append(line)
                else:
                    kept.write(line)
        if moved:
            with (folder / f"{name}.unfinished.jsonl").open("ab") as file:
                file.writelines(moved)
        temporary.replace(path)


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


# ---- noise floors that were measured on this machine, beside the runs ------------------------------------------------


def _floor_file(results: Path, profile: str, machine: Machine) -> Path:
    return results / ".calibration" / f"{machine.hostname}-{len(machine.cpus_usable)}cpu-{profile}.json"


def noise_floor(results: Path, profile: str, machine: Machine) -> NoiseFloor | None:
    """What was measured last for this machine and profile, or None."""
    try:
        return NoiseFloor.model_validate_json(bounded(_floor_file(results, profile, machine)))
    except (OSError, ValueError):
        return None


def keep_noise_floor(results: Path, machine: Machine, floor: NoiseFloor) -> None:
    """Write a floor."""
    target = _floor_file(results, floor.profile, machine)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(floor.recorded(indent=1) + "\n", encoding="utf-8")
