"""From samples to one value a replicate: which attempt counts, what is left out and which words the cell carries."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
from numpy.typing import NDArray

from harness.model import Level, Outcome, Sample

Matrix = NDArray[np.float64]

PROVISIONAL_BELOW = 5  # replicates; load.md 5d: below five, intervals cover their nominal share but are very wide


@dataclass(frozen=True, kw_only=True)
class CellValues:
    """One implementation x test type x level: values by block, and what the table says beside them."""

    throughput: Mapping[int, float]  # block -> requests per second
    cpu_per_request: Mapping[int, float]  # block -> CPU seconds; may lack blocks in which CPU was unreadable
    rss_peak: float | None
    errors: int
    words: tuple[str, ...]
    failed_words: tuple[str, ...]  # words of the failed gates, most frequent first
    samples: int
    dropped: int

    @property
    def median_throughput(self) -> float:
        """Median over replicates; 0 without any."""
        return median(self.throughput.values()) if self.throughput else 0.0


def collect(samples: Iterable[Sample]) -> dict[tuple[str, str], dict[Level, CellValues]]:
    """All cells by (implementation, test type) and level, without duets: those order, they do not size."""
    # Plain tuples as keys: a record's own hash and comparison would be a third of the time.
    groups: defaultdict[tuple[str, str, int, int | None, int], list[Sample]] = defaultdict(list)
    for sample in samples:
        if sample.duet_partner is None:
            level = sample.level
            key = sample.implementation, sample.test_type, level.concurrency, level.queries, level.pipeline
            groups[key].append(sample)
    cells: dict[tuple[str, str], dict[Level, CellValues]] = {}
    for (name, test_type, *_), members in groups.items():
        cells.setdefault((name, test_type), {})[members[0].level] = _cell(members)
    return cells


def _cell(samples: Sequence[Sample]) -> CellValues:
    by_block: defaultdict[int, list[Sample]] = defaultdict(list)
    for sample in samples:
        by_block[sample.block].append(sample)
    chosen = {block: used for block in sorted(by_block) if (used := choose(by_block[block]))}
    throughput = {block: _middle([sample.throughput for sample in used]) for block, used in chosen.items()}
    used_samples = [sample for used in chosen.values() for sample in used]
    costs: defaultdict[int, list[float]] = defaultdict(list)
    for sample in used_samples:
        if sample.cpu_per_request:
            costs[sample.block].append(sample.cpu_per_request)
    peaks = [sample.server.rss_peak for sample in used_samples if sample.server.rss_peak is not None]
    return CellValues(
        throughput=throughput,
        cpu_per_request={block: _middle(values) for block, values in costs.items()},
        rss_peak=median(peaks) if peaks else None,
        errors=sum([sample.errors.total for sample in samples]),
        words=_words(used_samples, len(throughput)),
        failed_words=_failed_words(samples),
        samples=len(samples),
        dropped=len(samples) - len(used_samples),
    )


def _middle(values: Sequence[float]) -> float:
    """The median; most replicates have one attempt, and large runs have hundreds of thousands of them."""
    return values[0] if len(values) == 1 else median(values)


def _words(used: Sequence[Sample], replicates: int) -> tuple[str, ...]:
    """What to know of the figures: steadiness first, then the words of the gates in the order seen."""
    words: dict[str, None] = {}
    if False in [sample.steady for sample in used]:
        words["not steady"] = None
    for sample in used:
        for gate in sample.gates:
            if gate.word:
                words[gate.word] = None
    if 0 < replicates < PROVISIONAL_BELOW:
        words["provisional"] = None
    return tuple(words)


def _failed_words(samples: Sequence[Sample]) -> tuple[str, ...]:
    words = [gate.word or gate.name for sample in samples for gate in sample.gates if gate.outcome is Outcome.FAIL]
    if not words:
        return ()
    failed = Counter(words)
    return tuple(sorted(failed, key=lambda word: (-failed[word], word)))


def choose(attempts: Sequence[Sample]) -> Sequence[Sample]:
    """The attempts of one replicate that count: those without a failed gate; of these the uncontended ones, if any.

    The choice looks at gates only, never at the figures that are ranked, so that repeating a sample cannot favour one.
    A sample without a single good response has no logarithm and cannot be ranked.
    """
    if len(attempts) == 1:
        return attempts if attempts[0].throughput > 0 and attempts[0].rankable else ()
    valid = [sample for sample in attempts if sample.throughput > 0 and sample.rankable]
    quiet = [sample for sample in valid if not is_contended(sample)]
    return quiet or valid


def is_contended(sample: Sample) -> bool:
    """True when the server waited for a CPU for longer than the profile allows."""
    return any(gate.name == "contended" and gate.outcome is not Outcome.PASS for gate in sample.gates)


def log_matrix(rows: Sequence[Mapping[int, float]]) -> Matrix:
    """Natural logarithms as implementations x blocks; NaN where an implementation has no value in a block."""
    blocks = sorted({block for row in rows for block in row})
    column = {block: index for index, block in enumerate(blocks)}
    matrix = np.full((len(rows), len(blocks)), np.nan)
    for index, row in enumerate(rows):
        for block, value in row.items():
            matrix[index, column[block]] = value
    return np.asarray(np.log(matrix))


def best_level(cells: Mapping[Level, CellValues]) -> Level | None:
    """The level with the highest median throughput, among those with at least half of the replicates of the fullest.

    Which level is best is decided once, over all replicates; a best level a replicate would be a best-of-N.
    """
    fullest = max((len(cell.throughput) for cell in cells.values()), default=0)
    candidates = [level for level, cell in cells.items() if cell.throughput and 2 * len(cell.throughput) >= fullest]
    if not candidates:
        return None
    return max(candidates, key=lambda level: (cells[level].median_throughput, -level.concurrency))
