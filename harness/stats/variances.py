"""Estimates how much servers differ in variance: finds outliers, and fits a prior to the remaining variances."""

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import special

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

MIN_SERVERS_FOR_PRIOR = 4  # minimum number of variances from which the prior is estimated
TABLE_OUTLIER_ALPHA = 0.001  # family-wise error rate of the test for outlying variances in a table
# Lower bound of a variance, relative to the median variance. Equal values have variance 0, which has no logarithm.
MIN_RELATIVE_VARIANCE = 1e-5


def estimate_prior_df(tables: Sequence[tuple[Sequence[str], FloatArray, FloatArray]]) -> float:
    """Return the degrees of freedom d0 of the scaled inverse chi-squared prior of servers' variances.

    Log variances scatter around the mean of their table. The estimate compares this scatter with the scatter expected
    by chance (Smyth 2004, Stat. Appl. Genet. Mol. Biol. 3). Tables with too few servers are pooled into a single table.

    Args:
        tables: For each table, the names, variances and degrees of freedom of the rows, with equal lengths.

    Returns:
        d0 > 0; infinite if all variances look equal, and NaN if too few servers have a variance.
    """
    pooled = [np.concatenate(each) for each in zip(*tables, strict=True)] if tables else []
    if pooled and max(len(names) for names, _, _ in tables) < MIN_SERVERS_FOR_PRIOR:
        tables = [(range(len(pooled[0])), pooled[1], pooled[2])]  # type: ignore[list-item]
    squares: list[FloatArray] = []
    expected_squares: list[FloatArray] = []
    names: list[Hashable] = []
    for row_names, variance, df in tables:
        is_used = (df > 0) & np.isfinite(variance) & ~variance_outliers(variance, df)
        if is_used.sum() < MIN_SERVERS_FOR_PRIOR:
            continue
        score = _log_variance_scores(variance[is_used], df[is_used])
        squares.append((score - score.mean()) ** 2 * len(score) / (len(score) - 1))
        expected_squares.append(special.polygamma(1, df[is_used] / 2))
        names.extend(np.asarray(row_names)[is_used].tolist())
    if not names:
        return np.nan
    observed, by_chance = np.concatenate(squares), np.concatenate(expected_squares)
    _, cluster = np.unique(np.asarray(names), return_inverse=True)
    sums = np.stack([np.bincount(cluster, each) for each in (observed, by_chance, np.ones_like(observed))], axis=1)
    # Use a low quantile of a bootstrap over servers, because an overestimated d0 would make all of the run's intervals
    # too narrow.
    rng = np.random.default_rng(len(observed))
    drawn = rng.multinomial(len(sums), np.full(len(sums), 1 / len(sums)), size=200)
    totals = drawn @ sums
    # A few variances may look equal by chance. The excess is therefore at least as large as the standard error would be
    # if the variances were equal.
    min_excess = by_chance.mean() * np.sqrt(2 / max(len(observed) - 1, 1))
    prior_dfs = _inverse_trigamma_df(np.maximum((totals[:, 0] - totals[:, 1]) / totals[:, 2], min_excess))
    return float(np.quantile(prior_dfs, 0.10, method="lower"))


def variance_outliers(variance: FloatArray, df: FloatArray) -> BoolArray:
    """Return which rows have outlying variances, by an F test against a provisional prior.

    The provisional prior is estimated from the median and the quartiles of log variances (after Phipson et al. 2016,
    Ann. Appl. Stat. 10). Outliers are not moderated and do not contribute to the final prior.
    """
    is_used = (df > 0) & np.isfinite(variance) & (variance > 0)
    is_outlier = np.zeros(len(is_used), dtype=bool)
    count = int(is_used.sum())
    if count < 2 * MIN_SERVERS_FOR_PRIOR:
        return is_outlier
    own_df = df[is_used]
    score = _log_variance_scores(variance[is_used], own_df)
    lower_quartile, middle, upper_quartile = np.quantile(score, (0.25, 0.5, 0.75))
    iqr_of_standard_normal = 1.349
    sampling_variance = float(special.polygamma(1, own_df / 2).mean())
    excess = ((upper_quartile - lower_quartile) / iqr_of_standard_normal) ** 2 - sampling_variance
    prior_df = min(float(_inverse_trigamma_df(np.asarray([excess]))[0]), 1e6)
    scale = np.exp(middle - special.digamma(prior_df / 2) + np.log(prior_df / 2))
    p_values = special.fdtrc(own_df, prior_df, variance[is_used] / scale)
    is_outlier[np.flatnonzero(is_used)] = p_values < TABLE_OUTLIER_ALPHA / count
    return is_outlier


def _log_variance_scores(variance: FloatArray, df: FloatArray) -> FloatArray:
    """Return log variances without the bias that depends on the degrees of freedom (Smyth 2004, section 6.2)."""
    typical = float(np.median(variance[variance > 0])) if (variance > 0).any() else 1.0
    bounded = np.maximum(variance, MIN_RELATIVE_VARIANCE * typical)
    return np.asarray(np.log(bounded) - special.digamma(df / 2) + np.log(df / 2))


_LOG_DF_GRID = np.linspace(-7, 22, 29_000)
_LOG_TRIGAMMA_GRID = np.log(special.polygamma(1, np.exp(_LOG_DF_GRID) / 2))


def _inverse_trigamma_df(excess: FloatArray) -> FloatArray:
    """Solve trigamma(d0 / 2) = excess for d0 (Smyth 2004, appendix). Return infinity if there is no excess.

    The result is interpolated on a grid of log d0 with steps of 0.001.
    """
    log_excess = np.log(np.maximum(excess, 1e-9))
    return np.where(excess <= 1e-9, np.inf, np.exp(np.interp(-log_excess, -_LOG_TRIGAMMA_GRID, _LOG_DF_GRID)))
