"""The one tolerant reader of a run's folder, for reports, comparisons, resuming and the dashboard.

What cannot be read is named with its file and line, and what is whole is kept. Only a run.json that cannot be read
raises StoreError.
"""

import json
import os
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import BinaryIO, TypeVar

from pydantic import ValidationError

from harness.errors import StoreError
from harness.records import safe_read as files
from harness.records.process_record import ProcessRecord
from harness.records.record import SCHEMA_VERSION, Record
from harness.records.run_info import RunInfo
from harness.records.run_records import ReadProblem, RunProgress, RunRecords
from harness.records.trial_record import Trial
from harness.records.verification_record import VerificationRecord

MAX_FILE_BYTES = 64 * 2**20  # of a file that is one document
MAX_RUN_INFO_BYTES = 8 * 2**20  # of run.json; 500 implementations take 2 MiB
MAX_LINES_FILE_BYTES = 2**30  # of a JSON-lines file; a larger one is not read at all
MAX_RECORDS_MEMORY = 512 * 2**20  # that the records of one file may take, estimated as VALUE_MEMORY says; 50,000 trials
BYTES_PER_VALUE = 150  # bytes of a value in a record, beside the bytes of its line: measured, for values in models
MAX_LINE_BYTES = 16 * 2**20  # of one record; a trial with all its windows and its histogram takes some 100 KiB
MAX_LINE_CONTAINERS = (
    100_000  # arrays and objects in it: 80 MB once read, even when empty; a histogram has some thousand
)
MAX_PROBLEMS = 200  # that are named; a file of other bytes has one in each line

AnyRecord = TypeVar("AnyRecord", bound=Record)


class RunReader:
    """One folder of results/. Raises StoreError when its run.json cannot be read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.id = folder.name
        self.problems: list[ReadProblem] = []
        self.info = self._info()

    def records(self, *, with_series: bool = False) -> RunRecords:
        """Return everything, for stats and the reports; only ``whole`` with windows and histograms of loads.

        Those are most of a trial, and no figure is made from them.
        """
        trials = list(self.lines("trials.jsonl", Trial, shorten=None if with_series else Trial.without_series))
        processes, verdicts = self.processes(), self.verdicts()
        problems = tuple(f"{self.folder / problem.file}: {problem.message}" for problem in self.problems)
        return RunRecords(info=self.info, trials=trials, processes=processes, verdicts=verdicts, problems=problems)

    def trials(self, implementation: str | None = None, test_type: str | None = None) -> list[Trial]:
        """Those of trials.jsonl, of all or of one implementation and test type."""
        return list(self.lines("trials.jsonl", Trial, implementation=implementation, test_type=test_type))

    def processes(self, implementation: str | None = None) -> list[ProcessRecord]:
        """Those of processes.jsonl, of all or of one implementation."""
        return list(self.lines("processes.jsonl", ProcessRecord, implementation=implementation))

    def verdicts(self, implementation: str | None = None, test_type: str | None = None) -> list[VerificationRecord]:
        """Those of verdicts.jsonl: the last one of each implementation, test type and process."""
        found = self.lines("verdicts.jsonl", VerificationRecord, implementation=implementation, test_type=test_type)
        return list({(each.implementation, each.test_type, each.process): each for each in found}.values())

    def lines(
        self,
        file: str,
        model: type[AnyRecord],
        shorten: Callable[[AnyRecord], tuple[AnyRecord, int]] | None = None,
        **keys: str | None,
    ) -> Iterator[AnyRecord]:
        """Yield each record of a JSON-lines file that has these values; a line that cannot be read is a problem.

        ``shorten`` returns a record without what nobody needs, and how many values that were.
        """
        path = self.folder / file
        if self.info.status == "complete" and not path.exists():
            self._problem(file, "missing")
        wanted = {key: value for key, value in keys.items() if value is not None}
        having = [json.dumps(value, ensure_ascii=False).encode() for value in wanted.values()]
        unread: list[str] = []
        memory = 0
        for record, size in read_sized_lines(path, model, unread, having, growing=self.info.status == "running"):
            if any(getattr(record, key) != value for key, value in wanted.items()):
                continue
            short, left_out = shorten(record) if shorten else (record, 0)
            memory += size - left_out * BYTES_PER_VALUE
            if memory > MAX_RECORDS_MEMORY:
                unread.append(
                    f"holds more than this version reads ({MAX_RECORDS_MEMORY >> 20} MiB in memory); the rest is left out"
                )
                break
            yield short
        for message in unread:
            self._problem(file, message)

    def progress(self) -> RunProgress | None:
        """progress.json, or None without one."""
        try:
            return RunProgress.model_validate_json(read_bounded(self.folder / "progress.json"))
        except (OSError, ValueError):
            return None  # it is a running commentary: the next second brings the next one

    def _info(self) -> RunInfo:
        try:
            data = read_bounded(self.folder / "run.json", MAX_RUN_INFO_BYTES)
            if newer := newer_version_message(data, SCHEMA_VERSION):
                raise StoreError(f"run.json: run {self.id} {newer}")
            info = RunInfo.model_validate_json(data)
        except FileNotFoundError as error:
            progress = self.progress()
            seen = f"; the run was last seen {progress.status}, at: {progress.stage}" if progress else ""
            raise StoreError(f"run.json: not there{seen}") from error
        except (OSError, ValueError) as error:
            raise StoreError(f"run.json: {first_error(error)}") from error
        return info.model_copy(update={"run_id": self.id})

    def _problem(self, file: str, message: str) -> None:
        problem = ReadProblem(file=file, message=message)
        if problem not in self.problems:  # a file may be read for two documents
            self.problems.append(problem)


def read_bounded(path: Path, most: int = MAX_FILE_BYTES) -> bytes:
    """Return the bytes of a file that is one document; raises OSError or ValueError for one that is far too large."""
    return files.require_bounded_json(files.read(path, most))


def newer_version_message(data: bytes, known: int) -> str:
    """Return what to say of a document that a newer version wrote, or an empty text.

    Its other keys may have another meaning: they are not looked at.
    """
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return ""
    version = document.get("schema_version") if isinstance(document, dict) else None
    if not isinstance(version, int) or version <= known:
        return ""
    return (
        f"was recorded by a newer tfb (schema {version:.0f}; this version reads up to {known}). Update tfb to read it"
    )


def read_lines(
    path: Path,
    model: type[AnyRecord],
    problems: list[str],
    having: Collection[bytes] = (),
    *,
    growing: bool = False,
    start: int = 0,
) -> Iterator[AnyRecord]:
    """Yield the records of a JSON-lines file from a byte on; of those alone whose line holds all of ``having``.

    ``problems`` gains what cannot be read. The end of a file that is ``growing`` may be half a line.
    """
    return (record for record, _ in read_sized_lines(path, model, problems, having, growing=growing, start=start))


def read_sized_lines(
    path: Path,
    model: type[AnyRecord],
    problems: list[str],
    having: Collection[bytes] = (),
    *,
    growing: bool = False,
    start: int = 0,
) -> Iterator[tuple[AnyRecord, int]]:
    """Yield the records as ``read_lines`` does, each with an estimate of the bytes that it takes in memory."""
    try:
        with files.open_regular(path) as file:
            if (size := os.fstat(file.fileno()).st_size) > MAX_LINES_FILE_BYTES and not start:
                _complain(
                    problems,
                    f"is not read: it has {size / 2**30:.1f} GiB, and at most {MAX_LINES_FILE_BYTES >> 30} GiB are read",
                )
                return
            file.seek(start)
            for number, line in _numbered(file):
                if line.endswith(b"\n") and len(line) <= MAX_LINE_BYTES:
                    if all(part in line for part in having) or not (line.startswith(b"{") and line.endswith(b"}\n")):
                        try:
                            values = _values(line)
                            record = model.model_validate_json(line)
                        except ValueError as error:
                            _complain(problems, f"line {number}: {first_error(error)}")
                        else:
                            yield record, len(line) + values * BYTES_PER_VALUE
                elif len(line) > MAX_LINE_BYTES:
                    _complain(problems, f"line {number}: longer than {MAX_LINE_BYTES // 2**20} MiB")
                elif not growing:
                    _complain(problems, f"line {number}: cut off")
    except FileNotFoundError:
        return
    except OSError as error:
        _complain(problems, first_error(error))


def _numbered(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yield the lines with their numbers; of one that is too long the beginning, one byte more than a line may have."""
    number = 0
    while line := file.readline(MAX_LINE_BYTES + 1):
        number += 1
        yield number, line
        while len(line) > MAX_LINE_BYTES and not line.endswith(b"\n"):
            line = file.readline(MAX_LINE_BYTES + 1)


def _values(line: bytes) -> int:
    """Return how many values a line holds at most; raises ValueError where reading it would fill memory."""
    files.require_bounded_json(line, MAX_LINE_CONTAINERS)
    return line.count(b",") + line.count(b"{") + line.count(b"[")


def _complain(problems: list[str], message: str) -> None:
    """Of very many lines that cannot be read the first ones are named."""
    if len(problems) <= MAX_PROBLEMS:
        problems.append(message if len(problems) < MAX_PROBLEMS else "further lines cannot be read, either")


def first_error(error: OSError | ValueError) -> str:
    """Return the first complaint about a file in a few words: where, and what."""
    if isinstance(error, OSError):
        return f"cannot be read: {error.strerror}"
    if not isinstance(error, ValidationError):
        return str(error).splitlines()[0]
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"{where}: {first['msg']}" if where else first["msg"]
