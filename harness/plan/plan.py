"""The plan of a run: implementations, their loads, the profile, and which servers may run at the same time."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from harness.plan.implementation import Implementation
from harness.plan.profile import Profile
from harness.records.loads import Load, Scenario
from harness.records.run_info import Part

OTHER_LOAD_SECONDS = 1.0  # trial length for loads other than the headline load, unless every_load is set
MAX_WITNESS_SECONDS = 4.0  # maximum duration of a witness trial
# Assumed memory of a server without earlier measurements. The key is True if the server uses a JIT compiler.
DEFAULT_MEMORY_BYTES = {True: 1024e6, False: 256e6}


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """An implementation, and the ordered loads of each test type."""

    implementation: str
    test_types: Mapping[str, tuple[Load, ...]]
    jit: bool


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The cells and settings of a run. The plan does not change after the first server has started."""

    candidates: tuple[Candidate, ...]
    profile: Profile
    implementations: tuple[Implementation, ...] = ()
    problems: tuple[str, ...] = ()  # messages about broken files, and about selections that cannot be measured
    # (implementation, reason) pairs of selected implementations that cannot be measured.
    skipped: tuple[tuple[str, str], ...] = ()
    # Implementation -> peak resident bytes in earlier runs.
    memory_sizes: Mapping[str, float] = field(default_factory=dict)
    memory_limit: float = float("inf")  # maximum total memory of concurrent servers, in bytes
    side_by_side: bool = True
    part: Part | None = None  # the part of the selection to measure; None for the whole selection
    reverse: bool = False  # measure implementations in reverse alphabetical order instead of random order

    @property
    def cells(self) -> int:
        """The number of cells in the plan."""
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
        """The length of a witness trial in seconds."""
        return min(self.profile.duration_seconds, MAX_WITNESS_SECONDS)


def headline_load(loads: Sequence[Load]) -> Load:
    """Return the load with the most queries or, without queries, with the (lower) median number of connections."""
    return loads[-1] if loads[-1].queries is not None else loads[(len(loads) - 1) // 2]


def concurrent_groups(plan: Plan, seed: int, exclusive: frozenset[str] = frozenset()) -> list[list[Candidate]]:
    """Group candidates that fit into memory at the same time, in random order unless the plan fixes the order.

    Each implementation in ``exclusive`` forms a separate group at the front of the list.
    """
    order = sorted(plan.candidates, key=lambda candidate: candidate.implementation, reverse=plan.reverse)
    if not plan.reverse and plan.profile.design != "techempower":
        random.Random(seed).shuffle(order)
    if plan.profile.design == "gate":  # a single group: the regression gate compares implementations within a round
        return [order]
    max_size = len(order) if plan.side_by_side else 1
    result: list[list[Candidate]] = []
    free_memory = 0.0
    for candidate in order:
        size = plan.memory_sizes.get(candidate.implementation, DEFAULT_MEMORY_BYTES[candidate.jit])
        if candidate.implementation in exclusive:
            result.insert(0, [candidate])
        elif (
            result
            and free_memory >= size
            and len(result[-1]) < max_size
            and result[-1][0].implementation not in exclusive
        ):
            result[-1].append(candidate)
            free_memory -= size
        else:
            result.append([candidate])
            free_memory = plan.memory_limit - size
    return result
