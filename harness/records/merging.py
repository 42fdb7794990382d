"""Several runs as one: their blocks numbered anew, each belonging to the set of machines that it was measured on.

Samples are copied without what no ranking reads (windows, histograms, gates that passed): those stay in the runs that
they come from.
"""

import gc
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ConfigDict, Field, ValidationError

from harness.errors import StoreError, UsageError
from harness.records import bounded as files
from harness.records import orders, rates
from harness.records.lines import first_complaint
from harness.records.models import (
    GoalCapacity,
    ImplementationInfo,
    Latency,
    MachineSet,
    Outcome,
    RateSample,
    Record,
    ReplicateRecord,
    RunInfo,
    RunRecords,
    Sample,
    Verdict,
    Window,
)
from harness.records.orders import OrderCapacity, OrderSample
from harness.records.reader import RunReader, bounded

# What has to be the same for figures of two runs to be the same quantity.
NAME_BYTES = 1 << 10  # of the file that names a unit's run
SAME = ("duration_seconds", "warm_up", "gates", "levels", "test_types")

Line = RateSample | GoalCapacity | OrderSample | OrderCapacity
# Files beside samples.jsonl that belong to the same processes: what is asked of each, and the section that has to be the same.
FURTHER: Mapping[str, tuple[type[Line], str]] = {
    rates.RATES: (RateSample, "latency"),
    rates.CAPACITIES: (GoalCapacity, "latency"),
    orders.ORDERS: (OrderSample, "orders"),
    orders.CAPACITIES: (OrderCapacity, "orders"),
}


class _SlimSample(Sample):
    """A sample whose windows are passed over: to read them takes longer than everything else."""

    model_config = ConfigDict(validate_by_name=False)
    windows: tuple[Window, ...] = Field(default=(), validation_alias="(not read)")


class _VerdictKey(Record):
    """Of a verdict, what tells whether it is the worst of its kind."""

    implementation: str
    test_type: str
    thorough: bool
    outcome: Outcome


@dataclass(frozen=True, kw_only=True)
class MergedRun(RunRecords):
    """Several runs as one, with the lines of the files beside samples.jsonl, by the files' names."""

    further: Mapping[str, Sequence[Line]] = field(default_factory=dict)


@dataclass(kw_only=True)
class _Merged:
    """What has been read so far."""

    infos: list[RunInfo] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    replicates: list[ReplicateRecord] = field(default_factory=list)
    verdicts: dict[tuple[str, str], Verdict] = field(default_factory=dict)  # the worst of each
    further: dict[str, list[Line]] = field(default_factory=dict)
    measured: dict[str, RunInfo] = field(default_factory=dict)  # section of the profile -> the first run that used it
    problems: list[str] = field(default_factory=list)
    blocks: dict[str, list[int]] = field(default_factory=dict)  # set -> blocks of the merged run
    runs: dict[str, list[str]] = field(default_factory=dict)
    processes: dict[str, int] = field(default_factory=dict)  # implementation -> the next number
    block: int = 0  # the next one
    round: int = 0


def merge(folders: Sequence[Path], run_id: str, *, reference: str | None = None, started_at: float) -> MergedRun:
    """Read runs and make one of them. Raises UsageError for runs that cannot be one, StoreError for what is no run.

    Each implementation's verdict is the worst that any run gave. A run of more than one set needs a reference that is
    in every block.
    """
    if not folders:
        raise UsageError("nothing to merge: no run was given")
    was_on = gc.isenabled()
    gc.disable()  # all that is read lives on: looking for what does not would take half of the time
    try:
        return _merge(folders, run_id, reference, started_at)
    finally:
        if was_on:
            gc.enable()


def _merge(folders: Sequence[Path], run_id: str, reference: str | None, started_at: float) -> MergedRun:
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
        _add(merged, info, reader)
    info = _info(merged, run_id, reference, started_at)
    return MergedRun(
        info=info,
        samples=tuple(merged.samples),
        replicates=tuple(merged.replicates),
        verdicts=tuple(merged.verdicts.values()),
        problems=tuple(merged.problems),
        further=merged.further,
    )


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


def _add(merged: _Merged, info: RunInfo, reader: RunReader) -> None:
    """One run's records, with blocks, processes and rounds that no other run has."""
    name = info.set_name or info.machine.hostname
    places: dict[int, int] = {}
    processes: dict[tuple[str, int], int] = {}
    top_round = -1

    def block_of(number: int) -> int:
        if number not in places:
            places[number] = merged.block
            merged.blocks.setdefault(name, []).append(merged.block)
            merged.block += 1
        return places[number]

    def process_of(implementation: str, number: int) -> int:
        key = (implementation, number)
        if key not in processes:
            processes[key] = merged.processes.get(implementation, 0)
            merged.processes[implementation] = processes[key] + 1
        return processes[key]

    for sample in reader.samples_as(_SlimSample):
        process = process_of(sample.implementation, sample.process)
        turn = None if sample.round is None else merged.round + sample.round
        top_round = max(top_round, sample.round if sample.round is not None else -1)
        merged.samples.append(_slim(sample, block_of(sample.block), process, turn))
    for replicate in reader.replicates():
        process = process_of(replicate.implementation, replicate.process)
        merged.replicates.append(
            replicate.model_copy(
                update={"block": block_of(replicate.block), "process": process, "replicate": process, "log": None}
            )
        )
    for file, (model, section) in FURTHER.items():
        for line in rates.lines_of(reader.folder / file, model, merged.problems):
            _require_same_section(merged, section, info)
            process = process_of(line.implementation, line.process)
            merged.further.setdefault(file, []).append(_slim_line(line, block_of(line.block), process))
    for path in sorted(reader.folder.glob("verify/*/*.json")):
        _add_verdict(merged, path)
    merged.round += top_round + 1
    merged.problems += [f"{reader.folder / problem.file}: {problem.message}" for problem in reader.problems]
    if info.status not in {"complete", "failed"} or info.completed_at is None:
        merged.problems.append(f"{reader.folder}: the run is {info.status}; what it has measured counts")
    merged.runs.setdefault(name, []).append(info.run_id)
    merged.infos.append(info)


def _require_same_section(merged: _Merged, section: str, info: RunInfo) -> None:
    """Raise UsageError when a run made these loads by other rules than the first that made any."""
    first = merged.measured.setdefault(section, info)
    here, there = _profile(first).get(section), _profile(info).get(section)
    if here != there:
        raise UsageError(
            f"{info.run_id} cannot be merged with {first.run_id}: [{section}] of its profile differs "
            f"({there!r} instead of {here!r})"
        )


def _add_verdict(merged: _Merged, path: Path) -> None:
    """Keep the verdict if it is the worst of its implementation and test type so far."""
    try:
        text = bounded(path)
        seen = _VerdictKey.model_validate_json(text)
        known = merged.verdicts.get((seen.implementation, seen.test_type))
        if known is None or _badness(seen) > _badness(known):
            merged.verdicts[seen.implementation, seen.test_type] = Verdict.model_validate_json(text)
    except OSError as error:
        merged.problems.append(f"{path}: cannot be read: {error.strerror}")
    except ValidationError as error:
        merged.problems.append(f"{path}: {first_complaint(error)}")


def _slim(sample: Sample, block: int, process: int, turn: int | None) -> Sample:
    """The sample under its new numbers, without windows and histogram."""
    warm_up = sample.warm_up
    return sample.without_histograms().model_copy(
        update={
            "block": block,
            "process": process,
            "replicate": process,
            "round": turn,
            "gates": tuple(gate for gate in sample.gates if gate.outcome is not Outcome.PASS),
            "warm_up": warm_up.model_copy(update={"windows": ()}) if warm_up and warm_up.windows else warm_up,
        }
    )


def _slim_line(line: Line, block: int, process: int) -> Line:
    """A line of a further file under its new numbers, without histograms."""
    update: dict[str, object] = {"block": block, "process": process}
    if isinstance(line, RateSample):
        update |= {"latency": _without_histogram(line.latency), "service": _without_histogram(line.service)}
    if isinstance(line, OrderSample):
        update |= {
            "operations": tuple(
                each.model_copy(
                    update={
                        "latency": _without_histogram(each.latency),
                        "service": _without_histogram(each.service),
                    }
                )
                for each in line.operations
            ),
            "use_cases": tuple(
                each.model_copy(update={"latency": _without_histogram(each.latency)}) for each in line.use_cases
            ),
        }
    return line.model_copy(update=update)


def _without_histogram(latency: Latency | None) -> Latency | None:
    return latency.model_copy(update={"histogram": ()}) if latency and latency.histogram else latency


def _badness(verdict: Verdict | _VerdictKey) -> tuple[int, bool]:
    return (Outcome.PASS, Outcome.WARN, Outcome.FAIL).index(verdict.outcome), verdict.thorough


def _info(merged: _Merged, run_id: str, reference: str | None, started_at: float) -> RunInfo:
    first = merged.infos[0]
    anchor = reference or first.reference
    implementations = _implementations(merged.infos)
    names = {info.name for info in implementations}
    several = len(merged.blocks) > 1
    if several and any(info.reference != anchor for info in merged.infos):
        others = {info.reference for info in merged.infos if anchor not in [i.name for i in info.implementations]}
        if others:
            raise UsageError(
                f"the runs of {len(merged.blocks)} sets of machines do not share a reference ({anchor} is not in all of "
                "them): across sets only ratios to one and the same implementation count; see --reference"
            )
    if anchor not in names:
        raise UsageError(f"--reference: {anchor!r} is in none of the runs")
    hosts = {info.set_name or info.machine.hostname: info.machine for info in reversed(merged.infos)}
    profile = dict(_profile(first))
    rules = {str(_profile(info).get("replication")) for info in merged.infos}
    if len(rules) == 1 and _fixed(first):  # one look at all that there is
        known = profile.get("replication")
        replication: dict[str, object] = dict(known) if isinstance(known, dict) else {}
        profile["replication"] = {**replication, "minimum": merged.block, "maximum": merged.block, "looks": ()}
    levels = {kind: levels for info in merged.infos for kind, levels in info.levels.items()}
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
            "levels": levels,
            "blocks_expected": merged.block,
            "blocks_maximum": merged.block,
            "noise_floor": first.noise_floor if not several else None,
            "problems": tuple(merged.problems),
            "schedule": (),
            "outlook": "",
            "unit": "",
            "set_name": "" if several else next(iter(merged.blocks), ""),
            "sets": tuple(
                MachineSet(name=name, machine=hosts[name], runs=tuple(merged.runs[name]), blocks=tuple(blocks))
                for name, blocks in sorted(merged.blocks.items())
            ),
        }
    )


def _fixed(info: RunInfo) -> bool:
    rule = _profile(info).get("replication")
    return isinstance(rule, dict) and rule.get("minimum") == rule.get("maximum")


def _implementations(infos: Sequence[RunInfo]) -> tuple[ImplementationInfo, ...]:
    """Each once: as it was built, if any run built it, with all test types that any run has of it."""
    found: dict[str, ImplementationInfo] = {}
    for info in infos:
        for one in info.implementations:
            known = found.get(one.name)
            better = known is None or (known.build is None or known.build.status != "ok")
            types = tuple(dict.fromkeys((*(known.test_types if known else ()), *one.test_types)))
            chosen = one if better or known is None else known
            found[one.name] = chosen if chosen.test_types == types else chosen.model_copy(update={"test_types": types})
    return tuple(found.values())


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
