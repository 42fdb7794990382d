"""Block effects: what the rows of a block have in common (drift of the host) is removed before variances are estimated.

The model is additive on logarithms, implementation + block (two-way), fitted by sweeping out rows and columns
alternately until nothing moves, which also serves incomplete blocks.
"""

from dataclasses import dataclass

import numpy as np
from scipy import special
from scipy.sparse import csgraph

from harness.stats.values import Matrix

# With fewer implementations the test for a block effect is not independent of the pair that it decides about: the
# interval covers 93 % instead of 95 % (docs/method.md), so their blocks are always taken to differ.
PRETEST_IMPLEMENTATIONS = 4
PRETEST_LEVEL = 0.20  # a missed block effect only widens intervals, so the test may err towards removing it
SWEEPS = 200
SETTLED = 1e-12


@dataclass(frozen=True, kw_only=True)
class Additive:
    """The fitted model; all by row but ``p_value``."""

    mean: Matrix  # of the logs at an average block
    variance: Matrix  # of one value around row and block; NaN where a row has fewer than two values
    freedom: Matrix  # of the variance
    leverage: Matrix  # squared error of the mean / variance, from which blocks a row lacks; 1 / count when complete
    p_value: (
        float  # that blocks do not differ: F test of the two-way analysis of variance; 1 where there is nothing to test
    )


def fit(logs: Matrix) -> Additive:
    """Rows and blocks of a log matrix, NaN where a value is missing.

    Of the n - 1 degrees of freedom of a row, the block effects take their share: one in as many as a block has rows.
    """
    present = ~np.isnan(logs)
    in_row = present.sum(axis=1)
    usable = in_row >= 2
    columns = present[usable].any(axis=0) if usable.any() else np.zeros(logs.shape[1], dtype=bool)
    rows_used, blocks = int(usable.sum()), int(columns.sum())
    within = np.where(present, logs, 0.0)
    divisor, per_block = np.maximum(in_row, 1)[:, None], np.maximum(present[usable].sum(axis=0), 1)[None, :]
    residual = np.where(present, within - within.sum(axis=1, keepdims=True) / divisor, 0.0)
    total = float((residual[usable] ** 2).sum())
    effect = np.zeros((1, logs.shape[1]))
    for _ in range(SWEEPS):
        shift = residual[usable].sum(axis=0, keepdims=True) / per_block
        effect += shift
        residual = np.where(present, residual - shift, 0.0)
        again = residual.sum(axis=1, keepdims=True) / divisor
        residual = np.where(present, residual - again, 0.0)
        if np.abs(again).max(initial=0.0) < SETTLED:
            break
    effect -= effect[:, columns].mean() if blocks else 0.0
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(present, logs - effect, 0.0).sum(axis=1) / in_row
        # Processes that never ran side by side share no block: a row loses its part of its own blocks' effects.
        lost = np.where(present, 1 / per_block, 0.0).sum(axis=1) / in_row
        freedom = np.where(usable, (in_row - 1) * (1 - lost), 0.0)
        variance = np.where(usable & (freedom > 0), (residual**2).sum(axis=1) / freedom, np.nan)
    return Additive(
        mean=mean, variance=variance, freedom=np.where(np.isnan(variance), 0.0, freedom),
        leverage=_leverage(present, usable, columns),
        p_value=_f_test(residual[usable], total, int(present[usable].sum()), rows_used, blocks),
    )  # fmt: skip


def _f_test(residual: Matrix, total: float, values: int, rows: int, columns: int) -> float:
    freedom = values - rows - columns + 1
    if rows < 2 or columns < 2 or freedom < 1:
        return 1.0
    error = float((residual**2).sum())
    if error <= 0:
        return 1.0 if total <= 0 else 0.0
    return float(special.fdtrc(columns - 1, freedom, ((total - error) / (columns - 1)) / (error / freedom)))


def _leverage(present: Matrix, usable: Matrix, columns: Matrix) -> Matrix:
    """1 / count, and for a row that lacks blocks the uncertainty of the block effects that put it beside the others.

    From the normal equations of the model, with the blocks' part freed of the rows'; zero where no block is missing.
    """
    in_row = present.sum(axis=1)
    with np.errstate(divide="ignore"):
        plain = 1 / in_row.astype(float)
    seen = present[:, columns].astype(float)
    complete = in_row == columns.sum()
    if complete.all() or not columns.any() or not usable.any():
        return np.asarray(plain)
    rows = seen[usable]
    share = rows / rows.sum(axis=1, keepdims=True)
    design = np.diag(rows.sum(axis=0)) - rows.T @ share
    inverse = _pseudo_inverse(design)
    away = seen / np.maximum(in_row, 1)[:, None] - 1 / columns.sum()
    return np.asarray(plain + np.einsum("ij,jk,ik->i", away, inverse, away))


def _pseudo_inverse(laplacian: Matrix) -> Matrix:
    """Moore-Penrose inverse of a matrix whose rows sum to zero within each connected part.

    By (L + P)^-1 - P, P the projection on the parts' constants: Ghosh, Boyd & Saberi, "Minimizing effective resistance
    of a graph", SIAM Review 50 (2008), section 2.1. A tenth of the cost of a singular value decomposition.
    """
    _, part = csgraph.connected_components(laplacian != 0, directed=False)
    together = part[:, None] == part[None, :]
    projection = together / together.sum(axis=1, keepdims=True)
    return np.asarray(np.linalg.inv(laplacian + projection) - projection)
