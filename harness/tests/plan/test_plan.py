"""The plan: every implementation once a block, in seeded order, with honest times."""

import pytest

from harness.plan import plan, profile
from harness.plan.plan import Plan, PlannedReplicate
from harness.plan.profile import Profile
from harness.records.models import Closed

LEVELS = (Closed(connections=8), Closed(connections=16))
CANDIDATES = [
    PlannedReplicate(implementation=name, test_types={"json": LEVELS, "db": LEVELS}, jit=name == "java")
    for name in "abcde"
]
STANDARD = profile.load("standard")


def order(plan: Plan) -> list[list[str]]:
    return [[replicate.implementation for replicate in block] for block in plan.blocks]


def with_replicates(known: Profile, minimum: int, maximum: int) -> Profile:
    changed = known.replication.model_copy(update={"minimum": minimum, "maximum": maximum})
    return known.model_copy(update={"replication": changed})


def test_every_implementation_stands_once_in_every_block() -> None:
    blocks = order(plan.build(CANDIDATES, STANDARD, seed=1))
    assert len(blocks) == STANDARD.replication.maximum
    assert all(sorted(block) == list("abcde") for block in blocks)


def test_the_same_seed_gives_the_same_order_whatever_the_order_of_the_candidates() -> None:
    assert order(plan.build(CANDIDATES, STANDARD, seed=7)) == order(plan.build(CANDIDATES[::-1], STANDARD, seed=7))


def test_other_seeds_and_other_blocks_have_other_orders() -> None:
    assert len({str(order(plan.build(CANDIDATES, STANDARD, seed=seed))) for seed in range(10)}) == 10
    assert len({tuple(block) for block in order(plan.build(CANDIDATES, STANDARD, seed=1))}) > 1


def test_reverse_order_is_by_name_from_the_end() -> None:
    assert set(map(tuple, order(plan.build(CANDIDATES, STANDARD, seed=1, reverse=True)))) == {tuple("edcba")}


def test_cells_are_counted_over_test_types_and_levels() -> None:
    assert plan.build(CANDIDATES, STANDARD, seed=1).cells == 5 * 2 * 2


def test_expected_time_grows_with_the_minimum_and_the_maximum_time_with_the_maximum() -> None:
    few = plan.build(CANDIDATES, with_replicates(STANDARD, 2, 4), seed=1)
    many = plan.build(CANDIDATES, with_replicates(STANDARD, 4, 8), seed=1)
    assert few.expected_seconds < many.expected_seconds < many.maximum_seconds
    assert few.maximum_seconds < many.maximum_seconds


def test_a_replicate_s_worst_time_has_the_cap_of_every_warm_up() -> None:
    rule = STANDARD.warm_up
    for jit, cap in ((False, rule.cap_seconds), (True, rule.jit_cap_seconds)):
        known = PlannedReplicate(implementation="x", test_types={"json": LEVELS}, jit=jit)
        measured = 2 * (STANDARD.duration_seconds + 0.2) + STANDARD.pause_seconds
        worst = plan.replicate_seconds(known, STANDARD, thorough=True, worst=True)
        assert worst == pytest.approx(
            plan.START_SECONDS + plan.VERIFY_SECONDS[True] + rule.primer_seconds + cap + measured
        )


def test_techempower_s_warm_up_takes_its_fixed_time() -> None:
    rule = profile.load("techempower").warm_up
    assert plan.warm_up_seconds(rule, jit=True, worst=True) == 5 + 15 + 2 * 5
