"""A run as a list of stages: select, plan, prepare and build, replicate block by block, rank, report."""

import json
import logging
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Literal

from harness.errors import Exit, StoreError, UsageError
from harness.rank.model import Ranking
from harness.rank.ranking import rank
from harness.report import techempower
from harness.request.config import Settings
from harness.results import store
from harness.results.records import Outcome
from harness.results.store import RunRecords, RunStore
from harness.run import blocks, duets
from harness.run.blocks import Done, Pairing
from harness.run.preparation import prepare
from harness.run.progress import Progress

logger = logging.getLogger("tfb.workflow")


@dataclass(frozen=True, kw_only=True)
class RunOutcome:
    """What a run ends with."""

    records: RunRecords
    ranking: Ranking
    failures: tuple[str, ...]

    @property
    def exit_code(self) -> Exit:
        """OK only when everything that was selected was measured and verified."""
        return Exit.FAILED if self.failures else Exit.OK


def benchmark(settings: Settings, progress: Progress, pairing: Pairing = duets.neighbours) -> RunOutcome:
    """The whole run; ``pairing`` says who plays duets where they were asked for.

    An interruption is recorded, what was measured is kept, and the exception goes on."""
    folder, done = open_store(settings)
    try:
        with logged(folder), closing(progress):
            progress.store = folder
            try:
                prepared = prepare(settings, progress, folder)
                blocks.run(settings, prepared, progress, done, pairing)
            except BaseException as error:
                give_up(folder, progress, error)
                raise
            outcome = conclude(folder, "complete")
            progress.finish(outcome.records.info.status)
            return outcome
    finally:
        folder.discard_if_empty()


def give_up(folder: RunStore, progress: Progress, error: BaseException) -> None:
    """Keep what was measured before an error or an interruption, as far as the disk allows."""
    status: Literal["failed", "interrupted"] = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
    if not folder.begun:
        return
    try:
        conclude(folder, status, str(error))
        progress.finish(status)
    except StoreError as second:  # the first one is what has to be told
        logger.error("%s", second)  # noqa: TRY400 - its message says all


def conclude(folder: RunStore, status: Literal["complete", "failed", "interrupted"], reason: str = "") -> RunOutcome:
    """Rank what there is and write run.json, ranking.json and TechEmpower's results.json."""
    records = store.read(folder.folder)
    # What an interrupted run has not measured is no failure of an implementation: it says why it ended, no more.
    found = (*records.info.problems, *failures(records)) if status == "complete" else ()
    missed = tuple(dict.fromkeys(found))
    problems = missed if status == "complete" else (*records.info.problems, reason or status)
    info = records.info.model_copy(
        update={
            "status": "failed" if status == "complete" and missed else status,
            "completed_at": time.time(),
            "problems": problems,
        }
    )
    folder.write_info(info)
    records = store.read(folder.folder)
    ranking = rank(info, records.samples, records.replicates, records.verdicts)
    folder.write_text("ranking.json", ranking.model_dump_json())
    folder.write_text("results.json", json.dumps(techempower.document(records), indent=1))
    return RunOutcome(records=records, ranking=ranking, failures=missed)


def failures(records: RunRecords) -> tuple[str, ...]:
    """What keeps the run from exit code 0: one sentence each."""
    found = []
    measured = {(s.implementation, s.test_type, s.level) for s in records.samples if s.rankable}
    failed = {(v.implementation, v.test_type) for v in records.verdicts if v.outcome is Outcome.FAIL}
    for implementation in records.info.implementations:
        build = implementation.build
        if build is None or build.status != "ok":
            what = "was not built" if build is None else f"{build.status}: {build.reason.splitlines()[0]}"
            found.append(f"{implementation.name} {what}")
            continue
        for test_type, levels in records.info.levels.items():
            if test_type not in implementation.test_types:
                continue
            if (implementation.name, test_type) in failed:
                found.append(f"{implementation.name} {test_type}: verification failed")
            found += [
                f"{implementation.name} {test_type} {level.label}: no valid sample"
                for level in levels
                if (implementation.name, test_type, level) not in measured
            ]
    for replicate in records.replicates:
        if replicate.status != "ok":
            what = replicate.reason.splitlines()[0] if replicate.reason else replicate.status
            what = what.removeprefix(f"{replicate.implementation}: ")
            found.append(f"{replicate.implementation} replicate {replicate.replicate + 1}: {what}")
    return tuple(found)


def open_store(settings: Settings) -> tuple[RunStore, Done]:
    """A new run's folder, or that of the run to resume with the replicates that it has finished."""
    if settings.resume is None:
        moment = time.time()
        name = time.strftime("%Y%m%d-%H%M%S", time.localtime(moment))
        folder = settings.results / name
        if folder.exists():
            folder = settings.results / f"{name}-{int(moment * 1000) % 1000:03d}"
        return RunStore(folder, started_at=moment), frozenset()
    folder = store.find(settings.results, settings.resume)
    records = store.read(folder)
    if records.info.status == "running":
        # A killed harness leaves "running"; a live one holds the folder's lock.
        store.require_unlocked(folder)
    if records.info.status == "complete":
        raise UsageError(f"run {folder.name} is complete: there is nothing to resume")
    done = frozenset((r.implementation, r.block) for r in records.replicates if r.status == "ok")
    store.set_aside_unfinished(folder, done)
    return RunStore(folder, started_at=records.info.started_at), done


@contextmanager
def logged(folder: RunStore) -> Iterator[None]:
    """Keep every command and event of the harness in logs/harness.log."""
    handler = logging.FileHandler(folder.folder / "logs" / "harness.log", encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger("tfb")
    root.setLevel(logging.INFO)
    root.addHandler(handler)
    try:
        with folder.locked():
            yield
    finally:
        root.removeHandler(handler)
        handler.close()
