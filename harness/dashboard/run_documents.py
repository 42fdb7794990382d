"""Makes the dashboard's documents about a run. The documents report unreadable records as problems."""

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
    VerdictSummary,
)
from harness.errors import StoreError
from harness.records import safe_write
from harness.records.outcome import Outcome, worst_outcome
from harness.records.reader import RunReader, first_error, read_bounded, read_lines
from harness.records.run_records import RunRecords
from harness.records.trial_record import Trial
from harness.records.verification_record import VerificationRecord
from harness.report import comparison as words
from harness.report.summary import run_title, summarize_all
from harness.stats.ranking_model import SCORING_VERSION, Ranking, Table, TestTypeRanking

MAX_LOG_BYTES = 512 * 1024  # maximum length of the end of a log that is shown
PUBLISHED = "rounds/1"  # folder in results/ that is shown if there are no other runs
PERCENTILE = re.compile(r"\d+(\.\d+)?")
COMPARISON_MARGIN = 0.05  # relative difference that counts as unchanged; also the default of ./tfb compare
FILES = ("run.json", "ranking.json", "trials.jsonl", "processes.jsonl", "verdicts.jsonl", "progress.json")
SILENT_SECONDS = 60.0  # time without a write after which the page shows that a run is silent
TAIL_BYTES = 1 << 20  # length of the end of trials.jsonl that is searched for the last trials
LAST_TRIALS = 8  # number of trials shown for a run in progress
MAX_LOGS = 2000  # number of logs considered for a saved page

FileState = tuple[int, int]


class HeadlineTest(TestTypeRanking):
    """A test type without tables for its loads, which are the largest part of ranking.json."""

    model_config = ConfigDict(validate_by_name=False)
    # No file has this key. Pydantic therefore skips the tables instead of parsing them.
    tables: tuple[Table, ...] = Field(default=(), validation_alias="not read")


class HeadlineRanking(Ranking):
    """A ranking without tables for single loads, which can be read five times as fast."""

    test_types: dict[str, HeadlineTest] = Field(default_factory=dict)  # type: ignore[assignment]


class DashboardRun(RunReader):
    """A run in results/, and the documents about it.

    ``rank_again`` ranks the trials instead of trusting ranking.json, which may have been modified.
    """

    def __init__(self, folder: Path, *, rank_again: bool = False) -> None:
        super().__init__(folder)
        self._recorded = None if rank_again else self.folder / "ranking.json"
        self._ranked: Ranking | None = None
        self.example = folder.parent.as_posix().endswith(f"/{PUBLISHED}")

    def ranking(self, model: type[Ranking] = Ranking) -> Ranking:
        """Return the recorded ranking if it is final and has the current version. Otherwise rank the trials."""
        if found := self._recorded and self._ranking_of(self._recorded, model):
            return found
        if self._ranked is None:
            self._ranked = self._ranked_here()
        if model is Ranking:
            return self._ranked
        bare = {kind: each.model_copy(update={"tables": ()}) for kind, each in self._ranked.test_types.items()}
        return self._ranked.model_copy(update={"test_types": bare})

    def _ranking_of(self, path: Path, model: type[Ranking]) -> Ranking | None:
        """Return the recorded ranking, or None if it is unreadable, not final or of a different version."""
        try:
            found = model.model_validate_json(read_bounded(path))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            self._problem(path.name, f"{first_error(error)}; ranked again from the trials")
            return None
        return found if found.scoring_version == SCORING_VERSION and self.info.status != "running" else None

    def _ranked_here(self) -> Ranking:
        """Rank the trials, or return an empty ranking if the records cannot be ranked."""
        try:
            return compute_ranking(self.records())
        except (ValueError, ArithmeticError, LookupError) as error:  # the models accept values that cannot be ranked
            self._problem("trials.jsonl", f"cannot be ranked: {error}")
            return Ranking(run_id=self.id, reference=self.info.reference)

    def log(self, name: str) -> LogDocument:
        """Return the end of a log. ``name`` is relative to the run's folder.

        Symbolic links are not followed, even if the path changes during the call.

        Raises:
            StoreError: The file is not a log of this run.
        """
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
        """Return the sorted paths of logs relative to the run's folder. Symbolic links are excluded."""
        folder = self.folder.resolve() / "logs"
        if folder.is_symlink():
            return []
        found = (path for pattern in ("*.log", "*/*.log") for path in folder.glob(pattern))
        own = (path for path in found if _is_file(path) and not path.parent.is_symlink())
        return sorted(str(path.relative_to(folder.parent)) for path in islice(own, MAX_LOGS))

    def document(self) -> RunDocument:
        """Return the main document of the run."""
        ranking = self.ranking(HeadlineRanking)
        return RunDocument(
            run=self.info,
            title=run_title(self.info),
            example=self.example,
            sentences=summarize_all(self.info, ranking),
            ranking=ranking,
            problems=tuple(self.problems),
            source_base=source_base(),
        )

    def live(self) -> LiveDocument:
        """Return the state of a run in progress. Only the ends of files are read."""
        states = {name: file_state(self.folder / name) for name in FILES}
        silence = time.time() - max(changed for _, changed in states.values()) / 1e9
        return LiveDocument(
            status=self.info.status,
            progress=self.progress(),
            trials=read_last_trials(self.folder / "trials.jsonl", states["trials.jsonl"]),
            version=f"{states['trials.jsonl']} {states['ranking.json']}",
            silent_for=round(silence) if silence > SILENT_SECONDS else None,
        )

    def tests(self, *wanted: str) -> dict[str, TestDocument]:
        """Return the documents of the given test types, or of all test types, that have a ranking or a verdict."""
        ranking, verdicts = self.ranking(), _summarize_verdicts(self.verdicts())
        names = dict.fromkeys((*ranking.test_types, *(verdict.test_type for verdict in verdicts)))
        return {
            name: TestDocument(
                test_type=name,
                tables=ranking.test_types[name].tables if name in ranking.test_types else (),
                verdicts=tuple(verdict for verdict in verdicts if verdict.test_type == name),
                problems=tuple(self.problems),
            )
            for name in names
            if name in wanted or not wanted
        }

    def test(self, test_type: str) -> TestDocument:
        """Return the document of a test type. Raises StoreError if the run does not include it."""
        if test_type in self.info.loads and (found := self.tests(test_type)):
            return found[test_type]
        raise StoreError(f"{test_type!r}: not a test type of this run")

    def latency(self, test_type: str) -> LatencyDocument:
        """Return the latency of each cell of a test type, from the trials that passed their validity checks."""
        cells: dict[tuple[str, str], list[Trial]] = defaultdict(list)
        if test_type not in self.info.loads:
            return LatencyDocument(test_type=test_type, cells=())
        for trial in self.trials(test_type=test_type):
            if trial.latency and trial.purpose == "measure" and trial.rankable:
                cells[trial.load.label, trial.implementation].append(trial)
        return LatencyDocument(test_type=test_type, cells=tuple(map(_cell_latency, cells.values())))

    def overall(self, test_types: Collection[str]) -> OverallDocument:
        """Return the scores over some test types. Raises StoreError if a test type was not measured."""
        unknown = [kind for kind in test_types if kind not in self.info.loads]
        if unknown or not test_types:
            raise StoreError(f"{', '.join(unknown) or 'no test type'}: not measured in this run")
        records = self.records()
        loads = {kind: load for kind, load in self.info.loads.items() if kind in test_types}
        ranking = compute_ranking(
            replace(
                records,
                info=self.info.model_copy(update={"loads": loads}),
                trials=[trial for trial in records.trials if trial.test_type in loads],
                verdicts=[verdict for verdict in records.verdicts if verdict.test_type in loads],
            )
        )
        return OverallDocument(test_types=tuple(loads), scores=ranking.overall)

    def cell(self, implementation: str, test_type: str) -> CellDocument:
        """Return all records of an implementation and test type. Raises StoreError if the run does not include them."""
        if test_type not in self.info.loads or implementation not in (each.name for each in self.info.implementations):
            raise StoreError("no such implementation and test type in this run")
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


@lru_cache(maxsize=16)
def read_last_trials(path: Path, state: FileState) -> tuple[Trial, ...]:
    """Return the last trials in a file, latest first, without windows and histograms.

    ``state`` is part of the cache key, so that a changed file is read again.
    """
    start = max(0, state[0] - TAIL_BYTES)  # probably within a line; the incomplete line is skipped
    short = {"windows": (), "warm_up": None, "arrivals": None}
    last = deque(read_lines(path, Trial, [], start=start), LAST_TRIALS)
    return tuple(trial.without_histograms().model_copy(update=short) for trial in reversed(last))


def compute_ranking(records: RunRecords) -> Ranking:
    """Rank a run. A run without trials has an empty ranking."""
    if not records.trials:
        return Ranking(run_id=records.info.run_id, reference=records.info.reference)
    # Import late, because importing scipy takes longer than serving most pages.
    from harness.stats.ranking import rank

    return rank(records.info, records.trials, records.processes, records.verdicts)


def compare_runs(before: DashboardRun, after: DashboardRun) -> ComparisonDocument:
    """Compare run ``after`` with run ``before``, cell by cell and in sentences."""
    # Import late, because importing scipy takes longer than serving most pages.
    from harness.stats.cell_comparison import compare

    found = compare(before.records(), after.records(), COMPARISON_MARGIN)
    titles = [run_title(run.info) for run in (before, after)]
    if titles[0] == titles[1]:
        titles = ["before", "after"]
    named = found.model_copy(update={"run_a": titles[0], "run_b": titles[1]})
    return ComparisonDocument(comparison=found, verdict=words.summarize_comparison(named))


def _cell_latency(trials: Sequence[Trial]) -> CellLatency:
    """Return the latency of a cell, estimated over processes as in the ranking."""
    from harness.stats.cell_values import METRICS, CellTrials
    from harness.stats.value_tables import (
        estimate_percentiles,  # import late, because importing scipy takes longer than serving most pages
    )

    seen = [(trial.process, trial.latency, trial.requests) for trial in trials if trial.latency]
    found = estimate_percentiles((process, each.percentiles, requests) for process, each, requests in seen)
    keys = sorted(filter(PERCENTILE.fullmatch, found), key=float)
    return CellLatency(
        implementation=trials[0].implementation,
        load=trials[0].load,
        basis=seen[0][1].basis,
        percentiles={key: found[key].median for key in keys},
        spread={key: (min(found[key].values), max(found[key].values)) for key in keys},
        mean=CellTrials(trials).median(METRICS["response-time"]),
        stdev=median(each.stdev for _, each, _ in seen),
        maximum=max(each.max for _, each, _ in seen),
        trials=len(seen),
    )


def _summarize_verdicts(verdicts: Iterable[VerificationRecord]) -> tuple[VerdictSummary, ...]:
    """Return the worst outcome for each implementation and test type, and the checks that did not pass."""
    groups: dict[tuple[str, str], list[VerificationRecord]] = defaultdict(list)
    for verdict in verdicts:
        groups[verdict.implementation, verdict.test_type].append(verdict)
    found = []
    for (implementation, test_type), group in sorted(groups.items()):
        open_ = {each.check: each for one in group for each in one.results if each.outcome is not Outcome.PASS}
        found.append(
            VerdictSummary(
                implementation=implementation,
                test_type=test_type,
                outcome=worst_outcome(verdict.outcome for verdict in group),
                findings=tuple(open_.values()),
            )
        )
    return tuple(found)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file() and not path.is_symlink()
    except OSError:
        return False


def file_state(path: Path) -> FileState:
    """Return the size in bytes and the modification time in nanoseconds, or -1 for both if the file is missing."""
    try:
        found = path.stat()
    except OSError:
        return -1, -1
    return found.st_size, found.st_mtime_ns
