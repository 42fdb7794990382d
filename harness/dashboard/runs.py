"""The runs of results/ as documents of the page; what of them cannot be read is named instead of failing it."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from pydantic import ConfigDict, Field, ValidationError

from harness.dashboard.digests import SampleLatency, latencies, summarise
from harness.dashboard.documents import (
    BrokenRun,
    CellDocument,
    LatencyDocument,
    LogDocument,
    RunDocument,
    RunList,
    RunSummary,
    TestDocument,
)
from harness.dashboard.headlines import shown
from harness.dashboard.titles import title_of
from harness.errors import StoreError
from harness.records.bounded import open_regular
from harness.records.lines import Lines, first_complaint
from harness.records.models import Problem, ReplicateRecord, RunInfo
from harness.records.reader import RANKING_OPENED, RunReader, bounded
from harness.stats.model import Ranking, Table, TestTypeRanking

LOG_BYTES = 512 * 1024  # of a log's end that are shown
NAME = re.compile(r"[\w][\w.+-]*")  # of a run's folder: no separator, no leading dot

EXAMPLES = "examples"  # of results/: runs that ship with the project, in a folder of their own

# run.json -> its time and size when it was read, and what it said: a list asks again whenever anybody looks.
Summaries = dict[Path, tuple[int, int, "RunSummary"]]
Answers = dict[str, dict[str, tuple[str, ...]]]  # test type -> metric -> sentences
Answer = Callable[[RunInfo, Ranking], Answers]


def no_answers(info: RunInfo, ranking: Ranking) -> Answers:
    """Where nobody gives any."""
    return {}


class HeadlineTest(TestTypeRanking):
    """A test type without the tables of its levels, which are most of a large ranking.json."""

    model_config = ConfigDict(validate_by_name=False)
    # Skipped, not parsed: a key of this name is in no file.
    levels: tuple[Table, ...] = Field(default=(), validation_alias="not read")


class HeadlineRanking(Ranking):
    """A ranking without the tables of single levels: five times quicker to read."""

    test_types: dict[str, HeadlineTest] = Field(default_factory=dict)  # type: ignore[assignment]


class Run(RunReader):
    """One folder of results/, and the documents that the page is told of it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.example = folder.parent.name == EXAMPLES
        self._ranked: Ranking | None = None  # of a finished run without a ranking.json: its samples stay as they are

    def headlines(self) -> Ranking:
        """The ranking without the tables of single levels, where ranking.json can be read; else all of it."""
        return self._ranking(HeadlineRanking)

    def ranking(self) -> Ranking:
        """ranking.json where there is one that can be read; else ranked here from the samples."""
        return self._ranking(Ranking)

    def _ranking(self, model: type[Ranking]) -> Ranking:
        path = self.folder / "ranking.json"
        try:
            return model.model_validate_json(bounded(path, RANKING_OPENED))
        except FileNotFoundError:
            pass
        except ValidationError as error:
            self._problem("ranking.json", f"{first_complaint(error)}; ranked again from the samples")
        except OSError as error:
            self._problem("ranking.json", f"cannot be read: {error.strerror}; ranked again from the samples")
        return self._ranked or self._rank()

    def _rank(self) -> Ranking:
        samples = self.samples()
        if not samples:
            return Ranking(run_id=self.id, reference=self.info.reference)
        from harness.stats.whole import rank_whole  # here: scipy takes longer to import than most pages to serve

        try:
            ranking = rank_whole(self.folder, self.info, samples, self.replicates(), self.verdicts())[0]
        except (ValueError, ArithmeticError, LookupError) as error:  # a broken value that the models let through
            self._problem("samples.jsonl", f"cannot be ranked: {error}")
            return Ranking(run_id=self.id, reference=self.info.reference)
        if self.info.status != "running":
            self._ranked = ranking
        return ranking

    def log(self, name: str) -> LogDocument:
        """The end of a log; ``name`` is relative to the run's folder. Raises StoreError outside logs/."""
        logs = self.folder.resolve() / "logs"  # not what a link of that name leads to
        path = (self.folder / name.replace("\0", "")).resolve()
        if not path.is_relative_to(logs) or not path.is_file():
            raise StoreError(f"{name}: no such log")
        size = path.stat().st_size
        with open_regular(path) as file:
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
        return RunDocument(
            run=self.info,
            title=title_of(self.info),
            example=self.example,
            sentences=answer(self.info, ranking),
            ranking=shown(ranking),
            replicates=most_replicates(ranking),
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
        return latencies(self._records("samples.jsonl", SampleLatency))

    def cell(
        self,
        implementation: str,
        test_type: str,
        index: Lines | None = None,
        replicates: Sequence[ReplicateRecord] | None = None,
    ) -> CellDocument:
        """Everything behind one implementation x test type; what was read before is given."""
        lines = index or self.index()
        samples = list(self._at(lines.spans.get((implementation, test_type), ())))
        verdicts = self.verdicts(implementation, test_type)
        return CellDocument(
            implementation=implementation,
            test_type=test_type,
            samples=tuple(samples),
            verdicts=tuple(sorted(verdicts, key=lambda verdict: verdict.replicate)),
            replicates=tuple(
                item
                for item in (self.replicates() if replicates is None else replicates)
                if item.implementation == implementation
            ),
            problems=_once([*self.problems, *lines.problems]),
        )


def most_replicates(ranking: Ranking) -> int:
    """Of the row that has most: servers that stay up are one block, measured again and again."""
    rows = (row.throughput for test in ranking.test_types.values() for row in test.headline.rows)
    return max((standing.estimate.replicates for standing in rows if standing), default=0)


def folder_of(results: Path, run_id: str) -> Path:
    """The folder of the run of this name. Raises StoreError for a name that is not a folder of results/."""
    folder = results / run_id
    if not NAME.fullmatch(run_id) or not folder.is_dir() or folder.resolve().parent != results.resolve():
        raise StoreError(f"{run_id!r}: no such run")
    return folder


def open_run(results: Path, run_id: str) -> Run:
    """The run of this name. Raises StoreError for a name that is not a folder of results/."""
    return Run(folder_of(results, run_id))


def list_runs(results: Path, known: Summaries | None = None) -> RunList:
    """All runs, newest first; a folder whose run.json cannot be read is listed as broken; ``known`` is added to."""
    known = {} if known is None else known
    runs: list[RunSummary] = []
    broken: list[BrokenRun] = []
    for folder in sorted(results.iterdir()) if results.is_dir() else ():
        if not folder.is_dir() or not NAME.fullmatch(folder.name) or folder.name == EXAMPLES:
            continue
        try:
            runs.append(_summary(results, folder, known))
        except (StoreError, OSError, ValueError, ArithmeticError, RecursionError) as error:
            file, _, message = str(error).partition(": ")
            broken.append(BrokenRun(run_id=folder.name, file=file, message=message))
    runs.sort(key=lambda run: (run.started_at, run.run_id), reverse=True)
    return RunList(runs=tuple(runs), broken=tuple(broken))


def _summary(results: Path, folder: Path, known: Summaries) -> RunSummary:
    """Of a run, read again when its run.json has changed."""
    try:
        state = (folder / "run.json").stat()
    except OSError:
        return open_run(results, folder.name).summary()  # says what is wrong
    found = known.get(folder)
    if found is None or found[:2] != (state.st_mtime_ns, state.st_size) or folder.is_symlink():
        found = known[folder] = state.st_mtime_ns, state.st_size, open_run(results, folder.name).summary()
    return found[2]


def _once(problems: Sequence[Problem]) -> tuple[Problem, ...]:
    """Without repetitions: a file may have been read for two documents."""
    return tuple(dict.fromkeys(problems))
