"""Windows within processes: a few fresh processes of each implementation, each measured in many short windows in turns.

Value of implementation i in process p and round r: mean_i + process_ip + round_r + noise. Rounds are what all
implementations measured at one time have in common, and are removed first; a process's value is then the mean of its
windows. Processes are the replicates: windows of one process share its memory layout and compilation, and more of them
never make up for another process (Kalibera & Jones 2013). Two components come apart: ``within`` (of a window) and
``between`` (of a process).

With two or three processes the variance between them is hardly known by itself. It is moderated by those of the other
implementations and tables, as the variance of any replicates is, and is never taken for less than the windows' own
noise leaves uncertain. An implementation with a single process takes the others' typical variance; where none has
two, its interval holds for this process only.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from harness.rank import additive, basis, contrasts
from harness.rank.basis import Comparable, Fitted
from harness.rank.contrasts import Means
from harness.rank.moderation import UNLEARNED, Prior, moderate
from harness.rank.values import Matrix

Scope = Literal["implementation", "process"]
ONE_PROCESS = "one process: the interval holds for this process only"


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
class NestedFit:
    """A nested table before its prior is known."""

    names: Sequence[str]
    table: Fitted  # implementations x processes
    components: Mapping[str, Components]
    within_error: Matrix  # squared error of each row's mean from its windows alone
    within_freedom: Matrix


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
    alone = (~np.isnan(logs)).sum(axis=0) < 2  # a round of one row says nothing of rounds
    mean = np.where(np.isfinite(model.mean), model.mean, np.nanmean(logs, axis=1)) if not alone.all() else _plain(logs)
    processes = sorted({process for _, process in rows})
    column = {process: index for index, process in enumerate(processes)}
    table = np.full((len(names), len(processes)), np.nan)
    error, freedom, squares, within_of = (np.zeros(len(names)) for _ in range(4))
    components = {}
    for index, name in enumerate(names):
        own = [row_of[row] for row in rows if row[0] == name]
        for row in own:
            table[index, column[rows[row][1]]] = mean[row]
        known = [row for row in own if model.freedom[row] > 0]
        free = float(model.freedom[known].sum())
        within = float((model.variance[known] * model.freedom[known]).sum() / free) if known else np.nan
        squared = float(np.mean([within * model.leverage[row] for row in own]))  # of a process's value, from windows
        error[index], freedom[index] = squared / len(own), free
        squares[index], within_of[index] = squared, within
    spread = additive.fit(table).variance  # of processes, what all of one time had in common removed
    for index, name in enumerate(names):
        components[name] = Components(
            processes=int((~np.isnan(table[index])).sum()),
            windows=len(nested.readings[name]),
            within=_root(within_of[index]),
            between=_root(max(spread[index] - squares[index], 0.0)) if np.isfinite(spread[index]) else None,
            scope="implementation",
        )
    fitted = basis.fitted(table, names, least_squared_error=np.nan_to_num(error))
    return NestedFit(names=names, table=fitted, components=components, within_error=error, within_freedom=freedom)


def comparable(found: NestedFit, prior: Prior) -> tuple[Comparable, Mapping[str, Components]]:
    """The table ready to be compared, and its components with what each interval holds for.

    Where the variance between processes is known of some rows, rows of one process take its typical value: the pooled
    variance, with the prior's degrees of freedom.
    """
    compared = basis.comparable(found.table, prior)
    means = compared.means
    single = found.table.plain.count == 1
    components = dict(found.components)
    error, freedom = means.squared_error.copy(), means.freedom.copy()
    if single.any() and compared.basis == "moderated":
        spreads = found.table.spreads
        known = moderate(spreads, prior)
        pooled = np.nansum(known.variance * spreads.freedom) / spreads.freedom.sum()
        error[single] = np.maximum(pooled, found.within_error[single])
        freedom[single] = min(prior.freedom, float(spreads.freedom.sum()))
    elif single.any():
        error[single], freedom[single] = found.within_error[single], found.within_freedom[single]
        for index in np.flatnonzero(single).tolist():
            name = found.names[index]
            components[name] = Components(
                processes=1,
                windows=components[name].windows,
                within=components[name].within,
                between=None,
                scope="process",
            )
    own = Means(mean=means.mean, squared_error=error, freedom=freedom, moderated=means.moderated)
    of_windows = compared.basis == "paired" and bool(single.any())
    return (
        Comparable(
            logs=compared.logs,
            means=own,
            basis="welch" if of_windows else compared.basis,
            prior=compared.prior,
            blocks_removed=compared.blocks_removed,
            least_squared_error=compared.least_squared_error,
        ),
        components,
    )


def prior(tables: Sequence[NestedFit]) -> Prior:
    """How alike the variances between processes are, over all tables of a run and metric."""
    several = [found.table for found in tables if int((found.table.plain.count > 1).sum()) > 1]
    return basis.prior(several) if several else UNLEARNED


def contrast(compared: Comparable, index: int) -> contrasts.Contrasts:
    """Every row minus this one."""
    return compared.against(index)


def _plain(logs: Matrix) -> Matrix:
    return np.asarray(np.nanmean(logs, axis=1))


def _root(variance: float) -> float | None:
    return float(np.sqrt(variance)) if np.isfinite(variance) else None
