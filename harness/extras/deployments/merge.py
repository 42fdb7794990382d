"""``report RUN RUN … --deployments``: merges runs of several deployments. Ratios are calculated per deployment."""

import time
from collections.abc import Mapping
from pathlib import Path

from harness.errors import UsageError
from harness.records import store
from harness.records.machine_record import MachineSet
from harness.records.run_info import ImplementationInfo, RunInfo
from harness.records.store import RunStore


def merge_runs(runs: Mapping[str, Path], results: Path) -> Path:
    """Merge runs into a new run, and return its folder.

    Args:
        runs: Name of the deployment -> folder of the run.
        results: The results folder for the new run.

    Raises:
        UsageError: The runs cannot be merged.
        StoreError: A run cannot be read or written.
    """
    found = dict(
        zip(
            runs,
            store.renumber_processes([store.read_run(folder, with_series=True) for folder in runs.values()]),
            strict=True,
        )
    )
    infos = [records.info for records in found.values()]
    if len({(each.started_at, each.machine.hostname) for each in infos}) < max(2, len(infos)):
        raise UsageError("report RUN RUN … --deployments: name at least two different runs, one for each deployment")
    first = infos[0]
    deployments: list[MachineSet] = []
    problems: list[str] = []
    implementations: dict[str, ImplementationInfo] = {}
    for name, records in found.items():
        info = records.info
        _require_alike(first, info, name)
        numbers = tuple(sorted(store.process_numbers(records)))
        deployments.append(MachineSet(name=name, machine=info.machine, runs=(info.run_id,), processes=numbers))
        problems += [f"{name}: {each}" for each in dict.fromkeys((*info.problems, *records.problems))]
        if info.status not in ("complete", "incomplete", "failed"):
            problems.append(f"{name}: the run is {info.status}; completed measurements count")
        for each in info.implementations:  # prefer the record from a deployment that built the implementation
            known = implementations.get(each.name)
            if known is None or not (known.build and known.build.status == "ok"):
                implementations[each.name] = each
    most = max((number + 1 for each in deployments for number in each.processes), default=0)
    profile = _profile(first)
    rules = profile.get("processes")
    number = {**(rules if isinstance(rules, dict) else {}), "minimum": most, "maximum": most, "looks": ()}
    info = first.model_copy(
        update={
            "run_id": f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-merged",
            "name": f"{len(found)} deployments",
            "status": "incomplete" if "incomplete" in (each.status for each in infos) else "complete",
            "started_at": min(records.info.started_at for records in found.values()),
            "completed_at": max(records.info.completed_at or 0.0 for records in found.values()) or None,
            "command": ("report", *found, "--deployments"),
            "settings": {**first.settings, "profile": {**profile, "processes": number}},
            "implementations": tuple(implementations.values()),
            "processes_expected": most,
            "processes_maximum": most,
            "noise_floor": None,
            "problems": tuple(problems),
            "sets": tuple(deployments),
        }
    )
    made = store.join_runs(found.values(), info)
    written = RunStore(results / info.run_id, started_at=info.started_at)
    for kind in filter(lambda kind: getattr(made, kind), store.PROCESS_FILES):
        written.write_text(f"{kind}.jsonl", "\n".join(each.to_json() for each in getattr(made, kind)))
    written.write_info(info)
    return written.folder


def _profile(info: RunInfo) -> dict[str, object]:
    found = info.settings.get("profile")
    return found if isinstance(found, dict) else {}


def _require_alike(first: RunInfo, other: RunInfo, name: str) -> None:
    """Raise UsageError if two runs have different profiles, baselines, runtimes, loads or sources."""
    facts = [
        {**_profile(each), **each.model_dump(include={"reference", "runtime", "loads", "revision"})}
        for each in (first, other)
    ]
    differing = [key for key in facts[0] if facts[0][key] != facts[1].get(key)]
    if first.dirty or other.dirty:
        differing.append("uncommitted changes")
    if differing:
        raise UsageError(
            f"{name} was measured differently ({', '.join(differing)}): repeat the run with the same flags and commit"
        )
