"""The runs of results/ as ready-made JSON documents, each kept until one of the files that it came from changes."""

import contextlib
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from harness.dashboard import baselines, live
from harness.dashboard.bodies import Body, body
from harness.dashboard.documents import ClaimsDocument, LatencyDocument, RunDocument, RunList
from harness.dashboard.history import history
from harness.dashboard.kept_runs import KEPT_RUNS, KeptRuns
from harness.dashboard.making import FileState, Maker, Making, signature_of, state_of
from harness.dashboard.runs import EXAMPLES, Run, Summaries, folder_of, list_runs, no_answers
from harness.errors import StoreError
from harness.records import bounded, claims
from harness.records.models import Problem, ReplicateRecord
from harness.records.reader import FILE_BYTES

NEWEST = 3  # runs that are read before anybody asks
KEPT_ASKED = 64  # answers that harness.stats was asked for: another baseline, a score of some test types, a comparison


class RunDocuments:
    """All runs of a folder, and the TechEmpower files named on the command line. Thread-safe."""

    def __init__(
        self,
        results: Path,
        *,
        files: Sequence[Path] = (),
        maker: Maker | None = None,
        examples: Path | None = None,
    ) -> None:
        self.results = results
        self.examples = examples or results / EXAMPLES
        self.files = {name_of(index, file): file for index, file in enumerate(files)}
        self._runs = KeptRuns(self.open, maker or Making(None, no_answers), live.renewed)
        self._summaries: Summaries = {}
        self._opened: dict[Path, tuple[FileState, Run]] = {}  # never given out themselves
        self._replicates: dict[Path, tuple[FileState, tuple[ReplicateRecord, ...], tuple[Problem, ...]]] = {}
        self._asked: dict[tuple[object, ...], bytes] = {}
        self._lock = threading.Lock()

    def open(self, run_id: str) -> Run:
        """The run of this name, of one's own or of the examples; read again when its run.json has changed.

        Raises StoreError.
        """
        folder = self._folder(run_id)
        state = state_of(folder / "run.json")
        found = self._opened.get(folder)
        if found is None or found[0] != state:
            found = self._opened[folder] = state, Run(folder)
            while len(self._opened) > KEPT_RUNS:
                self._opened.pop(next(iter(self._opened)), None)
        return found[1].again()

    def _folder(self, run_id: str) -> Path:
        try:
            return folder_of(self.results, run_id)
        except StoreError:
            if (self.results / run_id).is_dir() or not self.examples.is_dir():
                raise
            return folder_of(self.examples, run_id)

    def listed(self) -> RunList:
        """All runs; the examples where there is none of one's own."""
        own = list_runs(self.results, self._summaries)
        if own.runs:
            return own
        return own.model_copy(update={"runs": list_runs(self.examples, self._summaries).runs})

    def runs(self) -> bytes:
        """The list of runs, those that are at hand with who leads."""
        listed = self.listed()
        leads = self._runs.leads()
        runs = tuple(run.model_copy(update={"lead": leads.get(run.run_id, "")}) for run in listed.runs)
        return listed.model_copy(update={"runs": runs, "files": tuple(self.files)}).model_dump_json().encode()

    def warm(self) -> None:
        """Read the newest runs before anybody asks for them: they are what most visits are for."""
        for run in self.listed().runs[:NEWEST]:
            with contextlib.suppress(StoreError):
                running = run.status == "running"  # its viewers come together
                self._runs.get(run.run_id, tests=running)
                if running:  # what reads all samples comes last: nobody waits for it who did not ask for it
                    self._runs.get(run.run_id, latency=True)
                    self._runs.lines(self.open(run.run_id))

    def plain_list(self) -> RunList:
        """The list of runs for a page without a script."""
        return RunList.model_validate_json(self.runs())

    def document(self, run_id: str) -> RunDocument:
        """A run's document as an object."""
        return self._runs.document(run_id)

    def run(self, run_id: str) -> Body:
        """A RunDocument."""
        return self._runs.get(run_id).body

    def test(self, run_id: str, test_type: str) -> Body:
        """A TestDocument."""
        found = (self._runs.get(run_id, tests=True).tests or {}).get(test_type)
        if found is None:
            raise StoreError(f"{test_type!r}: not a test type of this run")
        return found

    def latency(self, run_id: str, test_type: str) -> Body:
        """A LatencyDocument, empty for a test type without latencies."""
        found = (self._runs.get(run_id, latency=True).latency or {}).get(test_type)
        return found or body(LatencyDocument(test_type=test_type, cells=()))

    def baseline(self, run_id: str, test_type: str, base: str) -> bytes:
        """A BaselineDocument."""
        run = self.open(run_id)

        def make() -> bytes:
            samples = run.samples()
            return baselines.relative_to(run, test_type, base, samples).model_dump_json().encode()

        return self._ask(("baseline", run_id, test_type, base, signature_of(run.folder)), make)

    def overall(self, run_id: str, test_types: Sequence[str]) -> bytes:
        """An OverallDocument."""
        run = self.open(run_id)
        kinds = frozenset(test_types)

        def make() -> bytes:
            samples = run.samples_of(kinds, self._runs.lines(run))
            return baselines.overall(run, kinds, samples).model_dump_json().encode()

        return self._ask(("overall", run_id, kinds, signature_of(run.folder)), make)

    def comparison(self, before: str, after: str) -> bytes:
        """A ComparisonDocument."""
        one, other = self.open(before), self.open(after)

        def make() -> bytes:
            return baselines.comparison(one, other).model_dump_json().encode()

        return self._ask(("compare", before, after, signature_of(one.folder), signature_of(other.folder)), make)

    def _ask(self, key: tuple[object, ...], make: Callable[[], bytes]) -> bytes:
        """What was asked for before, or made now."""
        with self._lock:
            found = self._asked.get(key)
            if found is None:
                found = self._asked[key] = make()
            while len(self._asked) > KEPT_ASKED:
                self._asked.pop(next(iter(self._asked)))
            return found

    def cell(self, run_id: str, implementation: str, test_type: str) -> bytes:
        """A CellDocument."""
        run = self.open(run_id)
        found = run.cell(implementation, test_type, self._runs.lines(run), self._replicates_of(run))
        return found.model_dump_json().encode()

    def _replicates_of(self, run: Run) -> tuple[ReplicateRecord, ...]:
        """The run's replicates, read again when their file has changed; its problems are the run's every time."""
        state = state_of(run.folder / "replicates.jsonl")
        found = self._replicates.get(run.folder)
        if found is None or found[0] != state:
            known = len(run.problems)
            replicates = tuple(run.replicates())
            found = self._replicates[run.folder] = state, replicates, tuple(run.problems[known:])
            while len(self._replicates) > KEPT_RUNS:
                self._replicates.pop(next(iter(self._replicates)), None)
        else:
            run.problems += found[2]
        return found[1]

    def log(self, run_id: str, path: str) -> bytes:
        """A LogDocument."""
        return self.open(run_id).log(path).model_dump_json().encode()

    def history(self, implementation: str) -> bytes:
        """A HistoryDocument over all runs that can be read."""
        documents = []
        for run in self.listed().runs:
            with contextlib.suppress(StoreError):  # one that cannot be read any more has no part in it
                documents.append(self._runs.document(run.run_id))
        return history(documents, implementation).model_dump_json().encode()

    def claims(self) -> bytes:
        """A ClaimsDocument; a file of verdicts that cannot be read is its problem."""
        try:
            found = ClaimsDocument(verdicts=tuple(claims.read(self.results).verdicts.values()))
        except StoreError as error:
            found = ClaimsDocument(verdicts=(), problem=str(error))
        return found.model_dump_json().encode()

    def file(self, name: str) -> bytes:
        """A file named on the command line, as it is."""
        try:
            return bounded.read(self.files[name], FILE_BYTES)
        except KeyError as error:
            raise StoreError(f"{name!r}: was not opened") from error
        except OSError as error:
            raise StoreError(f"{name}: cannot be read: {error.strerror}") from error


def name_of(index: int, file: Path) -> str:
    """The name in the API of a file from the command line; its folder is nobody's business."""
    return f"{index}-{file.name}"
