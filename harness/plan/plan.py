"""The plan of a run: implementations, their loads, the profile, and which servers may run at the same time."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from harness.plan.discovery import Implementation
from harness.plan.profile import Profile
from harness.records.loads import Load, Scenario

OTHER_LOAD_SECONDS = 1.0  # length of trials at loads other than the headline load
MAX_WITNESS_SECONDS = 4.0  # maximum length of a trial by the witness
# Memory assumed for servers that were never measured. Key: whether the server uses a JIT compiler.
DEFAULT_MEMORY_BYTES = {True: 1024e6, False: 256e6}


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """An implementation, and the ordered loads of each test type."""

    implementation: str
    test_types: Mapping[str, tuple[Load, ...]]
    jit: bool


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The input of a design, complete before the first server starts."""

    candidates: tuple[Candidate, ...]
    profile: Profile
    implementations: tuple[Implementation, ...] = ()
    problems: tuple[str, ...] = ()  # broken configuration files, and selections that cannot be measured
    skipped: tuple[tuple[str, str], ...] = ()  # selected implementations that will not be measured, and why
    # Implementation -> resident bytes measured in an earlier run.
    memory_sizes: Mapping[str, float] = field(default_factory=dict)
    memory_limit: float = float("inf")  # bytes, for all servers that run at the same time
    side_by_side: bool = True
    reverse: bool = False  # descending order of names instead of random order

    @property
    def cells(self) -> int:
        """Number of cells: implementation x test type x load."""
        return sum(len(loads) for candidate in self.candidates for loads in candidate.test_types.values())

    def candidate(self, implementation: str) -> Candidate:
        """Return the candidate for an implementation."""
        return next(each for each in self.candidates if each.implementation == implementation)

    def restricted_to(self, names: Sequence[str]) -> "Plan":
        """Return a plan restricted to the named implementations."""
        return replace(self, candidates=tuple(c for c in self.candidates if c.implementation in names))

    def seconds(self, load: Load, *, headline: bool) -> float:
        """Return the length of a trial at this load in seconds."""
        if isinstance(load, Scenario):
            return self.profile.orders.seconds
        long = headline or self.profile.interleaved.every_load
        return self.profile.duration_seconds if long else OTHER_LOAD_SECONDS

    @property
    def witness_seconds(self) -> float:
        """Length of a trial by the witness, in seconds."""
        return min(self.profile.duration_seconds, MAX_WITNESS_SECONDS)


def headline_load(loads: Sequence[Load]) -> Load:
    """Return the load with the longest trials: the highest number of queries, or the (lower) middle load."""
    return loads[-1] if loads[-1].queries is not None else loads[(len(loads) - 1) // 2]


def concurrent_groups(plan: Plan, seed: int, alone: frozenset[str] = frozenset()) -> list[list[Candidate]]:
    """Group candidates so that the servers of each group fit into memory together.

    Args:
        plan: The plan. The order is random, except for the design "techempower" or if ``plan.reverse`` is set.
        seed: Seed of the random order.
        alone: Names of implementations that must not share a group.
    """
    order = sorted(plan.candidates, key=lambda candidate: candidate.implementation, reverse=plan.reverse)
    if not plan.reverse and plan.profile.design != "techempower":
        random.Random(seed).shuffle(order)
    if plan.profile.design == "gate":  # the regression gate compares implementations within rounds
        return [order]
    max_size = len(order) if plan.side_by_side else 1
    result: list[list[Candidate]] = []
    free_memory = 0.0
    for candidate in order:
        size = plan.memory_sizes.get(candidate.implementation, DEFAULT_MEMORY_BYTES[candidate.jit])
        if candidate.implementation in alone:
            result.insert(0, [candidate])
        elif (
            result and free_memory >= size and len(result[-1]) < max_size and result[-1][0].implementation not in alone
        ):
            result[-1].append(candidate)
            free_memory -= size
        else:
            result.append([candidate])
            free_memory = plan.memory_limit - size
    return result
