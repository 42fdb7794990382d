"""The files of a run, results/<run-id>/: appended or renamed into place, so that a kill loses at most one trial."""

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
from harness.records.machine_record import Machine, NoiseFloor
from harness.records.process_record import ProcessRecord
from harness.records.reader import MAX_LINE_BYTES, RunReader, read_bounded
from harness.records.record import Record
from harness.records.remove_tree import remove_tree_if_possible
from harness.records.run_info import RunInfo
from harness.records.run_records import RunRecords
from harness.records.trial_record import Trial
from harness.records.verification_record import VerificationRecord

LOCK_FILE = ".lock"
PROCESS_FILES = ("trials", "processes", "verdicts")  # .jsonl, whose records belong to a process each
KEPT = "what was measured before is kept: --resume continues"
ROOM = "free space or choose another folder"
NAME_BYTES = 200  # of the most that file systems take, 255
OfProcess = TypeVar("OfProcess", Trial, ProcessRecord, VerificationRecord)


@contextmanager
def _written(path: Path, step: str = KEPT) -> Iterator[None]:
    """An OSError of the block as a StoreError that names the file or folder, and the next step."""
    try:
        yield
    except OSError as error:
        raise StoreError(f"{path}: cannot be written: {error.strerror}; {step}") from error


class RunStore:
    """The writer of one run's records."""

    def __init__(self, folder: Path, *, started_at: float) -> None:
        self.folder = folder.parent.resolve() / folder.name  # links up to here are the user's own; further ones are not
        self.run_id = folder.name
        self.started_at = started_at  # epoch seconds
        self._trials: Counter[tuple[str, int]] = Counter()  # that this object has written, by process
        self._written: dict[str, tuple[int, Any]] = {}  # file -> where this object began to write, and the hash of that
        with _written(folder, ROOM):
            safe_write.make_folder(self.folder / "logs")

    @classmethod
    def new(cls, results: Path, *, started_at: float) -> Self:
        """Create a folder named by the time (UTC); a later run of the same second gets a number behind it."""
        name = datetime.fromtimestamp(started_at, UTC).strftime("%Y%m%d-%H%M%S")
        folder = results / name
        with _written(folder, ROOM):
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
        """Return whether run.json is there: without it the folder is no run."""
        return safe_write.exists(self.folder / "run.json")

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the folder's lock, which the kernel releases however this process ends."""
        with _written(self.folder / LOCK_FILE):
            file = safe_write.append(self.folder / LOCK_FILE)
        with file:
            if not _lock(file):
                raise UsageError(f"run {self.run_id} is still going on in another process")
            yield

    def discard_if_empty(self) -> None:
        """Remove the folder of a run that never began, unless it holds the log of an installation."""
        if not self.has_run_info and not (self.folder / "logs" / "install.log").exists():
            remove_tree_if_possible(self.folder)

    def log(self, implementation: str, name: str) -> Path:
        """Return the path of a log below logs/, in a folder that is there."""
        path = self.folder / "logs" / implementation
        with _written(path):
            safe_write.make_folder(path)
        return path / f"{name}.log"

    def write_info(self, info: RunInfo) -> None:
        """Replace run.json."""
        text = info.to_json(indent=1)
        self.write_text("run.json", text)
        self._written["run.json"] = 0, sha256(f"{text}\n".encode())

    def write_text(self, name: str, text: str, *, durable: bool = True) -> None:
        """Replace a file by renaming, so that a reader never sees half of it.

        ``durable`` waits for the disk, which would disturb a measurement that goes on.
        """
        target = self.folder / name
        with _written(target):
            safe_write.replace(target, f"{text}\n".encode(), durable=durable)

    def add_trial(self, trial: Trial) -> None:
        """Append to trials.jsonl."""
        self._append("trials.jsonl", trial)
        self._trials[trial.implementation, trial.process] += 1

    def add_process(self, record: ProcessRecord) -> None:
        """Append to processes.jsonl, with the number of trials that were written of it."""
        written = self._trials.pop((record.implementation, record.process), 0)
        self._append("processes.jsonl", record.model_copy(update={"trials": written}))

    def add_verdict(self, verdict: VerificationRecord) -> None:
        """Append to verdicts.jsonl; the last one of an implementation, test type and process counts."""
        self._append("verdicts.jsonl", verdict)

    def quarantine(self, unwanted: Callable[[tuple[str, int]], bool]) -> None:
        """Move records out of the run, as the function ``quarantine_records`` does. Raises StoreError."""
        self.require_unchanged()
        quarantine_records(self.folder, unwanted)
        for name in (f"{kind}.jsonl" for kind in PROCESS_FILES):
            if name in self._written:
                self._written[name] = 0, self._hash(name, 0)

    def require_unchanged(self) -> None:
        """Raise ChangedRecordsError if a file is not as this object has written it: servers may have this account."""
        for name, (begin, written) in self._written.items():
            if self._hash(name, begin).digest() != written.digest():
                raise ChangedRecordsError(
                    f"{self.folder / name}: another program changed the file during the run, so its figures are no "
                    "measurements. Run tfb again, and look at what the servers and their builds do"
                )

    def _hash(self, name: str, begin: int) -> Any:  # noqa: ANN401 - hashlib names no type of its objects
        """Return the hash of a file from a position on; of nothing if the file cannot be read."""
        found = sha256()
        with suppress(OSError, StoreError), safe_write.read(self.folder / name) as file:
            file.seek(begin)
            while data := file.read(1 << 20):
                found.update(data)
        return found

    def _append(self, name: str, record: Record) -> None:
        path = self.folder / name
        with _written(path), safe_write.append(path) as file:  # a buffer would be written again when it is closed
            size = os.fstat(file.fileno()).st_size
            _, written = self._written.setdefault(name, (size, sha256()))
            try:
                line = record.to_json().encode() + b"\n"
                write_all(file, line)
                os.fsync(file.fileno())
                written.update(line)
            except OSError:
                os.ftruncate(file.fileno(), size)  # no half line: the file stays readable
                raise


def read_info(folder: Path) -> RunInfo:
    """Return what run.json holds. Raises StoreError."""
    try:
        return RunReader(folder).info
    except StoreError as error:
        raise StoreError(f"{folder}/{error}") from error


def read_run(folder: Path, *, with_series: bool = False) -> RunRecords:
    """Read a run by the one reader; what cannot be read is in ``problems``. Raises StoreError without a run.json.

    Only ``whole`` has windows and histograms of loads.
    """
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
    """Whether a live harness works in this folder."""
    try:
        with safe_write.read(folder.resolve() / LOCK_FILE) as file:
            return not _lock(file)
    except (OSError, StoreError):
        return False  # there is none


def renumber_processes(runs: Iterable[RunRecords]) -> list[RunRecords]:
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
        before = max((number + 1 for number in process_numbers(moved)), default=before)
    return found


def process_numbers(records: RunRecords) -> set[int]:
    """Of the processes of a run."""
    return {each.process for each in records.trials} | {each.process for each in records.processes}


def _after(before: int, record: OfProcess) -> OfProcess:
    return record.model_copy(update={"process": before + record.process})


def join_runs(runs: Collection[RunRecords], info: RunInfo) -> RunRecords:
    """What they hold as of one run; the logs of its processes lie with theirs."""
    return RunRecords(
        info=info,
        trials=[each for records in runs for each in records.trials],
        processes=[each.model_copy(update={"log": None}) for records in runs for each in records.processes],
        verdicts=[each for records in runs for each in records.verdicts],
    )


def finished_processes(records: RunRecords, statuses: Collection[str] = ("ok", "failed")) -> frozenset[tuple[str, int]]:
    """The processes (implementation, number) that came up and ended so, with as many trials as their record says."""
    there = Counter((trial.implementation, trial.process) for trial in records.trials)
    return frozenset(
        (each.implementation, each.process)
        for each in records.processes
        if each.status in statuses
        and (each.status == "ok" or each.startup_time is not None)
        and there[each.implementation, each.process] >= each.trials
    )


def quarantine_records(folder: Path, unwanted: Callable[[tuple[str, int]], bool]) -> None:
    """Move the records of the processes (implementation, number) that are unwanted to ``*.unfinished.jsonl``.

    Those processes are measured again from the beginning, in a fresh server. Lines that are no records are moved, too.
    The moved lines are on the disk before the file without them takes its place. Raises StoreError.
    """
    folder = folder.resolve()
    for name in PROCESS_FILES:
        path, aside = folder / f"{name}.jsonl", folder / f"{name}.unfinished.jsonl"
        if not safe_write.exists(path):
            continue
        with _written(path):
            if not any(_unwanted(line, unwanted) for line in _lines(path)):
                continue
            with safe_write.append(aside) as moved, safe_write.replacing(path) as kept:
                for line in _lines(path):
                    if _unwanted(line, unwanted):
                        write_all(moved, line)
                    else:
                        kept.write(line)
                os.fsync(moved.fileno())
            safe_write.sync_folder(folder)


def _lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file, a longer one than a record in parts."""
    with safe_write.read(path) as file:
        while line := file.readline(MAX_LINE_BYTES):
            yield line


def _unwanted(line: bytes, unwanted: Callable[[tuple[str, int]], bool]) -> bool:
    """Return whether a line is no record, or that of a process that is unwanted."""
    try:
        record = json.loads(line)
        return unwanted((record["implementation"], record["process"]))
    except (ValueError, KeyError, TypeError, RecursionError):
        return True


def write_all(file: IO[bytes], data: bytes) -> None:
    """Write all of ``data`` to a file without a buffer, which may take a part of it at a time."""
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]


# ---- noise floors that were measured on this machine, beside the runs ------------------------------------------------


def _floor_file(results: Path, profile: str, machine: Machine) -> Path:
    name = f"{machine.hostname}-{len(machine.cpus_usable)}cpu-{profile}"
    return results / ".calibration" / f"{_file_name(name)}.json"


def _file_name(text: str) -> str:
    """Return a text as a file's name: no separator, and short enough for every file system."""
    safe = text.replace("/", "_").replace("\0", "_")
    if len(safe.encode()) <= NAME_BYTES:
        return safe
    return f"{safe.encode()[:NAME_BYTES].decode(errors='ignore')}-{sha256(text.encode()).hexdigest()[:16]}"


def read_noise_floor(results: Path, profile: str, machine: Machine) -> NoiseFloor | None:
    """What was measured last for this machine and profile, or None."""
    try:
        return NoiseFloor.model_validate_json(read_bounded(_floor_file(results, profile, machine)))
    except (OSError, ValueError):
        return None


def write_noise_floor(results: Path, machine: Machine, floor: NoiseFloor) -> None:
    """Write a noise floor. Raises StoreError."""
    target = _floor_file(results.resolve(), floor.profile, machine)
    with _written(target, ROOM):
        safe_write.make_folder(target.parent)
        safe_write.replace(target, f"{floor.to_json(indent=1)}\n".encode())
