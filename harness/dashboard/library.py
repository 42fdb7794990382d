"""The runs of results/ as ready-made JSON documents, each kept until one of the files that it came from changes."""

import contextlib
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.dashboard.documents import LatencyDocument, RunDocument, TestDocument
from harness.dashboard.history import history
from harness.dashboard.lines import Lines
from harness.dashboard.runs import Run, list_runs, open_run
from harness.errors import StoreError

KEPT_RUNS = 64
RERANK_SECONDS = 5.0  # a growing run that has no ranking.json yet is ranked at most this often

Signature = tuple[tuple[str, int, int], ...]


@dataclass
class Shelf:
    """The documents of one run, and the state of the files that they were made from."""

    signature: Signature
    made_at: float
    document: RunDocument
    body: bytes
    run: Run
    tests: dict[str, TestDocument] | None = None  # made when first asked for: reads all tables and verdicts
    latency: dict[str, LatencyDocument] | None = None  # made when first asked for: reads all samples


class Library:
    """All runs of a folder, and the TechEmpower files named on the command line. Thread-safe."""

    def __init__(self, results: Path, *, files: Sequence[Path] = (), source_base: str | None = None) -> None:
        self.results = results
        self.files = {name_of(index, file): file for index, file in enumerate(files)}
        self.source_base = source_base
        self._shelves: dict[str, Shelf] = {}
        self._lines: dict[str, Lines] = {}
        self._lock = threading.Lock()

    def open(self, run_id: str) -> Run:
        """The run of this name. Raises StoreError."""
        return open_run(self.results, run_id)

    def runs(self) -> bytes:
        """The list of runs."""
        listed = list_runs(self.results)
        return listed.model_copy(update={"files": tuple(self.files)}).model_dump_json().encode()

    def warm(self) -> None:
        """Read the newest run before anybody asks for it: it is what most visits are for."""
        for run in list_runs(self.results).runs[:1]:
            with contextlib.suppress(StoreError):
                self._shelf(run.run_id)

    def run(self, run_id: str) -> bytes:
        """A RunDocument."""
        return self._shelf(run_id).body

    def test(self, run_id: str, test_type: str) -> bytes:
        """A TestDocument."""
        shelf = self._shelf(run_id)
        with self._lock:
            if shelf.tests is None:
                shelf.tests = shelf.run.tests(shelf.run.ranking())
        document = shelf.tests.get(test_type)
        if document is None:
            raise StoreError(f"{test_type!r}: not a test type of this run")
        return document.model_dump_json().encode()

    def latency(self, run_id: str, test_type: str) -> bytes:
        """A LatencyDocument, empty for a test type without latencies."""
        shelf = self._shelf(run_id)
        with self._lock:
            if shelf.latency is None:
                shelf.latency = shelf.run.latency()
        empty = LatencyDocument(test_type=test_type, cells=())
        return shelf.latency.get(test_type, empty).model_dump_json().encode()

    def cell(self, run_id: str, implementation: str, test_type: str) -> bytes:
        """A CellDocument."""
        run = self.open(run_id)
        with self._lock:
            size = size_of(run.folder / "samples.jsonl")
            lines = self._lines.get(run_id)
            if lines is not None and lines.offset > size:
                lines = None  # the file was written anew
            self._lines[run_id] = lines = run.index(lines)
            return run.cell(implementation, test_type, lines).model_dump_json().encode()

    def log(self, run_id: str, path: str) -> bytes:
        """A LogDocument."""
        return self.open(run_id).log(path).model_dump_json().encode()

    def history(self, implementation: str) -> bytes:
        """A HistoryDocument over all runs that can be read."""
        documents = [self._shelf(run.run_id).document for run in list_runs(self.results).runs]
        return history(documents, implementation).model_dump_json().encode()

    def file(self, name: str) -> bytes:
        """A file named on the command line, as it is."""
        try:
            return self.files[name].read_bytes()
        except KeyError as error:
            raise StoreError(f"{name!r}: was not opened") from error
        except OSError as error:
            raise StoreError(f"{name}: cannot be read: {error.strerror}") from error

    def _shelf(self, run_id: str) -> Shelf:
        with self._lock:
            run = self.open(run_id)
            shelf = self._shelves.get(run_id)
            signature = signature_of(run.folder)
            if shelf is not None:
                growing = run.info.status == shelf.document.run.status == "running"
                recent = time.monotonic() - shelf.made_at < RERANK_SECONDS
                if shelf.signature == signature or (growing and recent):
                    return shelf
            document = run.document(run.headlines(), self.source_base)
            body = document.model_dump_json().encode()
            shelf = Shelf(signature, time.monotonic(), document, body, run)
            self._shelves.pop(run_id, None)
            self._shelves[run_id] = shelf
            while len(self._shelves) > KEPT_RUNS:
                self._shelves.pop(next(iter(self._shelves)))
            return shelf


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
