"""Generates the dashboard's documents about a run. They report unreadable records in ``problems``."""

import os
import re
import time
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from pathlib import Path, PurePosixPath
from statistics import median

from pydantic import ConfigDict, Field

from harness.dashboard.build import source_base
from harness.dashboard.documents import (
    CellDocument,
    CellLatency,
    ComparisonDocument,
    LatencyDocument,
    LiveDocument,
    LogDocument,
    OverallDocument,
    RunDocument,
    TestDocument,
)
from harness.errors import StoreError
from harness.records import safe_write
from harness.records.reader import RunReader, first_error, read_bounded, read_lines
from harness.records.run_folders import round_title
from harness.records.run_records import RunRecords
from harness.records.trial_record import Trial
from harness.records.verdicts import UNCHANGED_MARGIN
from harness.report.summary import run_title, summarize_all, summarize_comparison
from harness.stats.ranking_model import SCORING_VERSION, Ranking, Table, TestTypeRanking

MAX_LOG_BYTES = 512 * 1024  # only this many bytes at the end of a log are shown
PERCENTILE = re.compile(r"\d+(\.\d+)?")
FILES = ("run.json", "ranking.json", "trials.jsonl", "processes.jsonl", "verdicts.jsonl", "progress.json")
SILENT_SECONDS = 20.0  # a run without a heartbeat for this long (four heartbeat intervals) counts as killed
TAIL_BYTES = 1 << 20  # only this many bytes at the end of trials.jsonl are searched for the last trials

FileState = tuple[int, int]


class HeadlineTest(TestTypeRanking):
    """A test type's ranking without the tables of individual loads, which make up most of ranking.json."""

    model_config = ConfigDict(validate_by_name=False)
    # An alias that does not occur in files makes pydantic skip the tables instead of parsing them.
    tables: tuple[Table, ...] = Field(default=(), validation_alias="not read")


class HeadlineRanking(Ranking):
    """A ranking without the tables of individual loads. Parsing a complete ranking takes five times as long."""

    test_types: dict[str, HeadlineTest] = Field(default_factory=dict)  # type: ignore[assignment]


class DashboardRun(RunReader):
    """A run reader that also generates the run's documents.

    If ``rank_again`` is set, the ranking is computed from the trials, because ranking.json may be forged. Ratios refer
    to ``baseline``, by default the run's baseline. Raises StoreError if the run does not include the baseline.
    """

    def __init__(self, folder: Path, *, rank_again: bool = False, baseline: str = "") -> None:
        super().__init__(folder)
        self.baseline = baseline
        if baseline and baseline not in (each.name for each in self.info.implementations):
            raise StoreError(f"{baseline!r} is not an implementation of this run; remove base= from the address")
        self._recorded_path = None if rank_again or baseline else self.folder / "ranking.json"
        self._computed_ranking: Ranking | None = None
        self.published = round_title(folder)  # name of the published round that contains the run, or empty

    @property
    def title(self) -> str:
        """Return the run's title. A published run's title starts with the name of the round."""
        return run_title(self.info, self.published)

    def records(self, *, with_series: bool = False) -> RunRecords:
        """Return all records. ``self.baseline``, if set, replaces the recorded baseline."""
        records = super().records(with_series=with_series)
        info = records.info.model_copy(update={"reference": self.baseline or records.info.reference})
        return replace(records, info=info)

    def ranking(self, model: type[Ranking] = Ranking) -> Ranking:
        """Return the recorded ranking if it is final and has the current scoring version. Otherwise rank the trials."""
        if recorded := self._recorded_path and self._read_ranking(self._recorded_path, model):
            return recorded
        if self._computed_ranking is None:
            self._computed_ranking = self._rank_trials()
        if model is Ranking:
            return self._computed_ranking
        without_tables = {
            kind: each.model_copy(update={"tables": ()}) for kind, each in self._computed_ranking.test_types.items()
        }
        return self._computed_ranking.model_copy(update={"test_types": without_tables})

    def _read_ranking(self, path: Path, model: type[Ranking]) -> Ranking | None:
        """Return the recorded ranking, or None if it is unreadable, not final or has a different scoring version."""
        try:
            ranking = model.model_validate_json(read_bounded(path))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            self._problem(path.name, f"{first_error(error)}; ranked again from the trials")
            return None
        return ranking if ranking.scoring_version == SCORING_VERSION and self.info.status != "running" else None

    def _rank_trials(self) -> Ranking:
        """Rank the trials. If that fails, record a problem and return an empty ranking."""
        try:
            return compute_ranking(self.records())
        except (ValueError, ArithmeticError, LookupError) as error:  # even valid records may be unrankable
            self._problem("trials.jsonl", f"cannot be ranked: {error}")
            return Ranking(run_id=self.id, reference=self.info.reference)

    def log(self, name: str) -> LogDocument:
        """Return the end of a log. Raises StoreError if the path is not a regular file below the run's logs folder."""
        parts = PurePosixPath(name).parts
        if len(parts) < 2 or parts[0] != "logs" or ".." in parts or "\0" in name:
            raise StoreError(f"{name:.200}: no such log")
        try:
            with safe_write.read(self.folder.resolve().joinpath(*parts)) as file:
                size = os.fstat(file.fileno()).st_size
                file.seek(max(0, size - MAX_LOG_BYTES))
                text = file.read(MAX_LOG_BYTES).decode(errors="replace")
        except (OSError, StoreError) as error:
            raise StoreError(f"{name:.200}: no such log") from error
        return LogDocument(path=name, text=text, skipped=max(0, size - MAX_LOG_BYTES))

    def logs(self) -> list[str]:
        """Return the sorted paths of all logs, relative to the run's folder. Symbolic links are excluded."""
        folder = self.folder.resolve() / "logs"
        if folder.is_symlink():
            return []
        paths = (path for pattern in ("*.log", "*/*.log") for path in folder.glob(pattern))
        files = (path for path in paths if _is_file(path) and not path.parent.is_symlink())
        return sorted(str(path.relative_to(folder.parent)) for path in islice(files, 2000))

    def document(self) -> RunDocument:
        """Return the main document of the run."""
        ranking = self.ranking(HeadlineRanking)
        return RunDocument(
            run=self.info,
            title=self.title,
            published=self.published,
            network_path=self.info.network_path,
            sentences=summarize_all(self.info, ranking),
            ranking=ranking,
            problems=tuple(self.problems),
            source_base=source_base(),
        )

    def live(self) -> LiveDocument:
        """Return the state of a run in progress. Only the end of trials.jsonl is read, so this is fast."""
        states = {name: file_state(self.folder / name) for name in FILES}
        return LiveDocument(
            status=self.info.status,
            progress=self.progress(),
            trials=read_last_trials(self.folder / "trials.jsonl", states["trials.jsonl"]),
            version=f"{states['trials.jsonl']} {states['ranking.json']}",
            silent_for=silence(states.values()),
        )

    def tests(self, *selected: str) -> dict[str, TestDocument]:
        """Return the documents of the ``selected`` test types (by default, all). Omit test types without a ranking."""
        return {
            name: TestDocument(test_type=name, tables=ranking.tables, problems=tuple(self.problems))
            for name, ranking in self.ranking().test_types.items()
            if name in selected or not selected
        }

    def test(self, test_type: str) -> TestDocument:
        """Return the document of a test type. Raises StoreError if the run does not include it."""
        if test_type in self.info.loads and (documents := self.tests(test_type)):
            return documents[test_type]
        raise StoreError(f"{test_type!r} is not a test type of this run")

    def latency(self, test_type: str) -> LatencyDocument:
        """Return the latency of each cell of a test type, computed from trials that passed their validity checks."""
        cells: dict[tuple[str, str], list[Trial]] = defaultdict(list)
        if test_type not in self.info.loads:
            return LatencyDocument(test_type=test_type, cells=())
        for trial in self.trials(test_type=test_type):
            if trial.latency and trial.purpose == "measure" and trial.rankable:
                cells[trial.load.label, trial.implementation].append(trial)
        return LatencyDocument(test_type=test_type, cells=tuple(map(_cell_latency, cells.values())))

    def overall(self, test_types: Collection[str]) -> OverallDocument:
        """Return the overall scores over the given test types. Raises StoreError if a test type was not measured."""
        unknown = [kind for kind in test_types if kind not in self.info.loads]
        if unknown or not test_types:
            raise StoreError(f"{', '.join(unknown) or 'no test type'}: not measured in this run")
        records = self.records()
        loads = {kind: load for kind, load in self.info.loads.items() if kind in test_types}
        ranking = compute_ranking(
            replace(
                records,
                info=records.info.model_copy(update={"loads": loads}),
                trials=[trial for trial in records.trials if trial.test_type in loads],
                verdicts=[verdict for verdict in records.verdicts if verdict.test_type in loads],
            )
        )
        return OverallDocument(test_types=tuple(loads), scores=ranking.overall)

    def cell(self, implementation: str, test_type: str) -> CellDocument:
        """Return all records of an implementation and test type. Raises StoreError if the run does not include both."""
        if test_type not in self.info.loads or implementation not in (each.name for each in self.info.implementations):
            raise StoreError("this run does not include this implementation and test type")
        return next(self.cells(implementation, test_type), None) or CellDocument(
            implementation=implementation, test_type=test_type, problems=tuple(self.problems)
        )

    def cells(self, implementation: str | None = None, test_type: str | None = None) -> Iterator[CellDocument]:
        """Yield a document for each combination of implementation and test type that has a trial or a verdict."""
        trials, verdicts = defaultdict(list), defaultdict(list)
        for trial in self.trials(implementation, test_type):
            shorter = trial.without_histograms().model_copy(update={"arrivals": None})
            trials[trial.implementation, trial.test_type].append(shorter)
        for verdict in self.verdicts(implementation, test_type):
            verdicts[verdict.implementation, verdict.test_type].append(verdict)
        processes = self.processes(implementation)
        for name, kind in dict.fromkeys((*trials, *verdicts)):
            yield CellDocument(
                implementation=name,
                test_type=kind,
                trials=tuple(trials[name, kind]),
                verdicts=tuple(verdicts[name, kind]),
                processes=tuple(each for each in processes if each.implementation == name),
                problems=tuple(self.problems),
            )


def silence(states: Iterable[FileState]) -> float | None:
    """Return the seconds since the last write to these files, or None if it was at most SILENT_SECONDS ago."""
    seconds = time.time() - max(changed for _, changed in states) / 1e9
    return round(seconds) if seconds > SILENT_SECONDS else None


@lru_cache(maxsize=16)
def read_last_trials(path: Path, state: FileState) -> tuple[Trial, ...]:
    """Return the last trials in a file, latest first, without windows and histograms.

    ``state`` is part of the cache key, so a changed file is read again.
    """
    start = max(0, state[0] - TAIL_BYTES)  # often in the middle of a line; read_lines skips the rest of that line
    short = {"windows": (), "warm_up": None, "arrivals": None}
    last = deque(read_lines(path, Trial, [], start=start), 8)
    return tuple(trial.without_histograms().model_copy(update=short) for trial in reversed(last))


def compute_ranking(records: RunRecords) -> Ranking:
    """Rank a run's implementations. The ranking of a run without trials is empty."""
    if not records.trials:
        return Ranking(run_id=records.info.run_id, reference=records.info.reference)
    from harness.stats.ranking import rank  # imported late, because importing scipy takes longer than most responses

    return rank(records.info, records.trials, records.processes, records.verdicts)


def compare_runs(before: DashboardRun, after: DashboardRun) -> ComparisonDocument:
    """Compare two runs. The document contains a verdict for each cell, and sentences that summarize the verdicts."""
    from harness.stats.cell_comparison import compare  # imported late, because of scipy

    comparison = compare(before.records(), after.records(), UNCHANGED_MARGIN)
    titles = [run.title for run in (before, after)]
    if titles[0] == titles[1]:
        titles = ["before", "after"]
    named = comparison.model_copy(update={"run_a": titles[0], "run_b": titles[1]})
    return ComparisonDocument(comparison=comparison, verdict=summarize_comparison(named))


def _cell_latency(trials: Sequence[Trial]) -> CellLatency:
    """Return a cell's latency. Each percentile is the median across processes, as in the ranking."""
    from harness.stats.cell_values import METRICS, CellTrials
    from harness.stats.value_tables import estimate_percentiles  # imported late, because of scipy

    process_latencies = [(trial.process, trial.latency, trial.requests) for trial in trials if trial.latency]
    estimates = estimate_percentiles(
        (process, each.percentiles, requests) for process, each, requests in process_latencies
    )
    keys = sorted(filter(PERCENTILE.fullmatch, estimates), key=float)
    return CellLatency(
        implementation=trials[0].implementation,
        load=trials[0].load,
        basis=process_latencies[0][1].basis,
        percentiles={key: estimates[key].median for key in keys},
        spread={key: (min(estimates[key].values), max(estimates[key].values)) for key in keys},
        mean=CellTrials(trials).median(METRICS["response-time"]),
        stdev=median(each.stdev for _, each, _ in process_latencies),
        maximum=max(each.max for _, each, _ in process_latencies),
        trials=len(process_latencies),
    )


def _is_file(path: Path) -> bool:
    try:
        return path.is_file() and not path.is_symlink()
    except OSError:
        return False


def file_state(path: Path) -> FileState:
    """Return a file's size in bytes and modification time in nanoseconds, or -1 for both if the file is missing."""
    try:
        status = path.stat()
    except OSError:
        return -1, -1
    return status.st_size, status.st_mtime_ns
