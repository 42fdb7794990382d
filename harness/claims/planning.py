"""Which cells claims need, in which pieces they are measured, and when a piece has measured enough. Pure."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil

from harness.claims import judgement
from harness.claims.claim import Claim
from harness.plan.plan import START_SECONDS, VERIFY_SECONDS, PlannedReplicate, replicate_seconds, warm_up_seconds
from harness.plan.profile import Profile, Replication
from harness.plan.rounds import LEAST_REPLACED, WINDOW_OVERHEAD_SECONDS
from harness.plan.testtypes.registry import TEST_TYPES
from harness.records.models import Load, RunRecords
from harness.stats import rules
from harness.stats.stopping import Undecided

WINDOWS = 10  # of each cell of claims that are measured in turns
WINDOWS_A_PROCESS = 3  # of each cell, where there are many processes
MOST_PROCESSES = 12  # of each server in turns
OF_A_PROCESS = {"memory", "threads", "throughput-per-memory", "first-answer"}  # windows of one say it but once

Cells = Mapping[str, Mapping[str, tuple[Load, ...]]]  # implementation -> test type -> levels, heaviest first


@dataclass(frozen=True, kw_only=True)
class Piece:
    """Claims that one run measures together, since they share servers, and how long its least blocks take."""

    claims: tuple[Claim, ...]
    cells: Cells
    seconds: float  # expected, of the fewest blocks, or of all that is measured in turns; builds apart
    in_turns: bool  # its servers stay up side by side; False: a fresh process of each in every block
    processes: int = 1  # of each server in turns


def cells_of(claims: Sequence[Claim]) -> Cells:
    """All that these claims compare, each once, in the order of a replicate.

    The heaviest level comes first, since a server is warmed at it: a compiler sees few requests of a lone client.
    """
    found: defaultdict[str, defaultdict[str, set[Load]]] = defaultdict(lambda: defaultdict(set))
    for cell in (cell for claim in claims for cell in claim.cells):
        found[cell.implementation][cell.test_type].add(cell.level)
    return {
        name: {kind: tuple(sorted(kinds[kind], key=_load, reverse=True)) for kind in TEST_TYPES if kind in kinds}
        for name, kinds in sorted(found.items())
    }


def _load(level: Load) -> tuple[int, int, int, float]:
    return level.connections, level.queries or 0, level.depth, level.factor or 0.0


def pieces(
    claims: Sequence[Claim], profile: Profile, is_jit: Callable[[str], bool], limit_seconds: float
) -> tuple[Piece, ...]:
    """Claims about implementations in as few pieces as the limit allows, those that share servers together.

    A claim that takes longer by itself is a piece of its own: it cannot be settled with less. What a limit leaves
    beyond a piece's least goes into further processes where servers take turns: they are what decides most.
    """
    waiting = [claim for claim in claims if claim.program is None]
    found: list[Piece] = []
    while waiting:
        chosen = [waiting.pop(0)]
        while fitting := _next(chosen, waiting, profile, is_jit, limit_seconds):
            chosen.append(fitting)
            waiting.remove(fitting)
        found.append(_filled(_piece(chosen, profile, is_jit), profile, is_jit, limit_seconds))
    return tuple(found)


def _filled(piece: Piece, profile: Profile, is_jit: Callable[[str], bool], limit_seconds: float) -> Piece:
    """With as many processes as the limit allows; how many is settled before anything is measured."""
    while piece.in_turns and piece.processes < MOST_PROCESSES:
        larger = _timed(replace(piece, processes=piece.processes + 1), profile, is_jit)
        if larger.seconds > limit_seconds:
            break
        piece = larger
    return piece


def in_turns(claim: Claim, profile: Profile) -> bool:
    """Whether servers that stay up can settle it: not where figures are a process's own, nor in loads of arrivals."""
    return (
        profile.rounds is not None
        and not _arrivals(claim)
        and not {each.metric for each in claim.compare} & OF_A_PROCESS
    )


def _piece(claims: Sequence[Claim], profile: Profile, is_jit: Callable[[str], bool]) -> Piece:
    cells = cells_of(claims)
    turns = in_turns(claims[0], profile)
    least = 1 + ceil(LEAST_REPLACED / len(cells))  # four beyond the first ones tell how much processes differ
    piece = Piece(claims=tuple(claims), cells=cells, seconds=0.0, in_turns=turns, processes=least if turns else 1)
    return _timed(piece, profile, is_jit)


def _timed(piece: Piece, profile: Profile, is_jit: Callable[[str], bool]) -> Piece:
    length = seconds_in_turns(piece, profile, is_jit) if piece.in_turns else seconds(piece.cells, profile, is_jit)
    return replace(piece, seconds=length)


def _next(
    chosen: Sequence[Claim],
    waiting: Sequence[Claim],
    profile: Profile,
    is_jit: Callable[[str], bool],
    limit_seconds: float,
) -> Claim | None:
    """The claim that adds the least time, where it still fits."""
    costs = [
        (_piece([*chosen, claim], profile, is_jit).seconds, i)
        for i, claim in enumerate(waiting)
        if in_turns(claim, profile) == in_turns(chosen[0], profile) and _arrivals(claim) == _arrivals(chosen[0])
    ]
    cost, index = min(costs, default=(float("inf"), 0))
    return waiting[index] if cost <= limit_seconds else None


def _arrivals(claim: Claim) -> bool:
    return any(TEST_TYPES[cell.test_type].open_loop for cell in claim.cells)


def seconds_in_turns(piece: Piece, profile: Profile, is_jit: Callable[[str], bool]) -> float:
    """How long all processes of a piece and their windows take, at the longest warm-up."""
    assert profile.rounds is not None  # noqa: S101 - the piece was chosen by it
    window = profile.rounds.headline_seconds + WINDOW_OVERHEAD_SECONDS
    total = 0.0
    for name, kinds in piece.cells.items():
        warm_up = len(kinds) * warm_up_seconds(profile.warm_up, jit=is_jit(name), worst=True)
        setup = 2 * START_SECONDS + len(kinds) * 2 * VERIFY_SECONDS[False] + warm_up  # a JVM takes its time to stop
        each = max(WINDOWS, WINDOWS_A_PROCESS * piece.processes)
        windows = each * sum(map(len, kinds.values())) + piece.processes * len(kinds)  # an audit a test type
        total += piece.processes * setup + windows * window
    return total


def seconds(cells: Cells, profile: Profile, is_jit: Callable[[str], bool]) -> float:
    """How long the fewest blocks over these cells are expected to take."""
    each = [
        replicate_seconds(
            PlannedReplicate(implementation=name, test_types=kinds, jit=is_jit(name)),
            profile,
            thorough=False,
            worst=False,
        )
        + START_SECONDS  # a JVM takes its time to stop, and audits theirs
        for name, kinds in cells.items()
    ]
    return sum(each) * profile.replication.minimum


@dataclass(frozen=True, kw_only=True)
class UntilSettled:
    """The stopping rule of a run for claims: cells of claims with an open statement need another block.

    The records are looked at after the profile's counts of blocks alone, each look with its own share of the error
    (``rank.rules.alpha_at``). A claim that was settled at an earlier look stays settled, and a resumed run stops where
    the uninterrupted one would have. ``out_of_time`` ends a run between blocks, whatever is open.
    """

    claims: tuple[Claim, ...]
    out_of_time: Callable[[RunRecords], bool] = lambda _: False

    def __call__(
        self, records: RunRecords, expected: Sequence[tuple[str, str]], replication: Replication
    ) -> Sequence[Undecided]:
        """Each expected (implementation, test type) that an open claim needs, with its reason."""
        blocks = sorted({sample.block for sample in records.samples})
        done = len(blocks)
        if done >= replication.maximum or self.out_of_time(records):
            return ()
        waiting = list(self.claims)
        for look in rules.looks(replication):
            if look <= done:
                seen = _until(records, blocks[:look])
                waiting = [claim for claim in waiting if not judgement.decided(claim, seen)]
        reasons: dict[tuple[str, str], str] = {}
        for claim in waiting:
            for cell in claim.cells:
                reasons.setdefault((cell.implementation, cell.test_type), f"claim {claim.name} is open")
        return tuple(
            Undecided(implementation=name, test_type=kind, reason=reasons[name, kind])
            for name, kind in expected
            if (name, kind) in reasons
        )


def _until(records: RunRecords, blocks: Sequence[int]) -> RunRecords:
    """The records as they stood after these blocks."""
    known = set(blocks)
    return replace(
        records,
        samples=[sample for sample in records.samples if sample.block in known],
        replicates=[record for record in records.replicates if record.block in known],
    )
