"""Moderates variances: shrinks the variance of each row towards an estimate from the whole run (empirical Bayes).

The prior variance of a process's value is the noise of the trials plus the variance between processes. The variance
between processes is estimated for the whole run. If few processes were measured, the estimate is shrunk towards an
assumed standard deviation of 5 %. For a server with three or more processes, its observed variance also counts.
The more the servers of the run differ in variance, the more weight their observed variances receive (Smyth 2004, Stat.
Appl. Genet. Mol. Biol. 3).

All standard deviations and variances in this module refer to natural logarithms. A standard deviation of 0.05 is
therefore about 5 %.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy import special

from harness.stats.table_fit import RowVariances, TableFit, fit_process_values
from harness.stats.variances import MIN_SERVERS_FOR_PRIOR, FloatArray, estimate_prior_df

CONFIDENCE = 0.95  # confidence level of intervals; the family-wise error of a table's decisions is 1 - CONFIDENCE
MAX_HALF_WIDTH = 300.0  # on the log scale; an interval with a larger half-width counts as unknown

ASSUMED_SD = 0.05  # standard deviation between processes if no server has two processes
ASSUMED_DF = 3.0  # if an estimate has fewer degrees of freedom than this, ASSUMED_SD contributes the rest
MAX_DF = 100.0  # degrees of freedom of a variance that is assumed instead of estimated
CROSS_TEST_R2 = 0.5  # squared correlation between a process's deviations in two test types
# The noise of trials may hide the variance between processes. The estimate of this variance is therefore at least this
# many standard errors of the noise.
HIDDEN_NOISE_SE = 0.7
MIN_PROCESSES_FOR_OWN_VARIANCE = 3
DEFAULT_PRIOR_DF = 4.0  # prior degrees of freedom if the run does not show how much servers differ in variance
SERVER_OUTLIER_ALPHA = 0.02  # significance level of the test for servers with an unexpectedly large variance


@dataclass(frozen=True, kw_only=True)
class ModeratedVariances:
    """Moderated variances and their degrees of freedom. Each array has an element for each row."""

    variance: FloatArray
    df: FloatArray


@dataclass(frozen=True, kw_only=True)
class Prior:
    """The prior of a metric's variances, estimated from all tables of a run."""

    between_variance: float  # variance between processes, without the noise of trials
    between_df: float
    # Prior degrees of freedom of the variance between processes: infinite if all servers have equal variances, NaN if
    # unknown.
    prior_df: float
    trial_prior_df: float  # prior degrees of freedom of the variance between trials of a process
    trial_variance: float  # variance between trials, pooled over all tables; used for tables with too few rows
    trial_df: float
    # Variance and degrees of freedom of each server with an unexpectedly large variance between processes.
    variance_outliers: Mapping[str, tuple[float, float]] = field(default_factory=dict)


def estimate_prior(tables: Sequence[TableFit]) -> Prior:
    """Estimate the variance between processes in a run, and how much servers differ in this variance."""
    nested = [table for table in tables if table.within.df.any()]
    typical = [(table.within.variance * table.within.df, table.within.df, ~table.within.outliers) for table in nested]
    trial_df = sum(float(df[use].sum()) for _, df, use in typical)
    squares = sum(float(np.nansum(each[use])) for each, _, use in typical)
    prior = Prior(
        between_variance=ASSUMED_SD**2,
        between_df=MAX_DF,
        prior_df=np.inf,
        trial_prior_df=estimate_prior_df([(table.names, table.within.variance, table.within.df) for table in nested]),
        trial_variance=squares / trial_df if trial_df else np.nan,
        trial_df=trial_df,
    )
    variance, df = _between_variance(nested, prior)
    prior = replace(prior, between_variance=variance, between_df=df)
    with np.errstate(invalid="ignore", divide="ignore"):  # the variance of equal values is 0
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
    """Return server -> (variance, degrees of freedom) for each server with an unexpectedly large variance."""
    by_name: defaultdict[str, list[tuple[float, float, float]]] = defaultdict(list)
    for table in tables:
        own = table.between
        with np.errstate(invalid="ignore", divide="ignore"):  # the variance of equal values is 0
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

    Test types are not independent, because a slow process tends to be slow in all of them. T test types therefore count
    as only T / (1 + (T - 1) r²) test types (Kish 1965, section 5.4, applied to squares).
    """
    return float(df.sum() / (1 + (len(df) - 1) * CROSS_TEST_R2))


def trial_variances(table: TableFit, prior: Prior) -> ModeratedVariances:
    """Return, for each row, the variance between trials of a process, shrunk towards the table's variance.

    If the table has too few rows, the variance is shrunk towards the variance of the run.
    """
    df = np.where(np.isfinite(table.within.variance), table.within.df, 0.0)
    own_variance = np.where(df > 0, table.within.variance, 0.0)
    outliers = table.within.outliers
    total_df = float(df[~outliers].sum())
    location = float((own_variance * df)[~outliers].sum()) / total_df if total_df else np.nan
    if len(table.names) < MIN_SERVERS_FOR_PRIOR:
        location, total_df = prior.trial_variance, prior.trial_df
    if np.isinf(prior.trial_prior_df) or not total_df:
        shrunk = ModeratedVariances(variance=np.full(len(df), location), df=np.full(len(df), total_df))
    else:
        expected = ModeratedVariances(variance=np.full(len(df), location), df=np.full(len(df), total_df))
        shrunk = _shrink(own_variance, df, prior.trial_prior_df, expected)
    return ModeratedVariances(
        variance=np.where(outliers, own_variance, shrunk.variance), df=np.where(outliers, df, shrunk.df)
    )


def _shrink(
    own_variance: FloatArray, df: FloatArray, prior_df: float | FloatArray, expected: ModeratedVariances
) -> ModeratedVariances:
    """Return moderated variances, (d0 s0² + d s²) / (d0 + d) (Smyth 2004).

    d0 is ``prior_df``, and s0² is the expected variance. The result has at most ``expected.df`` degrees of freedom.
    """
    weight = np.where(np.isnan(prior_df), DEFAULT_PRIOR_DF, prior_df)
    variance = (weight * expected.variance + df * own_variance) / (weight + df)
    return ModeratedVariances(variance=variance, df=np.minimum(weight + df, expected.df))


def shrink_towards_others(variance: FloatArray, df: FloatArray) -> ModeratedVariances:
    """Return each variance, shrunk towards the pooled variance of the other rows (Smyth 2004).

    The weight of the pooled variance is ``DEFAULT_PRIOR_DF``, but at most half of the other rows' degrees of freedom.
    Rows are not independent, because a slow process tends to be slow in all rows (``CROSS_TEST_R2``).
    """
    other_df = df.sum() - df
    pooled = ((variance * df).sum() - variance * df) / np.maximum(other_df, 1e-9)
    weight = np.minimum(DEFAULT_PRIOR_DF, other_df * CROSS_TEST_R2)
    return _shrink(variance, df, weight, ModeratedVariances(variance=pooled, df=np.full(len(df), np.inf)))


def _between_variance(tables: Sequence[TableFit], prior: Prior) -> tuple[float, float]:
    """Return the variance between processes and its degrees of freedom, estimated by the method of moments.

    The noise of trials is subtracted from the observed variance of processes. The difference has a lower bound
    (``HIDDEN_NOISE_SE``), because by chance, a few processes may differ less than their noise suggests.
    """
    squares = noise = weight = 0.0
    by_name: defaultdict[str, list[float]] = defaultdict(list)
    for table in tables:
        own = table.between
        use = (own.df > 0) & ~own.outliers & ~table.within.outliers
        df = own.df[use]
        squares += float((own.variance[use] * df).sum())
        of_trials = np.nan_to_num(trial_variances(table, prior).variance[use]) * table.within.leverage[use]
        noise += float((of_trials * df).sum())
        weight += float(df.sum())
        for name, count in zip(np.asarray(table.names)[use].tolist(), df.tolist(), strict=True):
            by_name[name].append(count)
    if weight <= 0:
        return ASSUMED_SD**2, MAX_DF
    df_of_run = sum(sum(own) / (1 + (len(own) - 1) * CROSS_TEST_R2) for own in by_name.values())
    observed = max(squares - noise, HIDDEN_NOISE_SE * noise * np.sqrt(2 / df_of_run)) / weight
    missing_df = max(ASSUMED_DF - df_of_run, 0.0)
    return (df_of_run * observed + missing_df * ASSUMED_SD**2) / (df_of_run + missing_df), df_of_run + missing_df


def expected_variance(table: TableFit, prior: Prior) -> ModeratedVariances:
    """Predict the variance of a process's value in each row, based on the whole run. An unknown variance is NaN.

    The degrees of freedom follow Satterthwaite (1946). If every process has a single trial, the result is the observed
    variance of processes, pooled over the rows of the table. This variance includes the noise of trials.
    """
    rows = len(table.names)
    if table.within.df.any():
        trials = trial_variances(table, prior)
        from_trials = trials.variance * table.within.leverage
        total = from_trials + prior.between_variance
        with np.errstate(divide="ignore", invalid="ignore"):
            joint = total**2 / (from_trials**2 / trials.df + prior.between_variance**2 / prior.between_df)
        return ModeratedVariances(variance=total, df=np.where(np.isfinite(total), joint, 0.0))
    own = table.between
    use = (own.df > 0) & ~own.outliers
    df = float(own.df[use].sum())
    pooled = float((own.variance[use] * own.df[use]).sum()) / df if df > 0 else np.nan
    return ModeratedVariances(variance=np.full(rows, pooled), df=np.full(rows, df))


@dataclass(frozen=True, kw_only=True)
class RowMeans:
    """Means of a table's rows on the log scale, with their errors."""

    names: Sequence[str]
    mean: FloatArray
    squared_error: FloatArray  # squared standard error; NaN if unknown
    df: FloatArray  # degrees of freedom of ``squared_error``
    moderated: bool  # whether each row has a separate variance estimate instead of a common estimate
    # Rows x rows: covariance that column effects cause between the means; None unless runs were merged.
    shared_error: FloatArray | None = None

    def half_width(self, confidence: float = CONFIDENCE) -> FloatArray:
        """Return the half-width of each mean's interval on the log scale."""
        return student_half_width(self.squared_error, self.df, confidence)


def moderated_means(table: TableFit, prior: Prior) -> RowMeans:
    """Return the means of a table's rows with moderated errors.

    The noise of a row's trials is a lower bound of the row's error.
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
    # The variance of an outlier is not shrunk, but the prior still adds degrees of freedom. Without them, an outlier
    # may have only two degrees of freedom. Even a fourfold difference would then be undecided in a large table.
    outlier_df = outlier_df + np.nan_to_num(np.minimum(outlier_df, prior_df))
    df = np.where(outlier > variance, outlier_df, df)
    variance = np.where(outlier > variance, outlier, variance)
    trial_noise = np.nan_to_num(trial_variances(table, prior).variance * table.within.leverage)
    variance = np.maximum(variance, trial_noise)
    error, shared = variance * fitted.leverage, None
    if table.merged and np.isfinite(fitted.leverage).all():
        # Each row's variance contributes to the errors of the column effects. In joined parts, the baseline
        # contributes most.
        shared = fitted.shared_error(variance)
        error = variance / table.processes + np.diag(shared)
    is_known = np.isfinite(error) & (df > 0)
    return RowMeans(
        names=table.names,
        mean=fitted.mean,
        squared_error=np.where(is_known, error, np.nan),
        df=np.where(is_known, df, 0.0),
        moderated=bool(has_own.any()) and not np.isinf(prior_df),
        shared_error=shared,
    )


def standalone_means(table: TableFit, compared: RowMeans) -> RowMeans:
    """Return the means with the errors of absolute values, for display, instead of the errors of ratios.

    Processes with the same number share an error. This error cancels in ratios, but not in absolute values.
    """
    # The effects of process numbers, which the fit removed, are the same for all rows.
    removed = np.nansum(table.displayed - table.between.adjusted, axis=0)
    shared = removed / np.maximum((~np.isnan(table.displayed)).sum(axis=0), 1)
    df = max(len(shared) - 1, 1)
    variance = float(((shared - shared.mean()) ** 2).sum()) / df
    widened = add_variance(compared, variance / table.processes, df)
    return replace(widened, mean=np.nanmean(table.displayed, axis=1))


def add_variance(means: RowMeans, squared_error: FloatArray, df: float) -> RowMeans:
    """Add an independent error to each mean. Degrees of freedom follow Satterthwaite (1946)."""
    total = means.squared_error + squared_error
    with np.errstate(invalid="ignore", divide="ignore"):
        joint = total**2 / (means.squared_error**2 / means.df + squared_error**2 / df)
    return replace(means, squared_error=total, df=np.where(total > 0, joint, 0.0))


def student_half_width(squared_error: FloatArray, df: FloatArray, confidence: float) -> FloatArray:
    """Return the half-widths of Student's t intervals, given squared standard errors and degrees of freedom."""
    with np.errstate(invalid="ignore"):
        quantile = special.stdtrit(np.maximum(df, 1e-9), 0.5 + confidence / 2)
        return np.asarray(quantile * np.sqrt(squared_error))


def pool_tables(tables: Sequence[TableFit], names: Sequence[str], prior: Prior) -> RowMeans:
    """Average the rows in ``names`` over several tables. Every table must contain these rows.

    Each process contributes a single value, the mean over the tables, because the tables' values are not independent.
    Omit processes that are missing from at least one table.
    """
    columns = sorted({column for table in tables for column in table.columns})
    values, share = np.zeros((len(names), len(columns))), 1 / len(tables)
    mean, from_trials, trial_df = (np.zeros(len(names)) for _ in range(3))
    for table in tables:
        rows = [list(table.names).index(name) for name in names]
        aligned = np.full_like(values, np.nan)
        aligned[:, [columns.index(column) for column in table.columns]] = table.values[rows]
        values += aligned * share
        mean += table.between.mean[rows] * share
        trials = trial_variances(table, prior)
        variance, df = trials.variance, trials.df
        if not df.any():  # every process has a single trial in this table, so use the variance of the run
            variance, df = (np.full(len(variance), each) for each in (prior.trial_variance, prior.trial_df))
        from_trials += (variance * table.within.leverage)[rows] * share**2
        trial_df += df[rows]
    within = RowVariances(variance=from_trials, df=trial_df, leverage=np.ones(len(names)))
    joint = fit_process_values(names, columns, values, within, merged=tables[0].merged)
    # Variance of the mean over correlated test types, divided by the variance in a single test type.
    of_mean = CROSS_TEST_R2**0.5 + (1 - CROSS_TEST_R2**0.5) * share
    outliers = {name: (variance * of_mean, df) for name, (variance, df) in prior.variance_outliers.items()}
    pooled = replace(
        prior,
        between_variance=prior.between_variance * of_mean,
        trial_prior_df=0.0,
        variance_outliers=outliers,
    )
    return replace(moderated_means(joint, pooled), mean=mean)
