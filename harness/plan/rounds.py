"""The plan of servers that stay alive side by side: who with whom, how many processes and rounds fit the time. Pure."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.plan.plan import PlannedReplicate
from harness.plan.profile import Rounds
from harness.records.models import Load

WINDOW_OVERHEAD_SECONDS = 0.35  # a generator's start and the readings around it, until measured
UNKNOWN_BYTES = {True: 1024e6, False: 256e6}  # of a server never measured before: on a JIT runtime, and elsewhere
SWEEP_AGAIN = 16  # rounds: with fewer, windows go to the headline levels first
LEAST_REPLACED = 4  # second processes: fewer say too little of the variance between processes to be worth their time


@dataclass(frozen=True, kw_only=True)
class Cell:
    """What one window measures."""

    implementation: str
    test_type: str
    level: Load

    @property
    def label(self) -> str:
        """``express json c64``."""
        return f"{self.implementation} {self.test_type} {self.level.label}"


@dataclass(frozen=True, kw_only=True)
class Shape:
    """How the time of one group is divided: its rounds, and whose processes are replaced on the way."""

    rounds: int
    replaced: tuple[tuple[str, ...], ...] = ()  # by generation after the first

    @property
    def sweeps_again(self) -> bool:
        """Whether there are rounds enough for fresh processes to take the other levels, too."""
        return self.rounds >= SWEEP_AGAIN


def headline(levels: Sequence[Load]) -> Load:
    """The level that gets most of the time: the highest query count, otherwise the middle one (the lower of two)."""
    return levels[-1] if levels[-1].queries is not None else levels[(len(levels) - 1) // 2]


def headline_cells(planned: PlannedReplicate) -> list[Cell]:
    """One cell of each test type."""
    return [
        Cell(implementation=planned.implementation, test_type=name, level=headline(levels))
        for name, levels in planned.test_types.items()
    ]


def other_cells(planned: PlannedReplicate) -> list[Cell]:
    """The rest of the sweeps."""
    return [
        Cell(implementation=planned.implementation, test_type=name, level=level)
        for name, levels in planned.test_types.items()
        for level in levels
        if level != headline(levels)
    ]


def groups(
    candidates: Sequence[PlannedReplicate],
    sizes: Mapping[str, float],
    room: float,
    seed: int,
    *,
    side_by_side: bool,
    alone: frozenset[str] = frozenset(),
) -> list[list[PlannedReplicate]]:
    """Who is alive together: as many as fit into ``room`` bytes, in seeded random order; each of ``alone`` by itself.

    ``sizes``: resident bytes by implementation, where they were measured before.
    """
    order = sorted(candidates, key=lambda planned: planned.implementation)
    random.Random(seed).shuffle(order)
    if not side_by_side:
        return [[planned] for planned in order]
    made: list[list[PlannedReplicate]] = []
    left = 0.0
    for planned in order:
        size = sizes.get(planned.implementation, UNKNOWN_BYTES[planned.jit])
        if planned.implementation in alone:
            made.insert(0, [planned])
        elif made and left >= size and len(made[-1]) > 0 and made[-1][0].implementation not in alone:
            made[-1].append(planned)
            left -= size
        else:
            made.append([planned])
            left = room - size
    return made


def shape(
    rules: Rounds,
    *,
    total_seconds: float,
    seconds: float,
    setup_seconds: Mapping[str, float],
    headline_seconds: float,
    other_seconds: float,
    seed: int,
) -> Shape:
    """Whose processes are replaced, and the rounds that fit into ``seconds``, which are left once the first are warm.

    ``setup_seconds``: starting, verifying, warming and ending a process, by implementation; ``headline_seconds`` and
    ``other_seconds``: one window of each cell of all of them. As many are replaced as leave ``measured_share`` of all
    the time to windows, but none where these are fewer than four (or than there are implementations).
    Those that cost the least time come first: a few fresh processes stand for the others.
    """
    names = sorted(setup_seconds)
    candidates: list[tuple[int, str]] = []
    for generation in range(1, rules.processes):
        order = list(names)
        random.Random(f"{seed}/{generation}").shuffle(order)
        candidates += [(generation, name) for name in sorted(order, key=lambda name: setup_seconds[name])]
    measured = rules.measured_share * total_seconds
    chosen, left = 0, seconds
    for place, (_, name) in enumerate(candidates, 1):
        rest = left - setup_seconds[name]
        if rest < measured:
            break
        chosen, left = place, rest
    if chosen < min(LEAST_REPLACED, len(names)):
        chosen, left = 0, seconds
    generations = sorted({generation for generation, _ in candidates[:chosen]})
    return Shape(
        rounds=max(1, int((left - other_seconds) / headline_seconds)) if headline_seconds > 0 else 1,
        replaced=tuple(
            tuple(name for of, name in candidates[:chosen] if of == generation) for generation in generations
        ),
    )


def turnover(shape: Shape) -> dict[int, list[str]]:
    """Round -> whose process is replaced before it: a few at a time, so that no round is a change of all of them."""
    due: dict[int, list[str]] = {}
    apart = max(1, shape.rounds // (len(shape.replaced) + 1))  # rounds of a generation
    for generation, order in enumerate(shape.replaced, 1):
        spread = max(1, min(apart - 1, len(order)))  # rounds over which the replacements are spread
        for place, name in enumerate(order):
            due.setdefault(generation * apart + place * spread // len(order), []).append(name)
    return due
