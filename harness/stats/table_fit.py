"""Fits a table of log values by least squares, with effects of rows, rounds and process numbers.

Trials of the same round are measured at about the same time, so the effect of a round reflects the state of the machine
at that time. After the effects of rounds are removed, each process has a single value. Processes with the same number
also share effects, such as drift of the machine. These effects are removed next.

All errors are computed from the differences between processes. The trials of a process share memory layout and
compilation, so additional trials are no substitute for an additional process (Kalibera & Jones 2013). In a run merged
from several deployments, errors are computed from the differences between deployments, because a deployment may favour
a server.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, special

from harness.stats.variances import MIN_SERVERS_FOR_PRIOR, BoolArray, FloatArray, variance_outliers

Merged = Literal["", "deployments", "parts"]  # what was merged into a table; "" for a single run
Position = tuple[int, int]  # (number of the process or deployment, number of the round within it)

# Significance level of the F test for effects of process numbers. The level is high, because removing an effect that
# does not exist does little harm, but missing an effect widens all intervals.
COLUMN_EFFECT_ALPHA = 0.20


@dataclass(frozen=True, kw_only=True)
class RowVariances:
    """The variance of the values in each row. Each array has an element for each row."""

    variance: FloatArray  # variance of a single value; NaN for a row with fewer than two values
    df: FloatArray  # degrees of freedom of the variance
    leverage: FloatArray  # variance of the row's mean, divided by ``variance``: 1 / count, or more with missing values

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

    mean: FloatArray  # mean of each row, adjusted to an average column
    adjusted: FloatArray  # rows x columns: values minus column effects
    weights: FloatArray  # rows x columns: weight of a column's residuals in a row's mean
    informative: FloatArray  # rows x columns: 1 for the values from which column effects are estimated, otherwise 0

    def shared_error(self, variance: FloatArray) -> FloatArray:
        """Return the covariance (rows x rows) that column effects cause between row means, given row variances."""
        share = variance / np.maximum(self.informative.sum(axis=1), 1)
        of_residuals = np.diag(variance @ self.informative) - (self.informative.T * share) @ self.informative
        return np.asarray(self.weights @ of_residuals @ self.weights.T)


def fit_additive(
    logs: FloatArray, *, columns: bool = True, excluded: BoolArray | None = None, joins_parts: bool = False
) -> AdditiveFit:
    """Fit row and column effects. A table with a single row has no column effects.

    Column effects use up degrees of freedom. Each row loses a share of them.

    Args:
        logs: Rows x columns; NaN where a value is missing.
        columns: Whether to fit column effects in addition to row means.
        excluded: Rows that do not contribute to the column effects. If None, exclude rows with outlying variances.
        joins_parts: Whether only the baseline connects some columns. If so, ``excluded`` is ignored, because the
            baseline must contribute. A single row then suffices to estimate a column's effect.
    """
    if joins_parts:
        excluded = np.zeros(len(logs), dtype=bool)
    is_measured = ~np.isnan(logs)
    count = is_measured.sum(axis=1)
    usable = count >= 2
    informs = usable if excluded is None else usable & ~excluded
    rows_of_column = is_measured[informs].sum(axis=0)
    estimable = (rows_of_column >= (1 if joins_parts else 2)) & columns
    effect = np.zeros(logs.shape[1])
    with np.errstate(invalid="ignore", divide="ignore"):
        leverage, weights = 1 / count, np.zeros(logs.shape)
        if estimable.any():
            design = is_measured[:, estimable].astype(float)
            used = np.where(estimable, logs, np.nan)[informs]
            residuals = np.nan_to_num(used - np.nansum(logs[informs], axis=1, keepdims=True) / count[informs, None])
            # Normal equations of the column effects, with the row effects eliminated. They are singular, because adding
            # a constant to all columns and subtracting it from all rows does not change the fit.
            own = design[informs]
            inverse, rank = linalg.pinvh(np.diag(own.sum(axis=0)) - (own.T / count[informs]) @ own, return_rank=True)
            effect[estimable] = inverse @ residuals.sum(axis=0)[estimable]
            effect -= effect[rows_of_column > 0].mean()
            contrast = design / np.maximum(design.sum(axis=1, keepdims=True), 1) - 1 / estimable.sum()
            weights[:, estimable] = contrast @ inverse
            leverage = leverage + np.diag(contrast @ inverse @ contrast.T)
            if joins_parts and rank < estimable.sum() - 1:  # columns are not connected, so differences are unknown
                leverage = np.full(len(logs), np.inf)
        adjusted = logs - effect
        mean = np.nansum(adjusted, axis=1) / count
        lost = np.where(is_measured & estimable & informs[:, None], 1 / np.maximum(rows_of_column, 1), 0.0)
        df = np.where(usable, (count - 1) * (1 - lost.sum(axis=1) / count), 0.0)
        squares = np.nansum((adjusted - mean[:, None]) ** 2, axis=1)
        variance = np.where(df > 0, squares / df, np.nan)
    fitted = AdditiveFit(
        mean=mean, variance=variance, df=df, leverage=leverage, adjusted=adjusted, weights=weights,
        informative=(is_measured & estimable & informs[:, None]).astype(float),
    )  # fmt: skip
    if excluded is None and estimable.any() and fitted.outliers.any():
        return fit_additive(logs, excluded=fitted.outliers)
    return fitted


@dataclass(frozen=True, kw_only=True)
class TableFit:
    """A fitted table of a metric's natural logarithms. The variances are not moderated."""

    names: Sequence[str]  # names of the rows
    columns: Sequence[int]  # numbers of the processes or deployments
    values: FloatArray  # rows x columns: one value per process, without the effects of rounds
    displayed: FloatArray  # rows x columns: the values to display; in a merged run, without column effects
    processes: NDArray[np.int64]  # number of processes in each row
    between: AdditiveFit  # fit of the process values
    merged: Merged
    within: RowVariances  # variance between trials; times ``leverage``, it is the noise of a process value


def fit_values(values: Mapping[str, Mapping[Position, float]], *, merged: Merged = "") -> TableFit:
    """Fit a table of positive values by row and position. Rows without values are omitted.

    If ``merged`` is "deployments", columns are deployments instead of processes. In a merged run, the displayed values
    are adjusted to an average column.
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


def fit_logs(names: Sequence[str], logs: FloatArray, columns: Sequence[int], *, merged: Merged = "") -> TableFit:
    """Fit logs (rows x processes x rounds, NaN if missing). Remove effects of rounds, then of process numbers."""
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
    names: Sequence[str], columns: Sequence[int], values: FloatArray, within: RowVariances, *, merged: Merged = ""
) -> TableFit:
    """Fit a table (rows x processes) with a value per process.

    Remove column effects. There is one exception: if every process has a single trial, remove them only if an F test
    finds them. The exception does not apply to merged runs, because machines differ, or to tables with few rows.
    """
    between = fit_additive(values, joins_parts=merged == "parts")
    if len(names) >= MIN_SERVERS_FOR_PRIOR and not within.df.any() and not merged:
        rows_only = fit_additive(values, columns=False)
        between = between if _columns_differ(rows_only, between) else rows_only
    return TableFit(
        names=names, columns=columns, values=values, displayed=between.adjusted if merged else values,
        processes=(~np.isnan(values)).sum(axis=1), between=between, within=within, merged=merged,
    )  # fmt: skip


def _columns_differ(rows_only: AdditiveFit, fitted: AdditiveFit) -> bool:
    """Return whether columns have effects, according to the F test of a two-way analysis of variance.

    Do not call this function for a table with few rows, because the result would depend on the very differences
    between rows that the table has to decide.
    """
    before, after = rows_only.sum_of_squares, fitted.sum_of_squares
    df_before, df_after = float(rows_only.df.sum()), float(fitted.df.sum())
    if df_after <= 0 or after <= 0 or df_before - df_after < 1:
        return before > after
    f_ratio = (before - after) / (df_before - df_after) / (after / df_after)
    return float(special.fdtrc(df_before - df_after, df_after, f_ratio)) < COLUMN_EFFECT_ALPHA
