"""Moderated variances: each row's variance of logarithms drawn towards what the rows of its table have in common.

With three replicates a variance has two degrees of freedom, and an interval is mostly about not knowing it. Variances
of different servers on one machine are alike; how much so is learned from them (Smyth 2004, "Linear models and
empirical Bayes methods", Stat. Appl. Genet. Mol. Biol. 3): 1/sigma² ~ chi²(d0) / (d0 s0²). Rows far above the others
keep their own variance, and teach nothing (after Phipson et al. 2016, Ann. Appl. Stat. 10, by a test over all rows
instead of winsorised moments). d0 is not taken at its estimate but at the tenth percentile of a bootstrap over
implementations: with d0 too high by chance, intervals would be too narrow for all rows of a run at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from harness.stats.values import Matrix

IMPLEMENTATIONS = 4  # fewer teach nothing of how much variances differ
LEAST_FREEDOM = 1.0  # of a prior: with less, own variances are as good
RESAMPLES = 200
CAUTION = 0.10  # quantile of the resampled d0
OUTLIER_LEVEL = 0.001  # over all rows of a table: at 5 % heavy tails pass for outliers, and ties for differences
DOUBT = 1.0  # standard errors of the spread of equal variances that the prior leaves room for
NEWTON_STEPS = 50
SMALLEST_SHARE = 1e-5  # of the median variance: equal figures have a variance of 0, and no logarithm of it


@dataclass(frozen=True, kw_only=True)
class Spreads:
    """Variances of the rows of one table with their degrees of freedom; freedom 0 where a row has none.

    ``names`` are the implementations: rows of the same one in several tables share its processes, and are resampled
    together.
    """

    names: Sequence[str]
    variance: Matrix
    freedom: Matrix


@dataclass(frozen=True, kw_only=True)
class Prior:
    """How alike the variances of a run's rows are: ``freedom`` is worth that many degrees; infinite: all the same."""

    freedom: float
    rows: int  # that it was learned from

    @property
    def usable(self) -> bool:
        """False where variances differ so much that each had better speak for itself."""
        return self.freedom >= LEAST_FREEDOM


UNLEARNED = Prior(freedom=0.0, rows=0)


@dataclass(frozen=True, kw_only=True)
class Moderated:
    """Variances after moderation, with their degrees of freedom; NaN and 0 where a row has no variance."""

    variance: Matrix
    freedom: Matrix


def learn(tables: Sequence[Spreads]) -> Prior:
    """The prior of all tables of a run and metric; each table has its own typical variance.

    ``UNLEARNED`` with fewer than four implementations.
    """
    scores: list[Matrix] = []
    expected: list[Matrix] = []
    names: list[str] = []
    for table in tables:
        kept = _kept(table) & ~outliers(table)
        count = int(kept.sum())
        if count < IMPLEMENTATIONS:
            continue
        score = _score(table)[kept]
        scores.append((score - score.mean()) ** 2 * count / (count - 1))
        expected.append(special.polygamma(1, table.freedom[kept] / 2))
        names.extend(name for name, yes in zip(table.names, kept, strict=True) if yes)
    if not scores:
        return UNLEARNED
    squares, chance = np.concatenate(scores), np.concatenate(expected)
    _, cluster = np.unique(np.asarray(names), return_inverse=True)
    sums = np.stack([np.bincount(cluster, weights) for weights in (squares, chance, np.ones_like(squares))], axis=1)
    generator = np.random.default_rng(len(squares))
    drawn = generator.multinomial(len(sums), np.full(len(sums), 1 / len(sums)), size=RESAMPLES) @ sums
    # Few rows may look alike by chance: variance of a variance of so many scores, were all true variances the same.
    least = DOUBT * chance.mean() * np.sqrt(2 / max(len(squares) - 1, 1))
    freedoms = prior_freedom(np.maximum((drawn[:, 0] - drawn[:, 1]) / drawn[:, 2], least))
    return Prior(freedom=float(np.quantile(freedoms, CAUTION, method="lower")), rows=len(squares))


def moderate(table: Spreads, prior: Prior) -> Moderated:
    """(d0 s0² + d s²) / (d0 + d) with d0 + d degrees of freedom, but no more than all rows together have.

    s0² is the pooled variance: with few rows it is far more certain than Smyth's, from the mean logarithm, and where
    true variances are spread it is the larger one, which errs towards wide intervals.
    """
    kept = _kept(table)
    alone = outliers(table)
    common = kept & ~alone
    variance = np.where(kept, table.variance, np.nan)
    if not prior.usable or int(common.sum()) < 2:
        return Moderated(variance=variance, freedom=np.where(kept, table.freedom, 0.0))
    total = float(table.freedom[common].sum())
    scale = float((table.variance[common] * table.freedom[common]).sum()) / total
    weight = prior.freedom
    if np.isinf(weight):
        mixed, freedom = np.full(len(variance), scale), np.full(len(variance), total)
    else:
        mixed = (weight * scale + table.freedom * table.variance) / (weight + table.freedom)
        freedom = np.minimum(weight + table.freedom, total)
    own = np.where(kept, table.freedom, 0.0)
    return Moderated(variance=np.where(common, mixed, variance), freedom=np.where(common, freedom, own))


def outliers(table: Spreads) -> NDArray[np.bool_]:
    """Rows whose variance is far above the others': F against a provisional prior, at 0.1 % over all rows.

    The provisional prior is from median and quartiles of log variances, which a few outliers do not move.
    """
    kept = _kept(table)
    found = np.zeros(len(kept), dtype=bool)
    count = int(kept.sum())
    if count < 2 * IMPLEMENTATIONS:
        return found
    score, freedom = _score(table)[kept], table.freedom[kept]
    low, middle, high = np.quantile(score, (0.25, 0.5, 0.75))
    spread = ((high - low) / 1.349) ** 2
    weight = float(prior_freedom(np.asarray([spread - float(special.polygamma(1, freedom / 2).mean())]))[0])
    weight = min(weight, 1e6)
    scale = np.exp(middle - special.digamma(weight / 2) + np.log(weight / 2)) if weight > 0 else np.inf
    p_value = special.fdtrc(freedom, weight, table.variance[kept] / scale)
    found[np.flatnonzero(kept)] = p_value < OUTLIER_LEVEL / count
    return found


def prior_freedom(excess: Matrix) -> Matrix:
    """d0 with trigamma(d0 / 2) = excess, by Newton's steps on 1 / trigamma (Smyth 2004, appendix); infinite at ≤ 0."""
    positive = np.maximum(excess, 1e-9)
    half = 0.5 + 1 / positive
    for _ in range(NEWTON_STEPS):
        value = special.polygamma(1, half)
        step = value * (1 - value / positive) / special.polygamma(2, half)
        half = half + step
        if np.all(-step / half < 1e-10):
            break
    return np.where(excess <= 1e-9, np.inf, 2 * half)


def _kept(table: Spreads) -> NDArray[np.bool_]:
    return np.asarray((table.freedom > 0) & np.isfinite(table.variance) & _some_variance(table))


def _some_variance(table: Spreads) -> bool:
    """True where any row has a variance at all: figures made up to be equal have none."""
    return bool(np.nanmax(np.where(table.freedom > 0, table.variance, 0.0), initial=0.0) > 0)


def _score(table: Spreads) -> Matrix:
    """Log variances, freed of what the chance of their degrees of freedom adds on average."""
    known = table.freedom > 0
    freedom = np.where(known, table.freedom, 1.0)
    typical = float(np.median(table.variance[known & (table.variance > 0)]))
    variance = np.maximum(np.where(known, table.variance, 1.0), SMALLEST_SHARE * typical)
    return np.asarray(np.log(variance) - special.digamma(freedom / 2) + np.log(freedom / 2))
