"""``python -m harness.benchmarks.between RUN RUN…``: what fresh processes differ by, from runs of one process each.

A run that starts each server once has to assume it (``nested.ASSUMED_BETWEEN``). Several such runs of the same servers
show it: log figure = run + implementation + rest, in each table; what the rest varies by, less what the runs' windows
alone would leave, is the variance between processes (with whatever else changes from run to run for one server alone).
"""

import argparse
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import special

from harness.benchmarks.command import command
from harness.benchmarks.decisions import METRICS
from harness.errors import Exit, UsageError
from harness.records import store
from harness.stats.model import Ranking
from harness.stats.nested import ASSUMED_BETWEEN, LUCK, ONE_PROCESS
from harness.stats.ranking import rank

Matrix = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Table:
    """One test type: natural logarithms and the windows' part of their squared errors, runs × implementations."""

    logs: Matrix
    from_windows: Matrix

    @property
    def freedom(self) -> int:
        """Degrees of freedom of the rest."""
        runs, implementations = map(int, self.logs.shape)
        return (runs - 1) * (implementations - 1)

    @property
    def variance(self) -> float:
        """Of the rest, once runs and implementations are taken off."""
        rest = self.logs - self.logs.mean(axis=0) - self.logs.mean(axis=1)[:, None] + self.logs.mean()
        return float((rest**2).sum()) / self.freedom


@dataclass(frozen=True, kw_only=True)
class Between:
    """Standard deviations on natural logarithms; the bounds are of 95 %."""

    seen: float
    from_windows: float
    processes: float
    low: float
    high: float
    freedom: float


def between(tables: Sequence[Table]) -> Between:
    """Of one metric. The tables of a run share its processes: degrees of freedom as in ``rank.nested``."""
    seen = float(np.mean([table.variance for table in tables]))
    windows = float(np.mean([table.from_windows.mean() for table in tables]))
    freedom = sum(table.freedom for table in tables) / (1 + (len(tables) - 1) * LUCK)
    low, high = (seen * freedom / float(special.chdtri(freedom, share)) for share in (0.025, 0.975))
    return Between(
        seen=math.sqrt(seen), from_windows=math.sqrt(windows), freedom=freedom,
        processes=_root(seen - windows), low=_root(low - windows), high=_root(high - windows),
    )  # fmt: skip


def _root(variance: float) -> float:
    return math.sqrt(max(0.0, variance))


def tables(rankings: Sequence[Ranking], metric: str) -> Iterator[Table]:
    """The headline tables of the test types that all runs have, of the implementations that all of them rank.

    Raises UsageError where a row is of more than one process: its error says something else.
    """
    kinds = [kind for kind in rankings[0].test_types if all(kind in each.test_types for each in rankings)]
    for kind in kinds:
        rows = [_rows(each, kind, metric) for each in rankings]
        names = sorted(set.intersection(*(set(each) for each in rows)))
        if len(names) > 1:
            logs, errors = (np.array([[own[name][at] for name in names] for own in rows]) for at in (0, 1))
            yield Table(logs=logs, from_windows=errors - ASSUMED_BETWEEN**2)


def _rows(ranking: Ranking, kind: str, metric: str) -> Mapping[str, tuple[float, float]]:
    found = {}
    for row in ranking.test_types[kind].headline.rows:
        figure = getattr(row, metric)
        if figure is None or figure.log_mean is None or figure.log_mean.squared_error is None:
            continue
        if figure.components is None or figure.components.text != ONE_PROCESS:
            raise UsageError(f"{ranking.run_id}, {kind}: {row.implementation} was not measured in turns by one process")
        found[row.implementation] = (figure.log_mean.mean, figure.log_mean.squared_error)
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Print a row a metric."""
    p = argparse.ArgumentParser(description="What fresh processes differ by, from runs of one process each.")
    p.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="the folder of a run")
    folders = p.parse_args(argv).runs
    if len(folders) < 2:
        raise UsageError("one run does not show what another would differ by: name two or more")
    records = [store.read(folder) for folder in folders]
    rankings = [rank(each.info, each.samples, each.replicates, each.verdicts) for each in records]
    print("| | seen | of windows alone | between processes | 95 % | degrees of freedom | assumed |")
    print("|---|---|---|---|---|---|---|")
    for metric, title in METRICS.items():
        found = between(list(tables(rankings, metric)))
        print(
            f"| {title} | {found.seen:.1%} | {found.from_windows:.1%} | {found.processes:.1%} | "
            f"{found.low:.1%} to {found.high:.1%} | {found.freedom:.0f} | {ASSUMED_BETWEEN:.0%} |"
        )
    return Exit.OK


if __name__ == "__main__":
    command(main)
