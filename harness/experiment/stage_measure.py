"""The third stage of a run: executes the profile's design on real servers."""

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial

from harness.errors import DatabaseDiedError, MachineLostError
from harness.experiment.designs import find_design
from harness.experiment.loop import MeasuringClock, RecordedProcesses, run_design
from harness.experiment.predicted import planned_seconds
from harness.experiment.progress import ProgressTracker
from harness.experiment.run_context import RunContext
from harness.experiment.stage_build import Built
from harness.experiment.step_executor import StepExecutor
from harness.experiment.steps import Start, Step, Stop
from harness.plan.hosts import ExistingDatabase
from harness.plan.run_settings import Settings
from harness.records import store
from harness.runtime import Runtime, SharedDatabase
from harness.runtime.database.external import NoDatabase, external_database
from harness.units import format_elapsed

REPORTED_DELAY_SECONDS = 5.0  # report starts and stops that exceed the planned time by at least this much


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A run whose trials have been recorded."""

    context: RunContext
    # (implementation, reason) pairs for implementations that could not be measured.
    skipped: tuple[tuple[str, str], ...]


def measure(built: Built) -> Measured:
    """Measure all successfully built implementations."""
    context, settings = built.context, built.context.settings
    if built.plan.candidates:
        context.progress.stage("starting PostgreSQL" if settings.starts_database else "starting")
        with open_database(settings, built.runtime) as database:
            _carry_out_design(_make_executor(built, database))
    return Measured(context=context, skipped=built.plan.skipped)


def open_database(settings: Settings, runtime: Runtime) -> AbstractContextManager[SharedDatabase]:
    """Return a context manager that starts or connects to PostgreSQL, or yields a stub if no database is needed."""
    database = settings.hosts.database
    if isinstance(database, ExistingDatabase):
        return external_database(database.host, database.port)
    return runtime.database() if settings.starts_database else nullcontext(NoDatabase())


def _make_executor(built: Built, database: SharedDatabase) -> StepExecutor:
    """Return an executor for the steps of the design."""
    context = built.context
    return StepExecutor(
        settings=context.settings,
        plan=built.plan,
        info=built.info,
        clock=context.dependencies.clock,
        runtime=built.runtime,
        verifier=context.dependencies.verifier,
        database=database,
        generators=built.generators,
        store=context.store,
        progress=context.progress,
    )


def _carry_out_design(executor: StepExecutor) -> None:
    """Execute the design, but skip processes with recorded results.

    If PostgreSQL dies, measure the processes that were running again from the beginning, because they are not to blame.
    """
    plan, progress, folder = executor.plan, executor.progress, executor.store.folder
    clock = MeasuringClock(
        clock=executor.clock,
        execute_step=executor.execute,
        planned=_unlimited if plan.profile.design == "gate" else partial(planned_seconds, plan),
        report_delay=_delay_reporter(progress),
    )
    began, limit = clock.monotonic(), plan.profile.interleaved.time_seconds
    for retries_left in (2, 1, 0):
        recorded = RecordedProcesses(store.read_run(folder))
        share = len(recorded.processes) / (len(plan.candidates) * plan.profile.processes.maximum)
        used = share if limit is None else max(share, (clock.monotonic() - began) / limit)
        try:
            design = find_design(plan.profile.design)(plan, executor.settings.seed)
            run_design(design, clock.execute, clock, limit, recorded=recorded, used_share=used)
        except (DatabaseDiedError, MachineLostError) as error:
            lost = set(executor.up)
            executor.abandon(error)
            executor.store.quarantine(lost.__contains__)
            names = ", ".join(sorted({name for name, _ in lost}))
            if not retries_left or isinstance(error, MachineLostError):
                raise  # the user can continue with --resume when the machine is available again
            progress.problem(f"{error}; the running processes are measured again: {names}")
            executor.database.restore()
        except BaseException as error:
            executor.abandon(error)
            raise
        else:
            if clock.delay >= REPORTED_DELAY_SECONDS:
                progress.announce(f"slow starts and stops extended the run by {format_elapsed(clock.delay)}")
            return


def _unlimited(_: Step) -> float:
    """Return infinity, because slow steps must not extend the time limit of a regression gate."""
    return math.inf


def _delay_reporter(progress: ProgressTracker) -> Callable[[Step, float], None]:
    """Return a function that reports a step's delay, given in seconds, and postpones the run's expected end."""

    def report(step: Step, delay: float) -> None:
        progress.extend(delay)
        if delay >= REPORTED_DELAY_SECONDS and isinstance(step, Start | Stop):
            action = "starting" if isinstance(step, Start) else "stopping"
            progress.note(
                f"{action} {step.process.implementation} took {format_elapsed(delay)} longer than planned: the end of "
                "the run is postponed by the same time, so measurements are not shortened"
            )

    return report
