"""The noise floor of a machine: what one implementation measured against itself (A/A) seems to differ by."""

from collections.abc import Sequence

import numpy as np

from harness.rank.estimates import finite, intervals, moments
from harness.results.records import NoiseFloor


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
