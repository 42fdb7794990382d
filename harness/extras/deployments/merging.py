"""One run of the runs that deployments have made: their processes numbered on, each belonging to its deployment."""

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from harness.errors import UsageError
from harness.records.models import ImplementationInfo, MachineSet, ProcessRecord, RunInfo, RunRecords, Trial, Verdict
from harness.records.store import read

OfProcess = TypeVar("OfProcess", Trial, ProcessRecord, Verdict)


def merge(runs: Mapping[str, Path], run_id: str, *, started_at: float) -> RunRecords:
    """Read the run of each deployment and make one of them. Raises UsageError for runs that cannot be one, StoreError.

    All processes of a run move alike: those that stood beside each other still do.
    """
    found = {name: read(folder) for name, folder in runs.items()}
    first = next(iter(found.values())).info
    trials: list[Trial] = []
    processes: list[ProcessRecord] = []
    verdicts: list[Verdict] = []
    deployments: list[MachineSet] = []
    problems: list[str] = []
    implementations: dict[str, ImplementationInfo] = {}
    before = 0
    for name, records in found.items():
        info = records.info
        _require_alike(first, info, name)
        trials += [_after(before, each) for each in records.trials]
        processes += [_after(before, each).model_copy(update={"log": None}) for each in records.processes]
        verdicts += [_after(before, each) for each in records.verdicts]
        numbers = sorted(
            {before + one.process for one in records.trials} | {before + one.process for one in records.processes}
        )
        own = MachineSet(name=name, machine=info.machine, runs=(info.run_id,), processes=tuple(numbers))
        deployments.append(own)
        before = max(numbers, default=before - 1) + 1
        problems += [f"{name}: {each}" for each in dict.fromkeys((*info.problems, *records.problems))]
        if info.status not in ("complete", "failed"):
            problems.append(f"{name}: the run is {info.status}; what it has measured counts")
        for each in info.implementations:  # as it was built, if any deployment built it
            known = implementations.get(each.name)
            if known is None or not (known.build and known.build.status == "ok"):
                implementations[each.name] = each
    profile = _profile(first)
    rules = profile.get("processes")
    number = {**(rules if isinstance(rules, dict) else {}), "minimum": before, "maximum": before, "looks": ()}
    info = first.model_copy(
        update={
            "run_id": run_id,
            "name": f"{len(found)} deployments",
            "status": "complete",
            "started_at": started_at,
            "completed_at": started_at,
            "command": ("lab", *found),
            "settings": {**first.settings, "profile": {**profile, "processes": number}},
            "implementations": tuple(implementations.values()),
            "processes_expected": before,
            "processes_maximum": before,
            "noise_floor": first.noise_floor if len(found) == 1 else None,
            "problems": tuple(problems),
            "sets": tuple(deployments),
        }
    )
    return RunRecords(info=info, trials=tuple(trials), processes=tuple(processes), verdicts=tuple(verdicts))


def _after(before: int, record: OfProcess) -> OfProcess:
    return record.model_copy(update={"process": before + record.process})


def _profile(info: RunInfo) -> dict[str, object]:
    found = info.settings.get("profile")
    return found if isinstance(found, dict) else {}


def _require_alike(first: RunInfo, other: RunInfo, name: str) -> None:
    """Raise UsageError when figures of the two are not of one thing."""
    here, there = _profile(first), _profile(other)
    if differing := [key for key in here if here[key] != there.get(key)]:
        raise UsageError(f"{name} was measured by another profile ({differing[0]} differs): repeat it with these flags")
    if first.reference != other.reference:
        raise UsageError(f"{name} has another reference, {other.reference} instead of {first.reference}")
    if (first.revision, bool(first.dirty)) != (other.revision, bool(other.dirty)):
        revisions = [
            f"{(each.revision or 'no commit')[:12]}{', changed' if each.dirty else ''}" for each in (first, other)
        ]
        raise UsageError(
            f"{name} was measured at {revisions[1]}, others at {revisions[0]}: bring checkouts to one commit"
        )
