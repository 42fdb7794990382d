"""What stands before the first server starts: selection, plan, checks of the machine, the run's record, builds."""

import contextlib
import platform
import re
import time
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from harness.errors import ConfigError, EnvironmentLacksError, StoreError, UsageError
from harness.experiment.progress import ProgressTracker
from harness.host.git import Repository
from harness.paths import CONFIG_FILE, INSTALLED, REPOSITORY
from harness.plan.discovery import RESERVED_NAMES, Implementation, ScanResult, scan_folders, select_implementations
from harness.plan.plan import Candidate, Plan
from harness.plan.run_settings import ControlCopy, Settings
from harness.plan.suggestions import suggest
from harness.records import store
from harness.records.loads import Load
from harness.records.machine_record import Machine
from harness.records.run_folders import list_runs
from harness.records.run_info import BuildRecord, RunInfo
from harness.records.store import RunStore
from harness.report.tables import format_count
from harness.runtime import Runtime, upstream
from harness.units import format_elapsed

JIT_PLATFORMS = re.compile(  # whole words of language, platform, web server or framework: java is none of javascript
    r"(?<![^\W_])(jvm|graal|graalvm|es4x|vert\.x|undertow|java|kotlin|scala|clojure|groovy)(?![^\W_])"
)


MOST_CHANGES = 10  # that a message names
MEMORY_SHARE = 0.7  # of the free memory, that servers may take together
COMMIT = "# branch.oid "  # before it in what git says of a tree

Revision = tuple[str | None, bool | None]  # the commit, and whether the tree differs from it


def make_plan(settings: Settings) -> Plan:
    """Select the implementations and their cells; raises UsageError when nothing is left."""
    found = scan_folders(*settings.frameworks) if not settings.services else ScanResult()
    chosen = settings.services or select_implementations(found, settings.selection)
    if unknown := set(settings.allow) - {i.name for i in chosen}:
        raise UsageError(
            f"--allow {min(unknown)}: not among the selected; {suggest(min(unknown), (i.name for i in chosen))}"
        )
    chosen = tuple(replace(i, rules=settings.rules or i.rules, allowed=settings.allow.get(i.name, ())) for i in chosen)
    if settings.control_copy:
        chosen += control_copies(chosen, settings.control_copy)
    skipped = [
        (i, f"{i.unsupported_reason} ({i.folder / CONFIG_FILE}){_siblings(i, found)}")
        for i in chosen
        if i.unsupported_reason
    ]
    skipped += [
        (i, f"tagged as broken, so it is never run ({i.folder / CONFIG_FILE})")
        for i in found.implementations
        if i.is_broken and i.name in settings.selection.test
    ]
    refused = tuple(f"{i.name}: {why}" for i, why in skipped)
    chosen = tuple(i for i in chosen if not i.unsupported_reason)
    upstream_seen = can_reach_upstream(chosen, settings)
    candidates = tuple(
        Candidate(implementation=i.name, test_types=cells, jit=bool(JIT_PLATFORMS.search(i.stack)))
        for i in chosen
        if (cells := select_cells(i, settings, upstream_seen=upstream_seen))
    )
    excluded = {name.lower() for name in settings.selection.exclude}
    broken = tuple(str(t) for t in found.folder_problems if t.kind == "problem" and t.names.isdisjoint(excluded))
    if not candidates:
        why = (
            "\n".join((*refused, *broken))
            or f"the selection matches none of {len(found.implementations)} implementations"
        )
        raise UsageError(f"nothing to run: {why}; ./tfb --list-tests shows what there is")
    named = {candidate.implementation for candidate in candidates}
    skipped += [
        (i, f"declares none of the selected test types ({i.folder / CONFIG_FILE})")
        for i in chosen
        if i.name not in named and i.name in settings.selection.test
    ]
    # A broken file belongs to what was asked for unless the command names each implementation.
    by_name = settings.selection.test and not {*RESERVED_NAMES} & {*settings.selection.test}
    return Plan(
        candidates=candidates,
        profile=settings.profile,
        implementations=tuple(i for i in chosen if i.name in named),
        problems=refused if by_name else (*refused, *broken),
        skipped=tuple((i.name, why) for i, why in skipped),
        reverse=settings.reverse_order,
    )


def _siblings(implementation: Implementation, found: ScanResult) -> str:
    """Return which implementations of the same folder can be run in place of one that cannot."""
    usable = [
        other.name
        for other in found.implementations
        if other.folder == implementation.folder and not other.unsupported_reason and not other.is_broken
    ]
    return f"; the same folder holds {', '.join(usable)}" if usable else ""


def control_copies(chosen: Sequence[Implementation], wanted: ControlCopy) -> tuple[Implementation, ...]:
    """The copies of the chosen implementations, held to the same rules; raises UsageError when one lacks there."""
    found = scan_folders(*wanted.frameworks)
    others = {i.name: i for i in found.implementations}
    if absent := [i.name for i in chosen if i.name not in others]:
        if troubles := [str(trouble) for trouble in found.folder_problems if not trouble.names.isdisjoint(absent)]:
            raise ConfigError("\n".join(troubles))
        where = ", ".join(map(str, wanted.frameworks))
        raise UsageError(f"{where} holds no {', '.join(absent)}: leave it out with --exclude")
    return tuple(replace(others[i.name], name=i.name + wanted.suffix, rules=i.rules, allowed=i.allowed) for i in chosen)


def can_reach_upstream(chosen: Sequence[Implementation], settings: Settings) -> bool:
    """Whether servers reach the upstream of ``fan-out``: cargo builds it, loopback ends at a bridge or machine."""
    hidden = settings.network_mode == "bridge" or settings.hosts.uses_remote_machines
    return upstream.available() and not hidden and all(i.local for i in chosen)


def select_cells(
    implementation: Implementation, settings: Settings, *, upstream_seen: bool
) -> dict[str, tuple[Load, ...]]:
    """The selected test types of an implementation with their levels, in the order of a process."""
    chosen = None if settings.cells is None else settings.cells.get(implementation.name, {})
    return {
        name: kind.loads(settings.profile) if chosen is None else chosen[name]
        for name, kind in implementation.test_types.items()
        if name in (settings.test_types if chosen is None else chosen) and (upstream_seen or not kind.calls_upstream)
    }


def limit_memory(plan: Plan, results: Path, free_memory: float) -> Plan:
    """The plan with what servers may take together of the free memory, and take by the latest runs of these results."""
    sizes: dict[str, float] = {}
    for folder in list_runs(results)[-5:]:
        with contextlib.suppress(StoreError):  # what cannot be read tells nothing
            for trial in store.read_run(folder).trials:
                if trial.server.rss_peak:
                    sizes[trial.implementation] = max(sizes.get(trial.implementation, 0.0), trial.server.rss_peak)
    return replace(plan, memory_sizes=sizes, memory_limit=MEMORY_SHARE * free_memory)


def build_all(runtime: Runtime, plan: Plan, progress: ProgressTracker, folder: RunStore) -> dict[str, BuildRecord]:
    """Build every implementation; return how that went, by name, and tell which could not be built.

    Variants that share a build are built once, and its failure is told once for all of them.
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
        log = folder.log(implementation.name, "build")
        with progress.building(implementation.name, log):
            build = runtime.build(implementation, log)
        if build.status != "ok":
            same = f"\n{', '.join(others)}: the same build" if implementation.name == first and others else ""
            progress.problem(f"{implementation.name} {build.status}: {build.reason}{same}")
        reason = build.reason.replace(f"{folder.folder}/", "")  # a report may be mailed
        builds[implementation.name] = build.model_copy(update={"reason": reason})
    return builds


def build_key(implementation: Implementation, runtime: Runtime) -> object:
    """Return what is the same of implementations whose build does the same: commands and tools, or the Dockerfile.

    Images of one Dockerfile have names of their own, so that only a failure is shared.
    """
    local = implementation.local
    if local is None or implementation.is_service:  # an upstream folder's build is told the name
        return implementation.name
    if runtime.name != "local":
        return implementation.dockerfile
    return implementation.folder, local.build, tuple(sorted(local.requires.items())), local.install_scripts


def reuse_build(build: BuildRecord, first: str) -> BuildRecord:
    """Return the build of an implementation that uses the build of another one, ``first``."""
    if build.status == "ok":
        return build
    return build.model_copy(update={"reason": f"the same build as {first}: {build.reason}"})


def describe_run(settings: Settings, plan: Plan, runtime: Runtime, seconds: float, now: float) -> str:
    """Return the line that says what is measured, where, how, and when it ends; ``now`` is in epoch seconds."""
    count = format_count(len(plan.implementations), "implementation")
    place = f"{runtime.name} runtime"
    if settings.runtime == "auto":
        why = "a container engine answers" if runtime.name == "docker" else "no container engine answers"
        place += f" (auto: {why})"
    end = time.strftime("%H:%M", time.localtime(now + seconds))
    return (
        f"{count}, {place}, profile {settings.profile.name}, seed {settings.seed}; "
        f"expected end {end} ({format_elapsed(seconds)}, builds not counted)"
    )


def make_run_info(
    settings: Settings, plan: Plan, facts: Machine, runtime: Runtime, folder: RunStore, revision: Revision
) -> RunInfo:
    """run.json as it stands before the first build."""
    loads: dict[str, tuple[Load, ...]] = {}
    for candidate in plan.candidates:
        for kind, own in candidate.test_types.items():
            loads[kind] = tuple(dict.fromkeys((*loads.get(kind, ()), *own)))
    profile = settings.profile.model_dump(mode="json")
    return RunInfo(
        run_id=folder.run_id,
        name=settings.results_name,
        environment=settings.results_environment,
        status="running",
        started_at=folder.started_at,
        command=settings.command,
        profile=settings.profile.name,
        runtime=runtime.name,
        design=settings.profile.design,
        generator=settings.profile.generator,
        seed=settings.seed,
        settings={
            "profile": profile,
            "cpuset_cpus": settings.cpuset_cpus,
            "network_mode": settings.network_mode,
            "network": runtime.network,
            "accounts": runtime.accounts,
            "allow": dict(settings.allow),
            "reverse_order": settings.reverse_order,
            "container_memory": settings.container_memory,
            "container_pids": settings.container_pids,
            **({"container_allow": list(settings.container_allow)} if settings.container_allow else {}),
            **({"claims": list(settings.claims)} if settings.claims else {}),
        },
        reference=choose_baseline(settings, plan),
        machine=facts,
        tools={"python": platform.python_version(), **runtime.versions()},
        revision=revision[0],
        dirty=revision[1],
        implementations=tuple(i.info() for i in plan.implementations),
        loads=loads,
        cells={}
        if settings.cells is None
        else {candidate.implementation: dict(candidate.test_types) for candidate in plan.candidates},
        processes_expected=settings.profile.processes.minimum,
        processes_maximum=settings.profile.processes.maximum,
        noise_floor=store.read_noise_floor(settings.results, settings.profile.name, facts),
        problems=plan.problems,
    )


def choose_baseline(settings: Settings, plan: Plan) -> str:
    """The implementation that scores are relative to: the profile's, else the first by name.

    It is recorded with the run, so that filtering a table never changes a score.
    """
    names = {i.name for i in plan.implementations}
    if settings.profile.reference in names:
        return str(settings.profile.reference)
    return min(plan.candidates, key=lambda c: (-len(c.test_types), c.implementation)).implementation


def read_revision() -> Revision:
    """Return the commit of this repository and whether its files differ from that commit; None outside a checkout."""
    if INSTALLED:
        return None, None
    words = ("status", "--porcelain=v2", "-z", "--branch", "--untracked-files=no", "--ignore-submodules=all")
    try:
        found = Repository.of(REPOSITORY).ask(*words, seconds=30)
    except (EnvironmentLacksError, UsageError):
        return None, None
    if found.status != 0:
        return None, None
    commit = next(line.removeprefix(COMMIT) for line in found.names if line.startswith(COMMIT))
    return commit, any(not line.startswith("#") for line in found.names)


# ---- what has to be as it was for a run to go on ---------------------------------------------------------------------


def require_same_setup(before: RunInfo, now: RunInfo, measured: Collection[str] = ()) -> None:
    """Raise UsageError that names what changed since the run began; what either of them lacks has changed, too.

    These are commit, profile, tools and entries of benchmark_config.json, and the builds of the implementations that
    were ``measured``.
    """
    names, others = ({known.name for known in info.implementations} for info in (before, now))
    changed = [f"{name} is in only one of them" for name in sorted(names ^ others)]
    old, new = _identity(before, measured), _identity(now, measured)
    changed += [
        f"{key} was {_shown(old.get(key))}, and is {_shown(new.get(key))}"
        for key in sorted(old.keys() | new.keys(), key=lambda key: (None in (old.get(key), new.get(key)), key))
        if key.partition(": ")[0] not in names ^ others and old.get(key) != new.get(key)
    ]
    if changed:
        raise UsageError(
            f"run {before.run_id} cannot go on, it would mix two different things: {'; '.join(changed[:MOST_CHANGES])}"
            f"{f'; and {more} more' if (more := len(changed) - MOST_CHANGES) > 0 else ''}. "
            "Bring that back as it was, or start a new run"
        )


def _shown(value: object) -> str:
    """Return a part of an identity as a message names it."""
    return "not recorded" if value in (None, "") else f"{value!r:.60}"


def _identity(info: RunInfo, measured: Collection[str]) -> dict[str, object]:
    """Return what makes the figures of a run those of one thing, by name; of builds those of ``measured`` ones."""
    found: dict[str, object] = {"commit": info.revision, **info.tools}
    for known in info.implementations:
        found[f"{known.name}: benchmark_config.json"] = known.digest or None
        if known.name in measured:
            build = known.build or BuildRecord(status="skipped")
            found[f"{known.name}: build"] = build.status
            found |= {f"{known.name}: {tool}": version for tool, version in build.tools.items()}
            found[f"{known.name}: image"] = build.image_digest
    return found | _flat("profile", info.settings.get("profile"))


def _flat(name: str, value: object) -> dict[str, object]:
    """The leaves of a document, by path."""
    if not isinstance(value, dict):
        return {name: value}
    return {path: leaf for key, one in value.items() for path, leaf in _flat(f"{name}.{key}", one).items()}
