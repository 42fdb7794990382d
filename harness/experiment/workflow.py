"""A run as a list of stages: read ``benchmark`` first, it is all of them in their order."""

import json
import logging
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Literal

from harness.errors import DatabaseDiedError, Exit, MachineLostError, StoreError, UsageError
from harness.experiment.bench import Bench, OverMachines
from harness.experiment.designs import DESIGNS
from harness.experiment.generators import Generator
from harness.experiment.generators.registry import GENERATORS
from harness.experiment.loop import Recorded, carry_out
from harness.experiment.predicted import predict
from harness.experiment.preparation import (
    Revision,
    build_all,
    choose_work,
    describe,
    git_state,
    opening,
    require_same,
    within_memory,
)
from harness.experiment.progress import Progress
from harness.host import leftovers
from harness.host import machine as host
from harness.host.clock import SYSTEM_CLOCK, Clock
from harness.host.leftovers import Leftover, on_this_machine
from harness.plan.config import Settings
from harness.plan.hosts import Postgres
from harness.plan.plan import groups
from harness.records import store
from harness.records.models import Machine, Outcome, ProcessRecord, RunRecords
from harness.records.store import RunStore
from harness.redaction import RedactingFilter
from harness.report import techempower
from harness.report.tables import counted
from harness.runtime import Runtime, SharedDatabase
from harness.runtime.choice import choose
from harness.runtime.database.external import NoDatabase, external
from harness.stats.model import Ranking
from harness.stats.ranking import rank
from harness.units import whole_seconds
from harness.verify.verifier import Verifier

logger = logging.getLogger("tfb.workflow")

AGAIN = "; started again"
REPAIRS = 2  # of a run whose PostgreSQL ended, before that ends it


@dataclass(frozen=True, kw_only=True)
class Dependencies:
    """All that a run has of the world outside its own code; tests give doubles of it."""

    clock: Clock = SYSTEM_CLOCK
    choose_runtime: Callable[..., Runtime] = choose
    verifier: Verifier = field(default_factory=Verifier)
    generators: Mapping[str, Callable[[Runtime], Generator]] = field(default_factory=lambda: GENERATORS)
    machine: Callable[[], Machine] = host.facts
    open_files: Callable[[], object] = host.raise_nofile  # as many as there may be
    free_memory: Callable[[], float] = host.free_memory
    revision: Callable[[], Revision] = git_state
    leftovers: Callable[[], Sequence[Leftover]] = on_this_machine


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


def benchmark(settings: Settings, progress: Progress, needs: Dependencies | None = None) -> RunOutcome:
    """The whole run. An interruption is recorded, what was measured is kept, and the exception goes on."""
    needs = needs or Dependencies()
    with opened(settings, progress, needs.clock) as folder:
        plan = choose_work(settings)
        clear_leftovers(settings, progress, needs.leftovers())
        machine = needs.machine()
        needs.open_files()
        with progress.preparing("making the runtime ready"):
            logs = folder.folder / "logs"
            runtime = needs.choose_runtime(settings, plan.implementations, logs, run_id=folder.run_id)
        plan = replace(plan, side_by_side=runtime.side_by_side)
        plan = within_memory(plan, folder.folder.parent, needs.free_memory())
        before = store.read(folder.folder) if settings.resume else None
        done = store.finished(before) if before else frozenset()
        if before:
            plan = replace(plan, problems=(*plan.problems, *forgotten(before, done)))
        info = describe(settings, plan, machine, runtime, folder, needs.revision())
        if before:
            require_same(before.info, info)
        left = 1 - len(done) / (len(plan.candidates) * plan.profile.processes.maximum)
        expected = predict(plan, settings.seed)
        progress.expected_seconds = left * expected.seconds
        for problem in filter(None, (*plan.problems, expected.shortage)):
            progress.problem(problem)
        progress.opens(opening(settings, plan, runtime, progress.expected_seconds, needs.clock.time()))
        with progress.preparing("making the load generator ready"):  # before anything is built: it may lack cargo
            generators = {name: make(runtime) for name, make in needs.generators.items()}
        if isinstance(runtime, OverMachines):
            info = runtime.survey(info)
        if not before:
            folder.write_info(info)
        builds = build_all(runtime, plan, progress, folder)
        info = info.model_copy(update={"implementations": tuple(i.info(builds[i.name]) for i in plan.implementations)})
        if before:  # only now: what may not go on stays as it was
            require_same(before.info, info)
            store.set_aside(folder.folder, lambda process: process not in done)
        folder.write_info(info)
        plan = plan.of_those([name for name, build in builds.items() if build.status == "ok"])
        if plan.candidates:
            progress.stage("starting PostgreSQL" if settings.own_database else "starting")
            with open_database(settings, runtime) as database:
                measure(
                    Bench(
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
        outcome = conclude(folder, "complete", clock=needs.clock)
        progress.finish(outcome.records.info.status)
        return outcome


def dry_run(settings: Settings) -> int:
    """Print what a run would measure and how long it takes, by the same design sent predicted results."""
    plan = within_memory(choose_work(settings), settings.results, host.free_memory())
    found = predict(plan, settings.seed)
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
        figures = {"trials": found.trials, "seconds": found.seconds, "measuring_seconds": found.measuring}
        print(json.dumps({"processes": processes, **figures, "cells": cells}))
        return Exit.OK
    for number, group in enumerate(groups(plan, settings.seed), 1):
        print(f"group {number}: {', '.join(candidate.implementation for candidate in group)}")
    for cell in cells:
        print(f"{cell['implementation']}  {cell['test_type']}  {', '.join(cell['loads'])}")
    least = f"{count.minimum} to " if count.maximum > count.minimum else ""
    print(
        f"{counted(plan.cells, 'cell')}, {least}{counted(count.maximum, 'process')} of each, "
        f"{counted(found.trials, 'trial')}; about {whole_seconds(found.seconds)}, "
        f"{found.measuring / max(1.0, found.seconds):.0%} of it measuring, builds apart"
    )
    return Exit.OK


def measure(bench: Bench) -> None:
    """Carry the profile's design out over what is recorded already; again where what it ran on was lost on the way.

    Then the processes that were up are measured from their beginning: it was not their fault.
    """
    plan, seed, progress, folder = bench.plan, bench.settings.seed, bench.progress, bench.store.folder
    began, limit = bench.clock.monotonic(), plan.profile.interleaved.time_seconds
    for left in reversed(range(1 + REPAIRS)):
        recorded = Recorded(store.read(folder))
        share = len(recorded.processes) / (len(plan.candidates) * plan.profile.processes.maximum)
        used = share if limit is None else max(share, (bench.clock.monotonic() - began) / limit)
        try:
            design = DESIGNS[plan.profile.design](plan, seed)
            carry_out(design, bench.carry_out, bench.clock, limit, recorded=recorded, used=used)
        except (DatabaseDiedError, MachineLostError) as error:
            lost = set(bench.up)
            bench.abandon(error)
            store.set_aside(folder, lost.__contains__)
            names = ", ".join(sorted({name for name, _ in lost}))
            if not left or isinstance(error, MachineLostError):
                raise  # --resume goes on when it is back
            progress.problem(f"{error}; what it took is measured again: {names}")
            bench.database.restore()
        except BaseException as error:
            bench.abandon(error)
            raise
        else:
            return


@contextmanager
def opened(settings: Settings, progress: Progress, clock: Clock) -> Iterator[RunStore]:
    """The run's folder, locked, with its log; its end is recorded in it."""
    if settings.resume is None:
        folder = RunStore.new(settings.results, started_at=clock.time())
    else:
        found = store.find(settings.results, settings.resume)
        info = store.read(found).info
        if info.status == "complete":
            raise UsageError(f"run {found.name} is complete: there is nothing to resume")
        folder = RunStore(found, started_at=info.started_at)
    with ExitStack() as stack:
        stack.callback(folder.discard_if_empty)
        # Every command and event of the harness is in logs/harness.log.
        handler = logging.FileHandler(folder.folder / "logs" / "harness.log", encoding="utf-8")
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        handler.addFilter(RedactingFilter())
        stack.callback(handler.close)
        root = logging.getLogger("tfb")
        root.setLevel(logging.INFO)
        root.addHandler(handler)
        stack.callback(root.removeHandler, handler)
        stack.enter_context(folder.locked())
        stack.callback(progress.close)
        progress.store = folder
        try:
            yield folder
        except BaseException as error:
            give_up(folder, progress, error, clock)
            raise


def clear_leftovers(settings: Settings, progress: Progress, found: Sequence[Leftover]) -> None:
    """Remove, with consent, what a killed run left and what would be measured beside; name what stays."""
    found = [leftover for leftover in found if leftover.certain]
    if not found:
        return
    names = ", ".join(map(str, found))
    if settings.consent == "yes":
        progress.note(f"removed what a killed run had left: {names}")
        for kept in leftovers.remove(found):
            progress.problem(f"could not be removed: {kept}")
    else:
        progress.problem(f"a killed run has left {names}, beside which this one measures: ./tfb clean removes it")


def open_database(settings: Settings, runtime: Runtime) -> AbstractContextManager[SharedDatabase]:
    """The run's own PostgreSQL, the one that ``--database-host`` names, or none for a service that needs none."""
    database = settings.hosts.database
    if isinstance(database, Postgres):
        return external(database.host, database.port)
    return runtime.database() if settings.own_database else nullcontext(NoDatabase())


def give_up(folder: RunStore, progress: Progress, error: BaseException, clock: Clock) -> None:
    """Keep what was measured before an error or an interruption, as far as the disk allows."""
    goes_on = isinstance(error, KeyboardInterrupt | MachineLostError | StoreError)  # with a bare --resume
    status: Literal["failed", "interrupted"] = "interrupted" if goes_on else "failed"
    if not folder.begun or isinstance(error, UsageError):  # one that may not go on stays as it was
        return
    try:
        conclude(folder, status, str(error), clock=clock)
        progress.finish(status)
    except StoreError as second:  # the first one is what has to be told
        logger.error("%s", second)  # noqa: TRY400 - its message says all


def conclude(
    folder: RunStore, status: Literal["complete", "failed", "interrupted"], reason: str = "", *, clock: Clock
) -> RunOutcome:
    """Rank what there is and write run.json, ranking.json and TechEmpower's results.json."""
    records = store.read(folder.folder)
    problems, missed = records.info.problems, tuple[str, ...]()
    if status == "complete":
        problems = missed = tuple(dict.fromkeys((*problems, *failures(records))))
        status = "failed" if missed else status
    else:  # what it has not measured is no failure of an implementation: it says why it ended, no more
        problems = (*problems, reason or status)
    ended = {"status": status, "completed_at": clock.time(), "problems": problems}
    info = records.info.model_copy(update=ended)
    records = replace(records, info=info)
    try:
        ranking = rank(info, records.trials, records.processes, records.verdicts)
        folder.write_text("ranking.json", ranking.recorded())
        folder.write_text("results.json", json.dumps(techempower.document(records), indent=1))
    finally:
        folder.write_info(info)  # last: who sees the end finds its ranking
    return RunOutcome(records=records, ranking=ranking, failures=missed)


def failures(records: RunRecords) -> tuple[str, ...]:
    """What keeps the run from exit code 0: one sentence each."""
    found = []
    trials = [trial for trial in records.trials if trial.purpose == "measure"]
    measured = {(trial.implementation, trial.test_type, trial.load) for trial in trials if trial.rankable}
    failed = {(v.implementation, v.test_type) for v in records.verdicts if v.outcome is Outcome.FAIL}
    for implementation in records.info.implementations:
        name, build, cells = implementation.name, implementation.build, records.info.cells
        if build is None or build.status != "ok":
            what = "was not built" if build is None else f"{build.status}: {build.reason.splitlines()[0]}"
            found.append(f"{name} {what}")
            continue
        for test_type, loads in (cells.get(name, {}) if cells else records.info.loads).items():
            if (name, test_type) in failed:
                found.append(f"{name} {test_type}: verification failed")
            elif test_type in implementation.test_types:
                missing = [load for load in loads if (name, test_type, load) not in measured]
                found += [f"{name} {test_type} {load.label}: no valid trial" for load in missing]
    return (*found, *(_failure(process) for process in records.processes if process.status != "ok"))


def forgotten(records: RunRecords, done: Collection[tuple[str, int]]) -> tuple[str, ...]:
    """What kept processes from coming up that are started again, now and when the run was resumed before."""
    failed = (each for each in records.processes if each.status == "failed")
    now = (f"{_failure(each)}{AGAIN}" for each in failed if (each.implementation, each.process) not in done)
    return (*(said for said in records.info.problems if said.endswith(AGAIN)), *now)


def _failure(process: ProcessRecord) -> str:
    what = process.reason.splitlines()[0] if process.reason else process.status
    return f"{process.implementation} process {process.process + 1}: {what.removeprefix(f'{process.implementation}: ')}"
