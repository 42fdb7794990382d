"""Runs as ready-made documents, kept until a file of theirs changes; one that grows is made anew behind its viewers."""

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from harness.dashboard.bodies import Body
from harness.dashboard.documents import RunDocument
from harness.dashboard.making import Maker, Signature, Wanted, head_of, signature_of, state_of
from harness.dashboard.runs import Run
from harness.errors import StoreError
from harness.records.lines import Lines

logger = logging.getLogger("tfb.dashboard")

KEPT_RUNS = 64
RENEW_SECONDS = 5.0  # a growing run's documents are made at most this often
STALE_SECONDS = 30.0  # what is older is shown to nobody: its viewer waits


@dataclass(kw_only=True)
class KeptRun:
    """The documents of one run, and the state of the files that they were made from."""

    signature: Signature
    made_at: float
    folder: Path
    growing: bool  # a run in progress, as far as these documents know
    lead: str
    body: Body
    tests: dict[str, Body] | None = None  # made when first asked for: reads all tables and verdicts
    latency: dict[str, Body] | None = None  # made when first asked for: reads all samples
    document: RunDocument | None = None  # as an object, when first asked for

    def has(self, *, tests: bool, latency: bool) -> bool:
        """Whether all that is wanted was made."""
        return not (tests and self.tests is None) and not (latency and self.latency is None)


class KeptRuns:
    """The documents of the runs asked for last. Thread-safe: nobody waits for a growing run that others wait for."""

    def __init__(
        self, open_run: Callable[[str], Run], maker: Maker, renewed: Callable[[Path], None] = lambda _: None
    ) -> None:
        """``renewed`` is called with a run's folder once newer documents are there than those that were given out."""
        self._open, self._maker, self._renewed = open_run, maker, renewed
        self._kept: dict[str, KeptRun] = {}
        self._lines: dict[Path, Lines] = {}
        self._locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._reading = threading.Lock()  # of samples.jsonl
        self._pending: set[str] = set()
        self._renewing = ThreadPoolExecutor(1, "documents")

    def leads(self) -> dict[str, str]:
        """Who leads in those at hand, by run."""
        return {run_id: kept.lead for run_id, kept in self._kept.copy().items()}

    def get(self, run_id: str, *, tests: bool = False, latency: bool = False) -> KeptRun:
        """The documents of a run, with those that are wanted; raises StoreError.

        Of a run in progress they may be some seconds old: newer ones are then being made.
        """
        kept = self._at_hand(run_id, tests=tests, latency=latency)
        if kept is not None:
            return kept
        self._open(run_id)  # a name without a run leaves nothing here
        with self._locks[run_id]:  # whoever waited for the same documents of a growing run takes those made meanwhile
            return self._at_hand(run_id, tests=tests, latency=latency) or self._made(
                run_id, tests=tests, latency=latency
            )

    def document(self, run_id: str) -> RunDocument:
        """The document of a run as an object; raises StoreError."""
        kept = self.get(run_id)
        if kept.document is None:  # not read from its JSON, in which a figure that is no number is none
            kept.document = self._maker.make(Wanted(folder=kept.folder, whole=True)).whole
        assert kept.document is not None  # noqa: S101 - it was wanted
        return kept.document

    def _at_hand(self, run_id: str, *, tests: bool, latency: bool) -> KeptRun | None:
        """What was made of a run in progress and is not too old."""
        kept = self._kept.get(run_id)
        if kept is None or not kept.growing or not kept.has(tests=tests, latency=latency):
            return None
        age = time.monotonic() - kept.made_at
        if age >= STALE_SECONDS or not self._still_runs(run_id, kept):
            return None
        if kept.signature != signature_of(kept.folder):
            self._renew(run_id, max(0.0, RENEW_SECONDS - age))
        return kept

    def lines(self, run: Run) -> Lines:
        """Where the samples of each cell stand in samples.jsonl, which is read on to its end."""
        path = run.folder / "samples.jsonl"
        with self._reading:
            lines = self._lines.pop(path, None)
            if lines is not None and lines.offset > max(0, state_of(path)[1]):  # the file was written anew
                lines = None
            self._lines[path] = lines = run.index(lines)
            while len(self._lines) > KEPT_RUNS:
                self._lines.pop(next(iter(self._lines)))
            return lines

    def _still_runs(self, run_id: str, kept: KeptRun) -> bool:
        """Whether a run that was in progress still is: its end must be told to whoever asks after it."""
        if state_of(kept.folder / "run.json") == kept.signature[0]:
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
                    folder = self._made(run_id).folder
                self._renewed(folder)
            except StoreError as error:
                logger.warning("%s: %s; its last documents are shown", run_id, error)
            except (OSError, ValueError, ArithmeticError, LookupError, RecursionError):
                logger.exception("%s: cannot be read any more; its last documents are shown", run_id)
            finally:
                self._pending.discard(run_id)

        later = threading.Timer(wait, self._renewing.submit, (make,))
        later.daemon = True
        later.start()

    def _made(self, run_id: str, *, tests: bool = False, latency: bool = False) -> KeptRun:
        """With the run's lock held."""
        kept = self._kept.get(run_id)
        if kept is None or kept.signature != signature_of(kept.folder):
            kept = self._anew(run_id, kept, tests=tests, latency=latency)
        elif not kept.has(tests=tests, latency=latency):
            wanted = Wanted(
                folder=kept.folder, tests=tests and kept.tests is None, latency=latency and kept.latency is None
            )
            made = self._maker.make(wanted)
            kept.tests, kept.latency = kept.tests or made.tests, kept.latency or made.latency
        self._kept.pop(run_id, None)
        self._kept[run_id] = kept
        while len(self._kept) > KEPT_RUNS:
            self._kept.pop(next(iter(self._kept)))
        return kept

    def _anew(self, run_id: str, before: KeptRun | None, *, tests: bool, latency: bool) -> KeptRun:
        """With all that was asked for of a run in progress: who looks at it asks again."""
        run = self._open(run_id)
        if before is not None and run.info.status == "running":
            tests, latency = tests or before.tests is not None, latency or before.latency is not None
        wanted = Wanted(folder=run.folder, document=True, tests=tests, latency=latency)
        same = before if before and before.tests and _same_tables(before.signature, signature_of(run.folder)) else None
        made = self._maker.make(replace(wanted, tests=tests and same is None))
        if same and not _same_tables(same.signature, made.signature):  # renewed at this very moment
            same, made = None, self._maker.make(wanted)
        assert made.document is not None  # noqa: S101 - it was wanted
        return KeptRun(
            signature=made.signature,
            made_at=time.monotonic(),
            folder=run.folder,
            growing=made.running,
            lead=made.lead,
            body=made.document,
            tests=same.tests if same else made.tests,
            latency=made.latency,
        )


def _same_tables(one: Signature, other: Signature) -> bool:
    """Whether only what tables and verdicts do not show has changed in between."""
    return head_of(one) is not None and head_of(one) == head_of(other)
