"""What the rows of a table are compared on: one engine for tables, ranks, stopping, comparison and score.

- ``moderated``: mean of each row, its variance moderated by the run's prior, block effects removed where blocks differ;
- ``paired``: differences within blocks, where blocks differ and no prior can be learned, or the rows are few;
- ``welch``: each row's own variance, where blocks do not differ and no prior can be learned.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from harness.stats import additive, contrasts, estimates
from harness.stats.contrasts import Basis, Contrasts, Means
from harness.stats.moderation import UNLEARNED, Prior, Spreads, learn, moderate
from harness.stats.values import Matrix


@dataclass(frozen=True, kw_only=True)
class Comparable:
    """The rows of one table and metric, ready to be compared. ``logs``: implementations x blocks, NaN where missing."""

    logs: Matrix
    means: Means
    basis: Basis
    prior: Prior
    blocks_removed: bool
    least_squared_error: Matrix | None = None  # of each mean, from within processes: no difference is better known
    how: str = ""  # the rows are compared, in words; empty: as the basis says

    def against(self, index: int) -> Contrasts:
        """Every row minus row ``index``."""
        if self.basis == "paired":
            inner = estimates.against(self.logs, estimates.moments(self.logs), index, True)
            error = inner.squared_error
            if self.least_squared_error is not None:
                # Two processes may agree by luck: their difference is not better known than their windows allow.
                error = np.maximum(error, self.least_squared_error + self.least_squared_error[index])
            return Contrasts(
                difference=inner.difference, squared_error=error, freedom=inner.freedom,
                scale=np.ones_like(inner.freedom),
            )  # fmt: skip
        return contrasts.differences(self.means, contrasts.row(self.means, index))


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """A table before its prior is known: variances by row, block effects removed where blocks differ."""

    logs: Matrix
    mean: Matrix
    spreads: Spreads
    leverage: Matrix  # squared error of a mean / variance of a value
    least_squared_error: Matrix  # of each mean, from within processes; 0 where a replicate is one figure
    blocks_removed: bool
    plain: estimates.Moments


def fitted(logs: Matrix, names: Sequence[str], *, least_squared_error: Matrix | None = None) -> Fitted:
    """Means and variances of a table. ``names``: the implementation of each row.

    ``least_squared_error`` is what each row's mean cannot be better known than (its windows' own noise).
    """
    stats = estimates.moments(logs)
    model = additive.fit(logs)
    with_spread = int((stats.count >= 2).sum())
    removed = with_spread < additive.PRETEST_IMPLEMENTATIONS or model.p_value < additive.PRETEST_LEVEL
    if removed:
        mean, variance, freedom, leverage = model.mean, model.variance, model.freedom, model.leverage
    else:
        mean, variance, freedom = stats.mean, stats.variance, np.maximum(stats.count - 1, 0.0)
        with np.errstate(divide="ignore"):
            leverage = 1 / stats.count
    return Fitted(
        logs=logs, mean=mean, leverage=leverage, blocks_removed=removed, plain=stats,
        spreads=Spreads(names=names, variance=variance, freedom=freedom),
        least_squared_error=np.zeros(len(logs)) if least_squared_error is None else least_squared_error,
    )  # fmt: skip


def prior(tables: Sequence[Fitted]) -> Prior:
    """What all tables of a run and metric teach of how alike variances are."""
    return learn([table.spreads for table in tables if _can_be_moderated(table)])


def comparable(table: Fitted, known: Prior) -> Comparable:
    """The table on the best basis that its data and the run's prior allow."""
    if _can_be_moderated(table) and known.usable:
        found = moderate(table.spreads, known)
        # A row of one value has no variance of its own: the prior's stands for it where there is one.
        error = np.maximum(found.variance * table.leverage, table.least_squared_error)
        means = Means(mean=table.mean, squared_error=error, freedom=found.freedom, moderated=True)
        return Comparable(
            logs=table.logs, means=means, basis="moderated", prior=known, blocks_removed=table.blocks_removed
        )
    stats = table.plain
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.maximum(stats.variance / stats.count, table.least_squared_error)
    own = Means(mean=stats.mean, squared_error=error, freedom=stats.count - 1, moderated=False)
    return Comparable(
        logs=table.logs, means=own, basis="paired" if table.blocks_removed else "welch", prior=UNLEARNED,
        blocks_removed=table.blocks_removed, least_squared_error=table.least_squared_error,
    )  # fmt: skip


def alone(logs: Matrix, names: Sequence[str]) -> Comparable:
    """A table that learns its prior from nothing but itself."""
    table = fitted(logs, names)
    return comparable(table, prior([table]))


def _can_be_moderated(table: Fitted) -> bool:
    return int((table.plain.count >= 2).sum()) >= additive.PRETEST_IMPLEMENTATIONS
