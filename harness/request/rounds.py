"""The plan of servers that stay alive side by side: who with whom, how many processes and rounds fit the time. Pure."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.request.plan import PlannedReplicate
from harness.request.profile import Rounds
from harness.results.records import Level

WINDOW_OVERHEAD_SECONDS = 0.35  # a generator's start and the readings around it, until measured
UNKNOWN_BYTES = {True: 1024e6, False: 256e6}  # of a server never measured before: on a JIT runtime, and elsewhere
ROUNDS_A_PROCESS = 2  # below that, a further process costs more than it tells


@dataclass(frozen=True, kw_only=True)
class Cell:
    """What one window measures."""

    implementation: str
    test_type: str
    level: Level

    @property
    def label(self) -> str:
        """``express json c64``."""
        return f"{self.implementation} {self.test_type} {self.level.label}"


@dataclass(frozen=True, kw_only=True)
class Shape:
    """How the time of one group is divided."""

    processes: int  # fresh processes of each implementation
    rounds: int  # over all processes

    @property
    def rounds_a_process(self) -> int:
        """Rounds until an implementation's process is replaced by its next."""
        return max(1, self.rounds // self.processes)


def headline(levels: Sequence[Level]) -> Level:
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
    rules: Rounds, *, seconds: float, setup_seconds: float, headline_seconds: float, other_seconds: float
) -> Shape:
    """How many processes and rounds fit into ``seconds`` that are left once the first processes are warm.

    ``setup_seconds``: starting, verifying and warming all of them once; ``headline_seconds`` and ``other_seconds``: one
    window of each cell. The most processes that leave each ``ROUNDS_A_PROCESS`` rounds; a sweep over the other levels
    once a process.
    """
    best = Shape(processes=1, rounds=_rounds(1, seconds, setup_seconds, headline_seconds, other_seconds))
    for processes in range(2, rules.processes + 1):
        rounds = _rounds(processes, seconds, setup_seconds, headline_seconds, other_seconds)
        if rounds >= processes * ROUNDS_A_PROCESS:
            best = Shape(processes=processes, rounds=rounds)
    return best


def _rounds(processes: int, seconds: float, setup: float, headline: float, other: float) -> int:
    left = seconds - (processes - 1) * setup - processes * other
    return max(1, int(left / headline)) if headline > 0 else 1


def turnover(names: Sequence[str], shape: Shape, seed: int) -> dict[int, list[str]]:
    """Round -> whose process is replaced before it: a few at a time, so that no round is a change of all of them."""
    due: dict[int, list[str]] = {}
    for process in range(1, shape.processes):
        first = process * shape.rounds_a_process
        order = sorted(names)
        random.Random(f"{seed}/{process}").shuffle(order)
        spread = max(1, min(shape.rounds_a_process - 1, len(order)))  # rounds over which the replacements are spread
        for place, name in enumerate(order):
            due.setdefault(first + place * spread // len(order), []).append(name)
    return due
