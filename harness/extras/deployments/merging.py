"""Several runs as one: their processes numbered anew, each belonging to the deployment that it was measured on.

Trials are copied without what no ranking reads (windows, histograms, gates that passed): those stay in the runs that
they come from.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ConfigDict, Field

from harness.errors import StoreError, UsageError
from harness.plan.orders import CREATE
from harness.records import bounded as files
from harness.records.models import (
    ImplementationInfo,
    Latency,
    MachineSet,
    Outcome,
    ProcessRecord,
    RunInfo,
    RunRecords,
    Trial,
    Verdict,
    Window,
)
from harness.records.reader import RunReader
from harness.records.store import RunStore

NAME_BYTES = 1 << 10  # of the file that names a unit's run
# Of a profile: what has to be the same for figures of two runs to be the same quantity.
SAME = (
    *("design", "generator", "duration_seconds", "warm_up", "gates", "levels", "test_types"),
    *("open_loop", "rates", "orders"),
)


class _SlimTrial(Trial):
    """A trial whose windows are passed over: to read them takes longer than everything else."""

    model_config = ConfigDict(validate_by_name=False)
    windows: tuple[Window, ...] = Field(default=(), validation_alias="(not read)")


@dataclass(kw_only=True)
class _Merged:
    """What has been read so far."""

    infos: list[RunInfo] = field(default_factory=list)
    trials: list[Trial] = field(default_factory=list)
    processes: list[ProcessRecord] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    numbers: dict[str, list[int]] = field(default_factory=dict)  # deployment -> processes of the merged run
    runs: dict[str, list[str]] = field(default_factory=dict)
    count: int = 0  # of processes so far: what the next run's numbers are moved by


def merge(folders: Sequence[Path], run_id: str, *, reference: str | None = None, started_at: float) -> RunRecords:
    """Read runs and make one of them. Raises UsageError for runs that cannot be one, StoreError for what is no run.

    A run of more than one deployment needs a reference that is in every run.
    """
    if not folders:
        raise UsageError("nothing to merge: no run was given")
    merged = _Merged()
    units: dict[str, str] = {}
    for folder in folders:
        reader = RunReader(folder)
        info = reader.info
        if info.sets:
            raise UsageError(f"{folder} is itself a merge: give the runs that it was made of")
        if info.unit and info.unit in units:
            merged.problems.append(f"{folder}: unit {info.unit} is already there from {units[info.unit]}; left out")
            continue
        if info.unit:
            units[info.unit] = str(folder)
        if merged.infos:
            _require_alike(merged.infos[0], info, folder)
        _add(merged, reader)
    return RunRecords(
        info=_info(merged, run_id, reference, started_at),
        trials=tuple(merged.trials),
        processes=tuple(merged.processes),
        verdicts=tuple(merged.verdicts),
        problems=tuple(merged.problems),
    )


def write(records: RunRecords, folder: Path) -> RunStore:
    """The merged run as a folder like any other. Raises StoreError."""
    written = RunStore(folder, started_at=records.info.started_at)
    lines = {"trials": records.trials, "processes": records.processes, "verdicts": records.verdicts}
    for name, found in lines.items():
        written.write_text(f"{name}.jsonl", "\n".join(each.recorded() for each in found))
    written.write_info(records.info)
    return written


def runs_below(folder: Path) -> Iterator[Path]:
    """The runs of a folder that is one, or of a queue: those that were measured to their end. Raises StoreError."""
    if (folder / "run.json").exists():
        yield folder
        return
    found = sorted(folder.glob("units/*/done"))
    if not found:
        raise StoreError(f"{folder} is neither a run nor a queue with a unit that has been measured")
    for done in found:
        try:
            name = files.text(done, NAME_BYTES).strip()
        except (OSError, ValueError) as error:
            raise StoreError(f"{done}: does not name a run: {error}") from error
        if not name or Path(name).name != name:
            raise StoreError(f"{done}: {name!r} is not the name of a run beside it")
        yield done.parent / name


def _require_alike(first: RunInfo, other: RunInfo, folder: Path) -> None:
    """Raise UsageError when figures of the two are not the same quantity."""
    here, there = _profile(first), _profile(other)
    for key in SAME:
        if here.get(key) != there.get(key):
            raise UsageError(
                f"{folder} cannot be merged with {first.run_id}: {key} of its profile differs "
                f"({there.get(key)!r} instead of {here.get(key)!r})"
            )
    if first.revision != other.revision or (first.dirty or False) != (other.dirty or False):
        mine, yours = first.revision or "no commit", other.revision or "no commit"
        raise UsageError(
            f"{folder} was measured at {yours[:12]}{', changed' if other.dirty else ''}, {first.run_id} at {mine[:12]}"
            f"{', changed' if first.dirty else ''}: runs of different code are compared (./tfb compare), not merged"
        )


def _profile(info: RunInfo) -> Mapping[str, object]:
    found = info.settings.get("profile")
    return found if isinstance(found, dict) else {}


def _add(merged: _Merged, reader: RunReader) -> None:
    """One run's records. All of its processes move alike: those that stood beside each other still do."""
    info, moved = reader.info, merged.count
    name = info.set_name or info.machine.hostname
    trials = list(reader.lines("trials.jsonl", _SlimTrial))
    processes, verdicts = reader.processes(), reader.verdicts()
    merged.trials += [_slim(trial, trial.process + moved) for trial in trials]
    merged.processes += [each.model_copy(update={"process": each.process + moved, "log": None}) for each in processes]
    merged.verdicts += [each.model_copy(update={"process": each.process + moved}) for each in verdicts]
    numbers = sorted({*(each.process + moved for each in trials), *(each.process + moved for each in processes)})
    merged.count = max((*numbers, moved - 1)) + 1
    merged.numbers.setdefault(name, []).extend(numbers)
    merged.problems += [f"{reader.folder / problem.file}: {problem.message}" for problem in reader.problems]
    if info.status not in {"complete", "failed"} or info.completed_at is None:
        merged.problems.append(f"{reader.folder}: the run is {info.status}; what it has measured counts")
    merged.runs.setdefault(name, []).append(info.run_id)
    merged.infos.append(info)


def _slim(trial: Trial, process: int) -> Trial:
    """The trial of that process, without what no ranking reads."""
    update: dict[str, object] = {
        "process": process,
        "gates": tuple(gate for gate in trial.gates if gate.outcome is not Outcome.PASS),
        "warm_up": trial.warm_up and trial.warm_up.model_copy(update={"windows": ()}),
    }
    if trial.arrivals:
        operations = (
            each.model_copy(update={"latency": _short(each.latency, each.operation), "service": _short(each.service)})
            for each in trial.arrivals.operations
        )
        use_cases = (each.model_copy(update={"latency": _short(each.latency)}) for each in trial.arrivals.use_cases)
        short = {"operations": tuple(operations), "use_cases": tuple(use_cases)}
        update["arrivals"] = trial.arrivals.model_copy(update=short)
    return trial.without_histograms().model_copy(update=update)


def _short(latency: Latency | None, operation: str = "") -> Latency | None:
    """Without its histogram, but of the operation that is ranked by."""
    return latency and latency.model_copy(update={} if operation == CREATE else {"histogram": ()})


def _info(merged: _Merged, run_id: str, reference: str | None, started_at: float) -> RunInfo:
    first = merged.infos[0]
    anchor = reference or first.reference
    implementations = _implementations(merged.infos)
    several = len(merged.numbers) > 1
    if several and any(anchor not in {each.name for each in info.implementations} for info in merged.infos):
        raise UsageError(
            f"the runs of {len(merged.numbers)} deployments do not share a reference ({anchor} is not in all of "
            "them): across deployments only ratios to one and the same implementation count; see --reference"
        )
    if anchor not in {each.name for each in implementations}:
        raise UsageError(f"--reference: {anchor!r} is in none of the runs")
    hosts = {info.set_name or info.machine.hostname: info.machine for info in reversed(merged.infos)}
    known = _profile(first).get("processes")
    processes = {**(known if isinstance(known, dict) else {}), "minimum": merged.count, "maximum": merged.count}
    profile = {**_profile(first), "processes": processes | {"looks": ()}}  # one look at all that there is
    return first.model_copy(
        update={
            "run_id": run_id,
            "name": f"{len(merged.infos)} runs merged",
            "status": "complete",
            "started_at": started_at,
            "completed_at": started_at,
            "command": ("merge", *(info.run_id for info in merged.infos)),
            "settings": {**first.settings, "profile": profile},
            "reference": anchor,
            "implementations": implementations,
            "loads": {kind: loads for info in merged.infos for kind, loads in info.loads.items()},
            "processes_expected": merged.count,
            "processes_maximum": merged.count,
            "noise_floor": first.noise_floor if not several else None,
            "problems": tuple(merged.problems),
            "unit": "",
            "set_name": "" if several else next(iter(merged.numbers), ""),
            "sets": tuple(
                MachineSet(name=name, machine=hosts[name], runs=tuple(merged.runs[name]), processes=tuple(numbers))
                for name, numbers in sorted(merged.numbers.items())
            ),
        }
    )


def _implementations(infos: Sequence[RunInfo]) -> tuple[ImplementationInfo, ...]:
    """Each once: as it was built, if any run built it, with all test types that any run has of it."""
    found: dict[str, ImplementationInfo] = {}
    for one in (each for info in infos for each in info.implementations):
        known = found.get(one.name, one)
        built = known if known.build and known.build.status == "ok" else one
        types = tuple(dict.fromkeys((*known.test_types, *one.test_types)))
        found[one.name] = built.model_copy(update={"test_types": types})
    return tuple(found.values())
