"""Parts of a selection: ``./tfb run --part 3/8``."""

import pytest

from harness.errors import UsageError
from harness.plan.parts import expected_seconds, parse_part, restrict_to_part
from harness.plan.plan import Candidate, Plan
from harness.plan.profile import load_profile
from harness.records.loads import ClosedLoop

LOAD = ClosedLoop(connections=64)
TYPES = ("json", "plaintext", "db", "query", "fortune", "update")


def plan(count: int = 20) -> Plan:
    """Return a plan of ``count`` implementations and the baseline ``base``. Each has one to six test types."""
    candidates = [
        Candidate(implementation=f"x{i:02}", test_types=dict.fromkeys(TYPES[: 1 + i % 6], (LOAD,)), jit=i % 3 == 0)
        for i in range(count)
    ]
    candidates.append(Candidate(implementation="base", test_types=dict.fromkeys(TYPES, (LOAD,)), jit=True))
    return Plan(candidates=tuple(candidates), profile=load_profile("standard"))


@pytest.mark.parametrize("count", [1, 3, 8, 20])
def test_parts_divide_the_selection(count: int) -> None:
    parts = [restrict_to_part(plan(), number, count, "base") for number in range(1, count + 1)]
    names = [{each.implementation for each in part.candidates} for part in parts]
    assert all("base" in own and len(own) > 1 for own in names)
    others = sorted(name for own in names for name in own - {"base"})
    assert others == [f"x{i:02}" for i in range(20)]
    assert {part.part.selection for part in parts} == {("base", *others)}
    assert [(part.part.number, part.part.count) for part in parts] == [(i, count) for i in range(1, count + 1)]


def test_parts_take_about_the_same_time() -> None:
    parts = [restrict_to_part(plan(), number, 4, "base") for number in range(1, 5)]
    seconds = [sum(expected_seconds(part, each) for each in part.candidates) for part in parts]
    longest = max(expected_seconds(parts[0], each) for each in plan().candidates)
    assert max(seconds) - min(seconds) < longest / 2


def test_parts_ignore_machines_and_order() -> None:
    """Parts stay the same if one machine can also measure ``fan-out``, or if the implementations' order varies."""
    usual = plan()
    fan_out = [
        Candidate(implementation=each.implementation, test_types={**each.test_types, "fan-out": (LOAD,)}, jit=each.jit)
        for each in reversed(usual.candidates)
    ]
    other = Plan(candidates=tuple(fan_out), profile=usual.profile)
    for number in (1, 2, 3):
        one, two = (restrict_to_part(each, number, 3, "base") for each in (usual, other))
        assert {each.implementation for each in one.candidates} == {each.implementation for each in two.candidates}


def test_more_parts_than_implementations_are_refused() -> None:
    with pytest.raises(UsageError, match=r"--part 3/3: the selection has 2 .*Use at most 2 parts"):
        restrict_to_part(plan(2), 3, 3, "base")


@pytest.mark.parametrize("text", ["", "3", "0/8", "9/8", "1/0", "a/b", "1/2/3", "-1/8", "1/10000"])
def test_texts_that_are_no_parts(text: str) -> None:
    with pytest.raises(UsageError, match=r"is not a part; expected NUMBER/COUNT"):
        parse_part(text)
    assert parse_part("3/8") == (3, 8)
