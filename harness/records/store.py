"""Writes a run's files to results/<run-id>/. If tfb is killed, at most the current trial is lost."""

import fcntl
import itertools
import json
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, Self, TypeVar

from harness.errors import ChangedRecordsError, StoreError, UsageError
from harness.records import safe_write
from harness.records.reader import MAX_LINE_BYTES, RunReader, read_bounded
from harness.records.record import Record
from harness.records.remove_tree import remove_tree_if_possible
from harness.records.run_info import Machine, NoiseFloor, RunInfo
from harness.records.run_records import ProcessRecord, RunRecords
from harness.records.trial_record import Trial
from harness.records.verification_record import VerificationRecord

LOCK_FILE = ".lock"
PROCESS_FILES = ("trials", "processes", "verdicts")  # .jsonl files in which each line belongs to a process
KEPT = "completed measurements are kept: continue with ./tfb run --resume"
FREE_SPACE = "free up disk space or choose a different folder"
NAME_BYTES = 200  # maximum length of a file name without suffix; common file systems allow 255
ProcessScoped = TypeVar("ProcessScoped", Trial, ProcessRecord, VerificationRecord)


@contextmanager
def _explaining(path: Path, step: str = KEPT) -> Iterator[None]:
    """Convert an OSError in the block to a StoreError that names the path and explains how to solve the problem."""
    try:
        yield
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror}; {step}") from error


class RunStore:
    """A writer for a run's records."""

    def __init__(self, folder: Path, *, started_at: float) -> None:
        self.folder = folder.parent.resolve() / folder.name  # the results folder may be a link
        self.run_id = folder.name
        self.started_at = started_at  # epoch seconds
        # (implementation, process) -> number of trials written
        self._trials: Counter[tuple[str, int]] = Counter()
        # file name -> (position at which tfb began to write, hash of everything that tfb wrote since then)
        self._written: dict[str, tuple[int, Any]] = {}
        with _explaining(folder, FREE_SPACE):
            safe_write.make_folder(self.folder / "logs")

    @classmethod
    def new(cls, results: Path, *, started_at: float) -> Self:
        """Create a folder named after the start time in UTC. Add a numeric suffix if the name exists."""
        name = datetime.fromtimestamp(started_at, UTC).strftime("%Y%m%d-%H%M%S")
        folder = results / name
        with _explaining(folder, FREE_SPACE):
            safe_write.make_folder(results.resolve())
            for number in itertools.count(2):
                try:
                    folder.mkdir()
                    break
                except FileExistsError:
                    folder = results / f"{name}-{number}"
        return cls(folder, started_at=started_at)

    @property
    def has_run_info(self) -> bool:
        """True if run.json exists. Without it, the folder is not a run."""
        return safe_write.exists(self.folder / "run.json")

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the folder for the duration of the block. The kernel releases the lock if this process is killed."""
        with _explaining(self.folder / LOCK_FILE):
            file = safe_write.append(self.folder / LOCK_FILE)
        with file:
            if not _lock(file):
                raise UsageError(f"run {self.run_id} is in progress in another process: wait for it or stop it")
            yield

    def discard_if_empty(self) -> None:
        """Remove the folder if the run never started, unless it contains an installation log."""
        if not self.has_run_info and not (self.folder / "logs" / "install.log").exists():
            remove_tree_if_possible(self.folder)

    def log(self, implementation: str, name: str) -> Path:
        """Return logs/IMPLEMENTATION/NAME.log in the run's folder. Create the parent folders."""
        path = self.folder / "logs" / implementation
        with _explaining(path):
            safe_write.make_folder(path)
        return path / f"{name}.log"

    def write_info(self, info: RunInfo) -> None:
        """Write or replace run.json."""
        text = info.to_json(indent=1)
        self.write_text("run.json", text)
        self._written["run.json"] = 0, sha256(f"{text}\n".encode())

    def write_text(self, name: str, text: str, *, durable: bool = True) -> None:
        """Replace a file atomically. ``durable`` waits until the file is on disk; avoid it during a measurement."""
        target = self.folder / name
        with _explaining(target):
            safe_write.replace(target, f"{text}\n".encode(), durable=durable)

    def add_trial(self, trial: Trial) -> None:
        """Append a trial to trials.jsonl."""
        self._append("trials.jsonl", trial)
        self._trials[trial.implementation, trial.process] += 1

    def add_process(self, record: ProcessRecord) -> None:
        """Append a process to processes.jsonl. Set ``trials`` to the number of trials written for the process."""
        written = self._trials.pop((record.implementation, record.process), 0)
        self._append("processes.jsonl", record.model_copy(update={"trials": written}))

    def add_verdict(self, verdict: VerificationRecord) -> None:
        """Append a verification record to verdicts.jsonl."""
        self._append("verdicts.jsonl", verdict)

    def quarantine(self, unwanted: Callable[[tuple[str, int]], bool]) -> None:
        """Move unwanted records out of the run's files, as ``quarantine_records`` does. Raises StoreError."""
        self.require_unchanged()
        quarantine_records(self.folder, unwanted)
        for name in (f"{kind}.jsonl" for kind in PROCESS_FILES):
            if name in self._written:
                self._written[name] = 0, self._hash(name, 0)

    def require_unchanged(self) -> None:
        """Raise ChangedRecordsError if another program, for example a server under test, has changed a file."""
        for name, (begin, written) in self._written.items():
            if self._hash(name, begin).digest() != written.digest():
                raise ChangedRecordsError(
                    f"a program changed {self.folder / name} during the run, so the results are invalid. Check "
                    "which files the servers and their builds write, then repeat the run"
                )

    def _hash(self, name: str, begin: int) -> Any:  # noqa: ANN401 - hashlib does not export the type
        """Return the hash of a file's content from position ``begin``. An unreadable file counts as empty."""
        digest = sha256()
        with suppress(OSError, StoreError), safe_write.read(self.folder / name) as file:
            file.seek(begin)
            while data := file.read(1 << 20):
                digest.update(data)
        return digest

    def _append(self, name: str, record: Record) -> None:
        path = self.folder / name
        # The file is unbuffered. Otherwise, close() would write the rest of the buffer even after an error.
        with _explaining(path), safe_write.append(path) as file:
            size = os.fstat(file.fileno()).st_size
            _, digest = self._written.setdefault(name, (size, sha256()))
            try:
                line = record.to_json().encode() + b"\n"
                write_all(file, line)
                os.fsync(file.fileno())
                digest.update(line)
            except OSError:
                os.ftruncate(file.fileno(), size)  # remove the partial line
                raise


def read_info(folder: Path) -> RunInfo:
    """Read run.json. Raises StoreError, with the folder's path in the message."""
    try:
        return RunReader(folder).info
    except StoreError as error:
        raise StoreError(f"{folder}/{error}") from error


def read_run(folder: Path, *, with_series: bool = False) -> RunRecords:
    """Read a run's records. Unreadable lines become ``problems``. Raises StoreError if run.json is unreadable."""
    try:
        return RunReader(folder).records(with_series=with_series)
    except StoreError as error:
        raise StoreError(f"{folder}/{error}") from error


def _lock(file: IO[bytes]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_locked(folder: Path) -> bool:
    """Return whether a tfb process has locked a run's folder."""
    try:
        with safe_write.read(folder.resolve() / LOCK_FILE) as file:
            return not _lock(file)
    except (OSError, StoreError):
        return False  # the lock file does not exist


def renumber_processes(runs: Iterable[RunRecords]) -> list[RunRecords]:
    """Renumber the processes of several runs consecutively, so that no number occurs twice."""
    renumbered: list[RunRecords] = []
    offset = 0
    for records in runs:
        shifted = replace(
            records,
            trials=[_shift(each, offset) for each in records.trials],
            processes=[_shift(each, offset) for each in records.processes],
            verdicts=[_shift(each, offset) for each in records.verdicts],
        )
        renumbered.append(shifted)
        offset = max((number + 1 for number in process_numbers(shifted)), default=offset)
    return renumbered


def process_numbers(records: RunRecords) -> set[int]:
    """Return the process numbers that occur in a run."""
    return {each.process for each in records.trials} | {each.process for each in records.processes}


def _shift(record: ProcessScoped, offset: int) -> ProcessScoped:
    return record.model_copy(update={"process": record.process + offset})


def join_runs(runs: Collection[RunRecords], info: RunInfo) -> RunRecords:
    """Combine the records of several runs. Log paths are removed, because they are relative to each run's folder."""
    return RunRecords(
        info=info,
        trials=[each for records in runs for each in records.trials],
        processes=[each.model_copy(update={"log": None}) for records in runs for each in records.processes],
        verdicts=[each for records in runs for each in records.verdicts],
    )


def finished_processes(records: RunRecords, statuses: Collection[str] = ("ok", "failed")) -> frozenset[tuple[str, int]]:
    """Return (implementation, process number) for each process whose status is in ``statuses``.

    Omit processes that failed to start, and processes with trials that are missing from trials.jsonl.
    """
    trials = Counter((trial.implementation, trial.process) for trial in records.trials)
    return frozenset(
        (each.implementation, each.process)
        for each in records.processes
        if each.status in statuses
        and (each.status == "ok" or each.startup_time is not None)
        and trials[each.implementation, each.process] >= each.trials
    )


def quarantine_records(folder: Path, is_unwanted: Callable[[tuple[str, int]], bool]) -> None:
    """Move invalid lines and the records of unwanted processes to ``*.unfinished.jsonl``. Raises StoreError.

    ``is_unwanted`` receives (implementation, process number). Moved lines are on disk before the original file is
    replaced.
    """
    folder = folder.resolve()
    for name in PROCESS_FILES:
        path, quarantine = folder / f"{name}.jsonl", folder / f"{name}.unfinished.jsonl"
        if not safe_write.exists(path):
            continue
        with _explaining(path):
            if not any(_unwanted(line, is_unwanted) for line in _lines(path)):
                continue
            with safe_write.append(quarantine) as quarantined, safe_write.replacing(path) as remaining:
                for line in _lines(path):
                    if _unwanted(line, is_unwanted):
                        write_all(quarantined, line)
                    else:
                        remaining.write(line)
                os.fsync(quarantined.fileno())
            safe_write.sync_folder(folder)


def _lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file. Lines longer than ``MAX_LINE_BYTES`` are split."""
    with safe_write.read(path) as file:
        while line := file.readline(MAX_LINE_BYTES):
            yield line


def _unwanted(line: bytes, is_unwanted: Callable[[tuple[str, int]], bool]) -> bool:
    """Return whether a line is invalid or belongs to an unwanted process."""
    try:
        record = json.loads(line)
        return is_unwanted((record["implementation"], record["process"]))
    except (ValueError, KeyError, TypeError, RecursionError):
        return True


def write_all(file: IO[bytes], data: bytes) -> None:
    """Write all of ``data`` to an unbuffered file. A call of ``write`` may write only part of the data."""
    remaining = memoryview(data)
    while remaining:
        remaining = remaining[file.write(remaining) :]


# ---- Noise floors, which are saved in the results folder -------------------------------------------------------------


def _floor_file(results: Path, profile: str, machine: Machine) -> Path:
    name = f"{machine.hostname}-{len(machine.cpus_usable)}cpu-{profile}"
    return results / ".calibration" / f"{_file_name(name)}.json"


def _file_name(text: str) -> str:
    """Convert text to a file name that is valid on all common file systems."""
    safe = text.replace("/", "_").replace("\0", "_")
    if len(safe.encode()) <= NAME_BYTES:
        return safe
    return f"{safe.encode()[:NAME_BYTES].decode(errors='ignore')}-{sha256(text.encode()).hexdigest()[:16]}"


def read_noise_floor(results: Path, profile: str, machine: Machine) -> NoiseFloor | None:
    """Return the latest noise floor for a machine and a profile, or None if it has not been measured."""
    try:
        return NoiseFloor.model_validate_json(read_bounded(_floor_file(results, profile, machine)))
    except (OSError, ValueError):
        return None


def write_noise_floor(results: Path, machine: Machine, floor: NoiseFloor) -> None:
    """Save the noise floor of a machine and a profile. Raises StoreError."""
    target = _floor_file(results.resolve(), floor.profile, machine)
    with _explaining(target, FREE_SPACE):
        safe_write.make_folder(target.parent)
        safe_write.replace(target, f"{floor.to_json(indent=1)}\n".encode())
