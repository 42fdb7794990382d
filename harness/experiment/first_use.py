"""Predicts the installations and builds that a run performs before the first measurement."""

import contextlib
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import EnvironmentLacksError, StoreError, TfbError
from harness.experiment.generators.registry import needed_generators
from harness.experiment.progress import ProgressTracker
from harness.plan.implementation import Implementation
from harness.plan.plan import Plan
from harness.plan.run_settings import Settings
from harness.provisioning import crates, requirements
from harness.records.reader import RunReader
from harness.records.run_folders import list_runs
from harness.runtime import docker, upstream
from harness.runtime.choice import uses_local_runtime
from harness.runtime.compose import engine_version, inspect
from harness.units import format_elapsed

# Typical durations on a machine with two CPUs, used only to predict when the run ends.
APT_SECONDS, PACKAGE_SECONDS = 15.0, 20.0
CRATE_SECONDS = {"loadgen": 60.0, "upstream": 30.0, "websocket-witness": 60.0}
FIRST_BUILD_SECONDS = 60.0  # for an implementation without an earlier build on this machine
IMAGE_SECONDS = {
    docker.BASE: 30.0,
    docker.DATABASE_IMAGE: 60.0,
    docker.WRK_IMAGE: 60.0,
    docker.LOADGEN_IMAGE: 90.0,
    docker.WEBSOCKET_IMAGE: 90.0,
}


@dataclass(frozen=True, kw_only=True)
class FirstUseTask:
    """An installation or a build that tfb performs once on a machine."""

    description: str  # shown to the user
    seconds: float
    in_runtime: bool = True  # True: runs while the runtime is prepared; False: runs later
    crate: str = ""  # name of the crate that the task builds; empty for other tasks


def find_first_use_tasks(settings: Settings, plan: Plan) -> tuple[FirstUseTask, ...]:
    """Return the one-time installations and builds that a run still needs, except for builds of implementations."""
    if settings.hosts.uses_remote_machines:  # remote machines are prepared over ssh instead
        return ()
    if not uses_local_runtime(settings):
        try:
            engine_version()
        except EnvironmentLacksError:  # a run reports the missing engine later, and a dry run does not need it
            return ()
        at_first = (docker.BASE, docker.DATABASE_IMAGE, docker.WRK_IMAGE)
        later = tuple(docker.GENERATORS[name] for name in _own_generators(settings, plan))
        return tuple(
            FirstUseTask(
                description=f"build the image {image}", seconds=IMAGE_SECONDS[image], in_runtime=image not in later
            )
            for image in (*at_first, *later)
            if inspect("image", image) is None
        )
    packages = requirements.missing_packages(
        requirements.tool_requirements(plan.implementations, **settings.requirements)
    )
    first_use_tasks = []
    if packages and settings.consent != "no" and shutil.which("apt-get"):
        seconds = APT_SECONDS + PACKAGE_SECONDS * len(packages)
        first_use_tasks.append(FirstUseTask(description=f"install {', '.join(packages)} (apt-get)", seconds=seconds))
    own_generators = _own_generators(settings, plan)
    first_use_tasks += [_crate(name) for name in own_generators if crates.find_built(name, name) is None]
    if calls_upstream(settings, plan) and crates.find_built("upstream", "upstream") is None:
        first_use_tasks.append(_crate("upstream"))
    return tuple(first_use_tasks)


def _own_generators(settings: Settings, plan: Plan) -> tuple[str, ...]:
    """Return the names of the run's load generators that tfb builds itself."""
    needed = needed_generators(plan) if settings.mode == "benchmark" else ()
    return tuple(name for name in docker.OWN_GENERATORS if name in needed)


def _crate(name: str) -> FirstUseTask:
    return FirstUseTask(
        description=f"build {crates.NAMES[name]} (cargo build)",
        seconds=CRATE_SECONDS[name],
        in_runtime=False,
        crate=name,
    )


def calls_upstream(settings: Settings, plan: Plan) -> bool:
    """Return whether a server of this run calls the upstream service and can reach it."""
    hidden = settings.network_mode == "bridge" or settings.hosts.uses_remote_machines
    called = any(kind.calls_upstream for each in plan.implementations for kind in each.test_types.values())
    return called and not hidden and upstream.available()


def describe_first_use_tasks(first_use_tasks: Sequence[FirstUseTask]) -> str:
    """Return a line that announces the tasks, or an empty string if there are none."""
    if not first_use_tasks:
        return ""
    seconds = format_elapsed(sum(task.seconds for task in first_use_tasks))
    names = "; ".join(task.description for task in first_use_tasks)
    return f"first use on this machine: setup takes about {seconds} before measurement starts: {names}"


def generator_seconds(first_use_tasks: Sequence[FirstUseTask]) -> float:
    """Return the expected seconds to build the load generators and the upstream service."""
    return sum(task.seconds for task in first_use_tasks if not task.in_runtime)


def build_upstream(first_use_tasks: Sequence[FirstUseTask], progress: ProgressTracker) -> None:
    """Build the upstream service now if it is missing, so that no server has to wait for the build."""
    if any(task.crate == "upstream" for task in first_use_tasks):
        try:
            crates.upstream_program()
        except TfbError as error:  # not fatal: only the servers that call the service will fail to start
            progress.problem(str(error))


def past_build_seconds(plan: Plan, results: Path) -> dict[str, float | None]:
    """Return how long each implementation's latest successful build took, in seconds, or None if unknown."""
    seconds: dict[str, float | None] = dict.fromkeys(candidate.implementation for candidate in plan.candidates)
    for folder in reversed(list_runs(results)[-20:]):
        with contextlib.suppress(StoreError):  # an unreadable run provides no durations
            for built in RunReader(folder).info.implementations:
                if built.build and built.build.status == "ok" and seconds.get(built.name, 0.0) is None:
                    seconds[built.name] = built.build.duration
    return seconds


def expected_build_seconds(
    implementations: Sequence[Implementation], past: Mapping[str, float | None]
) -> dict[str, float]:
    """Return each implementation's expected build time in seconds.

    If implementations share a build, the time of all but the first is 0. ``past`` maps each implementation to the
    seconds of its latest build, or to None if unknown.
    """
    seconds: dict[str, float] = {}
    counted: set[object] = set()
    for each in implementations:
        length, has_commands = past.get(each.name), bool(each.local and each.local.build)
        first = 0.0 if each.is_service and not has_commands else FIRST_BUILD_SECONDS
        seconds[each.name] = first if length is None else length
        if (key := shared_build(each)) in counted:
            seconds[each.name] = 0.0
        counted.add(key)
    return seconds


def shared_build(implementation: Implementation) -> object:
    """Return a key that implementations share if the local runtime builds them with the same commands."""
    local = implementation.local
    if local is None or implementation.is_service:  # such implementations never share a build
        return implementation.name
    return implementation.folder, local.build, tuple(sorted(local.requires.items())), local.install_scripts


def describe_builds(past: Mapping[str, float | None], expected: float) -> str:
    """Return a line that announces the builds. ``expected`` is their total duration in seconds."""
    unknown = sum(length is None for length in past.values())
    first = f"; {unknown} of {len(past)} for the first time, at about {FIRST_BUILD_SECONDS / 60:.0f} min each"
    basis = first if unknown and expected else "" if unknown else ", based on earlier runs"
    return f"builds run first and do not count towards the measuring time (about {format_elapsed(expected)}{basis})"
