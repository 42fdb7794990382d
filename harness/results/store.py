"""The files of a run, results/<run-id>/: appended or renamed into place, so that a kill loses at most one sample."""

import fcntl
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from harness.errors import StoreError, UsageError
from harness.results.records import SCHEMA_VERSION, ReplicateRecord, RunInfo, Sample, Verdict

LOCK = ".lock"

RecordT = TypeVar("RecordT", bound=BaseModel)


@dataclass(frozen=True, kw_only=True)
class RunRecords:
    """Everything that a run's folder holds, as far as it could be read."""

    info: RunInfo
    samples: tuple[Sample, ...]
    replicates: tuple[ReplicateRecord, ...]
    verdicts: tuple[Verdict, ...]
    problems: tuple[str, ...]  # one message for each file or line that could not be read


class RunStore:
    """Writes the records of one run."""

    def __init__(self, folder: Path, *, started_at: float) -> None:
        self.folder = folder
        self.started_at = started_at  # epoch seconds
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
        with (self.folder / LOCK).open("w") as file:
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
        """Replace run.json."""
        self.write_text("run.json", info.model_dump_json(indent=1))

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

    def add_line(self, name: str, record: BaseModel) -> None:
        """Append to a JSON-lines file of this name."""
        self._append(name, record)

    def add_replicate(self, replicate: ReplicateRecord) -> None:
        """Append to replicates.jsonl."""
        self._append("replicates.jsonl", replicate)

    def add_verdict(self, verdict: Verdict) -> None:
        """Write verify/<implementation>/<test type>-r<replicate>.json."""
        folder = self.folder / "verify" / verdict.implementation
        try:
            folder.mkdir(exist_ok=True)
        except OSError as error:
            raise _cannot_write(folder, error) from error
        name = f"verify/{verdict.implementation}/{verdict.test_type}-r{verdict.replicate}.json"
        self.write_text(name, verdict.model_dump_json(indent=1))

    def _append(self, name: str, record: BaseModel) -> None:
        path = self.folder / name
        try:
            with path.open("ab") as file:
                size = file.tell()
                try:
                    file.write(record.model_dump_json().encode() + b"\n")
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
    """Read a run; broken lines and files become problems, only an unreadable run.json raises StoreError."""
    path = folder / "run.json"
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        info = RunInfo.model_validate(raw)
    except FileNotFoundError as error:
        raise StoreError(f"{path}: not there; {folder} is no run") from error
    except (OSError, json.JSONDecodeError, ValidationError) as error:
        raise StoreError(f"{path}: cannot be read: {_first_line(error)}") from error
    problems: list[str] = []
    if info.schema_version > SCHEMA_VERSION:
        problems.append(
            f"{path}: written by a newer version (schema {info.schema_version}, this one knows {SCHEMA_VERSION}); "
            "what it does not know is left out"
        )
    samples = tuple(_lines(folder / "samples.jsonl", Sample, problems))
    replicates = tuple(_lines(folder / "replicates.jsonl", ReplicateRecord, problems))
    verdicts = []
    for file in sorted((folder / "verify").glob("*/*.json")):
        try:
            verdicts.append(Verdict.model_validate_json(file.read_bytes()))
        except (OSError, ValidationError) as error:
            problems.append(f"{file}: cannot be read: {_first_line(error)}")
    return RunRecords(
        info=info, samples=samples, replicates=replicates, verdicts=tuple(verdicts), problems=tuple(problems)
    )


def _lines(path: Path, model: type[RecordT], problems: list[str]) -> Iterable[RecordT]:
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                try:
                    yield model.model_validate_json(line)
                except ValidationError as error:
                    problems.append(f"{path}:{number}: cannot be read: {_first_line(error)}")
    except FileNotFoundError:
        return
    except OSError as error:
        problems.append(f"{path}: cannot be read: {error.strerror}")


def _first_line(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc'])) or 'the whole'}: {first['msg']}"
    return str(error).splitlines()[0]


def require_unlocked(folder: Path) -> None:
    """Raise UsageError when a live harness works in this folder."""
    try:
        with (folder / LOCK).open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise UsageError(f"run {folder.name} is still going on in another process") from None


def set_aside_unfinished(folder: Path, done: frozenset[tuple[str, int]]) -> None:
    """Move the records of replicates (implementation, process) that did not finish out of the ranking's files, into ``*.unfinished.jsonl``.

    Those replicates are run again from the beginning, in a fresh server; a replicate is never a patchwork of two.
    """
    for name in ("samples", "rates", "capacities", "replicates"):
        path = folder / f"{name}.jsonl"
        if not path.exists():
            continue
        kept: list[bytes] = []
        aside: list[bytes] = []
        for line in path.read_bytes().splitlines(keepends=True):
            try:
                record = json.loads(line)
                finished = (record["implementation"], record.get("process", record["block"])) in done
            except (json.JSONDecodeError, KeyError, TypeError):
                finished = False
            (kept if finished else aside).append(line)
        if aside:
            with (folder / f"{name}.unfinished.jsonl").open("ab") as file:
                file.writelines(aside)
            temporary = folder / f".{name}.jsonl.new"
            temporary.write_bytes(b"".join(kept))
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


def safe_name(text: str) -> str:
    """A name as a part of a folder's name."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-")[:40]


def dump(values: Mapping[str, object]) -> str:
    """Compact JSON of plain values."""
    return json.dumps(values, separators=(",", ":"), default=str)
