"""Decides from the records which cells need more processes (group sequential testing).

The data is examined at a few planned looks that share the family-wise error. If each additional process were followed
by a test at 95 %, 22 to 25 % of runs would find a difference between equal implementations.
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
    headline_load,
)
from harness.stats.moderation import CONFIDENCE, RowMeans
from harness.stats.value_tables import ValueTables

AnySection = TypeVar("AnySection", bound=ConfigSection)


def profile_section(info: RunInfo, name: str, kind: type[AnySection]) -> AnySection:
    """Return a section of the run's profile, or the default section if the record lacks it or has different keys."""
    profile = info.settings.get("profile")
    try:
        return kind.model_validate(profile[name]) if isinstance(profile, dict) and name in profile else kind()
    except ValidationError:
        return kind()


def planned_looks(rules: ProcessLimits) -> tuple[int, ...]:
    """Return the numbers of processes at which the data is examined. The last is the maximum."""
    return (*sorted({look for look in rules.looks if rules.minimum <= look < rules.maximum}), rules.maximum)


def alpha_at(rules: ProcessLimits, processes: int) -> float:
    """Return the family-wise error that the look at this number of processes may spend.

    The cumulative spending is proportional to the square of the number of processes (Kim & DeMets 1987, rho = 2). Early
    looks thus decide only clear differences, and most of the error remains for the last look. A number between two
    looks, as in an interrupted run, counts as the next look.
    """
    counts = planned_looks(rules)
    index = next((i for i, look in enumerate(counts) if look >= processes), len(counts) - 1)
    before = (counts[index - 1] / counts[-1]) ** 2 if index else 0.0
    return (1 - CONFIDENCE) * ((counts[index] / counts[-1]) ** 2 - before)


def undecided(
    trials: Sequence[Trial], expected: Sequence[tuple[str, str]], rules: ProcessLimits
) -> Sequence[tuple[str, str]]:
    """Return the expected (implementation, test type) pairs that need another process. Empty if the run is complete.

    Past looks are repeated. A decision made at a look is final, so a resumed run stops where an uninterrupted run would
    have stopped.
    """
    done = 1 + max((trial.process for trial in trials), default=-1)
    waiting = expected if done < rules.maximum else ()
    for look in planned_looks(rules):
        if look <= done and waiting:
            seen = collect_cells(trial for trial in trials if trial.process < look)
            still_open = _undecided_at_look(seen, expected, rules, alpha_at(rules, look))
            waiting = [key for key in waiting if key in still_open]
    return waiting


def _undecided_at_look(
    cells: Mapping[CellKey, CellTrials], expected: Sequence[tuple[str, str]], rules: ProcessLimits, alpha: float
) -> set[tuple[str, str]]:
    """Return the undecided pairs at a look: rows of the headline tables, and expected rows without a figure."""
    tables: dict[str, dict[str, CellTrials]] = {kind: {} for _, kind in expected}
    every = group_by_test_type(cells)
    for name, kind in expected:
        own = every[kind].get(name, {})
        load = headline_load(every[kind]) or best_load(own)
        if load in own and own[load].kept:
            tables[kind][name] = own[load]
    found = {(name, kind) for name, kind in expected if name not in tables[kind]}
    for metric in (THROUGHPUT, CPU_PER_REQUEST):
        fitted = ValueTables(
            {kind: {name: cell.values(metric) for name, cell in rows.items()} for kind, rows in tables.items() if rows}
        )
        for spot in fitted.fits:
            found |= {(name, str(spot)) for name in _undecided_rows(fitted.means(spot), rules, alpha)}
    return found


def _undecided_rows(table: RowMeans, rules: ProcessLimits, alpha: float) -> Iterator[str]:
    """Yield neighbouring rows with an order that is neither decided nor a tie within the target half-width."""
    narrow, order = np.log1p(rules.half_width), np.argsort(table.mean)
    if len(order) == 1 and not table.half_width()[0] <= narrow:
        yield table.names[0]
    differ = pairs.significant(table, alpha)
    for one, other in pairwise(order):
        (half,) = pairs.differences(table, table, np.asarray([one]), np.asarray([other])).half_width()
        if not (differ[one, other] or half <= narrow):
            yield from (table.names[one], table.names[other])
