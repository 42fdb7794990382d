"""``python -m harness.studies.coverage [runs] [word…]``: simulates coverage of intervals and errors of decisions.

Columns of a row:

- the share of 95 % intervals of ratios that contain the true ratio;
- the share of tables with a false difference between equal servers, with unequal servers in the table;
- the same share if all servers are equal (A/A);
- the shares of pairs with a difference of 10 % and 20 % that are detected;
- the mean half-width.

Decisions use Holm's method at 5 % for each table.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from harness.stats import pairs
from harness.stats.moderation import RowMeans, estimate_prior, moderated_means
from harness.stats.table_fit import fit_logs
from harness.studies.simulated_runs import Logs, SimulatedRun, draw_run

LEVEL = 0.05
FOUR = tuple(np.log((1.0, 1.0, 1.1, 1.2)))
TWO, THREE = (0.0, np.log(1.2)), (0.0, 0.0, np.log(1.2))
EVEN = SimulatedRun(truth=FOUR, processes=1, window=0.05, correlation=0.0)  # one long trial for each process

WORLDS: Mapping[str, SimulatedRun] = {
    "2 processes x 5 rounds": SimulatedRun(truth=FOUR, processes=2, rounds=5),
    "the same, two servers": SimulatedRun(truth=TWO, processes=2, rounds=5),
    "the same, eight servers": SimulatedRun(truth=FOUR + FOUR, processes=2, rounds=5),
    "the same, quieter windows (CPU)": SimulatedRun(truth=FOUR, processes=2, rounds=5, window=0.06),
    "the same, processes that differ by 2 %": SimulatedRun(
        truth=FOUR, processes=2, rounds=5, window=0.08, process=0.02
    ),
    "the same, processes that differ by 10 %": SimulatedRun(
        truth=FOUR, processes=2, rounds=5, window=0.08, process=0.10
    ),
    "2 x 5, one test type": SimulatedRun(truth=FOUR, processes=2, rounds=5, tables=1),
    "2 x 5, a fifth of the trials lost": SimulatedRun(truth=FOUR, processes=2, rounds=5, lost=0.2),
    "2 x 5, unlike servers, heavy tails": SimulatedRun(truth=FOUR, processes=2, rounds=5, unlike=6, heavy=True),
    "1 process x 4 rounds": SimulatedRun(truth=FOUR, processes=1, rounds=4),
    "5 x 1": replace(EVEN, processes=5),
    "5 x 1, unlike servers, heavy tails": replace(EVEN, processes=5, unlike=6, heavy=True),
    "5 x 2": SimulatedRun(truth=FOUR, processes=5, rounds=2, window=0.08),
    "3 x 1": replace(EVEN, processes=3),
    "3 x 1, two servers": replace(EVEN, processes=3, truth=TWO),
    "3 x 1, three servers": replace(EVEN, processes=3, truth=THREE),
    "3 x 1, one test type": replace(EVEN, processes=3, tables=1),
    "15 x 1": replace(EVEN, processes=15),
    "15 x 1, two servers": replace(EVEN, processes=15, truth=(0.0, np.log(1.1))),
    "15 x 1, unlike servers": replace(EVEN, processes=15, unlike=3),
    "500 servers, 3 x 1": replace(EVEN, truth=tuple(np.linspace(0, 4, 500)), processes=3, tables=2, unlike=6),
}


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """Shares over simulated runs; NaN if a world has no such pairs."""

    held: float
    false: float
    false_of_equal: float
    told_10: float
    told_20: float
    half_width: float

    @property
    def cells(self) -> str:
        """The result as columns of a Markdown table."""
        shares = (self.held, self.false, self.false_of_equal, self.told_10, self.told_20, self.half_width)
        return " | ".join("–" if np.isnan(share) else f"{share:.1%}" for share in shares)


def fit_first_table(run: Sequence[Logs]) -> RowMeans:
    """Return the means of a run's first table, with a prior from all tables."""
    names = [f"s{server}" for server in range(len(run[0]))]
    columns = range(run[0].shape[1])
    fits = [fit_logs(names, logs, columns) for logs in run]
    return moderated_means(fits[0], estimate_prior(fits))


def simulate(world: SimulatedRun, runs: int, seed: int) -> Coverage:
    """Simulate a world ``runs`` times, and again with equal servers."""
    held, false, told_10, told_20, half_width = _simulate_runs(world, runs, seed)
    _, false_of_equal, *_ = _simulate_runs(replace(world, truth=(0.0,) * len(world.truth)), runs, seed)
    return Coverage(
        held=held, false=false, false_of_equal=false_of_equal, told_10=told_10, told_20=told_20,
        half_width=float(np.expm1(half_width)),
    )  # fmt: skip


def _simulate_runs(world: SimulatedRun, runs: int, seed: int) -> list[float]:
    """Return the means over all simulated runs."""
    generator, truth = np.random.default_rng(seed), np.asarray(world.truth)
    first, second = np.triu_indices(len(truth), 1)
    apart = truth[first] - truth[second]
    shown = []
    for _ in range(runs):
        table = fit_first_table(draw_run(world, generator))
        found = pairs.differences(table, table, first, second)
        half, differ = found.half_width(1 - LEVEL), pairs.significant(table, LEVEL)[first, second]
        known = np.isfinite(half)
        told = [_mean(differ[np.isclose(np.abs(apart), np.log(ratio))]) for ratio in (1.1, 1.2)]
        held = _mean((np.abs(found.value - apart) <= half)[known])
        shown.append((held, differ[apart == 0].any(), *told, np.median(half[known]) if known.any() else np.nan))
    return [_mean(column) for column in np.asarray(shown, dtype=float).T]


def _mean(values: Logs) -> float:
    known = ~np.isnan(values)
    return float(values[known].mean()) if known.any() else np.nan


def main(argv: Sequence[str]) -> int:
    """Print the table as Markdown."""
    parser = argparse.ArgumentParser(prog="python -m harness.studies.coverage", description=__doc__)
    parser.add_argument("runs", nargs="?", type=int, default=1000, help="simulated runs for each row (default 1000)")
    parser.add_argument("words", nargs="*", help="select rows with one of these words in the name (default: all)")
    options = parser.parse_args(list(argv))
    print("| | intervals hold | false | false of A/A | decided at 10 % | at 20 % | half-width |")
    print("|---|---|---|---|---|---|---|")
    for number, (name, world) in enumerate(WORLDS.items()):
        if not options.words or any(word in name for word in options.words):
            runs = options.runs if len(world.truth) < 100 else max(options.runs // 50, 4)
            print(f"| {name} | {simulate(world, runs, seed=number).cells} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
