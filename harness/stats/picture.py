"""Intervals to draw beside ranks: where two rows are tied they overlap, so that picture and rank agree.

95 % intervals of single rows, or of ratios, do not show what is decided among the many pairs of a table.
"""

import numpy as np

from harness.stats.basis import Comparable
from harness.stats.contrasts import differences
from harness.stats.pairs import Decisions
from harness.stats.values import Matrix


def comparison_intervals(table: Comparable, better: Decisions, level: float) -> tuple[Matrix, Matrix]:
    """Bounds of each row's comparison interval, on logs; ``level``: p-value at which Holm's correction stopped.

    Half of a pair's simultaneous interval for each of two rows alike (Gabriel 1978, JASA 73), widened for every tied
    pair to half of what parts them: rows whose intervals are disjoint are decided. Rows decided by duets, or in a table
    of very different variances, may overlap all the same.
    """
    means = table.means
    with np.errstate(invalid="ignore"):
        twins = differences(means, means)
        half = np.nan_to_num(twins.half_width(1 - level) / 2, nan=0.0)
        gap = np.abs(means.mean[:, None] - means.mean) - half[:, None] - half
        lack = np.where(better | better.T, 0.0, gap).max(axis=1, initial=0.0)
    half = half + lack / 2
    return means.mean - half, means.mean + half
