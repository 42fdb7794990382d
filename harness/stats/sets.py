"""Blocks of several sets of machines as one table: only ratios to the reference cross from one set to another.

A set is faster or slower than another as a whole, and may favour one implementation. So a value of implementation i in
block b of set s is its log ratio to the reference in the same block; their mean over the set's blocks is one figure,
and the sets are the replicates of every interval: blocks of one set share its machines as windows share a process.
No other implementation's figure moves a row, whatever happened to it on another set.

The reference itself is 1 by definition and has no variance; the ratio of two other rows counts its noise twice where
they shared blocks, which only widens their interval.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from harness.records.models import Load, RunInfo
from harness.stats import basis, estimates
from harness.stats.basis import Comparable, Fitted
from harness.stats.contrasts import Means
from harness.stats.moderation import Prior, Spreads
from harness.stats.values import CellValues, log_matrix

Cells = Mapping[tuple[str, str], Mapping[Load, CellValues]]
Values = Mapping[str, Mapping[int, float]]  # implementation -> set -> value
CERTAIN = 1e9  # degrees of freedom of what is 1 by definition
ONE_SET = "one set"


def several(run: RunInfo) -> bool:
    """Whether the run's blocks come from more than one set of machines."""
    return len(run.sets) > 1


def pooled(cells: Cells, run: RunInfo) -> Cells:
    """Every cell as one value a set: its ratio to the reference there, times the reference's mean over all sets.

    A cell that shares no block with the reference keeps no value.
    """
    reference = run.reference or ""
    set_of = set_of_block(run)
    anchors = {
        (kind, level): (_anchor(_moments(cell, "throughput"), set_of), _anchor(_moments(cell, "cpu"), set_of))
        for (name, kind), levels in cells.items()
        if name == reference
        for level, cell in levels.items()
    }
    return {
        (name, kind): {
            level: _pooled(cell, anchors.get((kind, level), (NOWHERE, NOWHERE)), set_of, reference)
            for level, cell in levels.items()
        }
        for (name, kind), levels in cells.items()
    }


def set_of_block(run: RunInfo) -> dict[int, int]:
    """Which set each block was measured on; empty for a run of one."""
    return {block: n for n, machines in enumerate(run.sets) for block in machines.blocks} if several(run) else {}


def by_set(values: Mapping[int, float], set_of: Mapping[int, int]) -> dict[int, float]:
    """One value a set of values by block, their geometric mean; the values as they are where there is one set."""
    if not set_of:
        return dict(values)
    logs: dict[int, list[float]] = {}
    for block, value in values.items():
        if block in set_of:
            logs.setdefault(set_of[block], []).append(math.log(value))
    return {number: math.exp(_mean(found)) for number, found in sorted(logs.items())}


def to_reference(values: Values, set_of: Mapping[int, int], reference: str) -> dict[str, dict[int, float]]:
    """As ``pooled``, of one metric's values by block; a row that shares no block with the reference is left out."""
    moments = {name: {(block, -1): value for block, value in found.items()} for name, found in values.items()}
    anchor = _anchor(moments.get(reference, {}), set_of)
    found = {name: _ratios(own, anchor, set_of) for name, own in moments.items()}
    return {name: ratios for name, ratios in found.items() if ratios}


Moments = Mapping[tuple[int, int], float]  # block, or process and round -> value


@dataclass(frozen=True, kw_only=True)
class Anchor:
    """The reference in one table and metric: mean log by set and time, and over the sets."""

    logs: Mapping[tuple[int, int], float]
    scale: float


NOWHERE = Anchor(logs={}, scale=0.0)


def _anchor(moments: Moments, set_of: Mapping[int, int]) -> Anchor:
    by_time = _by_time(moments, set_of)
    sets: dict[int, list[float]] = {}
    for (number, _), logs in by_time.items():
        sets.setdefault(number, []).extend(logs)
    scale = _mean([_mean(logs) for logs in sets.values()]) if sets else 0.0
    return Anchor(logs={time: _mean(logs) for time, logs in by_time.items()}, scale=scale)


def _pooled(cell: CellValues, anchors: tuple[Anchor, Anchor], set_of: Mapping[int, int], reference: str) -> CellValues:
    throughput = _ratios(_moments(cell, "throughput"), anchors[0], set_of)
    cpu = _ratios(_moments(cell, "cpu"), anchors[1], set_of)
    return replace(
        cell, throughput=throughput, cpu_per_request=cpu, throughput_windows={}, cpu_windows={},
        words=(*cell.words, ONE_SET) if len(throughput) == 1 else cell.words, anchored_to=reference,
    )  # fmt: skip


def _moments(cell: CellValues, metric: str) -> Moments:
    """Figures by the time that they share with others: a round where there are rounds, otherwise a block."""
    windows, blocks = (
        (cell.throughput_windows, cell.throughput)
        if metric == "throughput"
        else (cell.cpu_windows, cell.cpu_per_request)
    )
    return windows or {(block, -1): value for block, value in blocks.items()}


def _ratios(own: Moments, anchor: Anchor, set_of: Mapping[int, int]) -> dict[int, float]:
    """Mean ratio in each set, times the mean over sets of the reference's own figure."""
    found: dict[int, list[float]] = {}
    for time, values in _by_time(own, set_of).items():
        if time in anchor.logs:
            found.setdefault(time[0], []).append(_mean(values) - anchor.logs[time])
    return {number: math.exp(anchor.scale + _mean(logs)) for number, logs in sorted(found.items())}


def _by_time(moments: Moments, set_of: Mapping[int, int]) -> dict[tuple[int, int], list[float]]:
    """Logs by set and shared time; rounds (their numbers are unique across runs) apart from blocks."""
    found: dict[tuple[int, int], list[float]] = {}
    for (block, turn), value in moments.items():
        if block in set_of:
            found.setdefault((set_of[block], -1 - block if turn < 0 else turn), []).append(math.log(value))
    return found


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def fitted(values: Values, reference: str) -> Fitted:
    """Means and variances over sets of every row but the reference's: no effect of blocks is left to remove."""
    names = [name for name in values if name != reference]
    logs = log_matrix([values[name] for name in names]) if names else np.empty((0, 0))
    stats = estimates.moments(logs) if names else estimates.Moments(*(np.empty(0) for _ in range(4)))
    with np.errstate(divide="ignore"):
        leverage = 1 / stats.count
    return Fitted(
        logs=logs, mean=stats.mean, leverage=leverage, blocks_removed=False, plain=stats,
        spreads=Spreads(names=names, variance=stats.variance, freedom=np.maximum(stats.count - 1, 0.0)),
        least_squared_error=np.zeros(len(names)),
    )  # fmt: skip


def comparable(values: Values, reference: str, prior: Prior) -> Comparable:
    """The rows in the order of ``values``, the reference among them without an error of its own."""
    place = list(values).index(reference)
    logs = log_matrix(list(values.values()))
    if len(values) == 1:
        means = Means(
            mean=np.array([float(np.nanmean(logs))]), squared_error=np.zeros(1), freedom=np.full(1, CERTAIN),
            moderated=False,
        )  # fmt: skip
        return Comparable(logs=logs, means=means, basis="welch", prior=prior, blocks_removed=False)
    inner = basis.comparable(fitted(values, reference), prior)
    means = Means(
        mean=np.insert(inner.means.mean, place, float(np.nanmean(logs[place]))),
        squared_error=np.insert(inner.means.squared_error, place, 0.0),
        freedom=np.insert(inner.means.freedom, place, CERTAIN),
        moderated=inner.means.moderated,
    )
    return Comparable(logs=logs, means=means, basis=inner.basis, prior=inner.prior, blocks_removed=False)


def alone(values: Values, reference: str) -> Comparable:
    """A table that learns its prior from nothing but itself."""
    return comparable(values, reference, basis.prior([fitted(values, reference)]))
