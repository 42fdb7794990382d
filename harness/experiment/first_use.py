"""Predicts the installations and builds that a run performs before the first measurement."""

import contextlib
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import EnvironmentLacksError, StoreError, TfbError
from harness.experiment.progress import ProgressTracker
from harness.plan.plan import Plan
from harness.plan.run_settings import Settings
from harness.provisioning import crates, requirements
from harness.records.reader import RunReader
from harness.records.run_folders import list_runs
from harness.runtime import docker, upstream
from harness.runtime.choice import uses_local_runtime
from harness.runtime.compose import engine_version, inspect
from harness.units import format_elapsed

# Typical seconds on a machine with two CPUs. They predict when the run ends and are not part of the measuring time.
APT_SECONDS, PACKAGE_SECONDS = 15.0, 20.0
CRATE_SECONDS = {"loadgen": 60.0, "upstream": 30.0}
IMAGE_SECONDS = {docker.BASE: 30.0, docker.DATABASE_IMAGE: 60.0, docker.WRK_IMAGE: 60.0, docker.LOADGEN_IMAGE: 90.0}
LATEST_RUNS = 20  # number of runs that are searched for build durations


@dataclass(frozen=True, kw_only=True)
class FirstUseTask:
    """An installation or a build that tfb performs once on a machine."""

    what: str
    seconds: float
    in_runtime: bool = True  # whether the preparation of the runtime includes the task
    crate: str = ""  # name of a crate to build


def find_chores(settings: Settings, plan: Plan) -> tuple[FirstUseTask, ...]:
    """Return the packages, programs and images that this run has to install or build, except implementations."""
    if settings.hosts.uses_remote_machines:  # other machines of the run are prepared over ssh
        return ()
    if not uses_local_runtime(settings):
        try:
            engine_version()
        except EnvironmentLacksError:  # the run itself reports a missing engine, and a dry run does not need an engine
            return ()
        missing = [image for image in IMAGE_SECONDS if inspect("image", image) is None]
        return tuple(
            FirstUseTask(
                what=f"build the image {image}", seconds=IMAGE_SECONDS[image], in_runtime=image != docker.LOADGEN_IMAGE
            )
            for image in missing
            if settings.mode == "benchmark" or image != docker.LOADGEN_IMAGE
        )
    packages = requirements.missing_packages(
        requirements.tool_requirements(plan.implementations, **settings.requirements)
    )
    chores = []
    if packages and settings.consent != "no" and shutil.which("apt-get"):
        seconds = APT_SECONDS + PACKAGE_SECONDS * len(packages)
        chores.append(FirstUseTask(what=f"install {', '.join(packages)} (apt-get)", seconds=seconds))
    if settings.mode == "benchmark" and crates.find_built("loadgen", "loadgen") is None:
        chores.append(_crate("loadgen", "the load generator"))
    if calls_upstream(settings, plan) and crates.find_built("upstream", "upstream") is None:
        chores.append(_crate("upstream", "the upstream service of the fan-out test"))
    return tuple(chores)


def _crate(name: str, what: str) -> FirstUseTask:
    return FirstUseTask(what=f"build {what} (cargo build)", seconds=CRATE_SECONDS[name], in_runtime=False, crate=name)


def calls_upstream(settings: Settings, plan: Plan) -> bool:
    """Return whether servers of this run can call the upstream service."""
    hidden = settings.network_mode == "bridge" or settings.hosts.uses_remote_machines
    called = any(kind.calls_upstream for each in plan.implementations for kind in each.test_types.values())
    return called and not hidden and upstream.available()


def describe_chores(chores: Sequence[FirstUseTask]) -> str:
    """Return a line that announces the tasks, or an empty string if there are none."""
    if not chores:
        return ""
    seconds = format_elapsed(sum(chore.seconds for chore in chores))
    names = "; ".join(chore.what for chore in chores)
    return f"first use on this machine, about {seconds} before anything is measured: {names}"


def describe_stage(chores: Sequence[FirstUseTask], purpose: str, *, in_runtime: bool = False) -> str:
    """Return the name of a preparation stage: the purpose, followed by the tasks in it."""
    included = [chore.what for chore in chores if chore.in_runtime == in_runtime]
    return f"{purpose}: {'; '.join(included)}" if included else purpose


def build_upstream(chores: Sequence[FirstUseTask], progress: ProgressTracker) -> None:
    """Build the upstream service if it is needed. Otherwise, the first server that starts would have to build it."""
    if any(chore.crate == "upstream" for chore in chores):
        try:
            crates.upstream_program()
        except TfbError as error:  # every server that calls the service reports this error when it fails to start
            progress.problem(str(error))


def past_build_seconds(plan: Plan, results: Path) -> dict[str, float | None]:
    """Return the seconds of each implementation's latest successful build in a results folder, or None if unknown."""
    seconds: dict[str, float | None] = dict.fromkeys(candidate.implementation for candidate in plan.candidates)
    for folder in reversed(list_runs(results)[-LATEST_RUNS:]):
        with contextlib.suppress(StoreError):  # an unreadable run provides no durations
            for built in RunReader(folder).info.implementations:
                if built.build and built.build.status == "ok" and seconds.get(built.name, 0.0) is None:
                    seconds[built.name] = built.build.duration
    return seconds


def describe_builds(seconds: dict[str, float | None]) -> str:
    """Return a line that announces the builds and their durations in earlier runs."""
    measured = [length for length in seconds.values() if length is not None]
    unknown = [name for name, length in seconds.items() if length is None]
    parts = [f"about {format_elapsed(sum(measured))}, judging by earlier runs"] if measured else []
    if unknown:
        parts.append(f"not built before: {', '.join(unknown)}" if measured else "not built here before")
    return f"builds come first and take no measuring time ({'; '.join(parts)})"
