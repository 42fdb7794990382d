"""The plan of a run: blocks of replicates in seeded random order, with expected and maximum time. Pure."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from harness.plan.latency import cell_seconds
from harness.plan.profile import OrderRules, Profile, WarmUpRule
from harness.records.models import Load

START_SECONDS = 4.0  # what a start, a restore and a stop take together, for the estimate alone
HTTP_SECONDS = 6.0  # what HTTP's own verification and the looks after the loads take a process, likewise
ENDING_SECONDS = 30.0  # what a run that ends by its time still takes: a last load, last checks, the ranking
AUDIT_SECONDS = 2.0  # an audited load of a second and its judgement, for the estimate alone
ORDER_VERIFY_SECONDS, ORDER_LOAD_SECONDS = 5.0, 1.0  # likewise; of a load: its start, and its rows looked at
VERIFY_SECONDS = {True: 1.5, False: 0.4}  # a test type's verification, thorough or brief, for the estimate alone


@dataclass(frozen=True, kw_only=True)
class PlannedReplicate:
    """One fresh start of an implementation: its test types with their levels, in order."""

    implementation: str
    test_types: Mapping[str, tuple[Load, ...]]
    jit: bool
    block: int = 0  # in which it begins
    process: int = 0  # of the implementation, from 0


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Every block up to the maximum; a run stops early where the stopping rule says so."""

    blocks: tuple[tuple[PlannedReplicate, ...], ...]
    minimum_blocks: int
    seed: int
    expected_seconds: float
    maximum_seconds: float

    @property
    def cells(self) -> int:
        """Implementation x test type x level."""
        return sum(len(levels) for replicate in self.blocks[0] for levels in replicate.test_types.values())


def build(candidates: Sequence[PlannedReplicate], profile: Profile, seed: int, *, reverse: bool = False) -> Plan:
    """Each block holds one replicate of each implementation, shuffled by the seed (or by name, reversed, if asked)."""
    shuffle = random.Random(seed)
    blocks = []
    for block in range(1 if profile.rounds else profile.replication.maximum):
        order = sorted(candidates, key=lambda c: c.implementation, reverse=reverse)
        if not reverse:
            shuffle.shuffle(order)
        blocks.append(tuple(replace(candidate, block=block, process=block) for candidate in order))
    if profile.rounds:
        seconds = profile.rounds.time_seconds
        return Plan(
            blocks=tuple(blocks), minimum_blocks=1, seed=seed, expected_seconds=seconds, maximum_seconds=seconds
        )
    minimum = min(profile.replication.minimum, profile.replication.maximum)
    expected = [replicate_seconds(c, profile, thorough=False, worst=False) for c in candidates]
    worst = [replicate_seconds(c, profile, thorough=False, worst=True) for c in candidates]
    extra = len(candidates) * 6 * (VERIFY_SECONDS[True] - VERIFY_SECONDS[False])
    repeats = 1 + profile.gates.repeat_budget_share
    seconds = sum(expected) * minimum + extra
    longest = sum(worst) * profile.replication.maximum * repeats + extra
    if profile.latency:  # ends by its time: searches are cut, and blocks beyond the second left out
        seconds = min(seconds, profile.latency.time_seconds)
        longest = min(longest, max(profile.latency.time_seconds + ENDING_SECONDS, 2 * sum(worst)))
    return Plan(
        blocks=tuple(blocks),
        minimum_blocks=minimum,
        seed=seed,
        expected_seconds=seconds,
        maximum_seconds=longest,
    )


def replicate_seconds(candidate: PlannedReplicate, profile: Profile, *, thorough: bool, worst: bool) -> float:
    """How long one replicate takes: a start, then verification, warm-up and levels of each test type."""
    each = [
        order_seconds(profile.orders, len(levels))
        if levels[0].factor is not None
        else VERIFY_SECONDS[thorough]
        + warm_up_seconds(profile.warm_up, jit=candidate.jit, worst=worst)
        + len(levels) * (profile.duration_seconds + 0.2)
        + (len(levels) - 1) * profile.pause_seconds
        + (AUDIT_SECONDS + cell_seconds(profile.latency, worst=worst) if profile.latency else 0.0)
        for levels in candidate.test_types.values()
    ]
    return START_SECONDS + (HTTP_SECONDS if profile.latency else 0.0) + sum(each)


def order_seconds(rules: OrderRules, factors: int) -> float:
    """How long the order service's loads take on one process, with their verification."""
    loads = factors + rules.search_loads
    return ORDER_VERIFY_SECONDS + rules.warm_up_seconds + loads * (rules.seconds + ORDER_LOAD_SECONDS)


def setup_seconds(candidate: PlannedReplicate, profile: Profile) -> float:
    """How long a process takes until it can be measured, and to end."""
    warm_up = warm_up_seconds(profile.warm_up, jit=candidate.jit, worst=False)
    return START_SECONDS + len(candidate.test_types) * (2 * VERIFY_SECONDS[False] + warm_up)


def warm_up_seconds(rule: WarmUpRule, *, jit: bool, worst: bool) -> float:
    """How long a warm-up takes: fixed, or between its minimum and its cap."""
    pauses = 2 * rule.pause_seconds
    if rule.kind == "fixed":
        return rule.primer_seconds + rule.fixed_seconds + pauses
    cap = rule.jit_cap_seconds if jit else rule.cap_seconds
    # Seen here: later test types profit from earlier ones, so that half of the way to the cap is a fair expectation.
    expected = (rule.minimum_seconds + cap) / 2
    return rule.primer_seconds + pauses + (cap if worst else expected)
