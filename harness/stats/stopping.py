"""Decides which comparisons need more processes (group sequential testing).

The data is tested after certain numbers of processes, which are planned in advance. These tests (looks) share the
family-wise error. If tfb tested at the 5 % level after every process instead, 22 to 25 % of runs would find a
difference between equal implementations.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TypeVar

import numpy as np
from pydantic import ValidationError

from harness.plan.profile import ConfigSection, ProcessLimits
from harness.records.run_info import RunInfo
from harness.records.trial_record import Trial
from harness.stats import pairs
from harness.stats.cell_values import (
    CPU_PER_REQUEST,
    THROUGHPUT,
    CellKey,
    CellTrials,
    best_load,
    collect_cells,
    group_by_test_type,
    headline_table_load,
)
from harness.stats.moderation import CONFIDENCE, RowMeans
from harness.stats.value_tables import ValueTables

AnySection = TypeVar("AnySection", bound=ConfigSection)


def profile_section(info: RunInfo, name: str, kind: type[AnySection]) -> AnySection:
    """Return a section of the profile in run.json, or the default section if it is missing or invalid."""
    profile = info.settings.get("profile")
    try:
        return kind.model_validate(profile[name]) if isinstance(profile, dict) and name in profile else kind()
    except ValidationError:
        return kind()


def planned_looks(rules: ProcessLimits) -> tuple[int, ...]:
    """Return the numbers of processes after which the data is tested. The last number is the maximum."""
    return (*sorted({look for look in rules.looks if rules.minimum <= look < rules.maximum}), rules.maximum)


def alpha_at(rules: ProcessLimits, processes: int) -> float:
    """Return the family-wise error that the look after this number of processes may spend.

    The error spent up to a look is proportional to the square of the number of processes (Kim & DeMets 1987, rho = 2).
    Early looks thus decide only clear differences, and most of the error remains for the last look. If a run was
    interrupted between two looks, use the later look.
    """
    counts = planned_looks(rules)
    index = next((i for i, look in enumerate(counts) if look >= processes), len(counts) - 1)
    before = (counts[index - 1] / counts[-1]) ** 2 if index else 0.0
    return (1 - CONFIDENCE) * ((counts[index] / counts[-1]) ** 2 - before)


def undecided(
    trials: Sequence[Trial], expected: Sequence[tuple[str, str]], rules: ProcessLimits
) -> Sequence[tuple[str, str]]:
    """Return the (implementation, test type) pairs in ``expected`` that need an additional process.

    Repeat all past looks, because a decision at a look is final. A resumed run thus stops where an uninterrupted run
    would have stopped.
    """
    done = 1 + max((trial.process for trial in trials), default=-1)
    open_keys = expected if done < rules.maximum else ()
    for look in planned_looks(rules):
        if look <= done and open_keys:
            cells = collect_cells(trial for trial in trials if trial.process < look)
            still_open = _undecided_at_look(cells, expected, rules, alpha_at(rules, look))
            open_keys = [key for key in open_keys if key in still_open]
    return open_keys


def _undecided_at_look(
    cells: Mapping[CellKey, CellTrials], expected: Sequence[tuple[str, str]], rules: ProcessLimits, alpha: float
) -> set[tuple[str, str]]:
    """Return the undecided (implementation, test type) pairs at a look, including pairs without a valid trial."""
    tables: dict[str, dict[str, CellTrials]] = {kind: {} for _, kind in expected}
    by_type = group_by_test_type(cells)
    for name, kind in expected:
        own = by_type[kind].get(name, {})
        load = headline_table_load(by_type[kind]) or best_load(own)
        if load in own and own[load].valid:
            tables[kind][name] = own[load]
    undecided_pairs = {(name, kind) for name, kind in expected if name not in tables[kind]}
    for metric in (THROUGHPUT, CPU_PER_REQUEST):
        fitted = ValueTables(
            {kind: {name: cell.values(metric) for name, cell in rows.items()} for kind, rows in tables.items() if rows}
        )
        for table in fitted.fits:
            undecided_pairs |= {(name, str(table)) for name in _undecided_rows(fitted.means(table), rules, alpha)}
    return undecided_pairs


def _undecided_rows(table: RowMeans, rules: ProcessLimits, alpha: float) -> Iterator[str]:
    """Yield both rows of each pair of neighbours that neither differ significantly nor tie.

    Two rows tie if the half-width of their difference's interval is at most ``rules.half_width``. If the table has a
    single row, yield the row if the half-width of the row's interval exceeds ``rules.half_width``.
    """
    narrow, order = np.log1p(rules.half_width), np.argsort(table.mean)
    if len(order) == 1 and not table.half_width()[0] <= narrow:
        yield table.names[0]
    differ = pairs.significant(table, alpha)
    for row, neighbour in pairwise(order):
        (half,) = pairs.differences(table, table, np.asarray([row]), np.asarray([neighbour])).half_width()
        if not (differ[row, neighbour] or half <= narrow):
            yield from (table.names[row], table.names[neighbour])
