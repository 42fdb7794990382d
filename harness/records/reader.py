"""Reads a run's folder for reports, comparisons, resuming and the dashboard.

The reader skips unreadable lines and reports their file and line number. It raises StoreError only if run.json is
unreadable.
"""

import json
import os
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import BinaryIO, TypeVar

from pydantic import ValidationError
from pydantic_core import from_json

from harness.errors import StoreError
from harness.records import safe_read as files
from harness.records.record import SCHEMA_VERSION, Record
from harness.records.run_info import RunInfo
from harness.records.run_records import ProcessRecord, ReadProblem, RunProgress, RunRecords
from harness.records.trial_record import Trial
from harness.records.verification_record import VerificationRecord

MAX_FILE_BYTES = 64 * 2**20  # maximum size of a file that contains a single JSON document
MAX_RUN_INFO_BYTES = 8 * 2**20  # maximum size of run.json; 500 implementations need 2 MiB
MAX_LINES_FILE_BYTES = 2**30
MAX_RECORDS_MEMORY = 512 * 2**20  # maximum memory for all records of a file; enough for 50,000 trials
BYTES_PER_VALUE = 150  # measured memory per value of a record, in addition to the length of the line
MAX_LINE_BYTES = 16 * 2**20  # maximum length of a line; a trial with windows and a histogram needs about 100 KiB
MAX_LINE_CONTAINERS = 100_000  # maximum arrays and objects in a line (80 MB in memory); a histogram has a few thousand
MAX_PROBLEMS = 200  # maximum number of reported problems per file

AnyRecord = TypeVar("AnyRecord", bound=Record)


def read_progress(folder: Path) -> RunProgress | None:
    """Return the recorded progress of a run, or None if it cannot be read."""
    try:
        return RunProgress.model_validate_json(read_bounded(folder / "progress.json"))
    except (OSError, ValueError):
        return None  # if the run is in progress, tfb will soon rewrite the file


class RunReader:
    """A reader for a run's folder. Raises StoreError if run.json cannot be read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.id = folder.name
        self.problems: list[ReadProblem] = []
        self.info = self._info()

    def records(self, *, with_series: bool = False) -> RunRecords:
        """Return all records. Unless ``with_series``, omit windows and histograms, which are the largest parts."""
        trials = list(self.lines("trials.jsonl", Trial, shorten=None if with_series else Trial.without_series))
        processes, verdicts = self.processes(), self.verdicts()
        problems = tuple(f"{self.folder / problem.file}: {problem.message}" for problem in self.problems)
        return RunRecords(info=self.info, trials=trials, processes=processes, verdicts=verdicts, problems=problems)

    def trials(self, implementation: str | None = None, test_type: str | None = None) -> list[Trial]:
        """Return the trials, optionally restricted to an implementation, a test type, or both."""
        return list(self.lines("trials.jsonl", Trial, implementation=implementation, test_type=test_type))

    def processes(self, implementation: str | None = None) -> list[ProcessRecord]:
        """Return the processes, optionally restricted to an implementation."""
        return list(self.lines("processes.jsonl", ProcessRecord, implementation=implementation))

    def verdicts(self, implementation: str | None = None, test_type: str | None = None) -> list[VerificationRecord]:
        """Return the last record for each combination of implementation, test type and process."""
        records = self.lines("verdicts.jsonl", VerificationRecord, implementation=implementation, test_type=test_type)
        return list({(each.implementation, each.test_type, each.process): each for each in records}.values())

    def lines(
        self,
        file: str,
        model: type[AnyRecord],
        shorten: Callable[[AnyRecord], tuple[AnyRecord, int]] | None = None,
        **keys: str | None,
    ) -> Iterator[AnyRecord]:
        """Yield the file's records that match ``keys``. Add a problem for each unreadable line.

        To save memory, ``shorten`` removes windows and histograms from a record. It returns the shorter record and the
        number of removed values.
        """
        path = self.folder / file
        if self.info.status == "complete" and not path.exists():
            self._problem(file, "missing")
        required = {key: value for key, value in keys.items() if value is not None}
        parts = [json.dumps(value, ensure_ascii=False).encode() for value in required.values()]
        problems: list[str] = []
        memory = 0
        for record, size in read_sized_lines(path, model, problems, parts, growing=self.info.status == "running"):
            if any(getattr(record, key) != value for key, value in required.items()):
                continue
            short, removed = shorten(record) if shorten else (record, 0)
            memory += size - removed * BYTES_PER_VALUE
            if memory > MAX_RECORDS_MEMORY:
                limit = MAX_RECORDS_MEMORY >> 20
                problems.append(f"exceeds the memory limit of {limit} MiB; further lines are ignored")
                break
            yield short
        for message in problems:
            self._problem(file, message)

    def progress(self) -> RunProgress | None:
        """Return the recorded progress, or None if it cannot be read."""
        return read_progress(self.folder)

    def _info(self) -> RunInfo:
        try:
            data = read_bounded(self.folder / "run.json", MAX_RUN_INFO_BYTES)
            if newer := newer_version_message(data, SCHEMA_VERSION):
                raise StoreError(f"run.json: run {self.id} {newer}")
            info = RunInfo.model_validate_json(data)
            from_json(data, allow_inf_nan=False)  # rejects NaN in ``settings``, which the model does not check
        except FileNotFoundError as error:
            progress = read_progress(self.folder)
            last = f"; last known status: {progress.status}, stage: {progress.stage}" if progress else ""
            raise StoreError(f"run.json: does not exist{last}") from error
        except (OSError, ValueError) as error:
            raise StoreError(f"run.json: {first_error(error)}") from error
        return info.model_copy(update={"run_id": self.id})

    def _problem(self, file: str, message: str) -> None:
        problem = ReadProblem(file=file, message=message)
        if problem not in self.problems:  # reading a file again finds the same problems
            self.problems.append(problem)


def read_bounded(path: Path, max_bytes: int = MAX_FILE_BYTES) -> bytes:
    """Return the content of a JSON file. Raises OSError or ValueError if it is unreadable or too large."""
    return files.require_bounded_json(files.read(path, max_bytes))


def newer_version_message(data: bytes, supported: int) -> str:
    """Return an error message if a newer version of tfb wrote the document, otherwise an empty string.

    Call this function before validation, because a newer version may use keys with a different meaning.
    """
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return ""
    version = document.get("schema_version") if isinstance(document, dict) else None
    if not isinstance(version, int) or version <= supported:
        return ""
    schemas = f"schema {str(version)[:20]}; this version reads up to {supported}"
    return f"was recorded by a newer tfb ({schemas}). Update tfb to read it"


def read_lines(path: Path, model: type[AnyRecord], problems: list[str], *, start: int = 0) -> Iterator[AnyRecord]:
    """Yield the records of a JSON-lines file from byte ``start``. Report unreadable lines in ``problems``."""
    return (record for record, _ in read_sized_lines(path, model, problems, start=start))


def read_sized_lines(
    path: Path,
    model: type[AnyRecord],
    problems: list[str],
    required_parts: Collection[bytes] = (),
    *,
    growing: bool = False,
    start: int = 0,
) -> Iterator[tuple[AnyRecord, int]]:
    """Yield (record, estimated memory use in bytes). Append a message to ``problems`` for each unreadable line.

    Lines that do not contain all ``required_parts`` are skipped. In a ``growing`` file, an incomplete last line is
    ignored.
    """
    try:
        with files.open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            if size > MAX_LINES_FILE_BYTES and not start:
                limit = MAX_LINES_FILE_BYTES >> 30
                message = f"exceeds the size limit: it is {size / 2**30:.1f} GiB, and tfb reads at most {limit} GiB"
                _report(problems, message)
                return
            file.seek(start)
            for number, line in _numbered(file):
                try:
                    if not _is_relevant(line, required_parts, growing=growing):
                        continue
                    memory = len(line) + _count_values(line) * BYTES_PER_VALUE
                    record = model.model_validate_json(line)
                except ValueError as error:
                    _report(problems, f"line {number}: {first_error(error)}")
                else:
                    yield record, memory
    except FileNotFoundError:
        return
    except OSError as error:
        _report(problems, first_error(error))


def _is_relevant(line: bytes, required_parts: Collection[bytes], *, growing: bool) -> bool:
    """Return whether to parse a line: True if it contains all ``required_parts``, or if it is not a JSON object.

    Parsing a line that is not an object fails, so that the line is reported.

    Raises ValueError for a line that is too long and, unless the file is ``growing``, for an incomplete line.
    """
    if len(line) > MAX_LINE_BYTES:
        raise ValueError(f"longer than {MAX_LINE_BYTES // 2**20} MiB")
    if not line.endswith(b"\n"):
        if growing:
            return False
        raise ValueError("incomplete")
    is_object = line.startswith(b"{") and line.endswith(b"}\n")
    return not is_object or all(part in line for part in required_parts)


def _numbered(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yield (line number, line). A line of more than ``MAX_LINE_BYTES`` + 1 bytes is truncated to this length."""
    number = 0
    while line := file.readline(MAX_LINE_BYTES + 1):
        number += 1
        yield number, line
        while len(line) > MAX_LINE_BYTES and not line.endswith(b"\n"):
            line = file.readline(MAX_LINE_BYTES + 1)


def _count_values(line: bytes) -> int:
    """Return an upper bound for the number of values in a line. Raises ValueError if parsing would exhaust memory."""
    files.require_bounded_json(line, MAX_LINE_CONTAINERS)
    return line.count(b",") + line.count(b"{") + line.count(b"[")


def _report(problems: list[str], message: str) -> None:
    """Append a message if there are fewer than ``MAX_PROBLEMS``. Otherwise, append a single note about the rest."""
    if len(problems) <= MAX_PROBLEMS:
        problems.append(message if len(problems) < MAX_PROBLEMS else "more lines cannot be read")


def first_error(error: OSError | ValueError) -> str:
    """Describe the first error in a file on a single line."""
    if isinstance(error, OSError):
        return f"cannot read the file: {error.strerror}"
    if not isinstance(error, ValidationError):
        return str(error).splitlines()[0]
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"{where}: {first['msg']}" if where else first["msg"]
