"""The noise floor of a machine: what one implementation measured against itself (A/A) seems to differ by."""

from collections.abc import Sequence

import numpy as np
from scipy import special

from harness.records.models import NoiseFloor, Trial
from harness.stats.values import CPU, THROUGHPUT, Metric, collect


def measured(
    trials: Sequence[Trial], names: tuple[str, str], *, profile: str, measured_at: float, confidence: float = 0.95
) -> NoiseFloor:
    """The largest difference of two copies of one implementation that the pairs do not exclude.

    A pair is a process number of both, over all cells that both have: cells of one process share its luck. More pairs
    lower the part that is chance; a lasting advantage of one copy (start order, placement, memory layout) stays, and is
    what the floor is for. Raises ValueError with fewer than two pairs.
    """
    pairs = [_pairs(trials, names, metric) for metric in (THROUGHPUT, CPU)]
    if min(map(len, pairs)) < 2:
        message = f"a noise floor needs at least two A/A pairs, there are {min(map(len, pairs))}"
        raise ValueError(message)
    throughput, cpu = (floor(found, confidence) for found in pairs)
    return NoiseFloor(
        implementation=names[0], profile=profile, measured_at=measured_at, pairs=len(pairs[0]), throughput=throughput,
        cpu_per_request=cpu,
    )  # fmt: skip


def _pairs(trials: Sequence[Trial], names: tuple[str, str], metric: Metric) -> list[float]:
    """Mean log ratio of each process number over the cells that both copies have in it."""
    found: dict[int, list[float]] = {}
    cells = {key: cell.by_process(metric) for key, cell in collect(trials).items()}
    for (name, kind, load), own in cells.items():
        twin = cells.get((names[1], kind, load), {}) if name == names[0] else {}
        for process in own.keys() & twin.keys():
            found.setdefault(process, []).append(float(np.log(own[process] / twin[process])))
    return [float(np.mean(logs)) for _, logs in sorted(found.items())]


def floor(log_ratios: Sequence[float], confidence: float = 0.95) -> float:
    """Relative: the farther end of the interval of the mean log ratio."""
    logs = np.asarray(log_ratios)
    half = special.stdtrit(len(logs) - 1, 0.5 + confidence / 2) * logs.std(ddof=1) / np.sqrt(len(logs))
    return float(np.expm1(abs(logs.mean()) + half))
