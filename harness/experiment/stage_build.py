"""The second stage of a run: builds the implementations and records the builds."""

import time
from collections.abc import Mapping
from dataclasses import dataclass

from harness.experiment.first_use import shared_build
from harness.experiment.generators import LoadGenerator
from harness.experiment.progress import ProgressTracker
from harness.experiment.run_context import RunContext
from harness.experiment.stage_prepare import Prepared
from harness.plan.implementation import Implementation
from harness.plan.plan import Plan
from harness.records.run_info import BuildRecord, RunInfo
from harness.records.store import RunStore
from harness.runtime import Runtime
from harness.units import format_elapsed


@dataclass(frozen=True, kw_only=True)
class Built:
    """A run that is ready for measurement. The plan contains only successfully built implementations."""

    context: RunContext
    plan: Plan
    info: RunInfo
    runtime: Runtime
    generators: Mapping[str, LoadGenerator]


def build(prepared: Prepared) -> Built:
    """Build all implementations and write run.json.

    Raises UsageError if the build of an implementation differs from the build that the resumed run has measured.
    """
    context, progress = prepared.context, prepared.context.progress
    began = progress.elapsed
    builds = build_all(prepared.runtime, prepared.plan, progress, context.store, prepared.build_seconds)
    _announce_measurement(context, progress.elapsed - began, prepared.measuring_seconds)
    implementations = tuple(i.info(builds[i.name]) for i in prepared.plan.implementations)
    info = prepared.info.model_copy(update={"implementations": implementations})
    prepared.accept_builds(info)
    context.store.write_info(info)
    return Built(
        context=context,
        plan=prepared.plan.restricted_to([name for name, record in builds.items() if record.status == "ok"]),
        info=info,
        runtime=prepared.runtime,
        generators=prepared.generators,
    )


def _announce_measurement(context: RunContext, built_seconds: float, measuring_seconds: float) -> None:
    """Announce how long the builds took, and when the measurement is expected to end."""
    progress = context.progress
    end = time.localtime(context.dependencies.clock.time() + measuring_seconds)
    progress.expected_seconds = progress.elapsed + measuring_seconds
    progress.announce(
        f"builds took {format_elapsed(built_seconds)}; the measurement starts now, expected end "
        f"{time.strftime('%H:%M', end)} ({format_elapsed(measuring_seconds)})"
    )


def build_all(
    runtime: Runtime,
    plan: Plan,
    progress: ProgressTracker,
    run_store: RunStore,
    expected_seconds: Mapping[str, float] | None = None,
) -> dict[str, BuildRecord]:
    """Build every implementation, report failed builds, and return each implementation's build record.

    Implementations that share a build are built once. If the build fails, a single report names all of them.
    ``expected_seconds`` maps each implementation to the part of the run's expected time planned for its build.
    """
    builds: dict[str, BuildRecord] = {}
    sharing: dict[object, list[str]] = {}
    for implementation in plan.implementations:
        sharing.setdefault(build_key(implementation, runtime), []).append(implementation.name)
    for implementation in plan.implementations:
        first, *others = sharing[build_key(implementation, runtime)]
        if implementation.name != first and (runtime.name == "local" or builds[first].status != "ok"):
            builds[implementation.name] = reuse_build(builds[first], first)
            continue
        log = run_store.log(implementation.name, "build")
        with progress.building(implementation.name, log, (expected_seconds or {}).get(implementation.name)):
            record = runtime.build(implementation, log)
        if record.status != "ok":
            same = f"\nthis build is shared by {', '.join(others)}" if implementation.name == first and others else ""
            progress.problem(f"{implementation.name} {record.status}: {record.reason}{same}")
        # Omit the local path from the reason, because reports may be published.
        reason = record.reason.replace(f"{run_store.folder}/", "")
        builds[implementation.name] = record.model_copy(update={"reason": reason})
    return builds


def build_key(implementation: Implementation, runtime: Runtime) -> object:
    """Return a key that is equal for implementations that share a build.

    Under Docker, each implementation needs an image with a distinct name. Implementations with the same Dockerfile
    therefore share only failed builds.
    """
    has_own_build = implementation.local is None or implementation.is_service
    return shared_build(implementation) if has_own_build or runtime.name == "local" else implementation.dockerfile


def reuse_build(record: BuildRecord, first: str) -> BuildRecord:
    """Return the build record for an implementation that reuses the build of ``first``."""
    if record.status == "ok":
        return record
    return record.model_copy(update={"reason": f"it shares the failed build of {first}: {record.reason}"})
