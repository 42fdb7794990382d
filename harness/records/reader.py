"""The one tolerant reader of a run's folder, for reports, comparisons, resuming and the dashboard.

What cannot be read is named with its file and line, and what is whole is kept. Only a run.json that cannot be read
raises StoreError.
"""

import errno
import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from harness.errors import StoreError
from harness.records import bounded as files
from harness.records.models import (
    SCHEMA_VERSION,
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
RANKING_OPENED = 400_000  # arrays and objects of a ranking.json; one of 31 MB has 280,000
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
        problems = tuple(f"{self.folder / problem.file}: {problem.message}" for problem in dict.fromkeys(self.problems))
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
        lines = Lines()
        wanted = {key: value for key, value in keys.items() if value is not None}
        having = [f"{json.dumps(value, ensure_ascii=False)}".encode() for value in wanted.values()]
        for record in grown(path, lines, model, having):
            if all(getattr(record, key) == value for key, value in wanted.items()):
                yield record
        self.problems += lines.problems
        # What follows the last newline is still being written, or was cut off by a kill.
        if self.info.status != "running" and path.is_file() and path.stat().st_size > lines.offset:
            self._problem(file, f"line {lines.number + 1}: cut off")

    def progress(self) -> Progress | None:
        """progress.json, or None without one."""
        try:
            return Progress.model_validate_json(bounded(self.folder / "progress.json"))
        except (OSError, ValidationError):
            return None  # it is a running commentary: the next second brings the next one

    def _info(self) -> RunInfo:
        try:
            info = RunInfo.model_validate_json(bounded(self.folder / "run.json"))
        except FileNotFoundError as error:
            progress = self.progress()
            seen = f"; the run was last seen {progress.status}, at: {progress.stage}" if progress else ""
            raise StoreError(f"run.json: not there{seen}") from error
        except OSError as error:
            raise StoreError(f"run.json: cannot be read: {error.strerror}") from error
        except ValidationError as error:
            raise StoreError(f"run.json: {first_complaint(error)}") from error
        if info.schema_version != SCHEMA_VERSION:
            known = f"this version knows {SCHEMA_VERSION} and shows what it recognises"
            self._problem("run.json", f"schema version {info.schema_version}: {known}")
        return info.model_copy(update={"run_id": self.id})

    def _problem(self, file: str, message: str) -> None:
        self.problems.append(Problem(file=file, message=message))


def bounded(path: Path, opened: int = LINE_OPENED) -> bytes:
    """The bytes of a file that is one document; raises OSError for one that is far too large to be one.

    ``opened``: most arrays and objects, each of which takes some hundred bytes once it is read.
    """
    try:
        return files.require_few(files.read(path, FILE_BYTES), opened)
    except ValueError as error:
        raise OSError(errno.EFBIG, str(error), str(path)) from error


@dataclass
class Lines:
    """How far a JSON-lines file has been read: complete lines only, so that it may grow meanwhile."""

    offset: int = 0
    number: int = 0
    problems: list[Problem] = field(default_factory=list)

    def complain(self, file: str, message: str) -> None:
        """Name a line that cannot be read; of very many the first ones."""
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(Problem(file=file, message=message))
        elif len(self.problems) == MOST_PROBLEMS:
            self.problems.append(Problem(file=file, message="further lines cannot be read, either"))


def grown(path: Path, lines: Lines, model: type[AnyRecord], having: Collection[bytes] = ()) -> Iterator[AnyRecord]:
    """The records that a file has gained since the last call; of those alone whose line holds all of ``having``."""
    try:
        with files.open_regular(path) as file:
            file.seek(lines.offset)
            while line := file.readline(LINE_BYTES):
                too_long = False
                while len(line) == LINE_BYTES and not line.endswith(b"\n"):  # passed over: no record is so long
                    line, too_long = file.readline(LINE_BYTES), True
                if not line.endswith(b"\n"):
                    return  # still being written
                lines.offset = file.tell()
                lines.number += 1
                if too_long:
                    lines.complain(path.name, f"line {lines.number}: longer than {LINE_BYTES // 2**20} MiB")
                    continue
                if not all(part in line for part in having) and line.startswith(b"{") and line.endswith(b"}\n"):
                    continue
                try:
                    record = model.model_validate_json(files.require_few(line, LINE_OPENED))
                except ValueError as error:
                    lines.complain(path.name, f"line {lines.number}: {first_complaint(error)}")
                else:
                    yield record
    except FileNotFoundError:
        return
    except OSError as error:
        lines.complain(path.name, f"cannot be read: {error.strerror}")


def first_complaint(error: ValueError) -> str:
    """The first complaint in a few words: where, and what."""
    if not isinstance(error, ValidationError):
        return str(error).splitlines()[0]
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"{where}: {first['msg']}" if where else first["msg"]
