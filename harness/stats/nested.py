"""Windows within processes: a few fresh processes of each implementation, each measured in many short windows in turns.

Value of implementation i in process p and round r: mean_i + process_ip + round_r + noise. Rounds are what all
implementations measured at one time have in common, and are removed first; a process's value is then the mean of its
windows. Processes are the replicates: windows of one process share its memory layout and compilation, and more of them
never make up for another process (Kalibera & Jones 2013). Two components come apart: ``within`` (of a window) and
``between`` (of a process).

With two or three processes the variance between them is hardly known by itself. From eight implementations on, or from
four with three processes each, it is moderated by those of the other implementations and tables, as the variance of any
replicates is, and is never taken for less than the windows' own noise leaves uncertain. With fewer, the two components
are taken apart (``_by_components``): the windows' variance is moderated, and one variance between processes stands for
the whole run, on few more degrees of freedom than it has second processes: their test types share their luck. An
implementation with a single process takes the others' variance; where none has two, fresh ones are taken to differ by
an assumed one, and the row says so.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy.sparse import csgraph

from harness.stats import additive, basis, contrasts, estimates
from harness.stats.basis import Comparable, Fitted
from harness.stats.contrasts import Means
from harness.stats.moderation import UNLEARNED, Prior, Spreads, learn, moderate
from harness.stats.values import Matrix

Scope = Literal["implementation", "process"]
MANY = 8  # implementations with several processes teach their variance; with fewer the two components are taken apart
ENOUGH = 3  # processes of each of fewer implementations do so, too
MOST_FREEDOM = 100.0  # of variances that look all the same
SHARED = 1.6  # Patil's degrees of freedom of a difference over those of its two equal rows, at ten of each
HIDDEN = 1.0  # standard errors of the windows' noise in a variance between processes, which chance may have hidden
ASSUMED_BETWEEN = 0.05  # standard deviation of a process where none has a second one: docs/method.md says from what
LEAST_BETWEEN = 3.0  # degrees of freedom of that variance: what few second processes lack of them, the assumed one has
LUCK = 0.5  # squared correlation of two tests of one process in what it differs by from others
ONE_PROCESS = "one process: fresh ones are taken to differ by 5 %"


@dataclass(frozen=True, kw_only=True)
class Reading:
    """One window: ``round`` counts through the run, and is shared by all that was measured in it."""

    process: int
    round: int
    log: float  # natural logarithm of the figure


@dataclass(frozen=True, kw_only=True)
class Nested:
    """One table and metric: the readings of each implementation."""

    readings: Mapping[str, Sequence[Reading]]


@dataclass(frozen=True, kw_only=True)
class Components:
    """Of one implementation, on logarithms; None where it cannot be told."""

    processes: int
    windows: int
    within: float | None  # standard deviation of a window
    between: float | None  # standard deviation of a process, freed of its windows' noise; 0 where no more is seen
    scope: Scope  # what its interval holds for


@dataclass(frozen=True, kw_only=True)
class _Between:
    """What the processes of each row say: its mean, and the variance of their values with its degrees of freedom.

    Where rounds do not link the processes of different times, what all of a time have in common is taken off.
    """

    mean: Matrix
    variance: Matrix
    freedom: Matrix
    share: Matrix  # squared error of the mean / variance of a process

    @classmethod
    def of(cls, table: Matrix, *, joined: bool) -> "_Between":
        """Of implementations x processes, NaN where missing."""
        if not joined:
            model = additive.fit(table)
            return cls(mean=model.mean, variance=model.variance, freedom=model.freedom, share=model.leverage)
        plain = estimates.moments(table)
        return cls(
            mean=plain.mean, variance=plain.variance, freedom=np.maximum(plain.count - 1, 0.0), share=1 / plain.count
        )


@dataclass(frozen=True, kw_only=True)
class NestedFit:
    """A nested table before its prior is known; all by row."""

    names: Sequence[str]
    table: Fitted  # implementations x processes
    components: Mapping[str, Components]
    within: Matrix  # variance of a window
    within_freedom: Matrix
    leverage: Matrix  # squared error of a process's value, averaged over processes / variance of a window
    between: _Between

    @property
    def processes(self) -> Matrix:
        """How many each row has."""
        return self.table.plain.count

    @property
    def within_error(self) -> Matrix:
        """Squared error of each row's mean from its windows alone."""
        return np.asarray(self.within * self.leverage / self.processes)


@dataclass(frozen=True, kw_only=True)
class TurnsPrior(Prior):
    """What all tables of a run teach of one metric, of processes (as of any replicates) and of the two components.

    ``between``: variance of a process freed of its windows' noise, NaN where no implementation has two. ``common``: the
    pooled variance of windows over all tables, where each has too few rows to teach anything of its own; otherwise NaN.
    """

    windows: Prior  # how alike the variances of windows are within a table, or where ``common`` is known over all
    common: float
    between: float
    between_freedom: float


def fit(nested: Nested) -> NestedFit:
    """Round effects removed, one value a process, and the two components of variance."""
    names = [name for name, readings in nested.readings.items() if readings]
    rows = [(name, process) for name in names for process in sorted({each.process for each in nested.readings[name]})]
    rounds = sorted({each.round for name in names for each in nested.readings[name]})
    place = {number: index for index, number in enumerate(rounds)}
    row_of = {row: index for index, row in enumerate(rows)}
    logs = np.full((len(rows), len(rounds)), np.nan)
    for name in names:
        for each in nested.readings[name]:
            logs[row_of[name, each.process], place[each.round]] = each.log
    model = additive.fit(logs)
    joined = _joined(logs)
    alone = (~np.isnan(logs)).sum(axis=0) < 2  # a round of one row says nothing of rounds
    mean = np.where(np.isfinite(model.mean), model.mean, np.nanmean(logs, axis=1)) if not alone.all() else _plain(logs)
    processes = sorted({process for _, process in rows})
    column = {process: index for index, process in enumerate(processes)}
    table = np.full((len(names), len(processes)), np.nan)
    within, freedom, leverage = (np.zeros(len(names)) for _ in range(3))
    for index, name in enumerate(names):
        own = [row_of[row] for row in rows if row[0] == name]
        for row in own:
            table[index, column[rows[row][1]]] = mean[row]
        known = [row for row in own if model.freedom[row] > 0]
        freedom[index] = model.freedom[known].sum()
        within[index] = (model.variance[known] * model.freedom[known]).sum() / freedom[index] if known else np.nan
        # Rounds that are not linked say nothing of how their parts lie, and make no row less certain within its own.
        alone_in = 1 / np.maximum((~np.isnan(logs[own])).sum(axis=1), 1)
        leverage[index] = np.mean(model.leverage[own] if joined else alone_in)
    count = (~np.isnan(table)).sum(axis=1)
    least = np.nan_to_num(within * leverage / count)
    fitted = basis.fitted(table, names, least_squared_error=least)
    spread = additive.fit(table).variance  # of processes, what all of one time had in common removed
    components = {
        name: Components(
            processes=int(count[index]),
            windows=len(nested.readings[name]),
            within=_root(within[index]),
            between=_root(max(spread[index] - within[index] * leverage[index], 0.0))
            if np.isfinite(spread[index])
            else None,
            scope="implementation",
        )
        for index, name in enumerate(names)
    }
    between = _Between.of(table, joined=joined)
    return NestedFit(
        names=names,
        table=fitted,
        components=components,
        within=within,
        within_freedom=freedom,
        leverage=leverage,
        between=between,
    )


def _joined(logs: Matrix) -> bool:
    """Whether rounds link all rows: where all processes were replaced at once, the new never stood beside the old."""
    present = (~np.isnan(logs)).astype(float)
    return bool(csgraph.connected_components(present @ present.T, directed=False)[0] == 1)


def comparable(found: NestedFit, known: Prior) -> tuple[Comparable, Mapping[str, Components]]:
    """The table ready to be compared, and its components with what each interval holds for.

    ``known``: of the run, from ``prior``; anything else stands for a run that teaches nothing beyond this table.
    """
    several = int((found.processes > 1).sum())
    speak = several >= MANY or (several >= additive.PRETEST_IMPLEMENTATIONS and found.processes.min() >= ENOUGH)
    if speak and basis.comparable(found.table, known).basis == "moderated":
        return _by_processes(found, known), found.components
    turns = known if isinstance(known, TurnsPrior) else prior([found])
    compared = Comparable(
        logs=found.table.logs,
        means=_by_components(found, turns),
        basis="moderated",
        prior=turns.windows,
        blocks_removed=True,
        how=_how(turns),
    )
    if np.isfinite(turns.between):
        return compared, found.components
    return compared, {name: replace(each, between=None, scope="process") for name, each in found.components.items()}


def _how(turns: TurnsPrior) -> str:
    """What ``_by_components`` takes the variances from."""
    windows = "moderated over the run" if turns.windows.usable else "each row's own: too few, or too unlike, to share"
    seen = f"one for the run, on {turns.between_freedom:.1f} degrees of freedom"
    taken = f"fresh ones taken to differ by {100 * ASSUMED_BETWEEN:.0f} %: no server had a second one"
    processes = seen if np.isfinite(turns.between) else taken
    return f"by two variances: of windows ({windows}) and of processes ({processes})"


def _by_processes(found: NestedFit, known: Prior) -> Comparable:
    """Processes as replicates; a row with one takes the pooled variance, with the prior's degrees of freedom."""
    compared = basis.comparable(found.table, known)
    single = found.processes == 1
    if not single.any():
        return compared
    spreads = found.table.spreads
    pooled = np.nansum(moderate(spreads, known).variance * spreads.freedom) / spreads.freedom.sum()
    error, freedom = compared.means.squared_error.copy(), compared.means.freedom.copy()
    error[single] = np.fmax(pooled, found.within_error[single])
    freedom[single] = min(known.freedom, float(spreads.freedom.sum()))
    return replace(compared, means=replace(compared.means, squared_error=error, freedom=freedom))


def _by_components(found: NestedFit, turns: TurnsPrior) -> Means:
    """Squared error = between / processes + windows' part; its degrees of freedom after Satterthwaite (1946).

    Where no process of a table has two windows, their noise is a part of what is between processes; where no server has
    a second process either, nothing has measured it: there is no interval, since the assumed variance leaves it out.
    One estimate stands for all rows, while the difference of two is taken for that of independent errors: hence
    ``SHARED``.
    """
    within, freedom = _windows(found, turns.windows, turns.common)
    seen = freedom > 0
    from_windows = np.where(seen, within, 0.0) * found.leverage * found.between.share
    known = np.isfinite(turns.between)
    between = (turns.between if known else ASSUMED_BETWEEN**2) * found.between.share
    processes = turns.between_freedom if known else MOST_FREEDOM
    error = np.where(seen | known, from_windows + between, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        joint = error**2 / (from_windows**2 / np.where(seen, freedom, 1.0) + between**2 / max(processes, 1.0))
    return Means(
        mean=found.between.mean,
        squared_error=np.where(error > 0, error, np.nan),
        freedom=np.where(error > 0, joint, 0.0),
        moderated=True,
    )


def _windows(found: NestedFit, known: Prior, common: float) -> tuple[Matrix, Matrix]:
    """Variance of a window of each row with its degrees of freedom; a row without takes that of all rows of the table.

    Where no prior can be learned, rows speak for themselves.
    """
    own = _window_spreads(found)
    if known.usable and np.isfinite(common):
        freedom = np.where(np.isfinite(own.variance), own.freedom, 0.0)
        squares = np.where(freedom > 0, own.variance, 0.0) * freedom
        if np.isinf(known.freedom):
            return np.full(len(freedom), common), np.full(len(freedom), MOST_FREEDOM)
        return (known.freedom * common + squares) / (known.freedom + freedom), known.freedom + freedom
    moderated = moderate(own, known)
    variance, freedom = moderated.variance, moderated.freedom
    bare = freedom <= 0
    if not bare.any() or bare.all():
        return variance, freedom
    total = float(own.freedom.sum())
    pooled = float(np.nansum(np.where(bare, 0.0, own.variance) * own.freedom)) / total
    share = min(known.freedom, total) if known.usable else 1.0
    return np.where(bare, pooled, variance), np.where(bare, share, freedom)


def _window_spreads(found: NestedFit) -> Spreads:
    return Spreads(names=found.names, variance=found.within, freedom=found.within_freedom)


def _all_windows(tables: Sequence[NestedFit]) -> Spreads:
    """Those of every row of every table."""
    return Spreads(
        names=[name for found in tables for name in found.names],
        variance=np.concatenate([found.within for found in tables]),
        freedom=np.concatenate([found.within_freedom for found in tables]),
    )


def prior(tables: Sequence[NestedFit], plain: Sequence[Fitted] = ()) -> TurnsPrior:
    """How alike variances are over all tables of a run and metric, of processes and of windows.

    ``plain``: its tables that were not measured in turns, whose replicates are processes.
    """
    several = [*plain, *(found.table for found in tables if int((found.processes > 1).sum()) > 1)]
    of_processes = basis.prior(several) if several else UNLEARNED
    windows, common = learn([_window_spreads(found) for found in tables]), np.nan
    if tables and not windows.rows:  # fewer than four implementations: what they teach, they teach together
        together = _all_windows(tables)
        windows, measured = learn([together]), together.freedom > 0
        if measured.any():
            free = together.freedom[measured]
            common = float((together.variance[measured] * free).sum() / free.sum())
    between, freedom = _between(tables, windows, common)
    return TurnsPrior(
        freedom=of_processes.freedom,
        rows=of_processes.rows,
        windows=windows,
        common=common,
        between=between,
        between_freedom=freedom,
    )


def _between(tables: Sequence[NestedFit], windows: Prior, common: float) -> tuple[float, float]:
    """Variance between processes of a whole run by moments, and its degrees of freedom: those of the processes.

    The tests of a process share its luck, so that T of them are worth T / (1 + (T - 1) r²) (Kish 1965, section 5.4, for
    squares), r their correlation: six say less than two independent ones would. What the windows' noise adds to
    the differences of processes is taken off, but never so much that less is left than the chance of so few processes
    may have hidden.
    """
    squares = noise = weight = 0.0
    processes: defaultdict[str, list[float]] = defaultdict(list)  # degrees of freedom by table
    for found in tables:
        within, _ = _windows(found, windows, common)
        further = found.between.freedom
        use = further > 0
        known = np.where(np.isfinite(within), within, 0.0)
        squares += float((found.between.variance[use] * further[use]).sum())
        noise += float((known[use] * found.leverage[use] * further[use]).sum())
        weight += float(further[use].sum())
        for name, count in zip(np.asarray(found.names)[use].tolist(), further[use].tolist(), strict=True):
            processes[name].append(count)
    if weight <= 0:
        return np.nan, 0.0
    freedom = sum(sum(own) / (1 + (len(own) - 1) * LUCK) for own in processes.values())
    seen = max(squares - noise, HIDDEN * noise * np.sqrt(2 / freedom)) / weight
    freedom /= SHARED
    lacking = max(LEAST_BETWEEN - freedom, 0.0)
    return (freedom * seen + lacking * ASSUMED_BETWEEN**2) / (freedom + lacking), freedom + lacking


def contrast(compared: Comparable, index: int) -> contrasts.Contrasts:
    """Every row minus this one."""
    return compared.against(index)


def _plain(logs: Matrix) -> Matrix:
    return np.asarray(np.nanmean(logs, axis=1))


def _root(variance: float) -> float | None:
    return float(np.sqrt(variance)) if np.isfinite(variance) else None
