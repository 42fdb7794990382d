"""Checks whether runs are the parts of a selection (``run --part``) and can be merged."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from harness.errors import UsageError
from harness.records.run_info import Part, RunInfo

MEMORY_TOLERANCE = 0.1  # maximum relative difference in memory size between machines of the same kind


def require_all_parts(infos: Mapping[str, RunInfo]) -> Part:
    """Return the part record of the merged run. Raises UsageError unless all runs are parts of the same selection."""
    first, owners = next(info.part for info in infos.values() if info.part), dict[int, str]()
    for name, info in infos.items():
        part = info.part
        if part is None or part.number == 0:
            raise UsageError(f"{name} is not a part, but other runs are: expected runs with --part. Leave {name} out")
        if (part.count, part.selection) != (first.count, first.selection):
            raise UsageError(
                f"{name} is a part of a different selection ({_describe(part)} instead of {_describe(first)}): "
                "expected parts of the same command. Leave it out, or repeat it with the flags of the other parts"
            )
        if part.number in owners:
            raise UsageError(
                f"{name} and {owners[part.number]} are both part {part.number}/{part.count}: expected each part once. "
                "Leave one of them out"
            )
        owners[part.number] = name
    if missing := [f"{number}/{first.count}" for number in range(1, first.count + 1) if number not in owners]:
        raise UsageError(
            f"part {', '.join(missing)} is missing: expected all {first.count} parts. Measure it with --part "
            f"{missing[0]} and the other flags of the recorded command, then add that run to this command"
        )
    _require_whole_selection(infos, first.selection)
    return first.model_copy(update={"number": 0})


def _require_whole_selection(infos: Mapping[str, RunInfo], selection: Collection[str]) -> None:
    """Raise UsageError unless the baseline is in every part, and each other implementation in exactly one part."""
    baseline = next(iter(infos.values())).reference
    counts = Counter(each.name for info in infos.values() for each in info.implementations)
    expected = {name: len(infos) if name == baseline else 1 for name in selection}
    names = sorted({*expected, *counts, str(baseline)})
    if wrong := [f"{name} in {counts[name]}" for name in names if counts[name] != expected.get(name, 0)]:
        raise UsageError(
            f"the parts do not match the selection: {', '.join(wrong[:5])} of {len(infos)} parts. Expected the "
            f"baseline {baseline} in every part, and each other implementation in one part. Different commits may "
            "divide a selection differently: repeat the parts at the same commit"
        )


def _describe(part: Part) -> str:
    return f"{part.count} parts of {len(part.selection)} implementations"


def list_differences(first: RunInfo, other: RunInfo) -> Iterator[str]:
    """Yield the differences in commit and kind of machine between two parts. ``--across`` permits these differences."""
    if first.revision != other.revision or first.revision is None:
        yield f"commit: {_commit(first)} and {_commit(other)}"
    if first.dirty or other.dirty:
        yield "uncommitted changes"
    one, two = first.machine, other.machine
    if one.cpu_model != two.cpu_model:
        yield f"CPU: {one.cpu_model} and {two.cpu_model}"
    if abs(one.memory_bytes - two.memory_bytes) > MEMORY_TOLERANCE * max(one.memory_bytes, two.memory_bytes):
        yield f"memory: {one.memory_bytes / 2**30:.0f} and {two.memory_bytes / 2**30:.0f} GiB"
    for name, value in {**first.conditions, "CPU quota": str(one.cpu_quota)}.items():
        if value != (other_value := {**other.conditions, "CPU quota": str(two.cpu_quota)}[name]):
            yield f"{name}: {value} and {other_value}"


def _commit(info: RunInfo) -> str:
    return (info.revision or "unknown")[:12]
