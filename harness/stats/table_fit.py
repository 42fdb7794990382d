"""Fits a table of log figures by least squares: row + round + process number + error.

Trials of the same round are measured at about the same time. The effect of a round is therefore the state of the
machine at that time. Removing the effects of rounds leaves a value for each process. Removing the effects of process
numbers then removes effects that processes with the same number share, such as drift of the machine.

The process is the unit of all errors. The windows of a process share memory layout and compilation, so more windows do
not replace another process (Kalibera & Jones 2013). In a run merged from several deployments, the deployment is the
unit, because a deployment may favour a server.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, special

from harness.stats.variances import MIN_SERVERS_FOR_PRIOR, BoolArray, FloatArray, variance_outliers

Position = tuple[int, int]  # number of the process or deployment, number of the round within it

# A missed effect of process numbers only widens intervals, so the F test may err towards removing an effect.
COLUMN_EFFECT_ALPHA = 0.20


@dataclass(frozen=True, kw_only=True)
class RowVariances:
    """Variances within rows. Each array has an element for each row."""

    variance: FloatArray  # variance of a single value; NaN for a row with fewer than two values
    df: FloatArray  # degrees of freedom of the variance
    leverage: FloatArray  # variance of the row's mean / variance: 1 / count, or more if the row lacks columns

    @property
    def sum_of_squares(self) -> float:
        """Residual sum of squares over all rows."""
        return float(np.nansum(self.variance * self.df))

    @cached_property
    def outliers(self) -> BoolArray:
        """Mask of the rows that have outlying variances in this table."""
        return variance_outliers(self.variance, self.df)


@dataclass(frozen=True, kw_only=True)
class AdditiveFit(RowVariances):
    """Additive effects of rows and columns, fitted by least squares."""

    mean: FloatArray  # mean of each row at an average column
    adjusted: FloatArray  # rows x columns: values minus column effects


def fit_additive(logs: FloatArray, *, columns: bool = True, excluded: BoolArray | None = None) -> AdditiveFit:
    """Fit row and column effects. Column effects reduce the residual degrees of freedom of each row proportionally.

    A table with a single row has no column effects.

    Args:
        logs: Rows x columns; NaN where a value is missing.
        columns: Whether to fit column effects in addition to row means.
        excluded: Rows that do not contribute to the column effects. None finds and excludes variance outliers.
    """
    present = ~np.isnan(logs)
    count = present.sum(axis=1)
    usable = count >= 2
    informs = usable if excluded is None else usable & ~excluded
    rows_of_column = present[informs].sum(axis=0)
    estimable = (rows_of_column >= 2) & columns
    effect = np.zeros(logs.shape[1])
    with np.errstate(invalid="ignore", divide="ignore"):
        leverage = 1 / count
        if estimable.any():
            design = present[:, estimable].astype(float)
            used = np.where(estimable, logs, np.nan)[informs]
            residuals = np.nan_to_num(used - np.nansum(logs[informs], axis=1, keepdims=True) / count[informs, None])
            # Normal equations of the columns after eliminating the rows. They are singular, because a constant can be
            # added to all columns and subtracted from all rows.
            own = design[informs]
            inverse = linalg.pinvh(np.diag(own.sum(axis=0)) - (own.T / count[informs]) @ own)
            effect[estimable] = inverse @ residuals.sum(axis=0)[estimable]
            effect -= effect[rows_of_column > 0].mean()
            contrast = design / np.maximum(design.sum(axis=1, keepdims=True), 1) - 1 / estimable.sum()
            leverage = leverage + np.einsum("ij,jk,ik->i", contrast, inverse, contrast)
        adjusted = logs - effect
        mean = np.nansum(adjusted, axis=1) / count
        lost = np.where(present & estimable & informs[:, None], 1 / np.maximum(rows_of_column, 1), 0.0)
        df = np.where(usable, (count - 1) * (1 - lost.sum(axis=1) / count), 0.0)
        squares = np.nansum((adjusted - mean[:, None]) ** 2, axis=1)
        variance = np.where(df > 0, squares / df, np.nan)
    fitted = AdditiveFit(mean=mean, variance=variance, df=df, leverage=leverage, adjusted=adjusted)
    if excluded is None and estimable.any() and fitted.outliers.any():
        return fit_additive(logs, excluded=fitted.outliers)
    return fitted


@dataclass(frozen=True, kw_only=True)
class TableFit:
    """A fitted table of a metric's natural logarithms, before moderation by the run's variances."""

    names: Sequence[str]  # names of the rows
    columns: Sequence[int]  # numbers of the processes or deployments
    values: FloatArray  # rows x columns: a value for each process, without the effects of rounds
    displayed: FloatArray  # rows x columns: the values to display; in a merged run, without column effects
    processes: NDArray[np.int64]  # number of processes of each row
    between: AdditiveFit  # fit of the values of processes
    within: RowVariances  # variances of windows; ``leverage`` applies to the value of a process


def fit_values(values: Mapping[str, Mapping[Position, float]], *, merged: bool = False) -> TableFit:
    """Fit positive values given by row name and position. Rows without values are omitted.

    Args:
        values: Row name -> position -> value.
        merged: Whether deployments replace processes. Each row is then displayed at the average deployment.
    """
    names = [name for name, own in values.items() if own]
    rounds: defaultdict[int, set[int]] = defaultdict(set)
    for name in names:
        for process, number in values[name]:
            rounds[process].add(number)
    columns = sorted(rounds)
    index_of = {(process, number): (column, index) for column, process in enumerate(columns)
                for index, number in enumerate(sorted(rounds[process]))}  # fmt: skip
    array = np.full((len(names), max(len(columns), 1), max(map(len, rounds.values()), default=1)), np.nan)
    for row, name in enumerate(names):
        for position, value in values[name].items():
            array[(row, *index_of[position])] = value
    return fit_logs(names, np.log(array), columns, merged=merged)


def fit_logs(names: Sequence[str], logs: FloatArray, columns: Sequence[int], *, merged: bool = False) -> TableFit:
    """Remove the effects of rounds, and then the effects of process numbers.

    Args:
        names: Names of the rows.
        logs: Rows x processes x rounds; NaN where a value is missing.
        columns: Numbers of the processes.
        merged: As for ``fit_values``.
    """
    of_processes = [fit_additive(logs[:, process, :]) for process in range(logs.shape[1])]
    values = np.stack([each.mean for each in of_processes], axis=1)
    df = np.sum([each.df for each in of_processes], axis=0)
    squares = np.nansum([each.variance * each.df for each in of_processes], axis=0)
    leverages = np.where(np.isnan(values), np.nan, np.stack([each.leverage for each in of_processes], axis=1))
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = np.where(df > 0, squares / df, np.nan)
    within = RowVariances(variance=variance, df=df, leverage=np.nanmean(leverages, axis=1))
    return fit_process_values(names, columns, values, within, merged=merged)


def fit_process_values(
    names: Sequence[str], columns: Sequence[int], values: FloatArray, within: RowVariances, *, merged: bool = False
) -> TableFit:
    """Fit a table (rows x processes) with a value for each process.

    If there are no variances of windows, effects of process numbers are removed only if an F test finds them.
    """
    between = fit_additive(values)
    if len(names) >= MIN_SERVERS_FOR_PRIOR and not within.df.any():
        rows_only = fit_additive(values, columns=False)
        between = between if _columns_differ(rows_only, between) else rows_only
    return TableFit(
        names=names, columns=columns, values=values, displayed=between.adjusted if merged else values,
        processes=(~np.isnan(values)).sum(axis=1), between=between, within=within,
    )  # fmt: skip


def _columns_differ(rows_only: AdditiveFit, fitted: AdditiveFit) -> bool:
    """Return whether columns have effects, by the F test of a two-way analysis of variance.

    In a table with few rows, the test depends on the pairs that the table decides. Callers must not use it for such
    tables.
    """
    before, after = rows_only.sum_of_squares, fitted.sum_of_squares
    df_before, df_after = float(rows_only.df.sum()), float(fitted.df.sum())
    if df_after <= 0 or after <= 0 or df_before - df_after < 1:
        return before > after
    f_ratio = (before - after) / (df_before - df_after) / (after / df_after)
    return float(special.fdtrc(df_before - df_after, df_after, f_ratio)) < COLUMN_EFFECT_ALPHA
