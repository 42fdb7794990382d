"""Divides the implementations of a run into parts that share the baseline (``./tfb run --part 3/8``)."""

import re
from dataclasses import replace

from harness.errors import UsageError
from harness.plan.plan import Candidate, Plan, headline_load
from harness.plan.testtypes.registry import TEST_TYPES
from harness.records.run_info import Part

START_AND_STOP_SECONDS = 8.0  # approximate time to start and stop a process
MAX_PARTS = 1000


def parse_part(text: str | None) -> tuple[int, int] | None:
    """Parse a part such as ``3/8`` and return (number, count), or None if ``text`` is None. Raises UsageError."""
    if text is None:
        return None
    if match := re.fullmatch(r"(\d{1,4})/(\d{1,4})", text, re.ASCII):
        number, count = int(match[1]), int(match[2])
        if 1 <= number <= count <= MAX_PARTS:
            return number, count
    raise UsageError(f"--part: {text[:40]!r} is not a part; expected NUMBER/COUNT. Use 1/8 to 8/8 for eight parts")


def restrict_to_part(plan: Plan, number: int, count: int, baseline: str) -> Plan:
    """Return the plan of part ``number`` of ``count``. Raises UsageError if a part would contain only the baseline.

    The baseline is in every part, and every other implementation is in exactly one part. The division depends only on
    the configurations and the profile, so all machines compute the same parts.
    """
    others = [each for each in plan.candidates if each.implementation != baseline]
    if len(others) < count:
        raise UsageError(
            f"--part {number}/{count}: the selection has {len(others)} implementations besides the baseline "
            f"{baseline}, and every part needs at least one. Use at most {len(others)} parts, or select more "
            "implementations"
        )
    seconds = {each.implementation: expected_seconds(plan, each) for each in others}
    parts: list[list[str]] = [[] for _ in range(count)]
    # In order of decreasing time, assign each implementation to the part with the shortest total time so far.
    for name in sorted(seconds, key=lambda name: (-seconds[name], name)):
        min(parts, key=lambda part: sum(seconds[each] for each in part)).append(name)
    chosen = {baseline, *parts[number - 1]}
    return replace(
        plan.restricted_to(sorted(chosen)),
        implementations=tuple(each for each in plan.implementations if each.name in chosen),
        part=Part(number=number, count=count, selection=tuple(sorted((baseline, *seconds)))),
    )


def expected_seconds(plan: Plan, candidate: Candidate) -> float:
    """Estimate the seconds needed to measure one process. Exclude test types that only some machines can measure."""
    limits = plan.profile.warm_up
    warm_up = limits.jit_cap_seconds if candidate.jit else limits.cap_seconds
    return START_AND_STOP_SECONDS + sum(
        warm_up + sum(plan.seconds(load, headline=load == headline_load(loads)) for load in loads)
        for kind, loads in candidate.test_types.items()
        if not TEST_TYPES[kind].calls_upstream
    )
