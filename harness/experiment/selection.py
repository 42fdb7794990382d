"""Makes a run's plan: selects implementations, test types and loads according to the settings."""

import contextlib
import re
from collections import ChainMap
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import ValidationError

from harness.errors import ConfigError, EnvironmentLacksError, StoreError, UsageError
from harness.experiment.run_setup import choose_baseline
from harness.host import git
from harness.paths import CONFIG_FILE, REPOSITORY
from harness.plan.benchmark_config import BenchmarkConfig
from harness.plan.discovery import RESERVED_NAMES, ScanResult, scan_folders, select_implementations
from harness.plan.implementation import Implementation
from harness.plan.parts import restrict_to_part
from harness.plan.plan import Candidate, Plan
from harness.plan.run_settings import ControlCopy, Settings
from harness.plan.suggestions import suggest
from harness.plan.testtypes import TestType
from harness.records import store
from harness.records.loads import ClosedLoop, Load
from harness.records.run_folders import list_runs
from harness.runtime import upstream

# Matches the names of JVM platforms in an implementation's language, platform, web server and framework. The pattern
# matches only whole words, because "javascript" contains "java".
JIT_PLATFORMS = re.compile(
    r"(?<![^\W_])(jvm|graal|graalvm|es4x|vert\.x|undertow|java|kotlin|scala|clojure|groovy)(?![^\W_])"
)
MEMORY_SHARE = 0.7  # maximum fraction of the free memory that all servers together may use


def make_plan(settings: Settings) -> Plan:
    """Select implementations, test types and loads. Raises UsageError if nothing is selected or a flag is invalid."""
    scanned = ScanResult() if settings.services else scan_folders(*settings.frameworks)
    selected = _select_implementations(settings, scanned)
    refused = [
        (i, f"{i.unsupported_reason} ({i.folder / CONFIG_FILE}){_siblings(i, scanned)}")
        for i in selected
        if i.unsupported_reason
    ]
    refused += [
        (i, f"tagged as broken, so it is never run ({i.folder / CONFIG_FILE})")
        for i in scanned.implementations
        if i.is_broken and i.name in settings.selection.test
    ]
    refusals = tuple(f"{i.name}: {reason}" for i, reason in refused)
    usable = tuple(i for i in selected if not i.unsupported_reason)
    candidates = _make_candidates(usable, settings)
    excluded = {name.lower() for name in settings.selection.exclude}
    broken_files = tuple(
        str(t) for t in scanned.folder_problems if t.kind == "problem" and t.names.isdisjoint(excluded)
    )
    if not candidates:
        reason = "\n".join((*refusals, *broken_files))
        reason = reason or f"the selection matches none of the {len(scanned.implementations)} implementations"
        raise UsageError(f"nothing to run: {reason}. List the available implementations with ./tfb --list-tests")
    names = {candidate.implementation for candidate in candidates}
    without_test_types = [
        (i, f"declares none of the selected test types ({i.folder / CONFIG_FILE})")
        for i in usable
        if i.name not in names and i.name in settings.selection.test
    ]
    # If the user names implementations, other implementations' broken files do not matter.
    by_name = settings.selection.test and not {*RESERVED_NAMES} & {*settings.selection.test}
    plan = Plan(
        candidates=candidates,
        profile=settings.profile,
        implementations=tuple(i for i in usable if i.name in names),
        problems=refusals if by_name else (*refusals, *broken_files),
        skipped=tuple((i.name, reason) for i, reason in (*refused, *without_test_types)),
        reverse=settings.reverse_order,
    )
    return restrict_to_part(plan, *settings.part, choose_baseline(settings, plan)) if settings.part else plan


def _select_implementations(settings: Settings, scanned: ScanResult) -> tuple[Implementation, ...]:
    """Return the selected implementations with their rules and privileges, followed by any control copies."""
    selected = settings.services or select_implementations(scanned, settings.selection)
    if unknown := set(settings.allow) - {i.name for i in selected}:
        suggestion = suggest(min(unknown), (i.name for i in selected))
        raise UsageError(f"--allow {min(unknown)}: the implementation is not selected; {suggestion}")
    configured = tuple(
        replace(
            i,
            rules=settings.rules or i.rules,
            allowed=settings.allow.get(i.name, ()),
            declared_privileges=declared_privileges(i),
            selected=None if settings.services else settings.test_types,
        )
        for i in selected
    )
    return (*configured, *(control_copies(configured, settings.control_copy) if settings.control_copy else ()))


def declared_privileges(implementation: Implementation) -> tuple[str, ...]:
    """Return the privileges that need no --allow: io_uring, if this clone's latest commit declares it.

    An uncommitted change, for example one applied from a pull request, cannot grant a privilege.
    """
    frameworks = (REPOSITORY / "frameworks").resolve()
    if not implementation.entry.io_uring or not implementation.folder.resolve().is_relative_to(frameworks):
        return ()
    name = (implementation.folder.resolve() / CONFIG_FILE).relative_to(REPOSITORY.resolve())
    try:
        text = git.Repository.containing(REPOSITORY).read("show", f"HEAD:{name.as_posix()}").text
        tests = BenchmarkConfig.model_validate_json(text).tests
    except (EnvironmentLacksError, UsageError, ValidationError):
        return ()
    committed = ChainMap(*tests).get(implementation.variant)
    return ("io_uring",) if committed and committed.io_uring else ()


def _make_candidates(usable: Sequence[Implementation], settings: Settings) -> tuple[Candidate, ...]:
    """Return a candidate for each implementation with at least one selected test type."""
    upstream_reachable = can_reach_upstream(usable, settings)
    return tuple(
        Candidate(implementation=i.name, test_types=cells, jit=bool(JIT_PLATFORMS.search(i.stack)))
        for i in usable
        if (cells := select_cells(i, settings, upstream_reachable=upstream_reachable))
    )


def _siblings(implementation: Implementation, scanned: ScanResult) -> str:
    """Return a note that names usable implementations in the same folder, or an empty string if there are none."""
    usable = [
        other.name
        for other in scanned.implementations
        if other.folder == implementation.folder and not other.unsupported_reason and not other.is_broken
    ]
    return f"; the same folder contains {', '.join(usable)}" if usable else ""


def control_copies(selected: Sequence[Implementation], control: ControlCopy) -> tuple[Implementation, ...]:
    """Return the control copies. Raises UsageError if one is missing, or ConfigError if its configuration is broken."""
    scanned = scan_folders(*control.frameworks)
    copies = {i.name: i for i in scanned.implementations}
    if missing := [i.name for i in selected if i.name not in copies]:
        if problems := [str(each) for each in scanned.folder_problems if not each.names.isdisjoint(missing)]:
            raise ConfigError("\n".join(problems))
        where = ", ".join(map(str, control.frameworks))
        raise UsageError(f"{where} does not contain {', '.join(missing)}. Leave it out with --exclude")
    return tuple(
        replace(
            copies[i.name],
            name=i.name + control.suffix,
            **{key: getattr(i, key) for key in ("rules", "allowed", "declared_privileges", "selected")},
        )
        for i in selected
    )


def can_reach_upstream(selected: Sequence[Implementation], settings: Settings) -> bool:
    """Return whether servers can reach the upstream service, which ``fan-out`` calls.

    The service is built with cargo and listens on the loopback interface, which bridged containers and other machines
    cannot reach.
    """
    hidden = settings.network_mode == "bridge" or settings.hosts.uses_remote_machines
    return upstream.available() and not hidden and all(i.local for i in selected)


def _closes_connections(kind: TestType) -> bool:
    """Return whether a load of the test type closes connections. Such loads use up all ports, except on loopback."""
    return any(isinstance(load, ClosedLoop) and load.close_after for load in kind.fixed_loads)


def select_cells(
    implementation: Implementation, settings: Settings, *, upstream_reachable: bool
) -> dict[str, tuple[Load, ...]]:
    """Return an implementation's selected test types with their loads, in the order of measurement."""
    loopback = settings.network_mode != "bridge" and not settings.hosts.uses_remote_machines
    chosen = None if settings.cells is None else settings.cells.get(implementation.name, {})
    return {
        name: kind.loads(settings.profile) if chosen is None else chosen[name]
        for name, kind in implementation.test_types.items()
        if name in (settings.test_types if chosen is None else chosen)
        and (upstream_reachable or not kind.calls_upstream)
        and not (kind.inputs and settings.hosts.uses_remote_machines)  # the input files exist only on this machine
        and (loopback or not _closes_connections(kind))
    }


def limit_memory(plan: Plan, results: Path, free_memory: float) -> Plan:
    """Return a copy of the plan with a limit on the servers' total memory, in bytes.

    The copy also contains each implementation's peak memory in recent runs, in bytes.
    """
    sizes: dict[str, float] = {}
    for folder in list_runs(results)[-5:]:
        with contextlib.suppress(StoreError):  # an unreadable run provides no memory usage
            for trial in store.read_run(folder).trials:
                if trial.server.rss_peak:
                    sizes[trial.implementation] = max(sizes.get(trial.implementation, 0.0), trial.server.rss_peak)
    return replace(plan, memory_sizes=sizes, memory_limit=MEMORY_SHARE * free_memory)


def remaining_share(plan: Plan, finished: Collection[tuple[str, int]]) -> float:
    """Return the fraction of a plan's processes that remain to be measured: 1 for a new run."""
    return 1 - len(finished) / (len(plan.candidates) * plan.profile.processes.maximum)
