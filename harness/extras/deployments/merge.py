"""Merges runs into one: ``report RUN RUN … --deployments``, and ``report RUN RUN …`` for the parts of a selection.

A merged run compares implementations within each deployment. It compares implementations from different parts through
their common baseline.
"""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.errors import UsageError
from harness.extras.deployments.part_checks import list_differences, require_all_parts
from harness.records import store
from harness.records.run_info import ImplementationInfo, MachineSet, Part, RunInfo
from harness.records.store import RunStore


def merge_runs(runs: Mapping[str, Path], results: Path, *, across: bool = False) -> Path:
    """Merge runs into a new run and return the new folder.

    ``runs`` maps names of deployments or parts to run folders. If any run is a part, all runs must be parts of the same
    selection. ``across`` permits parts from different commits or kinds of machines. Raises UsageError if the runs
    cannot be merged, or StoreError if a run cannot be read or written.
    """
    records_by_deployment = dict(
        zip(
            runs,
            store.renumber_processes([store.read_run(folder, with_series=True) for folder in runs.values()]),
            strict=True,
        )
    )
    infos = [records.info for records in records_by_deployment.values()]
    if len({(each.started_at, each.machine.hostname) for each in infos}) < max(2, len(infos)):
        raise UsageError("report RUN RUN …: pass at least two different runs, one for each deployment or part")
    first = infos[0]
    part = require_all_parts(dict(zip(runs, infos, strict=True))) if any(each.part for each in infos) else None
    deployments: list[MachineSet] = []
    problems: list[str] = []
    implementations: dict[str, ImplementationInfo] = {}
    for name, records in records_by_deployment.items():
        info = records.info
        _require_comparable(first, info, name, part)
        if part and info is not first and (differing := "; ".join(list_differences(first, info))):
            if not across:
                raise UsageError(
                    f"{name} differs from the first part in {differing}. Ratios between parts would include this "
                    "difference. Repeat the part with the same commit on the same kind of machine, or add --across"
                )
            problems.append(f"{name} differs from the first part in {differing}")
        numbers = tuple(sorted(store.process_numbers(records)))
        deployments.append(MachineSet(name=name, machine=info.machine, runs=(info.run_id,), processes=numbers))
        problems += [f"{name}: {each}" for each in dict.fromkeys((*info.problems, *records.problems))]
        if info.status not in ("complete", "incomplete", "failed"):
            problems.append(f"{name}: the run is {info.status}; its completed measurements are included")
        for each in info.implementations:  # prefer the record from a run that built the implementation
            previous = implementations.get(each.name)
            if previous is None or not (previous.build and previous.build.status == "ok"):
                implementations[each.name] = each
    info = first.model_copy(
        update={
            "run_id": f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-merged",
            "name": f"{len(records_by_deployment)} {'parts' if part else 'deployments'}",
            "status": "incomplete" if "incomplete" in (each.status for each in infos) else "complete",
            "started_at": min(each.started_at for each in infos),
            "completed_at": max(each.completed_at or 0.0 for each in infos) or None,
            "command": ("report", *records_by_deployment, *(() if part else ("--deployments",))),
            "implementations": tuple(implementations.values()),
            "loads": {kind: loads for each in infos for kind, loads in each.loads.items()},
            "noise_floor": None,
            "problems": tuple(problems),
            "sets": tuple(deployments),
            "part": part,
            **_process_limits(first, None if part else deployments),
        }
    )
    merged = store.join_runs(records_by_deployment.values(), info)
    merged_store = RunStore(results / info.run_id, started_at=info.started_at)
    for kind in filter(lambda kind: getattr(merged, kind), store.PROCESS_FILES):
        merged_store.write_text(f"{kind}.jsonl", "\n".join(each.to_json() for each in getattr(merged, kind)))
    merged_store.write_info(info)
    return merged_store.folder


def _profile(info: RunInfo) -> dict[str, object]:
    profile = info.settings.get("profile")
    return profile if isinstance(profile, dict) else {}


def _process_limits(first: RunInfo, deployments: Sequence[MachineSet] | None) -> dict[str, object]:
    """Return the fields of the merged run's record that contain process counts, with their new values.

    For parts (``deployments`` is None), keep the counts of the first run. Always remove the stopping rule's looks.
    """
    profile = _profile(first)
    rules = profile.get("processes")
    limits: dict[str, object] = {**(rules if isinstance(rules, dict) else {}), "looks": ()}
    counts: dict[str, object] = {}
    if deployments is not None:
        count = max((number + 1 for each in deployments for number in each.processes), default=0)
        limits |= {"minimum": count, "maximum": count}
        counts = {"processes_expected": count, "processes_maximum": count}
    return {**counts, "settings": {**first.settings, "profile": {**profile, "processes": limits}}}


def _require_comparable(first: RunInfo, other: RunInfo, name: str, part: Part | None) -> None:
    """Raise UsageError if two runs have different profiles, baselines, runtimes, loads or commits.

    Parts may have different test types. ``list_differences`` compares the commits of parts.
    """
    shared = first.loads.keys() & other.loads.keys() if part else first.loads.keys() | other.loads.keys()
    facts = [
        {
            **_profile(each),
            **each.model_dump(include={"reference", "runtime"}),
            "loads": {kind: each.loads.get(kind) for kind in shared},
            **({} if part else {"revision": each.revision}),
        }
        for each in (first, other)
    ]
    differing = [key for key in facts[0] if facts[0][key] != facts[1].get(key)]
    if not part and (first.dirty or other.dirty):
        differing.append("uncommitted changes")
    if differing:
        raise UsageError(
            f"{name} differs from the first run in {', '.join(differing)}: use the same flags and commit for all runs"
        )
