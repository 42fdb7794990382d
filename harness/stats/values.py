"""From samples to one value a replicate: which attempt counts, what is left out and which words the cell carries."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.records.models import Gate, Load, Outcome, Sample

Matrix = NDArray[np.float64]

MEGABYTE = 1e6  # bytes: of throughput per memory
PROVISIONAL_BELOW = 5  # replicates: with fewer, intervals cover their nominal share but are very wide (docs/method.md)


class Attempt(NamedTuple):
    """What the ranking reads of a sample.

    Read once and in the order of the records: a large run has millions of gates, and memory is slower than arithmetic.
    """

    block: int
    round: int | None
    throughput: float
    cpu_per_request: float | None
    rss_peak: float | None
    response_time: float | None
    threads: int | None
    errors: int
    steady: bool | None
    objections: Sequence[Gate]  # the gates that it did not pass

    @property
    def counts(self) -> bool:
        """True when no gate failed and there was a good response: without one there is no logarithm."""
        failed = self.objections and any(gate.outcome is Outcome.FAIL for gate in self.objections)
        return self.throughput > 0 and not failed

    @property
    def contended(self) -> bool:
        """True when the server waited for a CPU for longer than the profile allows."""
        return any(gate.name == "contended" for gate in self.objections)


def attempt(sample: Sample) -> Attempt:
    """The sample as the ranking reads it."""
    passed = Outcome.PASS
    return Attempt(
        sample.block,
        sample.round,
        sample.throughput,
        sample.cpu_per_request,
        sample.server.rss_peak,
        sample.latency.mean if sample.latency else None,
        sample.server.threads_peak,
        sample.errors.total,
        sample.steady,
        [gate for gate in sample.gates if gate.outcome is not passed],
    )


@dataclass(frozen=True, kw_only=True)
class CellValues:
    """One implementation x test type x level: values by block, and what the table says beside them."""

    throughput: Mapping[int, float]  # block, ascending -> requests per second
    cpu_per_request: Mapping[int, float]  # block -> CPU seconds; may lack blocks in which CPU was unreadable
    rss_peak: float | None
    errors: int
    words: tuple[str, ...]
    failed_words: tuple[str, ...]  # words of the failed gates, most frequent first
    samples: int
    dropped: int
    blocks: tuple[int, ...]  # in which it was measured, ascending; kept or not
    response_time: float | None = None  # seconds, median of the means; None where requests were pipelined
    throughput_per_memory: float | None = None  # requests/s per megabyte of the peak
    threads: float | None = None
    generator_bound: int = 0  # samples with a saturated generator, kept or not
    # Where processes are measured in turns: (block, round) -> value; a block's value is the geometric mean of these.
    throughput_windows: Mapping[tuple[int, int], float] = field(default_factory=dict)
    cpu_windows: Mapping[tuple[int, int], float] = field(default_factory=dict)
    anchored_to: str | None = None  # values are by set of machines, as ratios to this implementation (``sets.pooled``)

    @property
    def median_throughput(self) -> float:
        """Median over replicates; 0 without any."""
        return median(self.throughput.values()) if self.throughput else 0.0


Place = tuple[int, int | None, int, float | None]  # a level


def collect(samples: Iterable[Sample]) -> dict[tuple[str, str], dict[Load, CellValues]]:
    """All cells by (implementation, test type) and level, without duets: those order, they do not size."""
    # Plain tuples as keys: a record's own hash and comparison would be a third of the time.
    groups: defaultdict[tuple[str, str, Place], list[Attempt]] = defaultdict(list)
    levels: dict[Place, Load] = {}
    for sample in samples:
        if sample.duet_partner is None:
            level = sample.level
            place = level.connections, level.queries, level.depth, level.factor
            levels.setdefault(place, level)
            groups[sample.implementation, sample.test_type, place].append(attempt(sample))
    cells: dict[tuple[str, str], dict[Load, CellValues]] = {}
    for (name, test_type, place), members in groups.items():
        cells.setdefault((name, test_type), {})[levels[place]] = _cell(members)
    return cells


def _cell(attempts: Sequence[Attempt]) -> CellValues:
    by_block: defaultdict[int, list[Attempt]] = defaultdict(list)
    for one in attempts:
        by_block[one.block].append(one)
    throughput: dict[int, float] = {}
    cpu_per_request: dict[int, float] = {}
    throughput_windows: dict[tuple[int, int], float] = {}
    cpu_windows: dict[tuple[int, int], float] = {}
    used: list[Attempt] = []
    blocks = sorted(by_block)
    for block in blocks:
        if by_block[block][0].round is not None:
            used += _turns(block, by_block[block], throughput_windows, cpu_windows)
            own = [value for (of, _), value in throughput_windows.items() if of == block]
            costs = [value for (of, _), value in cpu_windows.items() if of == block]
            if own:
                throughput[block] = geometric_mean(own)
            if costs:
                cpu_per_request[block] = geometric_mean(costs)
            continue
        chosen = choose(by_block[block])
        used += chosen
        if len(chosen) == 1:  # as in most replicates, of which large runs have hundreds of thousands
            (only,) = chosen
            throughput[block] = only.throughput
            if only.cpu_per_request:
                cpu_per_request[block] = only.cpu_per_request
        elif chosen:
            throughput[block] = median(one.throughput for one in chosen)
            if costs := [one.cpu_per_request for one in chosen if one.cpu_per_request]:
                cpu_per_request[block] = median(costs)
    peaks = [one.rss_peak for one in used if one.rss_peak is not None]
    per_memory = [one.throughput / (one.rss_peak / MEGABYTE) for one in used if one.rss_peak]
    waits = [one.response_time for one in used if one.response_time]
    threads = [one.threads for one in used if one.threads]
    objections = [gate for one in attempts for gate in one.objections]
    return CellValues(
        throughput=throughput,
        cpu_per_request=cpu_per_request,
        rss_peak=median(peaks) if peaks else None,
        response_time=median(waits) if waits else None,
        throughput_per_memory=median(per_memory) if per_memory else None,
        threads=median(threads) if threads else None,
        errors=sum([one.errors for one in attempts]),
        words=_words(used, len(throughput)),
        failed_words=_failed_words(objections),
        samples=len(attempts),
        dropped=len(attempts) - len(used),
        blocks=tuple(blocks),
        generator_bound=[gate.name for gate in objections].count("generator-bound"),
        throughput_windows=throughput_windows,
        cpu_windows=cpu_windows,
    )


def _turns(
    block: int,
    attempts: Sequence[Attempt],
    throughput: dict[tuple[int, int], float],
    cpu_per_request: dict[tuple[int, int], float],
) -> list[Attempt]:
    """Fill in the value of each round of a process, as of a replicate otherwise; the attempts that count."""
    by_round: defaultdict[int, list[Attempt]] = defaultdict(list)
    for one in attempts:
        by_round[one.round or 0].append(one)
    used: list[Attempt] = []
    for number, members in sorted(by_round.items()):
        chosen = choose(members)
        used += chosen
        if chosen:
            throughput[block, number] = median(one.throughput for one in chosen)
        if costs := [one.cpu_per_request for one in chosen if one.cpu_per_request]:
            cpu_per_request[block, number] = median(costs)
    return used


def geometric_mean(values: Sequence[float]) -> float:
    """The mean on logarithms, on which all comparison works."""
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def _words(used: Sequence[Attempt], replicates: int) -> tuple[str, ...]:
    """What to know of the figures: steadiness first, then the words of the gates in the order seen."""
    words: dict[str, None] = {}
    if False in [one.steady for one in used]:
        words["not steady"] = None
    for one in used:
        for gate in one.objections:
            if gate.word:
                words[gate.word] = None
    if 0 < replicates < PROVISIONAL_BELOW:
        words["provisional"] = None
    return tuple(words)


def _failed_words(objections: Sequence[Gate]) -> tuple[str, ...]:
    if not objections:
        return ()
    failed = Counter(gate.word or gate.name for gate in objections if gate.outcome is Outcome.FAIL)
    return tuple(sorted(failed, key=lambda word: (-failed[word], word)))


def choose(attempts: Sequence[Attempt]) -> Sequence[Attempt]:
    """The attempts of one replicate that count: those without a failed gate; of these the uncontended ones, if any.

    The choice looks at gates only, never at the figures that are ranked, so that a repeat cannot favour one.
    """
    valid = [one for one in attempts if one.counts]
    if len(valid) < 2:
        return valid
    return [one for one in valid if not one.contended] or valid


def log_matrix(rows: Sequence[Mapping[int, float]]) -> Matrix:
    """Natural logarithms as implementations x blocks; NaN where an implementation has no value in a block."""
    blocks = sorted(set().union(*rows))
    matrix = np.array([[row.get(block, math.nan) for block in blocks] for row in rows], dtype=float)
    return np.asarray(np.log(matrix.reshape(len(rows), len(blocks))))


def best_level(cells: Mapping[Load, CellValues]) -> Load | None:
    """The level with the highest median throughput, among those with at least half of the values of the fullest.

    Values are windows where processes are measured in turns, otherwise replicates: a level that was looked at once a
    process would win by luck.

    Which level is best is decided once, over all replicates; a best level a replicate would be a best-of-N.
    """
    counts = {level: len(cell.throughput_windows) or len(cell.throughput) for level, cell in cells.items()}
    fullest = max(counts.values(), default=0)
    candidates = [level for level, count in counts.items() if count and 2 * count >= fullest]
    if not candidates:
        return None
    return max(candidates, key=lambda level: (cells[level].median_throughput, -level.connections))
