"""Moderated variances: the variance of each row, shrunk towards an estimate from the whole run (empirical Bayes).

The expected variance of a process is the contribution of the windows plus the variance between processes. The latter is
the same for the whole run. If few processes were measured, it is shrunk towards an assumed 5 %. With three or more
processes, the variance of the individual server also contributes. The weight depends on how much the servers of the run
differ in variance (Smyth 2004, Stat. Appl. Genet. Mol. Biol. 3).

All standard deviations and variances in this module are of natural logarithms. A standard deviation of 0.05 is
therefore about 5 %.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy import special

from harness.stats.table_fit import RowVariances, TableFit, fit_process_values
from harness.stats.variances import MIN_SERVERS_FOR_PRIOR, FloatArray, estimate_prior_df

CONFIDENCE = 0.95  # confidence level of intervals; 1 - CONFIDENCE is the family-wise error of a table's decisions
MAX_HALF_WIDTH = 300.0  # on the log scale; an interval with a larger half-width counts as unknown

ASSUMED_SD = 0.05  # standard deviation between processes if no server has two processes
ASSUMED_DF = 3.0  # degrees of freedom to which ASSUMED_SD supplements an estimate
MAX_DF = 100.0  # degrees of freedom of an assumed variance
CROSS_TEST_R2 = 0.5  # squared correlation of a process's deviation in two test types
# Lower bound of the variance between processes, in standard errors of the windows' noise. Noise may hide the variance.
HIDDEN_NOISE_SE = 0.7
MIN_PROCESSES_FOR_OWN_VARIANCE = 3
DEFAULT_PRIOR_DF = 4.0  # degrees of freedom of the run's variance if the run does not show how much servers differ
SERVER_OUTLIER_ALPHA = 0.02  # level of the test for an unexpectedly large variance of a server over all tables


@dataclass(frozen=True, kw_only=True)
class ModeratedVariances:
    """Moderated variances and their degrees of freedom. Each array has an element for each row."""

    variance: FloatArray
    df: FloatArray


@dataclass(frozen=True, kw_only=True)
class Prior:
    """The prior of a metric's variances, estimated from all tables of a run."""

    between_variance: float  # variance between processes, without the noise of windows
    between_df: float
    prior_df: float  # weight of the expected variance, in degrees of freedom; infinity: equal servers; NaN: unknown
    window_prior_df: float  # weight of a table's window variance relative to a row's window variance
    window_variance: float  # variance of a window, pooled over all tables; used for tables with too few rows
    window_df: float
    # Servers with a significantly larger variance between processes -> pooled variance and degrees of freedom.
    variance_outliers: Mapping[str, tuple[float, float]] = field(default_factory=dict)


def estimate_prior(tables: Sequence[TableFit]) -> Prior:
    """Estimate the variance between processes in a run, and how much servers deviate from it."""
    nested = [table for table in tables if table.within.df.any()]
    typical = [(table.within.variance * table.within.df, table.within.df, ~table.within.outliers) for table in nested]
    window_df = sum(float(df[use].sum()) for _, df, use in typical)
    squares = sum(float(np.nansum(each[use])) for each, _, use in typical)
    prior = Prior(
        between_variance=ASSUMED_SD**2,
        between_df=MAX_DF,
        prior_df=np.inf,
        window_prior_df=estimate_prior_df([(table.names, table.within.variance, table.within.df) for table in nested]),
        window_variance=squares / window_df if window_df else np.nan,
        window_df=window_df,
    )
    variance, df = _between_variance(nested, prior)
    prior = replace(prior, between_variance=variance, between_df=df)
    with np.errstate(invalid="ignore", divide="ignore"):  # equal figures have no variance
        relative = [
            (
                table.names,
                table.between.variance / expected_variance(table, prior).variance,
                np.where(table.processes >= MIN_PROCESSES_FOR_OWN_VARIANCE, table.between.df, 0.0),
            )
            for table in tables
        ]
    return replace(prior, prior_df=estimate_prior_df(relative), variance_outliers=_variance_outliers(tables, prior))


def _variance_outliers(tables: Sequence[TableFit], prior: Prior) -> dict[str, tuple[float, float]]:
    """Return servers with an unexpectedly large variance: name -> variance and degrees of freedom over all tables."""
    by_name: defaultdict[str, list[tuple[float, float, float]]] = defaultdict(list)
    for table in tables:
        own = table.between
        with np.errstate(invalid="ignore", divide="ignore"):  # equal figures have no variance
            ratio = own.variance / expected_variance(table, prior).variance
        for row in np.flatnonzero(own.df > 0).tolist():
            by_name[table.names[row]].append((float(own.variance[row]), float(ratio[row]), float(own.df[row])))
    outliers = {}
    for name, of_tables in by_name.items():
        variances, ratios, df = np.asarray(of_tables).T
        effective_df = _effective_df(df)
        p_value = special.fdtrc(effective_df, prior.between_df, np.average(ratios, weights=df))
        if p_value < SERVER_OUTLIER_ALPHA:
            outliers[name] = float(np.average(variances, weights=df)), effective_df
    return outliers


def _effective_df(df: FloatArray) -> float:
    """Return the degrees of freedom of a server's variance over several test types.

    All test types share the deviation of the process. T test types count as T / (1 + (T - 1) r²) independent test types
    (Kish 1965, section 5.4, applied to squares).
    """
    return float(df.sum() / (1 + (len(df) - 1) * CROSS_TEST_R2))


def window_variances(table: TableFit, prior: Prior) -> ModeratedVariances:
    """Return the variance of a window for each row, shrunk towards the variance of the table.

    If the table has too few rows, the variance is shrunk towards the variance of the run.
    """
    df = np.where(np.isfinite(table.within.variance), table.within.df, 0.0)
    own = np.where(df > 0, table.within.variance, 0.0)
    outliers = table.within.outliers
    total_df = float(df[~outliers].sum())
    location = float((own * df)[~outliers].sum()) / total_df if total_df else np.nan
    if len(table.names) < MIN_SERVERS_FOR_PRIOR:
        location, total_df = prior.window_variance, prior.window_df
    if np.isinf(prior.window_prior_df) or not total_df:
        shrunk = ModeratedVariances(variance=np.full(len(df), location), df=np.full(len(df), total_df))
    else:
        expected = ModeratedVariances(variance=np.full(len(df), location), df=np.full(len(df), total_df))
        shrunk = _shrink(own, df, prior.window_prior_df, expected)
    return ModeratedVariances(variance=np.where(outliers, own, shrunk.variance), df=np.where(outliers, df, shrunk.df))


def _shrink(
    own: FloatArray, df: FloatArray, prior_df: float | FloatArray, expected: ModeratedVariances
) -> ModeratedVariances:
    """Return the moderated variance (d0 s0² + d s²) / (d0 + d) (Smyth 2004).

    The degrees of freedom are at most ``expected.df``.
    """
    weight = np.where(np.isnan(prior_df), DEFAULT_PRIOR_DF, prior_df)
    variance = (weight * expected.variance + df * own) / (weight + df)
    return ModeratedVariances(variance=variance, df=np.minimum(weight + df, expected.df))


def shrink_towards_others(variance: FloatArray, df: FloatArray) -> ModeratedVariances:
    """Return each variance, shrunk towards the pooled variance of the other rows (Smyth 2004).

    The weight of the pooled variance is ``DEFAULT_PRIOR_DF``, but at most half of the other rows' degrees of freedom.
    The reason is that all rows of a process share the deviation of the process (``CROSS_TEST_R2``).
    """
    other_df = df.sum() - df
    pooled = ((variance * df).sum() - variance * df) / np.maximum(other_df, 1e-9)
    weight = np.minimum(DEFAULT_PRIOR_DF, other_df * CROSS_TEST_R2)
    return _shrink(variance, df, weight, ModeratedVariances(variance=pooled, df=np.full(len(df), np.inf)))


def _between_variance(tables: Sequence[TableFit], prior: Prior) -> tuple[float, float]:
    """Estimate the variance between processes by moments. Return the variance and the degrees of freedom.

    The noise of windows is subtracted from the variance of processes. The difference has a lower bound, because noise
    may hide the variance of a few processes by chance (``HIDDEN_NOISE_SE``).
    """
    squares = noise = weight = 0.0
    by_name: defaultdict[str, list[float]] = defaultdict(list)
    for table in tables:
        own = table.between
        use = (own.df > 0) & ~own.outliers & ~table.within.outliers
        df = own.df[use]
        squares += float((own.variance[use] * df).sum())
        of_windows = np.nan_to_num(window_variances(table, prior).variance[use]) * table.within.leverage[use]
        noise += float((of_windows * df).sum())
        weight += float(df.sum())
        for name, count in zip(np.asarray(table.names)[use].tolist(), df.tolist(), strict=True):
            by_name[name].append(count)
    if weight <= 0:
        return ASSUMED_SD**2, MAX_DF
    df_of_run = sum(sum(own) / (1 + (len(own) - 1) * CROSS_TEST_R2) for own in by_name.values())
    observed = max(squares - noise, HIDDEN_NOISE_SE * noise * np.sqrt(2 / df_of_run)) / weight
    lacking = max(ASSUMED_DF - df_of_run, 0.0)
    return (df_of_run * observed + lacking * ASSUMED_SD**2) / (df_of_run + lacking), df_of_run + lacking


def expected_variance(table: TableFit, prior: Prior) -> ModeratedVariances:
    """Return the variance of a process that the run predicts for each row, or NaN if it is unknown.

    The degrees of freedom follow Satterthwaite (1946). In a table without variances of windows, the variance between
    processes includes the noise of windows. That variance is then pooled over the rows of the table.
    """
    rows = len(table.names)
    if table.within.df.any():
        windows = window_variances(table, prior)
        from_windows = windows.variance * table.within.leverage
        total = from_windows + prior.between_variance
        with np.errstate(divide="ignore", invalid="ignore"):
            joint = total**2 / (from_windows**2 / windows.df + prior.between_variance**2 / prior.between_df)
        return ModeratedVariances(variance=total, df=np.where(np.isfinite(total), joint, 0.0))
    own = table.between
    use = (own.df > 0) & ~own.outliers
    df = float(own.df[use].sum())
    pooled = float((own.variance[use] * own.df[use]).sum()) / df if df > 0 else np.nan
    return ModeratedVariances(variance=np.full(rows, pooled), df=np.full(rows, df))


@dataclass(frozen=True, kw_only=True)
class RowMeans:
    """Means of a table's rows on the log scale, ready for comparison."""

    names: Sequence[str]
    mean: FloatArray
    squared_error: FloatArray  # squared standard error; NaN if unknown
    df: FloatArray  # degrees of freedom of the squared error
    moderated: bool  # True: rows have separate variance estimates; False: all rows share an estimate

    def half_width(self, confidence: float = CONFIDENCE) -> FloatArray:
        """Return the half-width of each mean's interval on the log scale."""
        return student_half_width(self.squared_error, self.df, confidence)


def moderated_means(table: TableFit, prior: Prior) -> RowMeans:
    """Return the means of a table's rows with moderated errors.

    An error is never smaller than the error that follows from the row's windows.
    """
    expected = expected_variance(table, prior)
    prior_df = np.inf if len(table.names) == 2 else prior.prior_df
    fitted = table.between
    has_own = (table.processes >= MIN_PROCESSES_FOR_OWN_VARIANCE) & (fitted.df > 0)
    variance = expected.variance
    df = expected.df if np.isnan(prior_df) else np.minimum(prior_df, expected.df)
    if has_own.any() and not np.isinf(prior_df):
        own_df, own = np.where(has_own, fitted.df, 0.0), np.where(has_own, fitted.variance, 0.0)
        shrunk = _shrink(own, own_df, prior_df, expected)
        variance, df = np.where(has_own, shrunk.variance, variance), np.where(has_own, shrunk.df, df)
    outliers = [prior.variance_outliers.get(name, (0.0, 0.0)) for name in table.names]
    outlier, outlier_df = np.asarray(outliers).reshape(-1, 2).T
    # The variance of an outlier is not shrunk, but the prior adds degrees of freedom. With only two degrees of freedom
    # and a common error for many pairs, even fourfold differences between servers would remain undecided.
    outlier_df = outlier_df + np.nan_to_num(np.minimum(outlier_df, prior_df))
    df = np.where(outlier > variance, outlier_df, df)
    variance = np.where(outlier > variance, outlier, variance)
    least = np.nan_to_num(window_variances(table, prior).variance * table.within.leverage)
    error = np.maximum(variance, least) * fitted.leverage
    known = np.isfinite(error) & (df > 0)
    return RowMeans(
        names=table.names,
        mean=fitted.mean,
        squared_error=np.where(known, error, np.nan),
        df=np.where(known, df, 0.0),
        moderated=bool(has_own.any()) and not np.isinf(prior_df),
    )


def standalone_means(table: TableFit, compared: RowMeans) -> RowMeans:
    """Return the means for display, with the errors of absolute values.

    Processes with the same number share an error. It cancels in ratios, but not in absolute values.
    """
    # The removed column effects, which are the same for all rows.
    removed = np.nansum(table.displayed - table.between.adjusted, axis=0)
    shared = removed / np.maximum((~np.isnan(table.displayed)).sum(axis=0), 1)
    df = max(len(shared) - 1, 1)
    variance = float(((shared - shared.mean()) ** 2).sum()) / df
    widened = add_variance(compared, variance / table.processes, df)
    return replace(widened, mean=np.nanmean(table.displayed, axis=1))


def add_variance(means: RowMeans, squared_error: FloatArray, df: float) -> RowMeans:
    """Add an independent squared error to each mean. Degrees of freedom follow Satterthwaite (1946)."""
    total = means.squared_error + squared_error
    with np.errstate(invalid="ignore", divide="ignore"):
        joint = total**2 / (means.squared_error**2 / means.df + squared_error**2 / df)
    return replace(means, squared_error=total, df=np.where(total > 0, joint, 0.0))


def student_half_width(squared_error: FloatArray, df: FloatArray, confidence: float) -> FloatArray:
    """Return the half-width of Student's interval."""
    with np.errstate(invalid="ignore"):
        quantile = special.stdtrit(np.maximum(df, 1e-9), 0.5 + confidence / 2)
        return np.asarray(quantile * np.sqrt(squared_error))


def pool_tables(tables: Sequence[TableFit], names: Sequence[str], prior: Prior) -> RowMeans:
    """Return the means over several tables, for rows that occur in all of them.

    Each process contributes a single value, because all test types share the deviation of the process. Processes that
    lack a table are excluded.
    """
    columns = sorted({column for table in tables for column in table.columns})
    values, share = np.zeros((len(names), len(columns))), 1 / len(tables)
    mean, from_windows, window_df = (np.zeros(len(names)) for _ in range(3))
    for table in tables:
        rows = [list(table.names).index(name) for name in names]
        aligned = np.full_like(values, np.nan)
        aligned[:, [columns.index(column) for column in table.columns]] = table.values[rows]
        values += aligned * share
        mean += table.between.mean[rows] * share
        windows = window_variances(table, prior)
        variance, df = windows.variance, windows.df
        if not df.any():  # no process of this table has two windows: use the run's variance
            variance, df = (np.full(len(variance), each) for each in (prior.window_variance, prior.window_df))
        from_windows += (variance * table.within.leverage)[rows] * share**2
        window_df += df[rows]
    within = RowVariances(variance=from_windows, df=window_df, leverage=np.ones(len(names)))
    joint = fit_process_values(names, columns, values, within)
    # Variance of a mean over correlated test types, relative to the variance of a single test type.
    of_mean = CROSS_TEST_R2**0.5 + (1 - CROSS_TEST_R2**0.5) * share
    outliers = {name: (variance * of_mean, df) for name, (variance, df) in prior.variance_outliers.items()}
    pooled = replace(
        prior,
        between_variance=prior.between_variance * of_mean,
        window_prior_df=0.0,
        variance_outliers=outliers,
    )
    return replace(moderated_means(joint, pooled), mean=mean)
