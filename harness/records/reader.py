"""The one tolerant reader of a run's folder, for reports, comparisons, resuming and the dashboard.

Bounded, and tolerant of missing, broken and newer files: what cannot be read is named with its file, key or line, and what
is whole is kept. Only a run.json of which nothing can be read raises StoreError.
"""

import copy
import errno
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Self, TypeVar

from pydantic import ValidationError

from harness.errors import StoreError
from harness.records import bounded as files
from harness.records.lines import LINE_OPENED, Lines, first_complaint, grown
from harness.records.models import (
    READ_VERSIONS,
    SCHEMA_VERSION,
    ImplementationInfo,
    Problem,
    Progress,
    Record,
    ReplicateRecord,
    RunInfo,
    RunRecords,
    Sample,
    Verdict,
)

FILE_BYTES = 64 * 2**20  # of a file that is one document
RANKING_OPENED = 400_000  # arrays and objects of a ranking.json; one of 31 MB has 280,000
MOST_VALUES = 10_000_000

AnyRecord = TypeVar("AnyRecord", bound=Record)
AnySample = TypeVar("AnySample", bound=Sample)


class SampleKey(Record):
    """Of a sample, to which cell it belongs."""

    implementation: str
    test_type: str


# What stands in for a key of run.json that is missing or broken; the page says which those are.
UNKNOWN_MACHINE = {
    "hostname": "unknown",
    "os": "unknown",
    "kernel": "unknown",
    "cpu_model": "unknown",
    "cpus_online": 0,
    "cpus_usable": [],
    "memory_bytes": 0,
}
UNKNOWN_RUN: dict[str, object] = {
    "name": "unnamed",
    "environment": "unknown",
    "status": "interrupted",
    "started_at": 0.0,
    "command": [],
    "profile": "unknown",
    "runtime": "unknown",
    "seed": 0,
    "settings": {},
    "machine": UNKNOWN_MACHINE,
    "tools": {},
    "implementations": [],
    "levels": {},
    "blocks_expected": 0,
    "blocks_maximum": 0,
}


class RunReader:
    """One folder of results/. Raises StoreError when its run.json cannot be read at all."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.id = folder.name
        self.problems: list[Problem] = []
        self.info = self._info()

    def again(self) -> Self:
        """The same run, for a reader of its own: run.json is not read again."""
        other = copy.copy(self)
        other.problems = list(self.problems)
        return other

    def records(self) -> RunRecords:
        """Everything, for rank and the reports."""
        samples, replicates, verdicts = self.samples(), self.replicates(), self.verdicts()
        problems = tuple(f"{self.folder / problem.file}: {problem.message}" for problem in dict.fromkeys(self.problems))
        return RunRecords(
            info=self.info,
            samples=tuple(samples),
            replicates=tuple(replicates),
            verdicts=tuple(verdicts),
            problems=problems,
        )

    # ---- run.json ----------------------------------------------------------------------------------------------------

    def _info(self) -> RunInfo:
        path = self.folder / "run.json"
        try:
            raw = document(path)
        except FileNotFoundError as error:
            raise StoreError(f"run.json: not there{self._stage()}") from error
        except OSError as error:
            raise StoreError(f"run.json: cannot be read: {error.strerror}") from error
        except ValueError as error:
            raise StoreError(f"run.json: {error}") from error
        if not isinstance(raw, dict):
            raise StoreError("run.json: is not a JSON object")
        if raw.get("schema_version") not in READ_VERSIONS:
            self._problem(
                "run.json",
                f"schema version {raw.get('schema_version')!r}: this version knows {SCHEMA_VERSION} "
                "and shows what it recognises",
            )
        return self._salvage(raw | {"run_id": self.id})

    def _stage(self) -> str:
        """What a run that has no run.json was last doing."""
        progress = self.progress()
        return f"; the run was last seen {progress.status}, at: {progress.stage}" if progress else ""

    def _salvage(self, raw: dict[str, object]) -> RunInfo:
        """The run as far as it can be read: a broken top-level key is replaced and named."""
        try:
            return RunInfo.model_validate(raw)
        except ValidationError as error:
            for item in error.errors():
                self._problem("run.json", f"{'.'.join(map(str, item['loc']))}: {item['msg']}")
            for key in {str(item["loc"][0]) for item in error.errors()}:
                if key == "implementations":
                    raw[key] = _readable(raw.get(key))
                elif key in UNKNOWN_RUN:
                    raw[key] = UNKNOWN_RUN[key]
                else:
                    raw.pop(key, None)
        try:
            return RunInfo.model_validate(raw)
        except ValidationError as error:
            raise StoreError(f"run.json: {error.errors()[0]['msg']}") from error

    def _problem(self, file: str, message: str) -> None:
        self.problems.append(Problem(file=file, message=message))

    # ---- the other files ---------------------------------------------------------------------------------------------

    def replicates(self) -> list[ReplicateRecord]:
        """All of replicates.jsonl; lines that cannot be read are problems."""
        return list(self._records("replicates.jsonl", ReplicateRecord))

    def samples(self) -> list[Sample]:
        """All of samples.jsonl; lines that cannot be read are problems."""
        return list(self._records("samples.jsonl", Sample))

    def samples_as(self, model: type[AnySample]) -> list[AnySample]:
        """All of samples.jsonl, as a model that leaves out what its reader does not need."""
        return list(self._records("samples.jsonl", model))

    def samples_of(self, test_types: Collection[str], lines: Lines) -> list[Sample]:
        """The samples of some test types, read by their places in the file."""
        spans = sorted(span for (_, kind), found in lines.spans.items() if kind in test_types for span in found)
        return list(self._at(spans))

    def _at(self, spans: Sequence[tuple[int, int]]) -> Iterator[Sample]:
        """The samples at these places of samples.jsonl; one that cannot be read is a problem."""
        path = self.folder / "samples.jsonl"
        if not spans or not path.is_file():
            return
        with files.open_regular(path) as file:
            for start, length in spans:
                file.seek(start)
                try:
                    yield Sample.model_validate_json(file.read(length))
                except ValidationError as error:
                    self._problem("samples.jsonl", first_complaint(error))

    def _records(self, file: str, model: type[AnyRecord]) -> Iterator[AnyRecord]:
        """Each record of a JSON-lines file; a line that cannot be read is a problem."""
        path = self.folder / file
        running = self.info.status == "running"
        if not path.exists() and not running:
            self._problem(file, "missing")
        lines = Lines()
        for record, _, _ in grown(path, lines, model):
            yield record
        self.problems += lines.problems
        # What follows the last newline is still being written, or was cut off by a kill.
        if not running and path.is_file() and path.stat().st_size > lines.offset:
            self._problem(file, f"line {lines.number + 1}: cut off")

    def verdicts(self, implementation: str | None = None, test_type: str | None = None) -> list[Verdict]:
        """The verdicts, of all or of one implementation x test type."""
        verify = self.folder / "verify"
        verdicts = []
        folders = sorted(verify.iterdir()) if verify.is_dir() else []
        if implementation is not None:  # each has a folder of its own: the others' files are not even opened
            folders = [folder for folder in folders if folder.name == implementation]
        for path in (path for folder in folders if folder.is_dir() for path in sorted(folder.glob("*.json"))):
            if test_type is not None and not path.name.startswith(f"{test_type}-r"):
                continue
            try:
                verdict = Verdict.model_validate_json(bounded(path))
            except (OSError, ValidationError) as error:
                message = (
                    first_complaint(error)
                    if isinstance(error, ValidationError)
                    else f"cannot be read: {error.strerror}"
                )
                self._problem(str(path.relative_to(self.folder)), message)
                continue
            if implementation in (None, verdict.implementation) and test_type in (None, verdict.test_type):
                verdicts.append(verdict)
        return verdicts

    def progress(self) -> Progress | None:
        """progress.json, or None without one."""
        try:
            return Progress.model_validate_json(bounded(self.folder / "progress.json"))
        except (OSError, ValidationError):
            return None  # it is a running commentary: the next second brings the next one

    def index(self, lines: Lines | None = None) -> Lines:
        """Where each cell's samples stand in samples.jsonl; pass the last answer to go on from there."""
        lines = lines or Lines()
        for sample, start, length in grown(self.folder / "samples.jsonl", lines, SampleKey):
            lines.spans[sample.implementation, sample.test_type].append((start, length))
        return lines


def bounded(path: Path, opened: int = LINE_OPENED) -> bytes:
    """The bytes of a file that is one document; raises OSError for one that is far too large to be one.

    ``opened``: most arrays and objects, each of which takes some hundred bytes once it is read.
    """
    data = files.read(path, FILE_BYTES)
    try:
        return files.require_few(data, opened, MOST_VALUES)
    except ValueError as error:
        raise OSError(errno.EFBIG, str(error), str(path)) from error


def document(path: Path) -> object:
    """The JSON of such a file; raises OSError, and ValueError that says what is wrong with it."""
    return files.parse(files.read(path, FILE_BYTES), nul=True)  # shown with its escape, like every control character


def _readable(items: object) -> list[object]:
    """The implementations that can be read, of a list with some that cannot."""
    readable: list[object] = []
    for item in items if isinstance(items, list) else ():
        try:
            readable.append(ImplementationInfo.model_validate(item))
        except ValidationError:
            continue
    return readable
