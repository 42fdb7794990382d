"""Reads results/: tolerant of missing, broken and newer files, each of which is named instead of failing the page."""

import json
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from pydantic import Field, ValidationError

from harness.dashboard.digests import SampleKey, SampleLatency, latencies, summarise
from harness.dashboard.documents import (
    BrokenRun,
    CellDocument,
    LatencyDocument,
    LogDocument,
    Problem,
    Progress,
    RunDocument,
    RunList,
    RunSummary,
    TestDocument,
)
from harness.dashboard.lines import Lines, first_complaint, grown
from harness.dashboard.titles import title_of
from harness.errors import StoreError
from harness.rank.model import Ranking, Table, TestTypeRanking
from harness.results.records import (
    SCHEMA_VERSION,
    ImplementationInfo,
    Record,
    ReplicateRecord,
    RunInfo,
    Sample,
    Verdict,
)

LOG_BYTES = 512 * 1024  # of a log's end that are shown
NAME = re.compile(r"[\w][\w.+-]*")  # of a run's folder: no separator, no leading dot

EXAMPLES = "examples"  # of results/: runs that ship with the project, in a folder of their own

Answers = dict[str, dict[str, tuple[str, ...]]]  # test type -> metric -> sentences
Answer = Callable[[RunInfo, Ranking], Answers]


def no_answers(info: RunInfo, ranking: Ranking) -> Answers:
    """Where nobody gives any."""
    return {}


AnyRecord = TypeVar("AnyRecord", bound=Record)


class HeadlineTest(TestTypeRanking):
    """A test type without the tables of its levels, which are most of a large ranking.json."""

    levels: tuple[Table, ...] = Field(default=(), validation_alias="not read")


class HeadlineRanking(Ranking):
    """A ranking without the tables of single levels: five times quicker to read."""

    test_types: dict[str, HeadlineTest] = Field(default_factory=dict)  # type: ignore[assignment]


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


class Run:
    """One folder of results/. Raises StoreError when its run.json cannot be read at all."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.id = folder.name
        self.example = folder.parent.name == EXAMPLES
        self.problems: list[Problem] = []
        self.info = self._info()

    # ---- run.json ----------------------------------------------------------------------------------------------------

    def _info(self) -> RunInfo:
        path = self.folder / "run.json"
        try:
            raw = json.loads(path.read_bytes())
        except FileNotFoundError as error:
            raise StoreError(f"run.json: not there{self._stage()}") from error
        except OSError as error:
            raise StoreError(f"run.json: cannot be read: {error.strerror}") from error
        except ValueError as error:
            raise StoreError(f"run.json: not valid JSON: {error}") from error
        if not isinstance(raw, dict):
            raise StoreError("run.json: is not a JSON object")
        if raw.get("schema_version") != SCHEMA_VERSION:
            self._problem(
                "run.json",
                f"schema version {raw.get('schema_version')!r}: this dashboard knows version {SCHEMA_VERSION} "
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

    def samples_of(self, test_types: Collection[str], lines: Lines) -> list[Sample]:
        """The samples of some test types, read by their places in the file."""
        spans = sorted(span for (_, kind), found in lines.spans.items() if kind in test_types for span in found)
        return list(self._at(spans))

    def _at(self, spans: Sequence[tuple[int, int]]) -> Iterator[Sample]:
        """The samples at these places of samples.jsonl; one that cannot be read is a problem."""
        path = self.folder / "samples.jsonl"
        if not spans or not path.is_file():
            return
        with path.open("rb") as file:
            for start, length in spans:
                file.seek(start)
                try:
                    yield Sample.model_validate_json(file.read(length))
                except ValidationError as error:
                    self._problem("samples.jsonl", first_complaint(error))

    def _records(self, file: str, model: type[AnyRecord]) -> Iterator[AnyRecord]:
        """Each record of a JSON-lines file; a line that cannot be read is a problem."""
        try:
            lines = (self.folder / file).read_bytes().split(b"\n")
        except FileNotFoundError:
            if self.info.status != "running":
                self._problem(file, "missing")
            return
        except OSError as error:
            self._problem(file, f"cannot be read: {error.strerror}")
            return
        lines.pop()  # what follows the last newline is still being written, or was cut off by a kill
        for number, line in enumerate(lines, start=1):
            try:
                yield model.model_validate_json(line)
            except ValidationError as error:
                self._problem(file, f"line {number}: {first_complaint(error)}")

    def verdicts(self, implementation: str | None = None, test_type: str | None = None) -> list[Verdict]:
        """The verdicts, of all or of one implementation x test type."""
        verify = self.folder / "verify"
        verdicts = []
        folders = sorted(verify.iterdir()) if verify.is_dir() else []
        for path in (path for folder in folders if folder.is_dir() for path in sorted(folder.glob("*.json"))):
            if test_type is not None and not path.name.startswith(f"{test_type}-r"):
                continue
            try:
                verdict = Verdict.model_validate_json(path.read_bytes())
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

    def headlines(self) -> Ranking:
        """The ranking without the tables of single levels, where ranking.json can be read; else all of it."""
        return self._ranking(HeadlineRanking)

    def ranking(self) -> Ranking:
        """ranking.json where there is one that can be read; else ranked here from the samples."""
        return self._ranking(Ranking)

    def _ranking(self, model: type[Ranking]) -> Ranking:
        path = self.folder / "ranking.json"
        try:
            return model.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            pass
        except ValidationError as error:
            self._problem("ranking.json", f"{first_complaint(error)}; ranked again from the samples")
        except OSError as error:
            self._problem("ranking.json", f"cannot be read: {error.strerror}; ranked again from the samples")
        samples = self.samples()
        if not samples:
            return Ranking(run_id=self.id, reference=self.info.reference)
        from harness.rank.capacity import with_latency
        from harness.rank.ranking import rank  # here: scipy takes longer to import than most pages to serve
        from harness.results import rates

        try:
            found = rank(self.info, samples, self.replicates(), self.verdicts())
            return with_latency(found, self.info, rates.read(self.folder))
        except (ValueError, ArithmeticError, LookupError) as error:  # a broken value that the models let through
            self._problem("samples.jsonl", f"cannot be ranked: {error}")
            return Ranking(run_id=self.id, reference=self.info.reference)

    def progress(self) -> Progress | None:
        """progress.json, or None without one."""
        try:
            return Progress.model_validate_json((self.folder / "progress.json").read_bytes())
        except (OSError, ValidationError):
            return None  # it is a running commentary: the next second brings the next one

    def log(self, name: str) -> LogDocument:
        """The end of a log; ``name`` is relative to the run's folder. Raises StoreError outside logs/."""
        logs = (self.folder / "logs").resolve()
        path = (self.folder / name.replace("\0", "")).resolve()
        if not path.is_relative_to(logs) or not path.is_file():
            raise StoreError(f"{name}: no such log")
        size = path.stat().st_size
        with path.open("rb") as file:
            file.seek(max(0, size - LOG_BYTES))
            text = file.read(LOG_BYTES).decode(errors="replace")
        return LogDocument(path=name, text=text, skipped=max(0, size - LOG_BYTES))

    def logs(self) -> list[str]:
        """All logs, relative to the run's folder."""
        folder = self.folder / "logs"
        return sorted(str(path.relative_to(self.folder)) for path in folder.rglob("*.log") if path.is_file())

    # ---- documents ---------------------------------------------------------------------------------------------------

    def summary(self) -> RunSummary:
        """The run's line in the list."""
        info = self.info
        return RunSummary(
            run_id=self.id,
            name=info.name,
            title=title_of(info),
            example=self.example,
            environment=info.environment,
            status=info.status,
            profile=info.profile,
            started_at=info.started_at,
            completed_at=info.completed_at,
            implementations=tuple(item.name for item in info.implementations),
            test_types=tuple(info.levels),
            machine=f"{info.machine.cpu_model}, {info.machine.cpus_online} CPUs",
            grade=info.machine.grade,
            problems=tuple(self.problems),
        )

    def document(self, ranking: Ranking, source_base: str | None = None, answer: Answer = no_answers) -> RunDocument:
        """The run's document."""
        slim = {name: test.model_copy(update={"levels": ()}) for name, test in ranking.test_types.items()}
        return RunDocument(
            run=self.info,
            title=title_of(self.info),
            example=self.example,
            sentences=answer(self.info, ranking),
            ranking=ranking.model_copy(update={"test_types": slim}),
            problems=_once(self.problems),
            progress=self.progress() if self.info.status == "running" else None,
            source_base=source_base,
        )

    def tests(self, ranking: Ranking) -> dict[str, TestDocument]:
        """One document of each test type that has a ranking or a verdict."""
        verdicts = summarise(self.verdicts())
        names = [*ranking.test_types, *(verdict.test_type for verdict in verdicts)]
        return {
            name: TestDocument(
                test_type=name,
                levels=ranking.test_types[name].levels if name in ranking.test_types else (),
                verdicts=tuple(verdict for verdict in verdicts if verdict.test_type == name),
                problems=_once(self.problems),
            )
            for name in dict.fromkeys(names)
        }

    def latency(self) -> dict[str, LatencyDocument]:
        """The latency of every cell, by test type."""
        return latencies(list(self._records("samples.jsonl", SampleLatency)))

    def cell(self, implementation: str, test_type: str, index: Lines | None = None) -> CellDocument:
        """Everything behind one implementation x test type."""
        lines = index or self.index()
        samples = list(self._at(lines.spans.get((implementation, test_type), ())))
        verdicts = self.verdicts(implementation, test_type)
        return CellDocument(
            implementation=implementation,
            test_type=test_type,
            samples=tuple(samples),
            verdicts=tuple(sorted(verdicts, key=lambda verdict: verdict.replicate)),
            replicates=tuple(item for item in self.replicates() if item.implementation == implementation),
            problems=_once([*self.problems, *lines.problems]),
        )

    def index(self, lines: Lines | None = None) -> Lines:
        """Where each cell's samples stand in samples.jsonl; pass the last answer to go on from there."""
        lines = lines or Lines()
        for sample, start, length in grown(self.folder / "samples.jsonl", lines, SampleKey):
            lines.spans[sample.implementation, sample.test_type].append((start, length))
        return lines


def open_run(results: Path, run_id: str) -> Run:
    """The run of this name. Raises StoreError for a name that is not a folder of results/."""
    folder = results / run_id
    if not NAME.fullmatch(run_id) or not folder.is_dir() or folder.resolve().parent != results.resolve():
        raise StoreError(f"{run_id!r}: no such run")
    return Run(folder)


def list_runs(results: Path) -> RunList:
    """All runs, newest first; a folder whose run.json cannot be read is listed as broken."""
    runs: list[RunSummary] = []
    broken: list[BrokenRun] = []
    for folder in sorted(results.iterdir()) if results.is_dir() else ():
        if not folder.is_dir() or not NAME.fullmatch(folder.name) or folder.name == EXAMPLES:
            continue
        try:
            runs.append(open_run(results, folder.name).summary())
        except StoreError as error:
            file, _, message = str(error).partition(": ")
            broken.append(BrokenRun(run_id=folder.name, file=file, message=message))
    runs.sort(key=lambda run: (run.started_at, run.run_id), reverse=True)
    return RunList(runs=tuple(runs), broken=tuple(broken))


def _readable(items: object) -> list[object]:
    """The implementations that can be read, of a list with some that cannot."""
    readable: list[object] = []
    for item in items if isinstance(items, list) else ():
        try:
            readable.append(ImplementationInfo.model_validate(item))
        except ValidationError:
            continue
    return readable


def _once(problems: Sequence[Problem]) -> tuple[Problem, ...]:
    """Without repetitions: a file may have been read for two documents."""
    return tuple(dict.fromkeys(problems))
