"""The one tolerant reader of a run's folder, for reports, comparisons, resuming and the dashboard.

What cannot be read is named with its file, key or line, and what is whole is kept. Only a run.json of which nothing
can be read raises StoreError.
"""

import errno
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from harness.errors import StoreError
from harness.records import bounded as files
from harness.records.lines import LINE_OPENED, Lines, grown
from harness.records.models import (
    SCHEMA_VERSION,
    ImplementationInfo,
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
MOST_VALUES = 10_000_000

AnyRecord = TypeVar("AnyRecord", bound=Record)

# What stands in for a key of run.json that is missing or broken; the page says which those are.
UNKNOWN_MACHINE = {
    **dict.fromkeys(("hostname", "os", "kernel", "cpu_model"), "unknown"),
    "cpus_online": 0,
    "cpus_usable": (),
    "memory_bytes": 0,
}
UNKNOWN_RUN: dict[str, object] = {
    **dict.fromkeys(("name", "environment", "profile", "runtime"), "unknown"),
    **dict.fromkeys(("started_at", "seed", "processes_expected", "processes_maximum"), 0),
    **dict.fromkeys(("command", "implementations"), ()),
    **{key: {} for key in ("settings", "tools", "loads")},
    "status": "interrupted",
    "machine": UNKNOWN_MACHINE,
}


class RunReader:
    """One folder of results/. Raises StoreError when its run.json cannot be read at all."""

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
            raw = files.parse(files.read(self.folder / "run.json", FILE_BYTES), nul=True)
        except FileNotFoundError as error:
            progress = self.progress()
            seen = f"; the run was last seen {progress.status}, at: {progress.stage}" if progress else ""
            raise StoreError(f"run.json: not there{seen}") from error
        except OSError as error:
            raise StoreError(f"run.json: cannot be read: {error.strerror}") from error
        except ValueError as error:
            raise StoreError(f"run.json: {error}") from error
        if not isinstance(raw, dict):
            raise StoreError("run.json: is not a JSON object")
        version = raw.get("schema_version")
        if version != SCHEMA_VERSION:
            known = f"this version knows {SCHEMA_VERSION} and shows what it recognises"
            self._problem("run.json", f"schema version {version!r}: {known}")
        return self._salvaged(raw | {"run_id": self.id})

    def _salvaged(self, raw: dict[str, object]) -> RunInfo:
        """The run as far as it can be read: a broken top-level key is replaced and named."""
        try:
            return RunInfo.model_validate(raw)
        except ValidationError as error:
            complaints = error.errors()
        for item in complaints:
            self._problem("run.json", f"{'.'.join(map(str, item['loc']))}: {item['msg']}")
        for key in {str(item["loc"][0]) for item in complaints}:
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


def bounded(path: Path, opened: int = LINE_OPENED) -> bytes:
    """The bytes of a file that is one document; raises OSError for one that is far too large to be one.

    ``opened``: most arrays and objects, each of which takes some hundred bytes once it is read.
    """
    data = files.read(path, FILE_BYTES)
    try:
        return files.require_few(data, opened, MOST_VALUES)
    except ValueError as error:
        raise OSError(errno.EFBIG, str(error), str(path)) from error


def _readable(items: object) -> list[object]:
    """The implementations that can be read, of a list with some that cannot."""
    readable: list[object] = []
    for item in items if isinstance(items, list) else ():
        try:
            readable.append(ImplementationInfo.model_validate(item))
        except ValidationError:
            continue
    return readable
