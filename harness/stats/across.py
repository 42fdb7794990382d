"""Cells of two runs against each other: log ratios B over A, with variances moderated where that holds.

A ratio between runs does not lose what a block has in common, as one within a table does. So the variances of a table
are moderated only where its blocks do not differ; elsewhere each cell has its own (Welch), or the t of its differences.
"""

from collections import defaultdict
from collections.abc import Mapping

import numpy as np

from harness.records.models import Load
from harness.stats import basis, contrasts
from harness.stats.basis import Fitted
from harness.stats.contrasts import Contrasts, Means
from harness.stats.moderation import Prior
from harness.stats.values import Matrix, log_matrix

Key = tuple[str, str, Load]  # implementation, test type, level
Side = Mapping[Key, Mapping[int, float]]  # of one run and metric: block -> value
Table = tuple[str, Load]


def of_separate_runs(a: Side, b: Side) -> dict[Key, Contrasts]:
    """B minus A of every cell that both have values of; the prior is learned from the tables of both runs."""
    sides = [_tables({key: values for key, values in side.items() if values}) for side in (a, b)]
    fits = [{table: _fit(rows) for table, rows in side.items()} for side in sides]
    prior = basis.prior([fit for side in fits for fit in side.values() if not fit.blocks_removed])
    means: list[dict[Key, Means]] = []
    for side, fitted in zip(sides, fits, strict=True):
        found: dict[Key, Means] = {}
        for table, rows in side.items():
            whole = _means(fitted[table], prior)
            found |= {(name, *table): contrasts.row(whole, index) for index, name in enumerate(rows)}
        means.append(found)
    return {key: contrasts.differences(means[1][key], means[0][key]) for key in means[0] if key in means[1]}


def within_blocks(a: Side, b: Side) -> dict[Key, Contrasts]:
    """B minus A of every cell, by the differences within the blocks that both have."""
    ratios = {
        key: {block: b[key][block] / value for block, value in values.items() if block in b[key]}
        for key, values in a.items()
        if key in b
    }
    tables = _tables({key: values for key, values in ratios.items() if values})
    fits = {table: _fit(rows) for table, rows in tables.items()}
    prior = basis.prior([fit for fit in fits.values() if not fit.blocks_removed])
    found: dict[Key, Contrasts] = {}
    for table, rows in tables.items():
        means = _means(fits[table], prior)
        for index, name in enumerate(rows):
            one = contrasts.row(means, index)
            found[name, *table] = Contrasts(
                difference=one.mean,
                squared_error=one.squared_error,
                freedom=one.freedom,
                scale=np.ones_like(one.freedom),
            )
    return found


def _tables(side: Side) -> dict[Table, dict[str, Mapping[int, float]]]:
    tables: defaultdict[Table, dict[str, Mapping[int, float]]] = defaultdict(dict)
    for (name, test_type, level), values in side.items():
        tables[test_type, level][name] = values
    return dict(tables)


def _fit(rows: Mapping[str, Mapping[int, float]]) -> Fitted:
    return basis.fitted(log_matrix(list(rows.values())), list(rows))


def _means(table: Fitted, prior: Prior) -> Means:
    """Rows with moderated variances where blocks do not differ; with their own otherwise."""
    if not table.blocks_removed:
        return basis.comparable(table, prior).means
    stats = table.plain
    with np.errstate(invalid="ignore", divide="ignore"):
        error: Matrix = stats.variance / stats.count
    freedom = np.where(stats.count >= 2, stats.count - 1, np.nan)
    return Means(mean=stats.mean, squared_error=error, freedom=freedom, moderated=False)
