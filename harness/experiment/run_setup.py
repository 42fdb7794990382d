"""Describes the setup of a run in run.json and refuses to resume a run if the setup has changed."""

import platform
from collections.abc import Collection

from harness.errors import EnvironmentLacksError, UsageError
from harness.experiment.generators.registry import needed_generators
from harness.host.git import Repository
from harness.paths import BUILT_FROM, INSTALLED, REPOSITORY
from harness.plan.plan import Plan
from harness.plan.run_settings import Settings
from harness.provisioning import toolchain
from harness.records import store
from harness.records.loads import Load
from harness.records.run_info import BuildRecord, Machine, RunInfo
from harness.records.store import RunStore
from harness.runtime import Runtime

MAX_CHANGES_SHOWN = 10
COMMIT = "# branch.oid "  # in git status's output, prefix of the line that names the commit

Revision = tuple[str | None, bool | None]  # (commit, whether the files differ from the commit)


def make_run_info(
    settings: Settings, plan: Plan, machine: Machine, runtime: Runtime, run_store: RunStore, revision: Revision
) -> RunInfo:
    """Return the content of run.json, as far as it is known before the first build."""
    loads: dict[str, tuple[Load, ...]] = {}
    for candidate in plan.candidates:
        for kind, type_loads in candidate.test_types.items():
            loads[kind] = tuple(dict.fromkeys((*loads.get(kind, ()), *type_loads)))
    profile = settings.profile.model_dump(mode="json")
    return RunInfo(
        run_id=run_store.run_id,
        name=settings.results_name,
        environment=settings.results_environment,
        status="running",
        started_at=run_store.started_at,
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
        machine=machine,
        tools={"python": platform.python_version(), **runtime.versions(), **_witness_versions(plan, runtime)},
        revision=revision[0],
        dirty=revision[1],
        implementations=tuple(i.info() for i in plan.implementations),
        loads=loads,
        cells={}
        if settings.cells is None
        else {candidate.implementation: dict(candidate.test_types) for candidate in plan.candidates},
        processes_expected=settings.profile.processes.minimum,
        processes_maximum=settings.profile.processes.maximum,
        noise_floor=store.read_noise_floor(settings.results, settings.profile.name, machine),
        problems=plan.problems,
        part=plan.part,
    )


def _witness_versions(plan: Plan, runtime: Runtime) -> dict[str, str]:
    """Return h2load's version if the run uses it in the local runtime; otherwise, return an empty mapping.

    In Docker, the digest of the image identifies h2load's version.
    """
    tool = toolchain.find_tool("h2load") if runtime.name == "local" and "h2load" in needed_generators(plan) else None
    return {"h2load": ".".join(map(str, tool.version))} if tool else {}


def choose_baseline(settings: Settings, plan: Plan) -> str:
    """Return the baseline for all scores.

    If the profile's baseline is not selected, choose the implementation with the most test types. Break ties
    alphabetically. The run records the baseline, so filtering a table never changes a score.
    """
    names = {i.name for i in plan.implementations}
    if settings.profile.reference in names:
        return str(settings.profile.reference)
    return min(plan.candidates, key=lambda c: (-len(c.test_types), c.implementation)).implementation


def read_revision() -> Revision:
    """Return tfb's commit, and whether files differ from that commit. Return (None, None) if the commit is unknown.

    An installed package records the commit from which it was built.
    """
    if INSTALLED:
        described = BUILT_FROM.read_text(encoding="utf-8").strip() if BUILT_FROM.exists() else ""
        commit, _, changes = described.partition("-")
        return (commit, bool(changes)) if commit else (None, None)
    arguments = ("status", "--porcelain=v2", "-z", "--branch", "--untracked-files=no", "--ignore-submodules=all")
    try:
        status = Repository.containing(REPOSITORY).run(*arguments, seconds=30)
    except (EnvironmentLacksError, UsageError):
        return None, None
    if status.status != 0:
        return None, None
    commit = next(line.removeprefix(COMMIT) for line in status.names if line.startswith(COMMIT))
    return commit, any(not line.startswith("#") for line in status.names)


def require_same_setup(before: RunInfo, current: RunInfo, measured: Collection[str] = ()) -> None:
    """Raise UsageError if the commit, profile, tools, configuration or CPUs have changed since the run started.

    ``before`` and ``current`` are the run.json documents at the start and now. A value that only one of them contains
    counts as a change. The builds of ``measured`` implementations must also be unchanged.
    """
    names, current_names = ({each.name for each in info.implementations} for info in (before, current))
    unshared = names ^ current_names
    changes = [f"{name} {'is no longer' if name in names else 'was not'} selected" for name in sorted(unshared)]
    old, new = _identity(before, measured), _identity(current, measured)
    changes += [
        f"{key} was {_format(old.get(key))}, and is now {_format(new.get(key))}"
        for key in sorted(old.keys() | new.keys(), key=lambda key: (None in (old.get(key), new.get(key)), key))
        if key.partition(": ")[0] not in unshared and old.get(key) != new.get(key)
    ]
    if changes:
        more = len(changes) - MAX_CHANGES_SHOWN
        raise UsageError(
            f"run {before.run_id} cannot be resumed, because the setup has changed: "
            f"{'; '.join(changes[:MAX_CHANGES_SHOWN])}{f'; and {more} more' if more > 0 else ''}. "
            "Restore the earlier setup, or start a new run"
        )


def _format(value: object) -> str:
    """Format a recorded value for a message."""
    return "not recorded" if value in (None, "") else f"{value!r:.60}"


def _identity(info: RunInfo, measured: Collection[str]) -> dict[str, object]:
    """Return the values that a resumed run must not change, including the builds of ``measured`` implementations."""
    identity: dict[str, object] = {"commit": info.revision, **info.tools}
    identity |= {"the CPU model": info.machine.cpu_model, "the number of usable CPUs": len(info.machine.cpus_usable)}
    for implementation in info.implementations:
        identity[f"{implementation.name}: benchmark_config.json"] = implementation.digest or None
        if implementation.name in measured:
            build = implementation.build or BuildRecord(status="skipped")
            identity[f"{implementation.name}: build"] = build.status
            identity |= {f"{implementation.name}: {tool}": version for tool, version in build.tools.items()}
            identity[f"{implementation.name}: image"] = build.image_digest
    return identity | _flatten("profile", info.settings.get("profile"))


def _flatten(name: str, value: object) -> dict[str, object]:
    """Return the leaves of a nested document, with their dotted paths as keys."""
    if not isinstance(value, dict):
        return {name: value}
    return {path: leaf for key, child in value.items() for path, leaf in _flatten(f"{name}.{key}", child).items()}
