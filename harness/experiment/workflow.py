"""Runs a benchmark as a sequence of stages. Start reading at ``benchmark``."""

import io
import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Literal

from harness.console import PlainFormatter
from harness.errors import MachineLostError, StoreError, UsageError
from harness.experiment.progress import ProgressTracker
from harness.experiment.run_context import Dependencies, RunContext
from harness.experiment.stage_build import build
from harness.experiment.stage_conclude import RunOutcome, conclude, record_end
from harness.experiment.stage_measure import measure
from harness.experiment.stage_prepare import prepare_new, prepare_resumed
from harness.host.clock import Clock, heartbeat
from harness.plan.run_settings import Settings
from harness.records import safe_write, store
from harness.records.run_folders import find_run
from harness.records.store import RunStore

logger = logging.getLogger("tfb.workflow")


def benchmark(settings: Settings, progress: ProgressTracker, dependencies: Dependencies | None = None) -> RunOutcome:
    """Carry out a complete run.

    After an interruption or an error, record everything that has been measured, then raise the exception again.
    """
    dependencies = dependencies or Dependencies()
    with open_run(settings, progress, dependencies.clock) as run_store:
        context = RunContext(settings=settings, progress=progress, dependencies=dependencies, store=run_store)
        prepared = prepare_resumed(context) if settings.resume else prepare_new(context)
        built = build(prepared)
        measured = measure(built)
        return conclude(measured)


@contextmanager
def open_run(settings: Settings, progress: ProgressTracker, clock: Clock) -> Iterator[RunStore]:
    """Yield the locked store of a new or resumed run. Write harness.log. If the run ends early, record why."""
    run_store = _find_store(settings, clock)
    with ExitStack() as stack:
        stack.callback(run_store.discard_if_empty)
        # This log contains every command and event of the harness.
        log = safe_write.append(run_store.folder / "logs" / "harness.log")
        stack.callback(log.close)
        handler = logging.StreamHandler(io.TextIOWrapper(log, encoding="utf-8", errors="replace", write_through=True))
        handler.setFormatter(PlainFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        stack.callback(handler.close)
        root = logging.getLogger("tfb")
        root.setLevel(logging.INFO)
        root.addHandler(handler)
        stack.callback(root.removeHandler, handler)
        stack.enter_context(run_store.lock())
        stack.callback(progress.close)
        progress.store = run_store
        stack.enter_context(progress.reporting_waits())
        # Rewrite progress.json regularly, because the dashboard recognises a killed run by the file's age.
        stack.enter_context(heartbeat(lambda _: progress.note("")))
        try:
            yield run_store
        except BaseException as error:
            _record_early_end(run_store, progress, error, clock)
            raise


def _find_store(settings: Settings, clock: Clock) -> RunStore:
    """Create a run's store, or open the store of the run to resume. Raises UsageError if nothing remains to be done."""
    if settings.resume is None:
        return RunStore.new(settings.results, started_at=clock.time())
    folder = find_run(settings.results, settings.resume)
    info = store.read_run(folder).info
    if info.status == "complete":
        raise UsageError(f"run {folder.name} is complete, so it cannot be resumed. Start a new run")
    if info.status == "incomplete":
        raise UsageError(
            f"run {folder.name} has no time left, so it cannot be resumed. Start a new run with a larger --time"
        )
    return RunStore(folder, started_at=info.started_at)


def _record_early_end(run_store: RunStore, progress: ProgressTracker, error: BaseException, clock: Clock) -> None:
    """Record that an error or an interruption ended the run. If recording fails, only log the failure."""
    resumable = isinstance(error, KeyboardInterrupt | MachineLostError | StoreError)
    status: Literal["failed", "interrupted"] = "interrupted" if resumable else "failed"
    if not run_store.has_run_info or isinstance(error, UsageError):  # leave a run unchanged if it could not be resumed
        return
    try:
        record_end(run_store, status, str(error), clock=clock)
        progress.finish(status)
    except StoreError as store_error:  # the caller raises ``error``, which is more important
        logger.error("%s", store_error)  # noqa: TRY400 - the message is complete without the traceback
