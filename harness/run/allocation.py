"""Which cells the next round measures: all of them alike, or where it decides, as ``harness.stats.allocation`` says."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from harness.plan.rounds import headline
from harness.records.models import RunInfo, Sample
from harness.stats import allocation, metric, pairs, priors, rules
from harness.stats.nested import NestedFit
from harness.stats.values import collect

TestCell = tuple[str, str]  # implementation, test type
METRICS = (metric.throughput, metric.cpu_per_request)


@dataclass(frozen=True, kw_only=True)
class Allocation:
    """Windows for the next round, at the headline level of each of these; a cell may stand there more than once."""

    cells: Sequence[TestCell]
    text: str = ""  # what more time would buy


class Allocate(Protocol):
    """Looks at what was measured and says where the next round's windows go."""

    def __call__(
        self,
        info: RunInfo,
        samples: Sequence[Sample],
        measured: Mapping[TestCell, int],
        *,
        window_seconds: float,
        remaining_seconds: float,
        seed: int,
    ) -> Allocation:
        """``measured``: windows of each live cell so far, at its headline level."""


def alike(
    info: RunInfo,
    samples: Sequence[Sample],
    measured: Mapping[TestCell, int],
    *,
    window_seconds: float,
    remaining_seconds: float,
    seed: int,
) -> Allocation:
    """Every cell once a round."""
    del info, samples, window_seconds, remaining_seconds, seed
    return Allocation(cells=tuple(measured))


def where_it_decides(
    info: RunInfo,
    samples: Sequence[Sample],
    measured: Mapping[TestCell, int],
    *,
    window_seconds: float,
    remaining_seconds: float,
    seed: int,
) -> Allocation:
    """Cells by what another window of them is expected to decide, in throughput and in CPU per request."""
    found = allocation.next_cells(
        open_pairs(info, samples),
        measured,
        window_seconds=window_seconds,
        remaining_seconds=remaining_seconds,
        seed=seed,
    )
    return Allocation(cells=found.cells, text=found.text)


def open_pairs(info: RunInfo, samples: Sequence[Sample]) -> list[allocation.Pair]:
    """Every pair of every test type and metric at its headline level, as it looks now."""
    cells = collect(samples)
    known = priors.of_run(cells)
    replication = rules.replication(info)
    narrow = float(np.log1p(replication.half_width))
    made: list[allocation.Pair] = []
    for kind, levels in info.levels.items():
        level = headline(levels)
        table = [(name, at[level]) for (name, of), at in cells.items() if of == kind and level in at]
        processes = max((len(cell.blocks) for _, cell in table), default=0)
        for rows, prior in zip((of(table) for of in METRICS), (known.throughput, known.cpu_per_request), strict=True):
            names = list(rows.values)
            if len(names) < 2:
                continue
            compared, _ = metric.comparable(rows, prior)
            fitted = metric.fitted(rows)
            error = compared.means.squared_error
            fixed = np.maximum(error - fitted.within_error, 0.0) if isinstance(fitted, NestedFit) else error
            decided = pairs.significant(compared, rules.alpha_at(replication, processes))
            made += allocation.pairs_of(kind, names, compared, decided, fixed, narrow)
    return made
