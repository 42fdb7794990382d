"""A run as a list of stages: read ``benchmark`` first, it is all of them in their order."""

import json
import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, replace
from typing import Literal

from harness.errors import Exit, StoreError, UsageError
from harness.host import leftovers, provision
from harness.host.clock import Clock
from harness.host.leftovers import Leftover
from harness.measure.sweep import Budget
from harness.measure.testbed import Testbed
from harness.plan.config import Settings, parse_cpus
from harness.plan.hosts import Postgres
from harness.plan.plan import Plan
from harness.plan.testtypes.registry import TEST_TYPES
from harness.records import store
from harness.records.models import AUDITS, NO_AUDITS, Machine, Outcome, RunInfo, RunRecords
from harness.records.store import RunStore
from harness.report import techempower
from harness.run import blocks, duets, resuming, rounds
from harness.run.audit_time import AuditTime
from harness.run.blocks import Done
from harness.run.duets import Pairing
from harness.run.latency import measure as measure_latency
from harness.run.preparation import (
    Selected,
    build_all,
    choose_work,
    describe,
    make_plan,
    of_those_built,
    opening,
    require_files,
)
from harness.run.progress import Progress
from harness.run.running import Dependencies, Run
from harness.runtime import Runtime, SharedDatabase
from harness.runtime.database.external import external
from harness.runtime.machines.runtime import MachinesRuntime
from harness.stats.model import Ranking
from harness.stats.ranking import rank
from harness.stats.whole import rank_whole

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


def benchmark(
    settings: Settings,
    progress: Progress,
    pairing: Pairing = duets.neighbours,
    needs: Dependencies = Dependencies(),  # noqa: B008 - frozen
) -> RunOutcome:
    """The whole run; ``pairing`` says who plays duets where they were asked for.

    An interruption is recorded, what was measured is kept, and the exception goes on.
    """
    with opened(settings, progress, needs.clock) as (folder, done):
        selected = choose_work(settings)
        revision = needs.revision()
        before = store.read(folder.folder).info if settings.resume else None
        if before:
            resuming.require_same(before, settings, selected, revision)
            store.set_aside_unfinished(folder.folder, done)
        plan = make_plan(selected, settings)
        machine = needs.machine()
        require_files(plan, needs.open_files())
        tell(progress, selected, plan)
        clear_leftovers(settings, progress, needs.leftovers())
        with progress.preparing("making the runtime ready"):
            logs = folder.folder / "logs"
            runtime = needs.choose_runtime(settings, selected.implementations, logs, run_id=folder.run_id)
        progress.opens(opening(settings, selected, plan, runtime, needs.clock.time()))
        if settings.profile.latency:  # before anything is built: it may lack cargo
            needs.rate_tools.generator(runtime.name, settings.profile.latency)
        if any(TEST_TYPES[name].open_loop for name in settings.test_types):
            needs.rate_tools.scenarios(runtime.name, settings.profile.orders.drain_seconds)
        info = describe(settings, selected, plan, machine, runtime, folder, revision)
        if isinstance(runtime, MachinesRuntime):
            info = runtime.survey(info)
            machine = info.machine
        folder.write_info(info)
        info = build_all(runtime, selected, info, progress, folder)
        if before:
            with kept(before, folder):
                resuming.require_same_builds(before, info)
        plan = of_those_built(plan, info)
        if plan.blocks[0]:
            progress.stage("starting PostgreSQL")
            with open_database(settings, runtime) as database:
                run = set_up(settings, needs, selected, plan, machine, runtime, database, folder, progress)
                audits = "loadgen" if run.testbed.auditor else NO_AUDITS
                info = info.model_copy(update={"tools": {**info.tools, AUDITS: audits}})
                folder.write_info(info)
                began = needs.clock.monotonic()
                if settings.profile.latency:
                    info = measure_latency(run, plan, info, done)
                else:
                    design = rounds if settings.profile.rounds else blocks
                    info = design.measure(run, plan, info, done)
                if settings.order == "duet":
                    play_duets(run, info, pairing)
                if audited := run.audit_time.text(needs.clock.monotonic() - began):
                    logger.info("%s", audited)
                    progress.note(audited)
        outcome = conclude(folder, "complete", clock=needs.clock)
        progress.finish(outcome.records.info.status)
        return outcome


@contextmanager
def opened(settings: Settings, progress: Progress, clock: Clock) -> Iterator[tuple[RunStore, Done]]:
    """The run's folder, locked, with its log; whatever ends the run is recorded in it."""
    folder, done = open_store(settings, clock)
    try:
        with logged(folder), closing(progress):
            progress.store = folder
            try:
                yield folder, done
            except BaseException as error:
                give_up(folder, progress, error, clock)
                raise
    finally:
        folder.discard_if_empty()


@contextmanager
def kept(info: RunInfo, folder: RunStore) -> Iterator[None]:
    """What may not go on stays as it was: run.json is written again."""
    try:
        yield
    except UsageError:
        folder.write_info(info)
        raise


def tell(progress: Progress, selected: Selected, plan: Plan) -> None:
    """How long it will take, and what is broken already."""
    progress.expected_seconds = plan.expected_seconds
    for problem in selected.problems:
        progress.problem(problem)
    progress.stage("preparing")


def clear_leftovers(settings: Settings, progress: Progress, found: Sequence[Leftover]) -> None:
    """Remove, with consent, what a killed run left and what would be measured beside; name what stays."""
    found = [leftover for leftover in found if leftover.certain]
    if not found:
        return
    names = ", ".join(map(str, found))
    if provision.consents(settings.consent, f"a run that was killed has left: {names}. Remove?"):
        progress.note(f"removed what a killed run had left: {names}")
        for kept in leftovers.remove(found):
            progress.problem(f"could not be removed: {kept}")
    else:
        progress.problem(f"a killed run has left {names}, beside which this one measures: ./tfb clean removes it")


def open_database(settings: Settings, runtime: Runtime) -> AbstractContextManager[SharedDatabase]:
    """The run's own PostgreSQL, or the one that ``--database-host`` names."""
    database = settings.hosts.database
    return external(database.host, database.port) if isinstance(database, Postgres) else runtime.database()


def set_up(
    settings: Settings,
    needs: Dependencies,
    selected: Selected,
    plan: Plan,
    machine: Machine,
    runtime: Runtime,
    database: SharedDatabase,
    folder: RunStore,
    progress: Progress,
) -> Run:
    """The testbed, and where samples go."""
    profile = settings.profile
    usable = machine.cpus_usable
    with progress.preparing("making the load generator of the audits ready"):
        auditor = needs.auditing(runtime)
    server = parse_cpus(settings.cpuset_cpus or profile.server_cpus, usable, "--cpuset-cpus") or usable
    others = parse_cpus(profile.other_cpus, usable, "other_cpus") or usable
    return Run(
        testbed=Testbed(
            profile=profile,
            clock=needs.clock,
            runtime=runtime,
            generator=needs.generators[settings.generator](runtime),
            verifier=needs.verifier,
            database=database,
            server_cpus=len(server),
            generator_cpus=runtime.client_cpus() if isinstance(runtime, MachinesRuntime) else len(others),
            auditor=auditor,
            links=runtime.to_clients() if isinstance(runtime, MachinesRuntime) else {},
            tell=progress.second,
        ),
        store=folder,
        rate_tools=needs.rate_tools,
        progress=progress,
        implementations={i.name: i for i in selected.implementations},
        seed=plan.seed,
        audit_time=AuditTime.of(plan, profile),
        budget=Budget(seconds=plan.maximum_seconds * profile.gates.repeat_budget_share),
        free_memory=needs.free_memory,
        stopping=needs.stopping,
    )


def play_duets(run: Run, info: RunInfo, pairing: Pairing) -> None:
    """Decide by duets what the blocks left open."""
    records = store.read(run.store.folder)
    ranking = rank(info, records.samples, records.replicates, records.verdicts)
    duets.run(run, pairing(ranking), duets.last_verdicts(records.verdicts))


def give_up(folder: RunStore, progress: Progress, error: BaseException, clock: Clock) -> None:
    """Keep what was measured before an error or an interruption, as far as the disk allows."""
    status: Literal["failed", "interrupted"] = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
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
    # What an interrupted run has not measured is no failure of an implementation: it says why it ended, no more.
    found = (*records.info.problems, *failures(records)) if status == "complete" else ()
    missed = tuple(dict.fromkeys(found))
    problems = missed if status == "complete" else (*records.info.problems, reason or status)
    info = records.info.model_copy(
        update={
            "status": "failed" if status == "complete" and missed else status,
            "completed_at": clock.time(),
            "problems": problems,
        }
    )
    folder.write_info(info)
    records = replace(records, info=info)
    ranking, _ = rank_whole(folder.folder, info, records.samples, records.replicates, records.verdicts)
    folder.write_text("ranking.json", ranking.recorded())
    folder.write_text("results.json", json.dumps(techempower.document(records, ranking), indent=1))
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
            if records.info.cells:
                levels = records.info.cells.get(implementation.name, {}).get(test_type, ())  # noqa: PLW2901 - narrowed
                if not levels:
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
            found.append(f"{replicate.implementation} replicate {replicate.process + 1}: {what}")
    return tuple(found)


def open_store(settings: Settings, clock: Clock) -> tuple[RunStore, Done]:
    """A new run's folder, or that of the run to resume with the replicates that it has finished."""
    if settings.resume is None:
        moment = clock.time()
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
    done = store.finished(records)
    if records.info.status == "complete":
        resuming.require_undamaged(folder, records, done)
        raise UsageError(f"run {folder.name} is complete: there is nothing to resume")
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
