"""Where the next windows of a run go: to the pairs that are still open, by what a second of load would decide.

Pure and deterministic. It is told of every pair how large its difference looks and how well it is known, and answers
with the cells to measure; which pairs are decided is the ranking's affair, at the looks that its error was planned for
(``rank.rules``): each look has its own share of the error, whatever made it come. Where to measure is chosen by what
was seen; simulations (``harness.benchmarks.allocated``) say what that does to the error.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from harness.stats.basis import Comparable
from harness.stats.pairs import Holm
from harness.stats.values import Matrix

Cell = tuple[str, str]  # implementation, test type
GAIN_WINDOWS = 1000  # a pair that needs more has a difference of nothing, as far as anybody will know
CONFIDENCE = 0.95  # of the interval of a tie
LEAST_SHARE = 0.1  # of the windows, for cells that decide nothing: drift would otherwise go unseen in them


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Two implementations of a test type as they look now, on logarithms; ``decided`` at a look, or narrow enough."""

    test_type: str
    one: str
    other: str
    difference: float
    squared_error: float  # of the difference, NaN where unknown
    fixed_squared_error: float  # the part of it that further windows leave as it is: between processes
    critical: float  # |difference| / error at which the pair is decided at the coming look
    decided: bool = False


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What more time would buy for one pair."""

    test_type: str
    one: str
    other: str
    windows: int | None  # more of each of both; None: further windows alone will not decide it
    seconds: float | None


@dataclass(frozen=True, kw_only=True)
class Plan:
    """``cells``: the next ones to measure, best first, within the time; ``wanted``: the open pairs, cheapest first."""

    cells: tuple[Cell, ...]
    wanted: tuple[Wanted, ...]

    @property
    def text(self) -> str:
        """A sentence of what more time would buy."""
        if not self.wanted:
            return "every order is decided or known to be a tie"
        within_reach = [wanted for wanted in self.wanted if wanted.seconds is not None]
        if not within_reach:
            return (
                f"{len(self.wanted)} pairs are open, and more windows alone would not decide them: more processes may"
            )
        total = sum(wanted.seconds or 0.0 for wanted in within_reach)
        first = within_reach[0]
        return (
            f"{len(self.wanted)} pairs are open; about {total:.0f} s of load would decide {len(within_reach)} of them, "
            f"{first.one} and {first.other} in {first.test_type} the first after {first.seconds:.0f} s"
        )


def pairs_of(
    test_type: str, names: Sequence[str], table: Comparable, found: Holm, fixed: Matrix, narrow: float = 0.0
) -> list[Pair]:
    """All pairs of a table and metric as they look at a look.

    ``fixed``: by row, the part of its squared error that further windows leave. ``narrow``: half-width on logs, at
    95 %, below which a tie is known to be one.
    """
    made: list[Pair] = []
    for i, one in enumerate(names):
        contrast = table.against(i)
        with np.errstate(invalid="ignore", divide="ignore"):  # a row against itself, or equal figures
            critical = contrast.half_width(1 - found.level) / np.sqrt(contrast.squared_error)
        known = contrast.half_width(CONFIDENCE) <= narrow
        made += [
            Pair(
                test_type=test_type,
                one=one,
                other=names[j],
                difference=float(contrast.difference[j]),
                squared_error=float(contrast.squared_error[j]),
                fixed_squared_error=float(np.fmin(fixed[i] + fixed[j], contrast.squared_error[j])),
                critical=float(critical[j]),
                decided=bool(found.rejected[i, j] or known[j]),
            )
            for j in range(i + 1, len(names))
        ]
    return made


def windows_wanted(pair: Pair, windows: int) -> int | None:
    """Further windows of each of both until the difference, as it looks now, would be decided.

    The squared error has a part that falls with the windows and one that does not: difference² = critical² (fixed +
    rest x windows / (windows + more)). None where the fixed part alone leaves it open, or it would take over 1,000.
    """
    if pair.decided:
        return 0
    if not np.isfinite(pair.squared_error) or pair.squared_error <= 0 or windows <= 0:
        return 1
    target = (pair.difference / pair.critical) ** 2 - pair.fixed_squared_error
    rest = max(pair.squared_error - pair.fixed_squared_error, 0.0)
    if target <= 0:
        return None
    more = int(np.ceil(windows * (rest / target - 1)))
    return max(more, 1) if more <= GAIN_WINDOWS else None


def chance(pair: Pair, windows: int, more: int) -> float:
    """Probability that ``more`` windows of both decide the pair, were its difference what it looks like (normal)."""
    if pair.decided:
        return 0.0
    if not np.isfinite(pair.squared_error) or pair.squared_error <= 0:
        return 1.0
    rest = max(pair.squared_error - pair.fixed_squared_error, 0.0)
    error = float(np.sqrt(pair.fixed_squared_error + rest * windows / (windows + more)))
    return float(special.ndtr(abs(pair.difference) / error - pair.critical))


def next_cells(
    pairs: Sequence[Pair],
    measured: Mapping[Cell, int],
    *,
    window_seconds: float,
    remaining_seconds: float,
    seed: int,
    batch: int = 1,
) -> Plan:
    """The cells to measure next, at most as many as the time allows.

    ``measured`` has the windows of every cell so far. The worth of a cell is what one more window of each side of its
    open pairs adds to their chance of being decided, a second of load. Cells that decide nothing share a tenth of the
    windows, the least measured first; ties in worth are broken by the seed.
    """
    order = {cell: place for place, cell in enumerate(_shuffled(sorted(measured), seed))}
    worth: defaultdict[Cell, float] = defaultdict(float)
    wanted: list[Wanted] = []
    for pair in pairs:
        if pair.decided:
            continue
        ends = (pair.one, pair.test_type), (pair.other, pair.test_type)
        windows = max(min(measured.get(end, 0) for end in ends), 1)
        more = windows_wanted(pair, windows)
        ahead = more or GAIN_WINDOWS
        gain = max(chance(pair, windows, ahead) - chance(pair, windows, 0), 0.0) / (2 * ahead * window_seconds)
        for end in ends:
            worth[end] += gain
        seconds = None if more is None else 2 * more * window_seconds
        wanted.append(Wanted(test_type=pair.test_type, one=pair.one, other=pair.other, windows=more, seconds=seconds))
    slots = min(batch * max(len(measured), 1), int(remaining_seconds / window_seconds))
    idle = sorted((cell for cell in measured if not worth[cell]), key=lambda cell: (measured[cell], order[cell]))
    busy = [cell for cell in measured if worth[cell]]
    for_idle = min(len(idle), int(slots * LEAST_SHARE)) if busy else min(slots, len(idle))
    cells = _shared_out({cell: worth[cell] for cell in busy}, slots - for_idle, order) if busy else []
    return Plan(
        cells=tuple(_shuffled([*cells, *idle[:for_idle]], seed)),
        wanted=tuple(sorted(wanted, key=lambda each: (each.seconds is None, each.seconds or 0.0, each.test_type,
                                                      each.one, each.other))),
    )  # fmt: skip


def _shared_out(worth: Mapping[Cell, float], slots: int, order: Mapping[Cell, int]) -> list[Cell]:
    """Slots by the square root of worth (as Neyman's allocation by standard deviations), the largest remainders first.

    By worth itself one pair would take all, and the others' drift would be unseen.
    """
    roots = {cell: float(np.sqrt(value)) for cell, value in worth.items()}
    total = sum(roots.values())
    exact = {cell: slots * root / total for cell, root in roots.items()}
    counts = {cell: int(share) for cell, share in exact.items()}
    left = slots - sum(counts.values())
    for cell in sorted(exact, key=lambda cell: (counts[cell] - exact[cell], order[cell]))[:left]:
        counts[cell] += 1
    return [cell for cell, count in counts.items() for _ in range(count)]


def _shuffled(cells: Sequence[Cell], seed: int) -> list[Cell]:
    return [cells[index] for index in np.random.default_rng(seed).permutation(len(cells))]
