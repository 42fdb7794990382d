"""How unlike variances are: which are far above the others, and how far the rest keeps together."""

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import special

Matrix = NDArray[np.float64]
Rows = NDArray[np.bool_]

# What a run teaches of how unlike servers' variances are, taken at a low quantile of a bootstrap over servers: too sure
# by chance, all of a run's intervals would be too narrow at once.
TEACHERS = 4  # servers; fewer teach nothing
RESAMPLES, CAUTION = 200, 0.10
OUTLIER = 0.001  # over all rows of a table: a variance as far above the others' speaks for itself
SMALLEST = 1e-5  # of the typical variance: equal figures have a variance of 0, and no logarithm of it


def likeness_of(tables: Sequence[tuple[Sequence[str], Matrix, Matrix]]) -> float:
    """d0: how far rows' variances scatter about those of their tables, beyond what chance adds (Smyth 2004).

    Of tables with (names, variances, degrees of freedom); those of too few servers teach what they do together.
    """
    together = [np.concatenate(each) for each in zip(*tables, strict=True)] if tables else []
    if together and max(len(names) for names, _, _ in tables) < TEACHERS:
        tables = [(range(len(together[0])), together[1], together[2])]  # type: ignore[list-item]
    squares: list[Matrix] = []
    chance: list[Matrix] = []
    names: list[Hashable] = []
    for own, variance, freedom in tables:
        kept = (freedom > 0) & np.isfinite(variance) & ~outliers(variance, freedom)
        if kept.sum() < TEACHERS:
            continue
        score = _scores(variance[kept], freedom[kept])
        squares.append((score - score.mean()) ** 2 * len(score) / (len(score) - 1))
        chance.append(special.polygamma(1, freedom[kept] / 2))
        names.extend(np.asarray(own)[kept].tolist())
    if not names:
        return np.nan
    seen, by_chance = np.concatenate(squares), np.concatenate(chance)
    _, cluster = np.unique(np.asarray(names), return_inverse=True)
    sums = np.stack([np.bincount(cluster, each) for each in (seen, by_chance, np.ones_like(seen))], axis=1)
    drawn = np.random.default_rng(len(seen)).multinomial(len(sums), np.full(len(sums), 1 / len(sums)), size=RESAMPLES)
    total = drawn @ sums
    # Few rows may look alike by chance: the variance of a variance of so many scores, were all true ones the same.
    least = by_chance.mean() * np.sqrt(2 / max(len(seen) - 1, 1))
    freedoms = _freedom_of(np.maximum((total[:, 0] - total[:, 1]) / total[:, 2], least))
    return float(np.quantile(freedoms, CAUTION, method="lower"))


def _scores(variance: Matrix, freedom: Matrix) -> Matrix:
    """Log variances, freed of what the chance of their degrees of freedom adds on average."""
    typical = float(np.median(variance[variance > 0])) if (variance > 0).any() else 1.0
    kept = np.maximum(variance, SMALLEST * typical)
    return np.asarray(np.log(kept) - special.digamma(freedom / 2) + np.log(freedom / 2))


LOG_FREEDOM = np.linspace(-7, 22, 29_000)
LOG_TRIGAMMA = np.log(special.polygamma(1, np.exp(LOG_FREEDOM) / 2))


def _freedom_of(excess: Matrix) -> Matrix:
    """d0 with trigamma(d0 / 2) = excess (Smyth 2004, appendix), between points a thousandth apart."""
    return np.where(
        excess <= 1e-9, np.inf, np.exp(np.interp(-np.log(np.maximum(excess, 1e-9)), -LOG_TRIGAMMA, LOG_FREEDOM))
    )


def outliers(variance: Matrix, freedom: Matrix) -> Rows:
    """Rows whose variance is far above the others': F against a provisional prior from median and quartiles.

    They speak for themselves and teach nothing (after Phipson et al. 2016, Ann. Appl. Stat. 10).
    """
    kept = (freedom > 0) & np.isfinite(variance) & (variance > 0)
    found = np.zeros(len(kept), dtype=bool)
    count = int(kept.sum())
    if count < 2 * TEACHERS:
        return found
    free = freedom[kept]
    score = _scores(variance[kept], free)
    low, middle, high = np.quantile(score, (0.25, 0.5, 0.75))
    excess = ((high - low) / 1.349) ** 2 - float(special.polygamma(1, free / 2).mean())
    weight = min(float(_freedom_of(np.asarray([excess]))[0]), 1e6)
    scale = np.exp(middle - special.digamma(weight / 2) + np.log(weight / 2))
    found[np.flatnonzero(kept)] = special.fdtrc(free, weight, variance[kept] / scale) < OUTLIER / count
    return found
