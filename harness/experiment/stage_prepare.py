"""The first stage of a run: selects the work, prepares the runtime and load generators, and describes the run."""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from harness.errors import StoreError
from harness.experiment import first_use, origin
from harness.experiment.ending import retried_failures
from harness.experiment.first_use import FirstUseTask
from harness.experiment.generators import LoadGenerator
from harness.experiment.generators.registry import needed_generators
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
from harness.records.reader import RunReader
from harness.records.run_folders import list_runs
from harness.records.run_info import Machine, RunInfo
from harness.records.run_records import RunRecords
from harness.report.tables import format_count
from harness.runtime import Runtime
from harness.units import format_elapsed


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A run whose implementations are ready to be built."""

    context: RunContext
    plan: Plan
    info: RunInfo
    runtime: Runtime
    generators: Mapping[str, LoadGenerator]
    build_seconds: Mapping[str, float]  # implementation -> expected seconds of its build
    measuring_seconds: float  # predicted time from the first server start to the end of the run
    # Called with the content of run.json after the builds. Raises UsageError if a resumed run must not use the builds.
    accept_builds: Callable[[RunInfo], None]


@dataclass(frozen=True, kw_only=True)
class _Selected:
    """A run's plan, the machine and runtime that it uses, and the installations and builds that it needs."""

    plan: Plan
    machine: Machine
    runtime: Runtime
    first_use_tasks: Sequence[FirstUseTask]
    past_builds: Mapping[str, float | None]  # implementation -> seconds of its latest build, or None if unknown

    @property
    def build_seconds(self) -> dict[str, float]:
        """The expected time of each build in seconds."""
        return first_use.expected_build_seconds(self.plan.implementations, self.past_builds)


def prepare_new(context: RunContext) -> Prepared:
    """Prepare a new run, and write and seal run.json."""
    selected = _select(context)
    info = _describe(context, selected, selected.plan)
    seconds = _announce(context, selected, selected.plan, share=1.0, unread=())
    if change := describe_runtime_change(context.settings, selected.runtime, context.store.folder.parent):
        context.progress.announce(change)
    generators = _make_generators(context, selected)
    surveyed_info = _survey(selected.runtime, info)
    context.store.write_info(surveyed_info)
    origin.seal_run(context.store.folder, surveyed_info, context.settings)
    return Prepared(
        context=context,
        plan=selected.plan,
        info=surveyed_info,
        runtime=selected.runtime,
        generators=generators,
        build_seconds=selected.build_seconds,
        measuring_seconds=seconds,
        accept_builds=lambda _: None,
    )


def prepare_resumed(context: RunContext) -> Prepared:
    """Prepare a resumed run without changing run.json. Raises UsageError if the setup has changed."""
    selected = _select(context)
    records = store.read_run(context.store.folder)
    finished = store.finished_processes(records)
    problems = (*selected.plan.problems, *retried_failures(records, finished))
    plan = replace(selected.plan, problems=problems)
    info = _describe(context, selected, plan)
    require_same_setup(records.info, info)
    seconds = _announce(context, selected, plan, share=remaining_share(plan, finished), unread=records.problems)
    generators = _make_generators(context, selected)
    return Prepared(
        context=context,
        plan=plan,
        info=_survey(selected.runtime, info),
        runtime=selected.runtime,
        generators=generators,
        build_seconds=selected.build_seconds,
        measuring_seconds=seconds,
        accept_builds=partial(_continue_records, records, finished, context.store.folder),
    )


def _continue_records(records: RunRecords, finished: Collection[tuple[str, int]], folder: Path, built: RunInfo) -> None:
    """Quarantine the records of unfinished processes.

    Raises UsageError, without changing any records, if the build of a measured implementation has changed.
    """
    require_same_setup(records.info, built, {trial.implementation for trial in records.trials})
    store.quarantine_records(folder, lambda process: process not in finished)


def _select(context: RunContext) -> _Selected:
    """Make the plan, remove leftovers if permitted, and prepare the runtime, which may install software."""
    settings, progress, dependencies = context.settings, context.progress, context.dependencies
    plan = make_plan(settings)
    clear_leftovers(settings, progress, dependencies.leftovers())
    machine = dependencies.machine()
    dependencies.open_files()
    first_use_tasks = dependencies.first_use(settings, plan)
    with preparing_runtime(first_use_tasks, progress):
        logs = context.store.folder / "logs"
        runtime = dependencies.choose_runtime(settings, plan.implementations, logs, run_id=context.store.run_id)
    plan = replace(plan, side_by_side=runtime.side_by_side)
    plan = limit_memory(plan, context.store.folder.parent, dependencies.free_memory())
    past_builds = first_use.past_build_seconds(plan, context.store.folder.parent)
    return _Selected(
        plan=plan, machine=machine, runtime=runtime, first_use_tasks=first_use_tasks, past_builds=past_builds
    )


@contextmanager
def preparing_runtime(first_use_tasks: Sequence[FirstUseTask], progress: ProgressTracker) -> Iterator[None]:
    """Announce the necessary installations and builds. Show progress while the ``with`` block prepares the runtime."""
    if first_use_tasks:
        progress.announce(first_use.describe_first_use_tasks(first_use_tasks))
    with progress.preparing("preparing the runtime"):
        yield


def _describe(context: RunContext, selected: _Selected, plan: Plan) -> RunInfo:
    """Return the content of run.json, as far as it is known before the first build."""
    revision = context.dependencies.revision()
    return make_run_info(context.settings, plan, selected.machine, selected.runtime, context.store, revision)


def _announce(context: RunContext, selected: _Selected, plan: Plan, *, share: float, unread: Sequence[str]) -> float:
    """Announce the run, report known problems, and return the predicted measuring time in seconds.

    ``share`` is the fraction of the plan that remains to be measured. ``unread`` contains messages about unreadable
    records.
    """
    settings, progress = context.settings, context.progress
    expected = predict(plan, settings.seed)
    measuring = share * expected.seconds
    building = sum(selected.build_seconds.values())
    remaining = measuring + building + first_use.generator_seconds(selected.first_use_tasks)
    progress.expected_seconds = progress.elapsed + remaining
    for problem in filter(None, (*plan.problems, expected.shortage, *unread)):
        progress.problem(problem)
    now = context.dependencies.clock.time()
    progress.announce(describe_run(settings, plan, selected.runtime, remaining, now))
    progress.announce(first_use.describe_builds(selected.past_builds, building))
    return measuring


def _make_generators(context: RunContext, selected: _Selected) -> dict[str, LoadGenerator]:
    """Build and return the load generators, and build the upstream service. Doing so early reveals a missing cargo."""
    progress, makers = context.progress, context.dependencies.generators
    with progress.preparing("preparing the load generator", first_use.generator_seconds(selected.first_use_tasks)):
        needed = needed_generators(selected.plan)
        generators: dict[str, LoadGenerator] = {
            name: make(selected.runtime) for name, make in makers.items() if name in needed
        }
        first_use.build_upstream(selected.first_use_tasks, progress)
    return generators


def _survey(runtime: Runtime, info: RunInfo) -> RunInfo:
    """Return ``info`` with facts about all machines, if the run uses several."""
    return runtime.survey(info) if isinstance(runtime, MultiMachineRuntime) else info


def clear_leftovers(settings: Settings, progress: ProgressTracker, leftovers_found: Sequence[Leftover]) -> None:
    """Remove leftovers of killed runs if the user consents. Otherwise, report that they disturb measurements."""
    certain_leftovers = [leftover for leftover in leftovers_found if leftover.is_certain]
    if not certain_leftovers:
        return
    names = ", ".join(map(str, certain_leftovers))
    if settings.consent == "yes":
        progress.note(f"removed leftovers from a killed run: {names}")
        for remaining in leftovers.remove_leftovers(certain_leftovers):
            progress.problem(f"cannot remove {remaining}")
    else:
        progress.problem(f"leftovers from a killed run disturb this measurement: {names}. Remove them with ./tfb clean")


def describe_run(settings: Settings, plan: Plan, runtime: Runtime, seconds: float, now: float) -> str:
    """Return the line that announces a run, with size, runtime, profile and expected end.

    ``seconds`` is the predicted time until the end of the run. ``now`` is in epoch seconds.
    """
    count = format_count(len(plan.implementations), "implementation")
    runtime_text = f"{runtime.name} runtime"
    if settings.runtime == "auto":
        runtime_text += f" (auto: {_auto_reason(runtime)})"
    end = time.strftime("%H:%M", time.localtime(now + seconds))
    return (
        f"{count}, {runtime_text}, profile {settings.profile.name}, seed {settings.seed}; "
        f"expected end {end} ({format_elapsed(seconds)}, including builds)"
    )


def describe_runtime_change(settings: Settings, runtime: Runtime, results: Path) -> str:
    """Return a warning if --runtime auto changes the runtime since the latest run in ``results``.

    Otherwise, return an empty string.
    """
    is_automatic = settings.runtime == "auto" and not settings.hosts.uses_remote_machines
    folders = list_runs(results) if is_automatic else ()
    try:
        latest = RunReader(folders[-1]).info.runtime if folders else runtime.name
    except StoreError:  # the latest run is unreadable
        return ""
    if latest == runtime.name:
        return ""
    return (
        f"runtime: {runtime.name}, because {_auto_reason(runtime)}. The latest run used {latest}, and results of "
        f"the two runtimes are not comparable. To use the same runtime, add --runtime {latest}"
    )


def _auto_reason(runtime: Runtime) -> str:
    """Return why --runtime auto selected a runtime."""
    return "a container engine responds" if runtime.name == "docker" else "no container engine responds"
