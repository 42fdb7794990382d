"""The one fit: log figure = server + round + process + error, with what all tables of a run teach of variances.

Trials of one round stand next to one another, so that a round's effect is what the machine did just then; what is left
of a process is its mean over rounds, and what all servers' processes of one number have in common (drift of the
machine) is removed in the same way. Processes are the unit of every error: windows of one process share its memory
layout and compilation, and more of them never make up for another process (Kalibera & Jones 2013). Of a run that was
merged from several deployments these are the unit: each may favour a server.

A process's variance is expected to be its windows' share plus one variance between processes for the whole run, which
few processes draw towards an assumed one. From three processes on a server's own variance counts as well, as much as
the run shows that servers differ (Smyth 2004, Stat. Appl. Genet. Mol. Biol. 3).
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, special

from harness.stats.variances import TEACHERS, Matrix, Rows, likeness_of, outliers

Moderated = tuple[Matrix, Matrix]  # variances, degrees of freedom
Place = tuple[int, int]  # process or deployment; round within it

CONFIDENCE = 0.95  # of intervals; what is left is the error of a table's decisions
MOST_WIDTH = 300.0  # on logs: what is wider is not known at all
ASSUMED = 0.05  # standard deviation between processes where none has a second one
ASSUMED_FREEDOM = 3.0  # degrees of freedom of that: what few second processes lack of them, the assumed one has
CERTAIN = 100.0  # degrees of freedom of what is assumed, and the most of variances that look all the same
LUCK = 0.5  # squared correlation of two tests of one process in what it differs by from others
HIDDEN = 0.7  # standard errors of the windows' noise in a variance between processes, which chance may have hidden
OWN = 3  # processes from which a server's own variance counts
PRETEST = 0.20  # a missed effect of process numbers only widens intervals, so the test may err towards removing it
UNTAUGHT = 4.0  # degrees of freedom of the run's variance beside a server's own, where nothing was learned
FAR = 0.02  # a server's variance over all tables, so seldom above what is expected, is far above


@dataclass(frozen=True, kw_only=True)
class Spread:
    """How far the values of each row scatter."""

    variance: Matrix  # of a value; NaN where a row has fewer than two
    freedom: Matrix
    leverage: Matrix  # squared error of the mean / variance: 1 / count, and more for a row that lacks columns

    @property
    def squares(self) -> float:
        """Sum of squares of all rows."""
        return float(np.nansum(self.variance * self.freedom))

    @cached_property
    def wild(self) -> Rows:
        """Rows that teach nothing: their variance is an outlier."""
        return outliers(self.variance, self.freedom)


@dataclass(frozen=True, kw_only=True)
class Additive(Spread):
    """Rows and columns fitted by least squares; all by row."""

    mean: Matrix  # at an average column
    adjusted: Matrix  # the values without the effects of columns


def additive(logs: Matrix, *, columns: bool = True, wild: Rows | None = None) -> Additive:
    """Of rows x columns, NaN where a value is missing; a row alone has no columns to be freed of.

    Of the n - 1 degrees of freedom of a row, columns take their share: one in as many as a column has rows. Without
    ``columns`` each row has its own mean and variance. ``wild`` rows teach nothing of columns; None: those found so.
    """
    present = ~np.isnan(logs)
    count = present.sum(axis=1)
    usable = count >= 2
    teaches = usable if wild is None else usable & ~wild
    among = present[teaches].sum(axis=0)
    several = (among >= 2) & columns
    effect = np.zeros(logs.shape[1])
    with np.errstate(invalid="ignore", divide="ignore"):
        leverage = 1 / count
        if several.any():
            seen = present[:, several].astype(float)
            taught = np.where(several, logs, np.nan)[teaches]
            apart = np.nan_to_num(taught - np.nansum(logs[teaches], axis=1, keepdims=True) / count[teaches, None])
            # The normal equations of the columns, rows being eliminated; singular, since rows take any constant.
            own = seen[teaches]
            inverse = linalg.pinvh(np.diag(own.sum(axis=0)) - (own.T / count[teaches]) @ own)
            effect[several] = inverse @ apart.sum(axis=0)[several]
            effect -= effect[among > 0].mean()
            away = seen / np.maximum(seen.sum(axis=1, keepdims=True), 1) - 1 / several.sum()
            leverage = leverage + np.einsum("ij,jk,ik->i", away, inverse, away)
        adjusted = logs - effect
        mean = np.nansum(adjusted, axis=1) / count
        lost = np.where(present & several & teaches[:, None], 1 / np.maximum(among, 1), 0.0).sum(axis=1) / count
        freedom = np.where(usable, (count - 1) * (1 - lost), 0.0)
        squares = np.nansum((adjusted - mean[:, None]) ** 2, axis=1)
        variance = np.where(freedom > 0, squares / freedom, np.nan)
    fitted = Additive(mean=mean, variance=variance, freedom=freedom, leverage=leverage, adjusted=adjusted)
    return additive(logs, wild=fitted.wild) if wild is None and several.any() and fitted.wild.any() else fitted


def _columns_differ(plain: Additive, fitted: Additive) -> bool:
    """By the F test of the two-way analysis of variance, erring towards removing their effects.

    With few rows the test is not independent of the pairs that it decides about, so that it is for the caller to ask.
    """
    alone, together = plain.squares, fitted.squares
    free = float(plain.freedom.sum()), float(fitted.freedom.sum())
    if free[1] <= 0 or together <= 0 or free[0] - free[1] < 1:
        return alone > together
    share = (alone - together) / (free[0] - free[1]) / (together / free[1])
    return float(special.fdtrc(free[0] - free[1], free[1], share)) < PRETEST


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """A table of one figure's natural logarithms before its run's variances are known; all by row."""

    names: Sequence[str]
    columns: Sequence[int]  # numbers of the processes, or of deployments
    values: Matrix  # rows x processes: what is left of each process
    figures: Matrix  # the same, to show; without what deployments have in common
    processes: NDArray[np.int64]  # how many
    between: Additive  # of processes
    within: Spread  # of windows; the leverage is a process's value's


def of_values(values: Mapping[str, Mapping[Place, float]], *, merged: bool = False) -> Fitted:
    """Of positive values by row; a row without any is left out.

    ``merged``: deployments stand for processes, and figures of several are shown beside one another at their average.
    """
    names = [name for name, found in values.items() if found]
    rounds: defaultdict[int, set[int]] = defaultdict(set)
    for name in names:
        for process, number in values[name]:
            rounds[process].add(number)
    columns = sorted(rounds)
    at = {(process, number): (column, index) for column, process in enumerate(columns)
          for index, number in enumerate(sorted(rounds[process]))}  # fmt: skip
    logs = np.full((len(names), max(len(columns), 1), max(map(len, rounds.values()), default=1)), np.nan)
    for row, name in enumerate(names):
        for place, value in values[name].items():
            logs[(row, *at[place])] = value
    return fit(names, np.log(logs), columns, merged=merged)


def fit(names: Sequence[str], logs: Matrix, columns: Sequence[int], *, merged: bool = False) -> Fitted:
    """Effects of rounds, then of process numbers, removed; ``logs``: rows x processes x rounds, NaN where missing."""
    inner = [additive(logs[:, process, :]) for process in range(logs.shape[1])]
    values = np.stack([each.mean for each in inner], axis=1)
    freedom = np.sum([each.freedom for each in inner], axis=0)
    squares = np.nansum([each.variance * each.freedom for each in inner], axis=0)
    levers = np.where(np.isnan(values), np.nan, np.stack([each.leverage for each in inner], axis=1))
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = np.where(freedom > 0, squares / freedom, np.nan)
    within = Spread(variance=variance, freedom=freedom, leverage=np.nanmean(levers, axis=1))
    return _of_processes(names, columns, values, within, merged=merged)


def _of_processes(
    names: Sequence[str], columns: Sequence[int], values: Matrix, within: Spread, *, merged: bool = False
) -> Fitted:
    """From what is left of each process, and what its windows say of it."""
    between = additive(values)
    if len(names) >= TEACHERS and not within.freedom.any():
        plain = additive(values, columns=False)
        between = between if _columns_differ(plain, between) else plain
    return Fitted(
        names=names, columns=columns, values=values, figures=between.adjusted if merged else values,
        processes=(~np.isnan(values)).sum(axis=1), between=between, within=within,
    )  # fmt: skip


# ---- variances -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Prior:
    """What all tables of a run teach of one figure's variances."""

    between: float  # variance between processes, freed of its windows' noise
    between_freedom: float
    likeness: float  # degrees of freedom that an expected variance is worth beside a server's own; infinite: all alike
    windows: float  # the same of a window's variance beside its table's
    window: float  # variance of a window of any table; its rows say that alone where they are enough
    window_freedom: float
    wild: Mapping[str, tuple[float, float]] = field(default_factory=dict)  # variance and freedom of servers far above


def prior(tables: Sequence[Fitted]) -> Prior:
    """Of a run: one variance between processes, and how far servers keep to what is expected of them."""
    nested = [table for table in tables if table.within.freedom.any()]
    calm = [
        (table.within.variance * table.within.freedom, table.within.freedom, ~table.within.wild) for table in nested
    ]
    free = sum(float(freedom[use].sum()) for _, freedom, use in calm)
    squares = sum(float(np.nansum(each[use])) for each, _, use in calm)
    known = Prior(
        between=ASSUMED**2, between_freedom=CERTAIN, likeness=np.inf,
        windows=likeness_of([(table.names, table.within.variance, table.within.freedom) for table in nested]),
        window=squares / free if free else np.nan, window_freedom=free,
    )  # fmt: skip
    between, freedom = _between(nested, known)
    known = replace(known, between=between, between_freedom=freedom)
    with np.errstate(invalid="ignore", divide="ignore"):  # equal figures have no variance
        own = [
            (
                table.names,
                table.between.variance / expected(table, known)[0],
                np.where(table.processes >= OWN, table.between.freedom, 0.0),
            )
            for table in tables
        ]
    return replace(known, likeness=likeness_of(own), wild=_wild(tables, known))


def _wild(tables: Sequence[Fitted], known: Prior) -> dict[str, tuple[float, float]]:
    """Of servers whose processes differ clearly more than is expected: their variance over all tables, its freedom."""
    found: defaultdict[str, list[tuple[float, float, float]]] = defaultdict(list)
    for table in tables:
        own = table.between
        with np.errstate(invalid="ignore", divide="ignore"):  # equal figures have no variance
            ratio = own.variance / expected(table, known)[0]
        for row in np.flatnonzero(own.freedom > 0).tolist():
            found[table.names[row]].append((float(own.variance[row]), float(ratio[row]), float(own.freedom[row])))
    pooled = {}
    for name, each in found.items():
        variances, ratios, freedom = np.asarray(each).T
        effective = float(freedom.sum() / (1 + (len(freedom) - 1) * LUCK))  # as in _between
        far = special.fdtrc(effective, known.between_freedom, np.average(ratios, weights=freedom))
        if far < FAR:
            pooled[name] = float(np.average(variances, weights=freedom)), effective
    return pooled


def windows(table: Fitted, known: Prior) -> Moderated:
    """Variance of a window of each row with its degrees of freedom, drawn towards its table's.

    Of few rows: towards the run's.
    """
    free = np.where(np.isfinite(table.within.variance), table.within.freedom, 0.0)
    own = np.where(free > 0, table.within.variance, 0.0)
    wild = table.within.wild
    total = float(free[~wild].sum())
    location = float((own * free)[~wild].sum()) / total if total else np.nan
    if len(table.names) < TEACHERS:
        location, total = known.window, known.window_freedom
    if np.isinf(known.windows) or not total:
        moderated = np.full(len(free), location), np.full(len(free), total)
    else:
        moderated = _drawn(own, free, known.windows, location, total)
    return np.where(wild, own, moderated[0]), np.where(wild, free, moderated[1])


def _drawn(own: Matrix, freedom: Matrix, likeness: float, location: Matrix | float, most: Matrix | float) -> Moderated:
    """Variances drawn towards what is expected of them, with their degrees of freedom (Smyth 2004)."""
    towards = UNTAUGHT if np.isnan(likeness) else likeness
    return (towards * location + freedom * own) / (towards + freedom), np.minimum(towards + freedom, most)


def _between(tables: Sequence[Fitted], known: Prior) -> tuple[float, float]:
    """Variance between processes by moments, and its degrees of freedom.

    The tests of a process share its luck, so that T of them are worth T / (1 + (T - 1) r²) (Kish 1965, section 5.4, for
    squares). What windows add to the differences of processes is taken off, but never so much that less is left than
    the chance of so few processes may have hidden.
    """
    squares = noise = weight = 0.0
    by_name: defaultdict[str, list[float]] = defaultdict(list)
    for table in tables:
        own = table.between
        use = (own.freedom > 0) & ~own.wild & ~table.within.wild
        free = own.freedom[use]
        squares += float((own.variance[use] * free).sum())
        noise += float((np.nan_to_num(windows(table, known)[0][use]) * table.within.leverage[use] * free).sum())
        weight += float(free.sum())
        for name, count in zip(np.asarray(table.names)[use].tolist(), free.tolist(), strict=True):
            by_name[name].append(count)
    if weight <= 0:
        return ASSUMED**2, CERTAIN
    freedom = sum(sum(own) / (1 + (len(own) - 1) * LUCK) for own in by_name.values())
    seen = max(squares - noise, HIDDEN * noise * np.sqrt(2 / freedom)) / weight
    lacking = max(ASSUMED_FREEDOM - freedom, 0.0)
    return (freedom * seen + lacking * ASSUMED**2) / (freedom + lacking), freedom + lacking


def expected(table: Fitted, known: Prior) -> tuple[Matrix, Matrix]:
    """Variance of a process as the run has it, with its degrees of freedom (Satterthwaite 1946); NaN where unknown.

    Where no process of a table has two windows, their noise is a part of what is between processes, and the table's
    rows say together what that is.
    """
    rows = len(table.names)
    if table.within.freedom.any():
        variance, free = windows(table, known)
        from_windows = variance * table.within.leverage
        total = from_windows + known.between
        with np.errstate(divide="ignore", invalid="ignore"):
            joint = total**2 / (from_windows**2 / free + known.between**2 / known.between_freedom)
        return total, np.where(np.isfinite(total), joint, 0.0)
    own = table.between
    use = (own.freedom > 0) & ~own.wild
    freedom = float(own.freedom[use].sum())
    pooled = float((own.variance[use] * own.freedom[use]).sum()) / freedom if freedom > 0 else np.nan
    return np.full(rows, pooled), np.full(rows, freedom)


@dataclass(frozen=True, kw_only=True)
class Means:
    """The rows of a table, ready to be compared: log mean, its squared error and the degrees of freedom of that."""

    names: Sequence[str]
    mean: Matrix
    squared_error: Matrix  # NaN where nothing says how sure a mean is
    freedom: Matrix
    moderated: bool  # rows have a say in their variance; else one estimate stands for all

    def half_width(self, confidence: float = CONFIDENCE) -> Matrix:
        """Half-width on logs of the interval of each mean."""
        return half_width(self.squared_error, self.freedom, confidence)


def as_shown(table: Fitted, compared: Means) -> Means:
    """Each row by itself: what processes of one number have in common cancels between rows, and in no row's figure."""
    removed = np.nansum(table.figures - table.between.adjusted, axis=0)  # the same from all rows
    shared = removed / np.maximum((~np.isnan(table.figures)).sum(axis=0), 1)
    free = max(len(shared) - 1, 1)
    variance = float(((shared - shared.mean()) ** 2).sum()) / free
    return replace(less_sure(compared, variance / table.processes, free), mean=np.nanmean(table.figures, axis=1))


def less_sure(compared: Means, squared_error: Matrix, freedom: float) -> Means:
    """With a further squared error of each mean, by Satterthwaite (1946)."""
    error = compared.squared_error + squared_error
    with np.errstate(invalid="ignore", divide="ignore"):
        joint = error**2 / (compared.squared_error**2 / compared.freedom + squared_error**2 / freedom)
    return replace(compared, squared_error=error, freedom=np.where(error > 0, joint, 0.0))


def half_width(squared_error: Matrix, freedom: Matrix, confidence: float) -> Matrix:
    """Of Student's intervals."""
    with np.errstate(invalid="ignore"):
        quantile = special.stdtrit(np.maximum(freedom, 1e-9), 0.5 + confidence / 2)
        return np.asarray(quantile * np.sqrt(squared_error))


def means(table: Fitted, known: Prior) -> Means:
    """Each row's variance drawn towards the expected one; never less than its windows leave uncertain."""
    location, free = expected(table, known)
    likeness = np.inf if len(table.names) == 2 else known.likeness
    seen, own = table.between, (table.processes >= OWN) & (table.between.freedom > 0)
    variance, freedom = location, free if np.isnan(likeness) else np.minimum(likeness, free)
    if own.any() and not np.isinf(likeness):
        weight, told = np.where(own, seen.freedom, 0.0), np.where(own, seen.variance, 0.0)
        mixed, joint = _drawn(told, weight, likeness, location, free)
        variance, freedom = np.where(own, mixed, location), np.where(own, joint, freedom)
    wild, its = np.asarray([known.wild.get(name, (0.0, 0.0)) for name in table.names]).reshape(-1, 2).T
    # Nothing is drawn down, but what the run teaches makes it surer: with two degrees of freedom and the decisions of
    # many pairs to share one error, what is four times as fast would not differ.
    its = its + np.nan_to_num(np.minimum(its, likeness))
    variance, freedom = np.where(wild > variance, wild, variance), np.where(wild > variance, its, freedom)
    floor = np.nan_to_num(windows(table, known)[0] * table.within.leverage)
    error = np.maximum(variance, floor) * seen.leverage
    good = np.isfinite(error) & (freedom > 0)
    return Means(
        names=table.names, mean=seen.mean, squared_error=np.where(good, error, np.nan),
        freedom=np.where(good, freedom, 0.0), moderated=bool(own.any()) and not np.isinf(likeness),
    )  # fmt: skip


def together(tables: Sequence[Fitted], names: Sequence[str], known: Prior) -> Means:
    """Mean of several tables, of rows that all of them have: one value a process, since its tests share its luck.

    Processes that lack a table are left out.
    """
    columns = sorted({column for table in tables for column in table.columns})
    values, share = np.zeros((len(names), len(columns))), 1 / len(tables)
    mean, from_windows, free = (np.zeros(len(names)) for _ in range(3))
    for table in tables:
        rows = [list(table.names).index(name) for name in names]
        aligned = np.full_like(values, np.nan)
        aligned[:, [columns.index(column) for column in table.columns]] = table.values[rows]
        values += aligned * share
        mean += table.between.mean[rows] * share
        variance, freedom = windows(table, known)
        if not freedom.any():  # no process of it has two windows: as those of the run are
            variance, freedom = (np.full(len(variance), each) for each in (known.window, known.window_freedom))
        from_windows += (variance * table.within.leverage)[rows] * share**2
        free += freedom[rows]
    within = Spread(variance=from_windows, freedom=free, leverage=np.ones(len(names)))
    joint = _of_processes(names, columns, values, within)
    of_mean = LUCK**0.5 + (1 - LUCK**0.5) * share  # of a table's variance between processes
    wild = {name: (variance * of_mean, freedom) for name, (variance, freedom) in known.wild.items()}
    rules = replace(known, between=known.between * of_mean, windows=0.0, wild=wild)
    return replace(means(joint, rules), mean=mean)
