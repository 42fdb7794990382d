"""The plan of a run: which implementations with which loads, by which profile, and who may be up together. Pure."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from harness.plan.discovery import Implementation
from harness.plan.profile import Profile
from harness.records.loads import Load, Scenario

OTHER_LOAD_SECONDS = 1.0  # of a trial beside the headline load
MAX_WITNESS_SECONDS = 4.0  # at most
DEFAULT_MEMORY_BYTES = {
    True: 1024e6,
    False: 256e6,
}  # of a server never measured before: on a JIT runtime, and elsewhere


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """An implementation with the loads of its test types, in order."""

    implementation: str
    test_types: Mapping[str, tuple[Load, ...]]
    jit: bool


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a design works with. Everything in it is known before the first server starts."""

    candidates: tuple[Candidate, ...]
    profile: Profile
    implementations: tuple[Implementation, ...] = ()
    problems: tuple[str, ...] = ()  # broken configuration files, and what was asked for and cannot be measured
    skipped: tuple[tuple[str, str], ...] = ()  # implementations that were asked for and are no candidates, and why
    memory_sizes: Mapping[str, float] = field(default_factory=dict)  # resident bytes by implementation, where known
    memory_limit: float = float("inf")  # bytes that servers may take together
    side_by_side: bool = True
    reverse: bool = False  # by name from the end, instead of at random

    @property
    def cells(self) -> int:
        """Implementation x test type x load."""
        return sum(len(loads) for candidate in self.candidates for loads in candidate.test_types.values())

    def candidate(self, implementation: str) -> Candidate:
        """The one of this name."""
        return next(each for each in self.candidates if each.implementation == implementation)

    def restricted_to(self, names: Sequence[str]) -> "Plan":
        """The plan with these implementations alone."""
        return replace(self, candidates=tuple(c for c in self.candidates if c.implementation in names))

    def seconds(self, load: Load, *, headline: bool) -> float:
        """How long a trial at this load lasts."""
        if isinstance(load, Scenario):
            return self.profile.orders.seconds
        long = headline or self.profile.interleaved.every_load
        return self.profile.duration_seconds if long else OTHER_LOAD_SECONDS

    @property
    def witness_seconds(self) -> float:
        """How long a trial by the other generator lasts: as the one before it, which it is held against."""
        return min(self.profile.duration_seconds, MAX_WITNESS_SECONDS)


def headline_load(loads: Sequence[Load]) -> Load:
    """The load that gets most of the time: the highest query count, otherwise the middle one (the lower of two)."""
    return loads[-1] if loads[-1].queries is not None else loads[(len(loads) - 1) // 2]


def concurrent_groups(plan: Plan, seed: int, alone: frozenset[str] = frozenset()) -> list[list[Candidate]]:
    """Who is up together: as many as fit into memory, in seeded random order; each of ``alone`` by itself.

    TechEmpower's order is that of the names.
    """
    order = sorted(plan.candidates, key=lambda candidate: candidate.implementation, reverse=plan.reverse)
    if not plan.reverse and plan.profile.design != "techempower":
        random.Random(seed).shuffle(order)
    if plan.profile.design == "gate":  # compared within rounds, or not at all
        return [order]
    most = len(order) if plan.side_by_side else 1
    made: list[list[Candidate]] = []
    left = 0.0
    for candidate in order:
        size = plan.memory_sizes.get(candidate.implementation, DEFAULT_MEMORY_BYTES[candidate.jit])
        if candidate.implementation in alone:
            made.insert(0, [candidate])
        elif made and left >= size and len(made[-1]) < most and made[-1][0].implementation not in alone:
            made[-1].append(candidate)
            left -= size
        else:
            made.append([candidate])
            left = plan.memory_limit - size
    return made
