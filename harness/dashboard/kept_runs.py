"""Runs as ready-made documents, kept until a file of theirs changes; one that grows is made anew behind its viewers."""

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from harness.dashboard.bodies import Body, body
from harness.dashboard.digests import SamplesDigest
from harness.dashboard.documents import LatencyDocument, RunDocument, TestDocument
from harness.dashboard.runs import Answer, Run
from harness.errors import StoreError

logger = logging.getLogger("tfb.dashboard")

KEPT_RUNS = 64
RENEW_SECONDS = 5.0  # a growing run's documents are made at most this often
STALE_SECONDS = 30.0  # what is older is shown to nobody: its viewer waits

Signature = tuple[tuple[str, int, int], ...]


@dataclass(kw_only=True)
class KeptRun:
    """The documents of one run, and the state of the files that they were made from."""

    signature: Signature
    made_at: float
    run: Run
    document: RunDocument
    body: Body
    tests: dict[str, Body] | None = None  # made when first asked for: reads all tables and verdicts
    latency: dict[str, Body] | None = None  # made when first asked for: reads all samples

    @property
    def growing(self) -> bool:
        """Of a run in progress, as far as these documents know."""
        return self.document.run.status == "running"

    def has(self, *, tests: bool, latency: bool) -> bool:
        """Whether all that is wanted was made."""
        return not (tests and self.tests is None) and not (latency and self.latency is None)


class KeptRuns:
    """The documents of the runs asked for last. Thread-safe: nobody waits for a growing run that others wait for."""

    def __init__(
        self,
        open_run: Callable[[str], Run],
        source_base: str | None,
        answer: Answer,
        renewed: Callable[[Path], None] = lambda _: None,
    ) -> None:
        """``renewed`` is called with a run's folder once newer documents are there than those that were given out."""
        self._open, self._source_base, self._answer, self._renewed = open_run, source_base, answer, renewed
        self._kept: dict[str, KeptRun] = {}
        self._digests: dict[Path, SamplesDigest] = {}
        self._locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._reading = threading.Lock()  # of samples.jsonl
        self._pending: set[str] = set()
        self._maker = ThreadPoolExecutor(1, "documents")

    def known(self) -> dict[str, RunDocument]:
        """Those at hand, by run."""
        return {run_id: kept.document for run_id, kept in self._kept.copy().items()}

    def get(self, run_id: str, *, tests: bool = False, latency: bool = False) -> KeptRun:
        """The documents of a run, with those that are wanted; raises StoreError.

        Of a run in progress they may be some seconds old: newer ones are then being made.
        """
        kept = self._kept.get(run_id)
        if kept is not None and kept.growing and kept.has(tests=tests, latency=latency):
            age = time.monotonic() - kept.made_at
            if age < STALE_SECONDS and self._still_runs(run_id, kept):
                if kept.signature != signature_of(kept.run.folder):
                    self._renew(run_id, max(0.0, RENEW_SECONDS - age))
                return kept
        with self._locks[run_id]:
            return self._made(run_id, tests=tests, latency=latency)

    def spans(self, run: Run) -> SamplesDigest:
        """samples.jsonl as far as it was read, which is to its end."""
        path = run.folder / "samples.jsonl"
        with self._reading:
            digest = self._digests.pop(path, None)
            if digest is None or digest.lines.offset > size_of(path):  # the file was written anew
                digest = SamplesDigest(path)
            self._digests[path] = digest
            while len(self._digests) > KEPT_RUNS:
                self._digests.pop(next(iter(self._digests)))
            digest.grow()
            return digest

    def _still_runs(self, run_id: str, kept: KeptRun) -> bool:
        """Whether a run that was in progress still is: its end must be told to whoever asks after it."""
        if state_of(kept.run.folder / "run.json") == kept.signature[0]:
            return True
        try:
            return self._open(run_id).info.status == "running"
        except StoreError:
            return False

    def _renew(self, run_id: str, wait: float) -> None:
        """Make the documents anew after so many seconds, unless that is on; who was given older ones is told."""
        if run_id in self._pending:
            return
        self._pending.add(run_id)

        def make() -> None:
            try:
                with self._locks[run_id]:
                    folder = self._made(run_id).run.folder
                self._renewed(folder)
            except (StoreError, OSError, ValueError, ArithmeticError, LookupError, RecursionError):
                logger.exception("%s: cannot be read any more; its last documents are shown", run_id)
            finally:
                self._pending.discard(run_id)

        later = threading.Timer(wait, self._maker.submit, (make,))
        later.daemon = True
        later.start()

    def _made(self, run_id: str, *, tests: bool = False, latency: bool = False) -> KeptRun:
        """With the run's lock held."""
        kept = self._kept.get(run_id)
        if kept is None or kept.signature != signature_of(kept.run.folder):
            run = self._open(run_id)
            signature = signature_of(run.folder)
            if kept is not None and run.info.status == "running":  # who looks at a run in progress asks again
                tests, latency = tests or kept.tests is not None, latency or kept.latency is not None
            document = run.document(run.headlines(), self._source_base, self._answer)
            now = time.monotonic()
            kept = KeptRun(signature=signature, made_at=now, run=run, document=document, body=body(document))
        if tests and kept.tests is None:
            kept.tests = {name: body(each) for name, each in self._tests(kept.run).items()}
        if latency and kept.latency is None:
            kept.latency = {name: body(each) for name, each in self._latencies(kept.run).items()}
        self._kept.pop(run_id, None)
        self._kept[run_id] = kept
        while len(self._kept) > KEPT_RUNS:
            self._kept.pop(next(iter(self._kept)))
        return kept

    @staticmethod
    def _tests(run: Run) -> dict[str, TestDocument]:
        return run.tests(run.ranking())

    def _latencies(self, run: Run) -> dict[str, LatencyDocument]:
        digest = self.spans(run)
        with self._reading:
            return dict(digest.latencies())


def signature_of(folder: Path) -> Signature:
    """What changes when a run's files do: size and time of each that its documents are made from; run.json first."""
    paths = [folder / name for name in ("run.json", "ranking.json", "replicates.jsonl", "samples.jsonl")]
    verify = folder / "verify"
    paths += sorted(path for path in verify.iterdir() if path.is_dir()) if verify.is_dir() else []
    return tuple(state_of(path) for path in paths)


def state_of(path: Path) -> tuple[str, int, int]:
    """Name, size and time of a file; -1 for one that is not there."""
    try:
        state = path.stat()
    except OSError:
        return path.name, -1, -1
    return path.name, state.st_size, state.st_mtime_ns


def size_of(path: Path) -> int:
    """Size in bytes; 0 for a file that is not there."""
    return max(0, state_of(path)[1])
