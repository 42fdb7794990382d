"""The one tolerant reader of a run's folder, for reports, comparisons, resuming and the dashboard.

What cannot be read is named with its file and line, and what is whole is kept. Only a run.json that cannot be read
raises StoreError.
"""

import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from harness.errors import StoreError
from harness.records import bounded as files
from harness.records.models import (
    Problem,
    ProcessRecord,
    Progress,
    Record,
    RunInfo,
    RunRecords,
    Trial,
    Verdict,
)

FILE_BYTES = 64 * 2**20  # of a file that is one document
LINE_BYTES = 16 * 2**20  # of one record; a trial with all its windows and its histogram takes some 100 KiB
LINE_OPENED = 100_000  # arrays and objects in it: 80 MB once read, even when empty; a histogram has some thousand
MOST_PROBLEMS = 200  # that are named; a file of other bytes has one in each line

AnyRecord = TypeVar("AnyRecord", bound=Record)


class RunReader:
    """One folder of results/. Raises StoreError when its run.json cannot be read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.id = folder.name
        self.problems: list[Problem] = []
        self.info = self._info()

    def records(self) -> RunRecords:
        """Everything, for stats and the reports."""
        trials, processes, verdicts = self.trials(), self.processes(), self.verdicts()
        problems = tuple(f"{self.folder / problem.file}: {problem.message}" for problem in self.problems)
        return RunRecords(info=self.info, trials=trials, processes=processes, verdicts=verdicts, problems=problems)

    def trials(self, implementation: str | None = None, test_type: str | None = None) -> list[Trial]:
        """Those of trials.jsonl, of all or of one implementation and test type."""
        return list(self.lines("trials.jsonl", Trial, implementation=implementation, test_type=test_type))

    def processes(self, implementation: str | None = None) -> list[ProcessRecord]:
        """Those of processes.jsonl, of all or of one implementation."""
        return list(self.lines("processes.jsonl", ProcessRecord, implementation=implementation))

    def verdicts(self, implementation: str | None = None, test_type: str | None = None) -> list[Verdict]:
        """Those of verdicts.jsonl: the last one of each implementation, test type and process."""
        found = self.lines("verdicts.jsonl", Verdict, implementation=implementation, test_type=test_type)
        return list({(each.implementation, each.test_type, each.process): each for each in found}.values())

    def lines(self, file: str, model: type[AnyRecord], **keys: str | None) -> Iterator[AnyRecord]:
        """Each record of a JSON-lines file that has these values; a line that cannot be read is a problem."""
        path = self.folder / file
        if self.info.status == "complete" and not path.exists():
            self._problem(file, "missing")
        wanted = {key: value for key, value in keys.items() if value is not None}
        having = [json.dumps(value, ensure_ascii=False).encode() for value in wanted.values()]
        unread: list[str] = []
        for record in read_lines(path, model, unread, having, growing=self.info.status == "running"):
            if all(getattr(record, key) == value for key, value in wanted.items()):
                yield record
        for message in unread:
            self._problem(file, message)

    def progress(self) -> Progress | None:
        """progress.json, or None without one."""
        try:
            return Progress.model_validate_json(bounded(self.folder / "progress.json"))
        except (OSError, ValueError):
            return None  # it is a running commentary: the next second brings the next one

    def _info(self) -> RunInfo:
        try:
            info = RunInfo.model_validate_json(bounded(self.folder / "run.json"))
        except FileNotFoundError as error:
            progress = self.progress()
            seen = f"; the run was last seen {progress.status}, at: {progress.stage}" if progress else ""
            raise StoreError(f"run.json: not there{seen}") from error
        except (OSError, ValueError) as error:
            raise StoreError(f"run.json: {first_complaint(error)}") from error
        return info.model_copy(update={"run_id": self.id})

    def _problem(self, file: str, message: str) -> None:
        problem = Problem(file=file, message=message)
        if problem not in self.problems:  # a file may be read for two documents
            self.problems.append(problem)


def bounded(path: Path) -> bytes:
    """The bytes of a file that is one document; raises OSError or ValueError for one that is far too large for it."""
    return files.require_few(files.read(path, FILE_BYTES))


def read_lines(
    path: Path,
    model: type[AnyRecord],
    problems: list[str],
    having: Collection[bytes] = (),
    *,
    growing: bool = False,
    start: int = 0,
) -> Iterator[AnyRecord]:
    """The records of a JSON-lines file from a byte on; of those alone whose line holds all of ``having``.

    ``problems`` gains what cannot be read. The end of a file that is ``growing`` may be half a line.
    """
    number = 0
    try:
        with files.open_regular(path) as file:
            file.seek(start)
            while line := file.readline(LINE_BYTES):
                number += 1
                if not line.endswith(b"\n"):
                    if not growing:
                        _complain(problems, f"line {number}: cut off, or longer than {LINE_BYTES // 2**20} MiB")
                    return
                if all(part in line for part in having) or not (line.startswith(b"{") and line.endswith(b"}\n")):
                    try:
                        record = model.model_validate_json(files.require_few(line, LINE_OPENED))
                    except ValueError as error:
                        _complain(problems, f"line {number}: {first_complaint(error)}")
                    else:
                        yield record
    except FileNotFoundError:
        return
    except OSError as error:
        _complain(problems, first_complaint(error))


def _complain(problems: list[str], message: str) -> None:
    """Of very many lines that cannot be read the first ones are named."""
    if len(problems) <= MOST_PROBLEMS:
        problems.append(message if len(problems) < MOST_PROBLEMS else "further lines cannot be read, either")


def first_complaint(error: OSError | ValueError) -> str:
    """The first complaint about a file in a few words: where, and what."""
    if isinstance(error, OSError):
        return f"cannot be read: {error.strerror}"
    if not isinstance(error, ValidationError):
        return str(error).splitlines()[0]
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"{where}: {first['msg']}" if where else first["msg"]
