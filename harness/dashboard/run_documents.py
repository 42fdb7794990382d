"""The runs of results/ as ready-made JSON documents, each kept until one of the files that it came from changes."""

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.dashboard import baselines
from harness.dashboard.documents import ClaimsDocument, LatencyDocument, RunDocument, RunList, TestDocument
from harness.dashboard.history import history
from harness.dashboard.runs import EXAMPLES, Answer, Run, folder_of, list_runs, no_answers
from harness.errors import StoreError
from harness.results import bounded, claims
from harness.results.lines import Lines
from harness.results.reader import FILE_BYTES

KEPT_RUNS = 64
NEWEST = 3  # runs that are read before anybody asks
KEPT_ASKED = 64  # answers that harness.rank was asked for: another baseline, a score of some test types, a comparison
RERANK_SECONDS = 5.0  # a growing run that has no ranking.json yet is ranked at most this often

Signature = tuple[tuple[str, int, int], ...]


@dataclass
class KeptRun:
    """The documents of one run, and the state of the files that they were made from."""

    signature: Signature
    made_at: float
    document: RunDocument
    body: bytes
    run: Run
    tests: dict[str, TestDocument] | None = None  # made when first asked for: reads all tables and verdicts
    latency: dict[str, LatencyDocument] | None = None  # made when first asked for: reads all samples


class RunDocuments:
    """All runs of a folder, and the TechEmpower files named on the command line. Thread-safe."""

    def __init__(
        self,
        results: Path,
        *,
        files: Sequence[Path] = (),
        source_base: str | None = None,
        answer: Answer = no_answers,
        examples: Path | None = None,
    ) -> None:
        self.results = results
        self.examples = examples or results / EXAMPLES
        self.answer = answer
        self.files = {name_of(index, file): file for index, file in enumerate(files)}
        self.source_base = source_base
        self._kept: dict[str, KeptRun] = {}
        self._lines: dict[str, Lines] = {}
        self._asked: dict[tuple[object, ...], bytes] = {}
        self._lock = threading.Lock()

    def open(self, run_id: str) -> Run:
        """The run of this name, of one's own or of the examples. Raises StoreError."""
        return Run(self._folder(run_id))

    def _folder(self, run_id: str) -> Path:
        try:
            return folder_of(self.results, run_id)
        except StoreError:
            if (self.results / run_id).is_dir() or not self.examples.is_dir():
                raise
            return folder_of(self.examples, run_id)

    def listed(self) -> RunList:
        """All runs; the examples where there is none of one's own."""
        own = list_runs(self.results)
        if own.runs:
            return own
        return own.model_copy(update={"runs": list_runs(self.examples).runs})

    def runs(self) -> bytes:
        """The list of runs, those that are at hand with who leads."""
        listed = self.listed()
        known = {run_id: lead_of(kept.document) for run_id, kept in self._kept.copy().items()}
        runs = tuple(run.model_copy(update={"lead": known.get(run.run_id, "")}) for run in listed.runs)
        return listed.model_copy(update={"runs": runs, "files": tuple(self.files)}).model_dump_json().encode()

    def warm(self) -> None:
        """Read the newest runs before anybody asks for them: they are what most visits are for."""
        for run in self.listed().runs[:NEWEST]:
            with contextlib.suppress(StoreError):
                self._kept_run(run.run_id)

    def plain_list(self) -> RunList:
        """The list of runs for a page without a script."""
        return RunList.model_validate_json(self.runs())

    def document(self, run_id: str) -> RunDocument:
        """A run's document as an object."""
        return self._kept_run(run_id).document

    def run(self, run_id: str) -> bytes:
        """A RunDocument."""
        return self._kept_run(run_id).body

    def test(self, run_id: str, test_type: str) -> bytes:
        """A TestDocument."""
        kept = self._kept_run(run_id)
        with self._lock:
            if kept.tests is None:
                kept.tests = kept.run.tests(kept.run.ranking())
        document = kept.tests.get(test_type)
        if document is None:
            raise StoreError(f"{test_type!r}: not a test type of this run")
        return document.model_dump_json().encode()

    def latency(self, run_id: str, test_type: str) -> bytes:
        """A LatencyDocument, empty for a test type without latencies."""
        kept = self._kept_run(run_id)
        with self._lock:
            if kept.latency is None:
                kept.latency = kept.run.latency()
        empty = LatencyDocument(test_type=test_type, cells=())
        return kept.latency.get(test_type, empty).model_dump_json().encode()

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
            samples = run.samples_of(kinds, self._index(run))
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

    def _index(self, run: Run) -> Lines:
        """Where each cell's samples stand; the lock is held."""
        size = size_of(run.folder / "samples.jsonl")
        lines = self._lines.get(run.id)
        if lines is not None and lines.offset > size:
            lines = None  # the file was written anew
        self._lines[run.id] = lines = run.index(lines)
        return lines

    def cell(self, run_id: str, implementation: str, test_type: str) -> bytes:
        """A CellDocument."""
        run = self.open(run_id)
        with self._lock:
            return run.cell(implementation, test_type, self._index(run)).model_dump_json().encode()

    def log(self, run_id: str, path: str) -> bytes:
        """A LogDocument."""
        return self.open(run_id).log(path).model_dump_json().encode()

    def history(self, implementation: str) -> bytes:
        """A HistoryDocument over all runs that can be read."""
        documents = []
        for run in self.listed().runs:
            with contextlib.suppress(StoreError):  # one that cannot be read any more has no part in it
                documents.append(self._kept_run(run.run_id).document)
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

    def _kept_run(self, run_id: str) -> KeptRun:
        with self._lock:
            folder = self._folder(run_id)
            kept = self._kept.get(run_id)
            signature = signature_of(folder)
            if kept is not None and kept.signature == signature:
                return kept
            run = Run(folder)
            if kept is not None:
                growing = run.info.status == kept.document.run.status == "running"
                recent = time.monotonic() - kept.made_at < RERANK_SECONDS
                if growing and recent:
                    return kept
            document = run.document(run.headlines(), self.source_base, self.answer)
            body = document.model_dump_json().encode()
            kept = KeptRun(signature, time.monotonic(), document, body, run)
            self._kept.pop(run_id, None)
            self._kept[run_id] = kept
            while len(self._kept) > KEPT_RUNS:
                self._kept.pop(next(iter(self._kept)))
            return kept


def lead_of(document: RunDocument) -> str:
    """Who leads, of the overall score or of the first test type."""
    first = next(iter(document.sentences.values()), {})
    return next(iter(first.get("throughput", ())), "")


def signature_of(folder: Path) -> Signature:
    """What changes when a run's files do: size and time of each that its documents are made from."""
    paths = [folder / name for name in ("run.json", "ranking.json", "replicates.jsonl", "samples.jsonl")]
    verify = folder / "verify"
    paths += sorted(path for path in verify.iterdir() if path.is_dir()) if verify.is_dir() else []
    states = []
    for path in paths:
        try:
            state = path.stat()
        except OSError:
            states.append((path.name, -1, -1))
        else:
            states.append((path.name, state.st_size, state.st_mtime_ns))
    return tuple(states)


def size_of(path: Path) -> int:
    """Size in bytes; 0 for a file that is not there."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def name_of(index: int, file: Path) -> str:
    """The name in the API of a file from the command line; its folder is nobody's business."""
    return f"{index}-{file.name}"
