"""Makes the documents of a run of its files: what takes time, so that a process of its own can do it."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from harness.dashboard.bodies import Body, body, of_bytes
from harness.dashboard.columns import packed
from harness.dashboard.digests import SamplesDigest
from harness.dashboard.documents import RunDocument
from harness.dashboard.runs import Answer, Run
from harness.stats.model import Ranking

KEPT = 64  # runs that are remembered between two documents of theirs

Value = TypeVar("Value")
FileState = tuple[str, int, int]
Signature = tuple[FileState, ...]


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Documents to make of the run in a folder."""

    folder: Path
    document: bool = False
    whole: bool = False  # the document as an object, not as it is sent
    tests: bool = False
    latency: bool = False


@dataclass(frozen=True, kw_only=True)
class Made:
    """The documents that were wanted, and the state that the run's files had before they were read."""

    signature: Signature
    running: bool
    lead: str = ""  # who leads; of a document alone
    document: Body | None = None
    whole: RunDocument | None = None
    tests: dict[str, Body] | None = None
    latency: dict[str, Body] | None = None


class Maker(Protocol):
    """Raises StoreError, or OSError, ValueError and their like for files that no document can be made of."""

    def make(self, wanted: Wanted) -> Made:
        """The documents that are wanted."""

    def close(self) -> None:
        """End what was started for it."""


@dataclass
class Known:
    """What is remembered of a run."""

    signature: Signature
    run: Run
    document: RunDocument | None = None


class Making:
    """Makes documents in this process, one at a time. Thread-safe."""

    def __init__(self, source_base: str | None, answer: Answer) -> None:
        self._source_base, self._answer = source_base, answer
        self._known: dict[Path, Known] = {}
        self._digests: dict[Path, SamplesDigest] = {}
        self._lock = threading.Lock()

    def make(self, wanted: Wanted) -> Made:
        """The documents that are wanted."""
        with self._lock:
            return self._make(wanted)

    def close(self) -> None:
        """Nothing was started."""

    def _make(self, wanted: Wanted) -> Made:
        known = self._run(wanted.folder)
        ranking = known.run.ranking() if wanted.tests else None
        document = self._document(known, ranking) if wanted.document or wanted.whole else None
        return Made(
            signature=known.signature,
            running=known.run.info.status == "running",
            lead=lead_of(document) if document else "",
            document=of_bytes(packed(document)) if document and wanted.document else None,
            whole=document if wanted.whole else None,
            tests=None if ranking is None else {name: body(it) for name, it in known.run.tests(ranking).items()},
            latency=self._latency(wanted.folder) if wanted.latency else None,
        )

    def _run(self, folder: Path) -> Known:
        """A run as its files are now: what only its samples have outdated is kept."""
        signature = signature_of(folder)
        known = self._known.pop(folder, None)
        if known is None or known.signature != signature:
            document = known.document if known and head_of(known.signature) == head_of(signature) else None
            known = Known(signature=signature, run=Run(folder), document=document)
        _keep(self._known, folder, known)
        return known

    def _document(self, known: Known, ranking: Ranking | None) -> RunDocument:
        run = known.run
        if known.document is None or head_of(known.signature) is None:
            known.document = run.document(ranking or run.headlines(), self._source_base, self._answer)
            return known.document
        return known.document.model_copy(update={"progress": run.progress() if run.info.status == "running" else None})

    def _latency(self, folder: Path) -> dict[str, Body]:
        path = folder / "samples.jsonl"
        digest = self._digests.pop(path, None)
        if digest is None or digest.lines.offset > state_of(path)[1]:  # the file was written anew
            digest = SamplesDigest(path)
        _keep(self._digests, path, digest)
        digest.grow()
        return {name: body(document) for name, document in digest.latencies().items()}


def _keep(kept: dict[Path, Value], key: Path, value: Value) -> None:
    """Put it behind the others, and forget the oldest of many."""
    kept[key] = value
    while len(kept) > KEPT:
        kept.pop(next(iter(kept)))


def lead_of(document: RunDocument) -> str:
    """Who leads, of the overall score or of the first test type."""
    first: Mapping[str, tuple[str, ...]] = next(iter(document.sentences.values()), {})
    return next(iter(first.get("throughput", ())), "")


def signature_of(folder: Path) -> Signature:
    """What changes when a run's files do: size and time of each that its documents are made from; run.json first."""
    paths = [folder / name for name in ("run.json", "ranking.json", "replicates.jsonl", "samples.jsonl")]
    verify = folder / "verify"
    paths += sorted(path for path in verify.iterdir() if path.is_dir()) if verify.is_dir() else []
    return tuple(state_of(path) for path in paths)


def head_of(signature: Signature) -> Signature | None:
    """What a ranking and the verdicts are shown by; None without a ranking.json: then it is made of all samples."""
    run, ranking, _, _, *verify = signature
    return (run, ranking, *verify) if ranking[1] >= 0 else None


def state_of(path: Path) -> FileState:
    """Name, size and time of a file; -1 for one that is not there."""
    try:
        state = path.stat()
    except OSError:
        return path.name, -1, -1
    return path.name, state.st_size, state.st_mtime_ns
