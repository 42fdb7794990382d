"""One metric of one table, from cells to rows that can be compared: replicates by block, or processes by turns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from harness.stats import basis, nested, sets
from harness.stats.basis import Comparable, Fitted
from harness.stats.moderation import Prior
from harness.stats.nested import Components, Nested, NestedFit, Reading
from harness.stats.values import CellValues, log_matrix

TABLES = 128  # fitted ones that are remembered: those of four levels, two metrics and twelve test types are 96


@dataclass(frozen=True, kw_only=True)
class MetricRows:
    """Rows by implementation; ``windows`` holds (process, round) -> value of those measured in turns."""

    values: Mapping[str, Mapping[int, float]]
    windows: Mapping[str, Mapping[tuple[int, int], float]]
    anchor: str | None = None  # values are by set of machines, as ratios to this row

    @property
    def in_turns(self) -> bool:
        """True when every row was measured in turns."""
        return bool(self.values) and all(self.windows.get(name) for name in self.values)


def throughput(cells: Sequence[tuple[str, CellValues]]) -> MetricRows:
    """Requests per second of the cells that have any."""
    kept = [(name, cell) for name, cell in cells if cell.throughput]
    return MetricRows(
        values={name: cell.throughput for name, cell in kept},
        windows={name: cell.throughput_windows for name, cell in kept},
        anchor=_anchor(kept),
    )


def cpu_per_request(cells: Sequence[tuple[str, CellValues]]) -> MetricRows:
    """CPU seconds per request of the cells in which it could be read."""
    kept = [(name, cell) for name, cell in cells if cell.cpu_per_request]
    return MetricRows(
        values={name: cell.cpu_per_request for name, cell in kept},
        windows={name: cell.cpu_windows for name, cell in kept},
        anchor=_anchor(kept),
    )


def _anchor(cells: Sequence[tuple[str, CellValues]]) -> str | None:
    """The reference of values that several sets of machines gave, where it is among the rows."""
    anchor = next((cell.anchored_to for _, cell in cells), None)
    return anchor if anchor in [name for name, _ in cells] else None


def across(rows: MetricRows, set_of: Mapping[int, int], reference: str | None) -> MetricRows:
    """Rows by block as ratios to the reference, one a set of machines; as they are where all blocks are of one set."""
    if not set_of:
        return rows
    anchor = reference or ""
    return MetricRows(values=sets.to_reference(rows.values, set_of, anchor), windows={}, anchor=anchor)


def fitted(rows: MetricRows) -> Fitted | NestedFit:
    """Variances by row, before the run's prior is known."""
    if rows.anchor is not None:
        return sets.fitted(rows.values, rows.anchor)
    if rows.in_turns:
        return _in_turns(tuple((name, tuple(rows.windows[name].items())) for name in rows.values))
    return basis.fitted(log_matrix(list(rows.values.values())), list(rows.values))


@lru_cache(maxsize=TABLES)
def _in_turns(rows: tuple[tuple[str, tuple[tuple[tuple[int, int], float], ...]], ...]) -> NestedFit:
    """Of the windows of each row, by process and round; asked again and again while a run goes on elsewhere."""
    return nested.fit(
        Nested(
            readings={
                name: [
                    Reading(process=process, round=number, log=float(np.log(value)))
                    for (process, number), value in windows
                ]
                for name, windows in rows
            }
        )
    )


def comparable(rows: MetricRows, prior: Prior) -> tuple[Comparable, Mapping[str, Components]]:
    """Rows ready to be compared; with components of variance where they were measured in turns."""
    if rows.anchor is not None:
        return sets.comparable(rows.values, rows.anchor, prior), {}
    found = fitted(rows)
    if isinstance(found, NestedFit):
        return nested.comparable(found, prior)
    return basis.comparable(found, prior), {}


def prior(tables: Sequence[Fitted | NestedFit]) -> Prior:
    """What all tables of a run teach of the variances of one metric."""
    in_turns = [table for table in tables if isinstance(table, NestedFit)]
    plain = [table for table in tables if not isinstance(table, NestedFit)]
    return nested.prior(in_turns, plain) if in_turns else basis.prior(plain)
