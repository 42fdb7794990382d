"""The first stage of a run: selects the work, prepares the runtime and load generators, and describes the run."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from harness.experiment import first_use, origin
from harness.experiment.ending import retried_failures
from harness.experiment.first_use import FirstUseTask
from harness.experiment.generators import LoadGenerator
from harness.experiment.predicted import predict
from harness.experiment.progress import ProgressTracker
from harness.experiment.run_context import MultiMachineRuntime, RunContext
from harness.experiment.run_setup import make_run_info, require_same_setup
from harness.experiment.selection import limit_memory, make_plan, remaining_share
from harness.host import leftovers
from harness.host.leftovers import Leftover
from harness.plan.plan import Plan
from harness.plan.run_settings import Settings
from harness.records import store
from harness.records.machine_record import Machine
from harness.records.run_info import RunInfo
from harness.report.tables import format_count
from harness.runtime import Runtime
from harness.units import format_elapsed


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A run that is ready for the builds."""

    context: RunContext
    plan: Plan
    info: RunInfo
    runtime: Runtime
    generators: Mapping[str, LoadGenerator]
    measuring_seconds: float  # predicted seconds from the first start of a server to the end of the run
    # Function that receives the builds, and raises UsageError if the run may not use them.
    accept_builds: Callable[[RunInfo], None]


@dataclass(frozen=True, kw_only=True)
class _Selected:
    """The selected work and the runtime for it."""

    plan: Plan
    machine: Machine
    runtime: Runtime
    chores: Sequence[FirstUseTask]


def prepare_new(context: RunContext) -> Prepared:
    """Prepare a new run, and write and seal run.json."""
    selected = _select(context)
    info = _describe(context, selected, selected.plan)
    seconds = _announce(context, selected, selected.plan, share=1.0, unread=())
    generators = _make_generators(context, selected)
    surveyed = _survey(selected.runtime, info)
    context.store.write_info(surveyed)
    origin.seal_run(context.store.folder, surveyed, context.settings)
    return Prepared(
        context=context,
        plan=selected.plan,
        info=surveyed,
        runtime=selected.runtime,
        generators=generators,
        measuring_seconds=seconds,
        accept_builds=lambda _: None,
    )


def prepare_resumed(context: RunContext) -> Prepared:
    """Prepare the remaining part of an interrupted run. run.json changes only after the builds.

    Raises:
        UsageError: The implementations, the profile or the tools have changed since the run started.
    """
    selected = _select(context)
    records = store.read_run(context.store.folder)
    finished = store.finished_processes(records)
    problems = (*selected.plan.problems, *retried_failures(records, finished))
    plan = replace(selected.plan, problems=problems)
    info = _describe(context, selected, plan)
    require_same_setup(records.info, info)
    seconds = _announce(context, selected, plan, share=remaining_share(plan, finished), unread=records.problems)

    def accept_builds(built: RunInfo) -> None:
        require_same_setup(records.info, built, {trial.implementation for trial in records.trials})
        store.quarantine_records(context.store.folder, lambda process: process not in finished)

    generators = _make_generators(context, selected)
    return Prepared(
        context=context,
        plan=plan,
        info=_survey(selected.runtime, info),
        runtime=selected.runtime,
        generators=generators,
        measuring_seconds=seconds,
        accept_builds=accept_builds,
    )


def _select(context: RunContext) -> _Selected:
    """Return the plan, the machine and the runtime of a run. Install missing software for the runtime."""
    settings, progress, dependencies = context.settings, context.progress, context.dependencies
    wanted = make_plan(settings)
    clear_leftovers(settings, progress, dependencies.leftovers())
    machine = dependencies.machine()
    dependencies.open_files()
    chores = dependencies.first_use(settings, wanted)
    if chores:
        progress.announce(first_use.describe_chores(chores))
    with progress.preparing(first_use.describe_stage(chores, "making the runtime ready", in_runtime=True)):
        logs = context.store.folder / "logs"
        runtime = dependencies.choose_runtime(settings, wanted.implementations, logs, run_id=context.store.run_id)
    arranged = replace(wanted, side_by_side=runtime.side_by_side)
    plan = limit_memory(arranged, context.store.folder.parent, dependencies.free_memory())
    return _Selected(plan=plan, machine=machine, runtime=runtime, chores=chores)


def _describe(context: RunContext, selected: _Selected, plan: Plan) -> RunInfo:
    """Return run.json as it is before the first build."""
    revision = context.dependencies.revision()
    return make_run_info(context.settings, plan, selected.machine, selected.runtime, context.store, revision)


def _announce(context: RunContext, selected: _Selected, plan: Plan, *, share: float, unread: Sequence[str]) -> float:
    """Announce the run, report known problems, and return the predicted seconds of measurement.

    Args:
        context: The run.
        selected: The selected work.
        plan: The plan to predict.
        share: Remaining share of the plan, 0 to 1.
        unread: Unreadable records of the run.
    """
    settings, progress = context.settings, context.progress
    expected = predict(plan, settings.seed)
    measuring = share * expected.seconds
    remaining = measuring + sum(chore.seconds for chore in selected.chores if not chore.in_runtime)
    progress.expected_seconds = progress.elapsed + remaining
    for problem in filter(None, (*plan.problems, expected.shortage, *unread)):
        progress.problem(problem)
    now = context.dependencies.clock.time()
    progress.announce(describe_run(settings, plan, selected.runtime, remaining, now))
    builds = first_use.past_build_seconds(plan, context.store.folder.parent)
    progress.announce(first_use.describe_builds(builds))
    return measuring


def _make_generators(context: RunContext, selected: _Selected) -> dict[str, LoadGenerator]:
    """Build the load generators and the upstream service. They are built first, because cargo may be missing."""
    progress, makers = context.progress, context.dependencies.generators
    with progress.preparing(first_use.describe_stage(selected.chores, "making the load generator ready")):
        generators = {name: make(selected.runtime) for name, make in makers.items()}
        first_use.build_upstream(selected.chores, progress)
    return generators


def _survey(runtime: Runtime, info: RunInfo) -> RunInfo:
    """Return run.json with facts about the other machines of the run, if there are any."""
    return runtime.survey(info) if isinstance(runtime, MultiMachineRuntime) else info


def clear_leftovers(settings: Settings, progress: ProgressTracker, leftovers_found: Sequence[Leftover]) -> None:
    """Remove leftovers of killed runs with consent. Report the others, because they disturb measurements."""
    certain = [leftover for leftover in leftovers_found if leftover.certain]
    if not certain:
        return
    names = ", ".join(map(str, certain))
    if settings.consent == "yes":
        progress.note(f"removed leftovers of a killed run: {names}")
        for kept in leftovers.remove_leftovers(certain):
            progress.problem(f"could not be removed: {kept}")
    else:
        progress.problem(f"leftovers of a killed run disturb this measurement: {names}. Remove them with ./tfb clean")


def describe_run(settings: Settings, plan: Plan, runtime: Runtime, seconds: float, now: float) -> str:
    """Return the line that announces the size, the runtime, the profile and the expected end of a run.

    Args:
        settings: The settings of the run.
        plan: The plan of the run.
        runtime: The runtime of the run.
        seconds: Predicted time until the end of the run, without builds.
        now: Current time in epoch seconds.
    """
    count = format_count(len(plan.implementations), "implementation")
    place = f"{runtime.name} runtime"
    if settings.runtime == "auto":
        reason = "a container engine answers" if runtime.name == "docker" else "no container engine answers"
        place += f" (auto: {reason})"
    end = time.strftime("%H:%M", time.localtime(now + seconds))
    return (
        f"{count}, {place}, profile {settings.profile.name}, seed {settings.seed}; "
        f"expected end {end} ({format_elapsed(seconds)}, builds not counted)"
    )
