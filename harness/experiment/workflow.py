"""A run as a list of stages: read ``benchmark`` first, it is all of them in their order."""

import io
import json
import logging
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

from harness.console import PlainFormatter
from harness.errors import DatabaseDiedError, Exit, MachineLostError, StoreError, TfbError, UsageError
from harness.experiment import first_use, origin
from harness.experiment.designs import DESIGNS
from harness.experiment.ending import final_status, judge_implementations, retried_failures
from harness.experiment.first_use import Chore
from harness.experiment.generators import LoadGenerator
from harness.experiment.generators.registry import GENERATORS
from harness.experiment.loop import MeasuringClock, RecordedProcesses, run_design
from harness.experiment.predicted import planned_seconds, predict
from harness.experiment.preparation import (
    Revision,
    build_all,
    describe_run,
    limit_memory,
    make_plan,
    make_run_info,
    read_revision,
    require_same_setup,
)
from harness.experiment.progress import ProgressTracker
from harness.experiment.step_executor import OverMachines, StepExecutor
from harness.experiment.steps import Start, Step, Stop
from harness.host import leftovers
from harness.host import machine as host
from harness.host.clock import SYSTEM_CLOCK, Clock
from harness.host.leftovers import Leftover, local_leftovers
from harness.plan.hosts import ExistingDatabase
from harness.plan.plan import Plan, concurrent_groups
from harness.plan.run_settings import Settings
from harness.provisioning import crates
from harness.records import safe_write, store
from harness.records.machine_record import Machine
from harness.records.run_folders import find_run
from harness.records.run_records import RunRecords
from harness.records.store import RunStore
from harness.report import techempower
from harness.report.tables import format_count
from harness.report.verification_results import ImplementationVerdict
from harness.runtime import Runtime, SharedDatabase
from harness.runtime.choice import choose_runtime
from harness.runtime.database.external import NoDatabase, external_database
from harness.stats.ranking import rank
from harness.stats.ranking_model import Ranking
from harness.units import format_elapsed
from harness.verify.verifier import Verifier

logger = logging.getLogger("tfb.workflow")

REPAIRS = 2  # times that a run goes on after its PostgreSQL ended
TOLD_SECONDS = 5.0  # beyond the plan: a start or stop that takes so much longer is worth a line


@dataclass(frozen=True, kw_only=True)
class Dependencies:
    """All that a run has of the world outside its own code; tests give doubles of it."""

    clock: Clock = SYSTEM_CLOCK
    choose_runtime: Callable[..., Runtime] = choose_runtime
    verifier: Verifier = field(default_factory=Verifier)
    generators: Mapping[str, Callable[[Runtime], LoadGenerator]] = field(default_factory=lambda: GENERATORS)
    machine: Callable[[], Machine] = host.read_machine
    open_files: Callable[[], object] = host.raise_open_file_limit  # as many as there may be
    free_memory: Callable[[], float] = host.free_memory
    revision: Callable[[], Revision] = read_revision
    leftovers: Callable[[], Sequence[Leftover]] = local_leftovers
    first_use: Callable[[Settings, Plan], Sequence[Chore]] = first_use.find_chores


@dataclass(frozen=True, kw_only=True)
class RunOutcome:
    """What a run ends with."""

    records: RunRecords
    ranking: Ranking
    failures: tuple[str, ...]  # what failed, then which cells time did not reach
    verdicts: tuple[ImplementationVerdict, ...] = ()  # on each implementation

    @property
    def exit_code(self) -> Exit:
        """OK only when everything that was selected was measured and verified."""
        return Exit.FAILED if self.failures else Exit.OK


def benchmark(settings: Settings, progress: ProgressTracker, needs: Dependencies | None = None) -> RunOutcome:
    """The whole run. An interruption is recorded, what was measured is kept, and the exception goes on."""
    needs = needs or Dependencies()
    with open_run(settings, progress, needs.clock) as folder:
        plan = make_plan(settings)
        clear_leftovers(settings, progress, needs.leftovers())
        machine = needs.machine()
        needs.open_files()
        chores = needs.first_use(settings, plan)
        if chores:
            progress.announce(first_use.describe_chores(chores))
        with progress.preparing(describe_stage(chores, "making the runtime ready", in_runtime=True)):
            logs = folder.folder / "logs"
            runtime = needs.choose_runtime(settings, plan.implementations, logs, run_id=folder.run_id)
        plan = replace(plan, side_by_side=runtime.side_by_side)
        plan = limit_memory(plan, folder.folder.parent, needs.free_memory())
        before = store.read_run(folder.folder) if settings.resume else None
        done = store.finished_processes(before) if before else frozenset()
        if before:
            plan = replace(plan, problems=(*plan.problems, *retried_failures(before, done)))
        info = make_run_info(settings, plan, machine, runtime, folder, needs.revision())
        if before:
            require_same_setup(before.info, info)
        expected = predict(plan, settings.seed)
        measuring = remaining_share(plan, done) * expected.seconds
        later = measuring + sum(chore.seconds for chore in chores if not chore.in_runtime)
        progress.expected_seconds = progress.elapsed + later
        unread = before.problems if before else ()
        for problem in filter(None, (*plan.problems, expected.shortage, *unread)):
            progress.problem(problem)
        progress.announce(describe_run(settings, plan, runtime, later, needs.clock.time()))
        progress.announce(first_use.describe_builds(first_use.past_build_seconds(plan, folder.folder.parent)))
        with progress.preparing(
            describe_stage(chores, "making the load generator ready")
        ):  # first: cargo may be missing
            generators = {name: make(runtime) for name, make in needs.generators.items()}
            build_upstream(chores, progress)
        if isinstance(runtime, OverMachines):
            info = runtime.survey(info)
        if not before:
            folder.write_info(info)
            origin.seal_run(folder.folder, info, settings)
        began = progress.elapsed
        builds = build_all(runtime, plan, progress, folder)
        built_in, end = progress.elapsed - began, time.localtime(needs.clock.time() + measuring)
        progress.expected_seconds = progress.elapsed + measuring
        progress.announce(
            f"builds took {format_elapsed(built_in)}; the time of the measurement begins now: expected end "
            f"{time.strftime('%H:%M', end)} ({format_elapsed(measuring)})"
        )
        info = info.model_copy(update={"implementations": tuple(i.info(builds[i.name]) for i in plan.implementations)})
        if before:  # only now: what may not go on stays as it was
            require_same_setup(before.info, info, {trial.implementation for trial in before.trials})
            store.quarantine_records(folder.folder, lambda process: process not in done)
        folder.write_info(info)
        plan = plan.restricted_to([name for name, build in builds.items() if build.status == "ok"])
        if plan.candidates:
            progress.stage("starting PostgreSQL" if settings.starts_database else "starting")
            with open_database(settings, runtime) as database:
                measure(
                    StepExecutor(
                        settings=settings,
                        plan=plan,
                        info=info,
                        clock=needs.clock,
                        runtime=runtime,
                        verifier=needs.verifier,
                        database=database,
                        generators=generators,
                        store=folder,
                        progress=progress,
                    )
                )
        outcome = conclude_run(folder, "complete", clock=needs.clock)
        progress.finish(outcome.records.info.status)
        skipped = tuple(
            ImplementationVerdict(implementation=i, verdict="skipped", reason=why) for i, why in plan.skipped
        )
        return replace(outcome, verdicts=(*judge_implementations(outcome.records), *skipped))


def remaining_share(plan: Plan, done: Collection[tuple[str, int]]) -> float:
    """Return the share of a run's time that is left after these processes; 1 for a new run."""
    return 1 - len(done) / (len(plan.candidates) * plan.profile.processes.maximum)


def describe_stage(chores: Sequence[Chore], usual: str, *, in_runtime: bool = False) -> str:
    """Return what a stage of the preparation does: what is installed or built in it, or the usual words."""
    found = [chore.what for chore in chores if chore.in_runtime == in_runtime]
    return f"{usual}: {'; '.join(found)}" if found else usual


def build_upstream(chores: Sequence[Chore], progress: ProgressTracker) -> None:
    """Build the upstream service now, where it is needed: otherwise the first start would, in measuring time."""
    if any(chore.crate == "upstream" for chore in chores):
        try:
            crates.upstream_program()
        except TfbError as error:  # each server that calls the service will fail to start, and say so
            progress.problem(str(error))


def dry_run(
    settings: Settings, find_chores: Callable[[Settings, Plan], Sequence[Chore]] = first_use.find_chores
) -> int:
    """Print what a run would measure and how long it takes, by the same design sent predicted results."""
    plan = limit_memory(make_plan(settings), settings.results, host.free_memory())
    found, chores = predict(plan, settings.seed), find_chores(settings, plan)
    done = (
        store.finished_processes(store.read_run(find_run(settings.results, settings.resume)))
        if settings.resume
        else frozenset()
    )
    left = remaining_share(plan, done)
    builds = first_use.past_build_seconds(plan, settings.results)
    for problem in filter(None, (*plan.problems, found.shortage)):
        print(f"! {problem}", file=sys.stderr)
    count = plan.profile.processes
    cells = [
        {"implementation": candidate.implementation, "test_type": kind, "loads": [load.label for load in loads]}
        for candidate in plan.candidates
        for kind, loads in candidate.test_types.items()
    ]
    if settings.json:
        processes = {"minimum": count.minimum, "maximum": count.maximum}
        figures = {
            "trials": found.trials,
            "seconds": left * found.seconds,
            "measuring_seconds": left * found.measuring,
            "first_use": [{"what": chore.what, "seconds": chore.seconds} for chore in chores],
            "build_seconds": builds,
            "unreached": found.untried,
        }
        print(json.dumps({"processes": processes, **figures, "cells": cells}))
        return Exit.OK
    for number, group in enumerate(concurrent_groups(plan, settings.seed), 1):
        print(f"group {number}: {', '.join(candidate.implementation for candidate in group)}")
    for cell in cells:
        print(f"{cell['implementation']}  {cell['test_type']}  {', '.join(cell['loads'])}")
    least = f"{count.minimum} to " if count.maximum > count.minimum else ""
    print(
        f"{format_count(plan.cells, 'cell')}, {least}{format_count(count.maximum, 'process')} of each, "
        f"{format_count(found.trials, 'trial')}; about {format_elapsed(left * found.seconds)}"
        f"{' that are left' * bool(done)}, {found.measuring / max(1.0, found.seconds):.0%} of it measuring, "
        "builds not counted"
    )
    print(first_use.describe_builds(builds))
    if chores:
        print(first_use.describe_chores(chores))
    return Exit.OK


def measure(bench: StepExecutor) -> None:
    """Carry the profile's design out over what is recorded already; again where what it ran on was lost on the way.

    Then the processes that were up are measured from their beginning: it was not their fault.
    """
    plan, seed, progress, folder = bench.plan, bench.settings.seed, bench.progress, bench.store.folder

    def tell(step: Step, beyond: float) -> None:
        progress.extend(beyond)
        if beyond >= TOLD_SECONDS and isinstance(step, Start | Stop):
            what = "starting" if isinstance(step, Start) else "stopping"
            progress.note(
                f"{what} {step.process.implementation} took {format_elapsed(beyond)} longer than planned: the run ends "
                "that much later, and nothing is measured for a shorter time"
            )

    clock = MeasuringClock(clock=bench.clock, show=bench.execute, planned=partial(planned_seconds, plan), tell=tell)
    began, limit = clock.monotonic(), plan.profile.interleaved.time_seconds
    for left in reversed(range(1 + REPAIRS)):
        recorded = RecordedProcesses(store.read_run(folder))
        share = len(recorded.processes) / (len(plan.candidates) * plan.profile.processes.maximum)
        used = share if limit is None else max(share, (clock.monotonic() - began) / limit)
        try:
            design = DESIGNS[plan.profile.design](plan, seed)
            run_design(design, clock.execute, clock, limit, recorded=recorded, used=used)
        except (DatabaseDiedError, MachineLostError) as error:
            lost = set(bench.up)
            bench.abandon(error)
            bench.store.quarantine(lost.__contains__)
            names = ", ".join(sorted({name for name, _ in lost}))
            if not left or isinstance(error, MachineLostError):
                raise  # --resume goes on when it is back
            progress.problem(f"{error}; what it took is measured again: {names}")
            bench.database.restore()
        except BaseException as error:
            bench.abandon(error)
            raise
        else:
            if clock.beyond >= TOLD_SECONDS:
                progress.announce(
                    f"starts and stops took {format_elapsed(clock.beyond)} longer than planned, and so did the run"
                )
            return


@contextmanager
def open_run(settings: Settings, progress: ProgressTracker, clock: Clock) -> Iterator[RunStore]:
    """The run's folder, locked, with its log; its end is recorded in it."""
    if settings.resume is None:
        folder = RunStore.new(settings.results, started_at=clock.time())
    else:
        found = find_run(settings.results, settings.resume)
        info = store.read_run(found).info
        if info.status == "complete":
            raise UsageError(f"run {found.name} is complete: there is nothing to resume")
        if info.status == "incomplete":
            raise UsageError(
                f"run {found.name} is incomplete because its time is used up: start a new run with more --time"
            )
        folder = RunStore(found, started_at=info.started_at)
    with ExitStack() as stack:
        stack.callback(folder.discard_if_empty)
        # Every command and event of the harness is in logs/harness.log.
        log = safe_write.append(folder.folder / "logs" / "harness.log")
        stack.callback(log.close)
        handler = logging.StreamHandler(io.TextIOWrapper(log, encoding="utf-8", errors="replace", write_through=True))
        handler.setFormatter(PlainFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        stack.callback(handler.close)
        root = logging.getLogger("tfb")
        root.setLevel(logging.INFO)
        root.addHandler(handler)
        stack.callback(root.removeHandler, handler)
        stack.enter_context(folder.lock())
        stack.callback(progress.close)
        progress.store = folder
        try:
            yield folder
        except BaseException as error:
            give_up(folder, progress, error, clock)
            raise


def clear_leftovers(settings: Settings, progress: ProgressTracker, found: Sequence[Leftover]) -> None:
    """Remove, with consent, what a killed run left and what would be measured beside; name what stays."""
    found = [leftover for leftover in found if leftover.certain]
    if not found:
        return
    names = ", ".join(map(str, found))
    if settings.consent == "yes":
        progress.note(f"removed what a killed run had left: {names}")
        for kept in leftovers.remove_leftovers(found):
            progress.problem(f"could not be removed: {kept}")
    else:
        progress.problem(f"a killed run has left {names}, beside which this one measures: ./tfb clean removes it")


def open_database(settings: Settings, runtime: Runtime) -> AbstractContextManager[SharedDatabase]:
    """The run's own PostgreSQL, the one that ``--database-host`` names, or none for a service that needs none."""
    database = settings.hosts.database
    if isinstance(database, ExistingDatabase):
        return external_database(database.host, database.port)
    return runtime.database() if settings.starts_database else nullcontext(NoDatabase())


def give_up(folder: RunStore, progress: ProgressTracker, error: BaseException, clock: Clock) -> None:
    """Keep what was measured before an error or an interruption, as far as the disk allows."""
    goes_on = isinstance(error, KeyboardInterrupt | MachineLostError | StoreError)  # with a bare --resume
    status: Literal["failed", "interrupted"] = "interrupted" if goes_on else "failed"
    if not folder.has_run_info or isinstance(error, UsageError):  # one that may not go on stays as it was
        return
    try:
        conclude_run(folder, status, str(error), clock=clock)
        progress.finish(status)
    except StoreError as second:  # the first one is what has to be told
        logger.error("%s", second)  # noqa: TRY400 - its message says all


def conclude_run(
    folder: RunStore, status: Literal["complete", "failed", "interrupted"], reason: str = "", *, clock: Clock
) -> RunOutcome:
    """Rank what there is and write run.json, ranking.json and TechEmpower's results.json."""
    folder.require_unchanged()
    records = store.read_run(folder.folder)
    status_now, problems, missed = final_status(records, status, reason)
    ended = {"status": status_now, "completed_at": clock.time(), "problems": problems}
    info = records.info.model_copy(update=ended)
    records = replace(records, info=info)
    try:
        ranking = rank(info, records.trials, records.processes, records.verdicts)
        folder.write_text("ranking.json", ranking.to_json())
        folder.write_text("results.json", json.dumps(techempower.document(records), indent=1))
    finally:
        folder.write_info(info)  # last: who sees the end finds its ranking
    return RunOutcome(records=records, ranking=ranking, failures=missed)
