"""What stands before the first server starts: selection, plan, checks of the machine, the run's record, builds."""

import contextlib
import platform
import re
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from harness.errors import EnvironmentLacksError, StoreError, UsageError
from harness.experiment.progress import Progress
from harness.host.git import Repository
from harness.paths import CONFIG_FILE, INSTALLED, REPOSITORY
from harness.plan.config import Settings, Twins
from harness.plan.discovery import RESERVED, Implementation, Scan, scan, select
from harness.plan.plan import Candidate, Plan
from harness.plan.words import suggest
from harness.records import store
from harness.records.models import Build, Load, Machine, RunInfo
from harness.records.store import RunStore
from harness.report.tables import counted
from harness.runtime import Runtime, upstream
from harness.units import whole_seconds

JIT_PLATFORMS = re.compile(  # whole words of language, platform, web server or framework: java is none of javascript
    r"(?<![^\W_])(jvm|graal|graalvm|es4x|vert\.x|undertow|java|kotlin|scala|clojure|groovy)(?![^\W_])"
)


MEMORY_SHARE = 0.7  # of the free memory, that servers may take together
COMMIT = "# branch.oid "  # before it in what git says of a tree

Revision = tuple[str | None, bool | None]  # the commit, and whether the tree differs from it


def choose_work(settings: Settings) -> Plan:
    """Select the implementations and their cells; raises UsageError when nothing is left."""
    found = scan(*settings.frameworks) if not settings.services else Scan(implementations=(), problems=())
    try:
        chosen = settings.services or select(found.implementations, settings.selection)
    except UsageError as error:  # the name may well stand in a file that cannot be read
        raise UsageError("\n".join((*found.problems, str(error)))) from None
    if unknown := set(settings.allow) - {i.name for i in chosen}:
        raise UsageError(
            f"--allow {min(unknown)}: not among the selected; {suggest(min(unknown), (i.name for i in chosen))}"
        )
    chosen = tuple(replace(i, rules=settings.rules or i.rules, allowed=settings.allow.get(i.name, ())) for i in chosen)
    if settings.twins:
        chosen += twins(chosen, settings.twins)
    refused = tuple(f"{i.name}: {i.lacking} ({i.folder / CONFIG_FILE})" for i in chosen if i.lacking)
    refused += tuple(
        f"{i.name}: tagged as broken, so it is never run ({i.folder / CONFIG_FILE})"
        for i in found.implementations
        if i.broken and i.name in settings.selection.test
    )
    chosen = tuple(i for i in chosen if not i.lacking)
    upstream_seen = sees_upstream(chosen, settings)
    candidates = tuple(
        Candidate(implementation=i.name, test_types=cells, jit=bool(JIT_PLATFORMS.search(i.stack)))
        for i in chosen
        if (cells := cells_of(i, settings, upstream_seen=upstream_seen))
    )
    if not candidates:
        why = (
            "\n".join((*refused, *found.problems))
            or f"the selection matches none of {len(found.implementations)} implementations"
        )
        raise UsageError(f"nothing to run: {why}; ./tfb --list-tests shows what there is")
    named = {candidate.implementation for candidate in candidates}
    # A broken file belongs to what was asked for unless the command names each implementation.
    by_name = settings.selection.test and not {*RESERVED} & {*settings.selection.test}
    return Plan(
        candidates=candidates,
        profile=settings.profile,
        implementations=tuple(i for i in chosen if i.name in named),
        problems=refused if by_name else (*refused, *found.problems),
        reverse=settings.reverse_order,
    )


def twins(chosen: Sequence[Implementation], wanted: Twins) -> tuple[Implementation, ...]:
    """The copies of the chosen implementations, held to the same rules; raises UsageError when one lacks there."""
    others = {i.name: i for i in scan(*wanted.frameworks).implementations}
    if absent := [i.name for i in chosen if i.name not in others]:
        where = ", ".join(map(str, wanted.frameworks))
        raise UsageError(f"{where} holds no {', '.join(absent)}: leave it out with --exclude")
    return tuple(replace(others[i.name], name=i.name + wanted.suffix, rules=i.rules, allowed=i.allowed) for i in chosen)


def sees_upstream(chosen: Sequence[Implementation], settings: Settings) -> bool:
    """Whether servers reach the upstream of ``fan-out``: cargo builds it, loopback ends at a bridge or machine."""
    hidden = settings.network_mode == "bridge" or settings.hosts.elsewhere
    return upstream.available() and not hidden and all(i.local for i in chosen)


def cells_of(implementation: Implementation, settings: Settings, *, upstream_seen: bool) -> dict[str, tuple[Load, ...]]:
    """The selected test types of an implementation with their levels, in the order of a process."""
    chosen = None if settings.cells is None else settings.cells.get(implementation.name, {})
    return {
        name: kind.levels(settings.profile) if chosen is None else chosen[name]
        for name, kind in implementation.test_types.items()
        if name in (settings.test_types if chosen is None else chosen) and (upstream_seen or not kind.calls_upstream)
    }


def within_memory(plan: Plan, results: Path, free_memory: float) -> Plan:
    """The plan with what servers may take together of the free memory, and take by the latest runs of these results."""
    sizes: dict[str, float] = {}
    for folder in store.runs(results)[-5:]:
        with contextlib.suppress(StoreError):  # what cannot be read tells nothing
            for trial in store.read(folder).trials:
                if trial.server.rss_peak:
                    sizes[trial.implementation] = max(sizes.get(trial.implementation, 0.0), trial.server.rss_peak)
    return replace(plan, sizes=sizes, room=MEMORY_SHARE * free_memory)


def build_all(runtime: Runtime, plan: Plan, progress: Progress, folder: RunStore) -> dict[str, Build]:
    """Build every implementation, and tell which could not be; how that went, by name."""
    builds = {}
    for implementation in plan.implementations:
        log = folder.log(implementation.name, "build")
        with progress.building(implementation.name, log):
            build = runtime.build(implementation, log)
        if build.status != "ok":
            progress.problem(f"{implementation.name} {build.status}: {build.reason}")
        reason = build.reason.replace(f"{folder.folder}/", "")  # a report may be mailed
        builds[implementation.name] = build.model_copy(update={"reason": reason})
    return builds


def opening(settings: Settings, plan: Plan, runtime: Runtime, seconds: float, now: float) -> str:
    """The first line of a run: what, where, how, and when it is expected to end; ``now`` in epoch seconds."""
    count = counted(len(plan.implementations), "implementation")
    place = f"{runtime.name} runtime"
    if settings.runtime == "auto":
        why = "a container engine answers" if runtime.name == "docker" else "no container engine answers"
        place += f" (auto: {why})"
    end = time.strftime("%H:%M", time.localtime(now + seconds))
    return (
        f"{count}, {place}, profile {settings.profile.name}, seed {settings.seed}; "
        f"expected end {end} ({whole_seconds(seconds)}, builds apart)"
    )


def describe(
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
            **({"claims": list(settings.claims)} if settings.claims else {}),
        },
        reference=reference(settings, plan),
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
        noise_floor=store.noise_floor(settings.results, settings.profile.name, facts),
        problems=plan.problems,
    )


def reference(settings: Settings, plan: Plan) -> str:
    """The implementation that scores are relative to: the profile's, else the first by name.

    It is recorded with the run, so that filtering a table never changes a score.
    """
    names = {i.name for i in plan.implementations}
    if settings.profile.reference in names:
        return str(settings.profile.reference)
    return min(plan.candidates, key=lambda c: (-len(c.test_types), c.implementation)).implementation


def git_state() -> Revision:
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


def require_same(before: RunInfo, now: RunInfo) -> None:
    """Raise UsageError that names what changed since the run began; what either does not know is no change.

    Before the builds these are commit, profile, tools and entries of benchmark_config.json; then images, too.
    """
    names, others = ({known.name for known in info.implementations} for info in (before, now))
    changed = [f"{name} is in only one of them" for name in sorted(names ^ others)]
    old, new = _identity(before), _identity(now)
    changed += [
        f"{key} was {old[key]!r:.60}, and is {new[key]!r:.60}"
        for key in sorted(old.keys() & new.keys())
        if old[key] != new[key]
    ]
    if changed:
        raise UsageError(
            f"run {before.run_id} cannot go on, it would mix two different things: {'; '.join(changed)}. "
            "Bring that back as it was, or start a new run"
        )


def _identity(info: RunInfo) -> dict[str, object]:
    """What makes the figures of a run those of one thing, by name, as far as it is known."""
    found: dict[str, object] = {"commit": info.revision, **info.tools}
    for known in info.implementations:
        found[f"{known.name}: benchmark_config.json"] = known.digest
        if known.build and known.build.status == "ok":
            found |= {f"{known.name}: {tool}": version for tool, version in known.build.tools.items()}
            found[f"{known.name}: image"] = known.build.image_digest
    return {name: value for name, value in found.items() if value} | _flat("profile", info.settings.get("profile"))


def _flat(name: str, value: object) -> dict[str, object]:
    """The leaves of a document, by path."""
    if not isinstance(value, dict):
        return {name: value}
    return {path: leaf for key, one in value.items() for path, leaf in _flat(f"{name}.{key}", one).items()}
