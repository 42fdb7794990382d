"""The noise floor of a machine: what one implementation measured against itself (A/A) seems to differ by."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import geometric_mean

import numpy as np

from harness.records.models import NoiseFloor, Sample
from harness.stats.estimates import finite, intervals, moments
from harness.stats.values import collect


def measured(
    samples: Sequence[Sample], names: tuple[str, str], *, profile: str, measured_at: float, confidence: float = 0.95
) -> NoiseFloor:
    """The floor from the samples of two copies of one implementation, the first of ``names`` being its own.

    Of each block the geometric means of both copies over the cells that both have: cells of one block share its luck,
    so that the block is the unit and not the cell. Raises ValueError with fewer than two blocks that hold a pair.
    """
    cells = collect(samples)
    throughput: dict[int, list[tuple[float, float]]] = defaultdict(list)
    cpu: dict[int, list[tuple[float, float]]] = defaultdict(list)
    for test_type in {kind for _, kind in cells}:
        one, other = (cells.get((name, test_type), {}) for name in names)
        for level in one.keys() & other.keys():
            for blocks, a, b in (
                (throughput, one[level].throughput, other[level].throughput),
                (cpu, one[level].cpu_per_request, other[level].cpu_per_request),
            ):
                for block in a.keys() & b.keys():
                    blocks[block].append((a[block], b[block]))
    return noise_floor(
        implementation=names[0],
        profile=profile,
        measured_at=measured_at,
        throughput=_means(throughput),
        cpu_per_request=_means(cpu),
        confidence=confidence,
    )


def _means(blocks: Mapping[int, Sequence[tuple[float, float]]]) -> list[tuple[float, float]]:
    """Geometric means of both copies, block by block."""
    pairs = (zip(*blocks[block], strict=True) for block in sorted(blocks))
    return [(geometric_mean(own), geometric_mean(twin)) for own, twin in pairs]


def noise_floor(
    *,
    implementation: str,
    profile: str,
    measured_at: float,
    throughput: Sequence[tuple[float, float]],
    cpu_per_request: Sequence[tuple[float, float]],
    confidence: float = 0.95,
) -> NoiseFloor:
    """The floor from A/A pairs, one of each block: (value of copy A, value of copy B), in whatever unit.

    It is the largest difference of the copies that the pairs do not exclude: the farther end of the interval of their
    mean log ratio. More pairs lower the part that is chance; a lasting advantage of one copy (start order, placement,
    memory layout) stays, and is what the floor is for. Raises ValueError with fewer than two pairs.
    """
    pairs = len(throughput)
    return NoiseFloor(
        implementation=implementation,
        profile=profile,
        measured_at=measured_at,
        pairs=pairs,
        throughput=floor(throughput, confidence),
        cpu_per_request=floor(cpu_per_request, confidence),
    )


def floor(pairs: Sequence[tuple[float, float]], confidence: float = 0.95) -> float:
    """Relative difference below which this machine cannot tell two servers apart with as many pairs."""
    if len(pairs) < 2:
        message = f"a noise floor needs at least two A/A pairs, there are {len(pairs)}"
        raise ValueError(message)
    ratios = np.log(np.asarray(pairs, dtype=float))
    low, high = intervals(moments((ratios[:, 0] - ratios[:, 1])[None, :]), confidence)
    bounds = [finite(float(abs(np.log(bound[0])))) for bound in (low, high)]
    return float(np.expm1(max(bound for bound in bounds if bound is not None)))
