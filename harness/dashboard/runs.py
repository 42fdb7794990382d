"""The runs of results/ as documents of the page; what of them cannot be read is named instead of failing it."""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from statistics import median

from pydantic import ConfigDict, Field, ValidationError
from pydantic_core import from_json

from harness.dashboard.documents import (
    BrokenRun,
    CellDocument,
    CellLatency,
    ComparisonDocument,
    LatencyDocument,
    LogDocument,
    OverallDocument,
    RunDocument,
    RunList,
    RunSummary,
    TestDocument,
    VerdictSummary,
)
from harness.dashboard.titles import title_of
from harness.errors import StoreError
from harness.records import bounded as files
from harness.records.models import (
    Gate,
    Latency,
    Load,
    Outcome,
    Problem,
    ProcessRecord,
    Purpose,
    Record,
    RunInfo,
    RunRecords,
    Trial,
    Verdict,
    worst,
)
from harness.records.reader import FILE_BYTES, RANKING_OPENED, RunReader, bounded, first_complaint
from harness.stats.model import ClosedLoopLatency, Comparison, Estimate, Ranking, Standing, Table, TestTypeRanking

LOG_BYTES = 512 * 1024  # of a log's end that are shown
NAME = re.compile(r"[\w][\w.+-]*")  # of a run's folder: no separator, no leading dot
PUBLISHED = "rounds/1"  # of results/: the published round, shown where there is no run of one's own
NO_RUNS = frozenset({"rounds"})  # folders of results/ that hold others' runs
PERCENTILE = re.compile(r"\d+(\.\d+)?")
FAIL_OVER = 0.05  # of a regression, as ./tfb compare has it by default; the page shows the verdict, not the exit code
KEPT_RUNS = 256  # whose line in the list is remembered

FileState = tuple[int, int]
Answers = dict[str, dict[str, tuple[str, ...]]]  # test type -> metric -> sentences
Answer = Callable[[RunInfo, Ranking], Answers]
Told = Callable[[Comparison], tuple[str, ...]]


def no_answers(info: RunInfo, ranking: Ranking) -> Answers:
    """Where nobody gives any."""
    return {}


class HeadlineTest(TestTypeRanking):
    """A test type without the tables of its loads, which are most of a large ranking.json."""

    model_config = ConfigDict(validate_by_name=False)
    # Skipped, not parsed: a key of this name is in no file.
    tables: tuple[Table, ...] = Field(default=(), validation_alias="not read")


class HeadlineRanking(Ranking):
    """A ranking without the tables of single loads: five times quicker to read."""

    test_types: dict[str, HeadlineTest] = Field(default_factory=dict)  # type: ignore[assignment]


class LatencyInShort(Latency):
    """A distribution without its histogram, which is most of it."""

    model_config = ConfigDict(validate_by_name=False)
    histogram: tuple[tuple[float, int], ...] = Field(default=(), validation_alias="not read")


class LatencyTrial(Record):
    """Of a trial, what the latency chart needs: a fifth of the time to read all of it."""

    implementation: str
    test_type: str
    load: Load
    purpose: Purpose = "measure"
    latency: LatencyInShort | None
    gates: tuple[Gate, ...] = ()


class Run(RunReader):
    """One folder of results/, and the documents that the page is told of it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.example = folder.parent.as_posix().endswith(f"/{PUBLISHED}")

    def headlines(self) -> Ranking:
        """The ranking without the tables of single loads, where ranking.json can be read; else all of it."""
        return self._ranking(HeadlineRanking)

    def ranking(self) -> Ranking:
        """ranking.json where there is one that can be read; else ranked here from the trials."""
        return self._ranking(Ranking)

    def _ranking(self, model: type[Ranking]) -> Ranking:
        return self._placed(self._read_ranking(model))

    def _placed(self, found: Ranking) -> Ranking:
        profile = self.info.settings.get("profile")
        return unranked(found) if isinstance(profile, dict) and profile.get("ranked") is False else found

    def _read_ranking(self, model: type[Ranking]) -> Ranking:
        try:
            return model.model_validate_json(bounded(self.folder / "ranking.json", RANKING_OPENED))
        except FileNotFoundError:
            pass
        except ValidationError as error:
            self._problem("ranking.json", f"{first_complaint(error)}; ranked again from the trials")
        except OSError as error:
            self._problem("ranking.json", f"cannot be read: {error.strerror}; ranked again from the trials")
        try:
            return ranked(self.records())
        except (ValueError, ArithmeticError, LookupError) as error:  # a broken value that the models let through
            self._problem("trials.jsonl", f"cannot be ranked: {error}")
            return Ranking(run_id=self.id, reference=self.info.reference)

    def log(self, name: str) -> LogDocument:
        """The end of a log; ``name`` is relative to the run's folder. Raises StoreError outside logs/."""
        logs = self.folder.resolve() / "logs"  # not what a link of that name leads to
        path = (self.folder / name.replace("\0", "")).resolve()
        if not path.is_relative_to(logs) or not path.is_file():
            raise StoreError(f"{name}: no such log")
        size = path.stat().st_size
        with files.open_regular(path) as file:
            file.seek(max(0, size - LOG_BYTES))
            text = file.read(LOG_BYTES).decode(errors="replace")
        return LogDocument(path=name, text=text, skipped=max(0, size - LOG_BYTES))

    def logs(self) -> list[str]:
        """All logs, relative to the run's folder."""
        folder = self.folder / "logs"
        return sorted(str(path.relative_to(self.folder)) for path in folder.rglob("*.log") if path.is_file())

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
            test_types=tuple(info.loads),
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
            ranking=ranking.model_copy(
                update={"test_types": {kind: _shown(test) for kind, test in ranking.test_types.items()}}
            ),
            processes=most_processes(ranking),
            problems=self._once(),
            progress=self.progress() if self.info.status == "running" else None,
            source_base=source_base,
        )

    def tests(self, ranking: Ranking) -> dict[str, TestDocument]:
        """One document of each test type that has a ranking or a verdict."""
        verdicts = _summaries(self.verdicts())
        names = [*ranking.test_types, *(verdict.test_type for verdict in verdicts)]
        return {
            name: TestDocument(
                test_type=name,
                tables=ranking.test_types[name].tables if name in ranking.test_types else (),
                verdicts=tuple(verdict for verdict in verdicts if verdict.test_type == name),
                problems=self._once(),
            )
            for name in dict.fromkeys(names)
        }

    def test(self, test_type: str) -> TestDocument:
        """One of them. Raises StoreError."""
        verdicts = _summaries(self.verdicts(test_type=test_type))
        try:  # without making objects of the other test types
            every = from_json(bounded(self.folder / "ranking.json", RANKING_OPENED))["test_types"]
            chosen = {test_type: every[test_type]} if test_type in every else {}
            ranking = Ranking.model_validate(
                {"run_id": self.id, "reference": self.info.reference, "test_types": chosen}
            )
        except (OSError, ValueError, LookupError, TypeError):
            ranking = self._read_ranking(Ranking)
        found = self._placed(ranking).test_types.get(test_type)
        if found is None and not verdicts:
            raise StoreError(f"{test_type!r}: not a test type of this run")
        tables = found.tables if found else ()
        return TestDocument(test_type=test_type, tables=tables, verdicts=verdicts, problems=self._once())

    def latency(self) -> dict[str, LatencyDocument]:
        """The latency of every cell, by test type."""
        return {kind: found for kind in self.info.loads if (found := self.latency_of(kind)).cells}

    def latency_of(self, test_type: str) -> LatencyDocument:
        """Of one test type, by the trials that stand for their cell and that no gate keeps out."""
        cells: dict[tuple[str, str], list[LatencyTrial]] = defaultdict(list)
        for trial in self.lines("trials.jsonl", LatencyTrial, test_type=test_type):
            kept = trial.purpose == "measure" and all(gate.outcome is not Outcome.FAIL for gate in trial.gates)
            if trial.latency and kept:
                cells[trial.load.label, trial.implementation].append(trial)
        return LatencyDocument(test_type=test_type, cells=tuple(map(_cell_latency, cells.values())))

    def overall(self, test_types: Collection[str]) -> OverallDocument:
        """Scores over some test types, in the run's order. Raises StoreError for one that the run has not."""
        unknown = [kind for kind in test_types if kind not in self.info.loads]
        if unknown or not test_types:
            raise StoreError(f"{', '.join(unknown) or 'no test type'}: not measured in this run")
        records = self.records()
        loads = {kind: load for kind, load in self.info.loads.items() if kind in test_types}
        ranking = ranked(
            replace(
                records,
                info=self.info.model_copy(update={"loads": loads}),
                trials=[trial for trial in records.trials if trial.test_type in loads],
                verdicts=[verdict for verdict in records.verdicts if verdict.test_type in loads],
            )
        )
        return OverallDocument(test_types=tuple(loads), scores=ranking.overall)

    def cell(self, implementation: str, test_type: str) -> CellDocument:
        """Everything behind one implementation and test type."""
        trials, verdicts = self.trials(implementation, test_type), self.verdicts(implementation, test_type)
        return self._cell(implementation, test_type, trials, verdicts, self.processes(implementation))

    def cells(self) -> Iterator[CellDocument]:
        """All of them, of files that are read once."""
        found = self.records()
        trials, verdicts = defaultdict(list), defaultdict(list)
        for trial in found.trials:
            trials[trial.implementation, trial.test_type].append(trial)
        for verdict in found.verdicts:
            verdicts[verdict.implementation, verdict.test_type].append(verdict)
        for key in dict.fromkeys((*trials, *verdicts)):
            processes = [each for each in found.processes if each.implementation == key[0]]
            yield self._cell(*key, trials[key], verdicts[key], processes)

    def _cell(
        self,
        implementation: str,
        test_type: str,
        trials: Sequence[Trial],
        verdicts: Sequence[Verdict],
        processes: Sequence[ProcessRecord],
    ) -> CellDocument:
        return CellDocument(
            implementation=implementation,
            test_type=test_type,
            trials=tuple(trial.without_histograms().model_copy(update={"arrivals": None}) for trial in trials),
            verdicts=tuple(verdicts),
            processes=tuple(processes),
            problems=self._once(),
        )

    def _once(self) -> tuple[Problem, ...]:
        """Its problems without repetitions: a file may have been read for two documents."""
        return tuple(dict.fromkeys(self.problems))


def ranked(records: RunRecords) -> Ranking:
    """Ranked here and now; an empty ranking of a run without trials."""
    if not records.trials:
        return Ranking(run_id=records.info.run_id, reference=records.info.reference)
    from harness.stats.ranking import rank  # here: scipy takes longer to import than most pages to serve

    return rank(records.info, records.trials, records.processes, records.verdicts)


def comparison(before: Run, after: Run, told: Told) -> ComparisonDocument:
    """``after`` over ``before``, cell by cell, and in the words of ``told``."""
    from harness.stats.compare import compare  # here: scipy takes longer to import than most pages to serve

    found = compare(before.records(), after.records(), FAIL_OVER)
    titles = [title_of(run.info) for run in (before, after)]
    if titles[0] == titles[1]:
        titles = ["before", "after"]
    named = found.model_copy(update=dict(zip(("run_a", "run_b"), titles, strict=True)))
    return ComparisonDocument(comparison=found, verdict=told(named))


def _cell_latency(trials: Sequence[LatencyTrial]) -> CellLatency:
    """Of one cell: each figure is the median over its trials."""
    seen = [trial.latency for trial in trials if trial.latency]
    keys = sorted({key for each in seen for key in each.percentiles if PERCENTILE.fullmatch(key)}, key=float)
    values = {key: [each.percentiles[key] for each in seen if key in each.percentiles] for key in keys}
    return CellLatency(
        implementation=trials[0].implementation,
        load=trials[0].load,
        basis=seen[0].basis,
        percentiles={key: median(found) for key, found in values.items()},
        spread={key: (min(found), max(found)) for key, found in values.items()},
        mean=median(each.mean for each in seen),
        stdev=median(each.stdev for each in seen),
        maximum=median(each.max for each in seen),
        trials=len(seen),
    )


def unranked(ranking: Ranking) -> Ranking:
    """Of a profile that only checks that things run: figures without places, and no score."""

    def table(found: Table) -> Table:
        rows = (row.model_copy(update={"ranked": False}) for row in found.rows)
        return found.model_copy(update={"rows": tuple(rows)})

    kinds = {
        kind: test.model_copy(update={"headline": table(test.headline), "tables": tuple(map(table, test.tables))})
        for kind, test in ranking.test_types.items()
    }
    return ranking.model_copy(update={"test_types": kinds, "overall": ()})


def most_processes(ranking: Ranking) -> int:
    """Of the row that has most."""
    rows = (row.throughput for test in ranking.test_types.values() for row in test.headline.rows)
    return max((standing.estimate.processes for standing in rows if standing), default=0)


def _shown(test: TestTypeRanking) -> TestTypeRanking:
    """Without tables of single loads and values of single processes, which come when they are asked for."""

    def slim(standing: Standing | None) -> Standing | None:
        return standing and standing.model_copy(update={"estimate": _slim(standing.estimate)})

    def latency(found: ClosedLoopLatency | None) -> ClosedLoopLatency | None:
        percentiles = {name: _slim(each) for name, each in found.percentiles.items()} if found else {}
        return found and found.model_copy(update={"mean": _slim(found.mean), "percentiles": percentiles})

    rows = (
        row.model_copy(
            update={
                "throughput": slim(row.throughput),
                "cpu_per_request": slim(row.cpu_per_request),
                "latency": latency(row.latency),
            }
        )
        for row in test.headline.rows
    )
    return test.model_copy(update={"headline": test.headline.model_copy(update={"rows": tuple(rows)}), "tables": ()})


def _slim(estimate: Estimate) -> Estimate:
    return estimate.model_copy(update={"values": ()})


def _summaries(verdicts: Iterable[Verdict]) -> tuple[VerdictSummary, ...]:
    """The worst outcome of each implementation and test type, with the checks that did not pass in any process."""
    groups: dict[tuple[str, str], list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        groups[verdict.implementation, verdict.test_type].append(verdict)
    return tuple(
        VerdictSummary(
            implementation=implementation,
            test_type=test_type,
            outcome=worst(verdict.outcome for verdict in group),
            findings=tuple(
                {
                    result.check: result
                    for verdict in group
                    for result in verdict.results
                    if result.outcome is not Outcome.PASS
                }.values()
            ),
        )
        for (implementation, test_type), group in sorted(groups.items())
    )


class Runs:
    """All runs of a folder, the published round, and the TechEmpower files named on the command line."""

    def __init__(self, results: Path, *, published: Path | None = None, files: Sequence[Path] = ()) -> None:
        self.results = results
        self.published = published or results / PUBLISHED
        self.files = {f"{index}-{file.name}": file for index, file in enumerate(files)}  # their folders are not told

    def folder(self, name: str) -> Path:
        """The folder of a run, of one's own or published, by id or by the title that one run alone has.

        Raises StoreError.
        """
        for results in (self.results, self.published):
            folder = results / name
            if NAME.fullmatch(name) and is_run(folder):
                return folder
        titled = [run.run_id for run in self.listed().runs if name and name in (run.name, run.title)]
        if len(titled) == 1:
            return self.folder(titled[0])
        found = f"is the title of {', '.join(titled)}: name one" if titled else "no such run"
        raise StoreError(f"{name!r}: {found}")

    def open(self, run_id: str) -> Run:
        """The run of this name. Raises StoreError."""
        return Run(self.folder(run_id))

    def listed(self) -> RunList:
        """All runs, newest first; the published round where there is none of one's own."""
        own, broken = _listed(self.results)
        found = own or _listed(self.published)[0]
        found.sort(key=lambda run: (run.started_at, run.run_id), reverse=True)
        return RunList(runs=tuple(found), broken=tuple(broken), files=tuple(self.files))

    def file(self, name: str) -> bytes:
        """A file named on the command line, as it is."""
        try:
            return files.read(self.files[name], FILE_BYTES)
        except KeyError as error:
            raise StoreError(f"{name!r}: was not opened") from error
        except OSError as error:
            raise StoreError(f"{name}: cannot be read: {error.strerror}") from error


def is_run(folder: Path) -> bool:
    """Whether it may be a run's: a folder of its own, and no link to somewhere else."""
    return bool(NAME.fullmatch(folder.name)) and folder.is_dir() and folder.resolve().parent == folder.parent.resolve()


def _listed(results: Path) -> tuple[list[RunSummary], list[BrokenRun]]:
    """The runs of a folder; a folder whose run.json cannot be read is broken."""
    runs: list[RunSummary] = []
    broken: list[BrokenRun] = []
    for folder in sorted(results.iterdir()) if results.is_dir() else ():
        if not is_run(folder) or folder.name in NO_RUNS:
            continue
        try:
            runs.append(_summary_of(folder, state_of(folder / "run.json")))
        except (StoreError, OSError, ValueError, ArithmeticError, RecursionError) as error:
            file, _, message = str(error).partition(": ")
            broken.append(BrokenRun(run_id=folder.name, file=file, message=message))
    return runs, broken


@lru_cache(maxsize=KEPT_RUNS)
def _summary_of(folder: Path, _state: FileState) -> RunSummary:
    """A run's line in the list, while its run.json is the same."""
    return Run(folder).summary()


def state_of(path: Path) -> FileState:
    """Size and time of a file; -1 for one that is not there."""
    try:
        found = path.stat()
    except OSError:
        return -1, -1
    return found.st_size, found.st_mtime_ns
