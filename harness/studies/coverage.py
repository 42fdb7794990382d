"""Simulates how often intervals contain the true ratio, and how often decisions are wrong.

Usage: ``python -m harness.studies.coverage [runs] [word…]``. The columns of the printed table are:

- the share of 95 % intervals that contain the true ratio;
- the share of tables with a false alarm: a significant difference between two servers of equal speed;
- the same share if all servers are equally fast (A/A);
- the share of true differences of 10 % that are detected, and the same for 20 %;
- the median half-width of a run's intervals, averaged over all runs.

A difference is significant if Holm's method rejects equality at the 5 % level. The method corrects each table
separately.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, replace

import numpy as np
from numpy.typing import NDArray

from harness.stats import pairs
from harness.stats.moderation import RowMeans, estimate_prior, moderated_means
from harness.stats.table_fit import fit_logs

Logs = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class SimulatedRun:
    """Parameters of a simulated run. Noise parameters are standard deviations of natural logarithms."""

    truth: Sequence[float]  # natural logarithm of each server's true value
    processes: int
    rounds: int = 1
    tables: int = 6  # number of test types; every process measures all of them
    process: float = 0.046  # standard deviation between processes
    shared: float = 0.7  # share of the variance between processes that affects all test types equally
    window: float = 0.18  # standard deviation between windows
    correlation: float = 0.6  # correlation between the noise of consecutive windows
    drift: float = 0.02  # standard deviation of a random walk's step between consecutive process numbers
    unlike: float = np.inf  # df of the inverse chi² distribution of server variances; infinity: equal variances
    heavy: bool = False  # whether window noise is heavy-tailed (Student's t with 5 df) instead of normal
    lost: float = 0.0  # share of trials that validity checks exclude; a process's first trial is never excluded


def draw_run(world: SimulatedRun, generator: np.random.Generator) -> list[Logs]:
    """Simulate a run. Return an array (servers x processes x rounds) per table, with NaN for excluded trials."""
    servers, shape = len(world.truth), (len(world.truth), world.processes)
    factor = np.ones(servers)
    if np.isfinite(world.unlike):
        factor = np.sqrt(world.unlike / generator.chisquare(world.unlike, servers))
    common_noise = generator.normal(size=shape)
    walk = np.cumsum(generator.normal(size=world.processes) * world.drift)
    tables = []
    for _ in range(world.tables):
        process_noise = np.sqrt(world.shared) * common_noise + np.sqrt(1 - world.shared) * generator.normal(size=shape)
        noise = _windows(world, servers, generator)
        logs = np.asarray(world.truth)[:, None] + world.process * factor[:, None] * process_noise + walk
        logs = logs[:, :, None] + world.window * factor[:, None, None] * noise
        excluded = generator.random(size=logs.shape) < world.lost
        excluded[:, :, 0] = False
        tables.append(np.where(excluded, np.nan, logs))
    return tables


def _windows(world: SimulatedRun, servers: int, generator: np.random.Generator) -> Logs:
    """Draw a table's window noise, which is correlated in time. Each round measures the servers in random order."""
    shape = servers, world.processes, world.rounds
    fresh = generator.standard_t(5, shape) / np.sqrt(5 / 3) if world.heavy else generator.normal(size=shape)
    in_time = np.empty(shape)
    in_time[0] = fresh[0]
    for place in range(1, servers):
        in_time[place] = world.correlation * in_time[place - 1] + np.sqrt(1 - world.correlation**2) * fresh[place]
    order = np.argsort(generator.random(size=shape), axis=0)
    return np.take_along_axis(in_time, order, axis=0)


LEVEL = 0.05
FOUR = tuple(np.log((1.0, 1.0, 1.1, 1.2)))
TWO, THREE = (0.0, np.log(1.2)), (0.0, 0.0, np.log(1.2))
# Noise of CPU per request as measured in Round 1. Each trial is a 2 s window, so measuring a pair of servers takes
# processes x rounds x 4 s of load.
ROUND_1 = SimulatedRun(truth=(0.0, np.log(1.1)), processes=15, process=0.031, window=0.085, correlation=0.0)
EVEN = SimulatedRun(truth=FOUR, processes=1, window=0.05, correlation=0.0)  # a single long trial per process

WORLDS: Mapping[str, SimulatedRun] = {
    "2 processes x 5 rounds": SimulatedRun(truth=FOUR, processes=2, rounds=5),
    "the same, two servers": SimulatedRun(truth=TWO, processes=2, rounds=5),
    "the same, eight servers": SimulatedRun(truth=FOUR + FOUR, processes=2, rounds=5),
    "the same, quieter windows (CPU)": SimulatedRun(truth=FOUR, processes=2, rounds=5, window=0.06),
    "the same, 2 % between processes": SimulatedRun(truth=FOUR, processes=2, rounds=5, window=0.08, process=0.02),
    "the same, 10 % between processes": SimulatedRun(truth=FOUR, processes=2, rounds=5, window=0.08, process=0.10),
    "2 x 5, one test type": SimulatedRun(truth=FOUR, processes=2, rounds=5, tables=1),
    "2 x 5, 20 % of trials excluded": SimulatedRun(truth=FOUR, processes=2, rounds=5, lost=0.2),
    "2 x 5, unequal variances, heavy tails": SimulatedRun(truth=FOUR, processes=2, rounds=5, unlike=6, heavy=True),
    "1 process x 4 rounds": SimulatedRun(truth=FOUR, processes=1, rounds=4),
    "5 x 1": replace(EVEN, processes=5),
    "5 x 1, unequal variances, heavy tails": replace(EVEN, processes=5, unlike=6, heavy=True),
    "5 x 2": SimulatedRun(truth=FOUR, processes=5, rounds=2, window=0.08),
    "3 x 1": replace(EVEN, processes=3),
    "3 x 1, two servers": replace(EVEN, processes=3, truth=TWO),
    "3 x 1, three servers": replace(EVEN, processes=3, truth=THREE),
    "3 x 1, one test type": replace(EVEN, processes=3, tables=1),
    "15 x 1": replace(EVEN, processes=15),
    "15 x 1, two servers": replace(EVEN, processes=15, truth=(0.0, np.log(1.1))),
    "15 x 1, unequal variances": replace(EVEN, processes=15, unlike=3),
    "Round 1, 60 s per pair: 5 x 3": replace(ROUND_1, processes=5, rounds=3),
    "Round 1, 60 s per pair: 15 x 1": ROUND_1,
    "Round 1, 160 s per pair: 10 x 4": replace(ROUND_1, processes=10, rounds=4),
    "500 servers, 3 x 1": replace(EVEN, truth=tuple(np.linspace(0, 4, 500)), processes=3, tables=2, unlike=6),
}


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """A row of the printed table, with fields in column order. A field is NaN if no pair counts towards it."""

    covered: float
    false: float
    false_of_equal: float
    detected_10: float
    detected_20: float
    half_width: float

    @property
    def cells(self) -> str:
        """Return the results as the cells of a Markdown table row."""
        return " | ".join("–" if np.isnan(share) else f"{share:.1%}" for share in astuple(self))


def fit_first_table(run: Sequence[Logs]) -> RowMeans:
    """Fit a run's first table and return its means. The variance prior is estimated from all tables."""
    names = [f"s{server}" for server in range(len(run[0]))]
    columns = range(run[0].shape[1])
    fits = [fit_logs(names, logs, columns) for logs in run]
    return moderated_means(fits[0], estimate_prior(fits))


def simulate(world: SimulatedRun, runs: int, seed: int) -> Coverage:
    """Simulate ``runs`` runs as ``world`` specifies, and ``runs`` runs in which all servers are equal (A/A)."""
    covered, false, detected_10, detected_20, half_width = _simulate_runs(world, runs, seed)
    _, false_of_equal, *_ = _simulate_runs(replace(world, truth=(0.0,) * len(world.truth)), runs, seed)
    return Coverage(
        covered=covered,
        false=false,
        false_of_equal=false_of_equal,
        detected_10=detected_10,
        detected_20=detected_20,
        half_width=float(np.expm1(half_width)),
    )


def _simulate_runs(world: SimulatedRun, runs: int, seed: int) -> list[float]:
    """Return averages over all runs: coverage, false alarms, two detection rates, and the half-width (natural log)."""
    generator, truth = np.random.default_rng(seed), np.asarray(world.truth)
    first, second = np.triu_indices(len(truth), 1)
    true_differences = truth[first] - truth[second]
    results = []
    for _ in range(runs):
        table = fit_first_table(draw_run(world, generator))
        differences = pairs.differences(table, table, first, second)
        half_widths, differ = differences.half_width(1 - LEVEL), pairs.significant(table, LEVEL)[first, second]
        is_known = np.isfinite(half_widths)
        detected = [_mean(differ[np.isclose(np.abs(true_differences), np.log(ratio))]) for ratio in (1.1, 1.2)]
        covered = _mean((np.abs(differences.value - true_differences) <= half_widths)[is_known])
        results.append(
            (
                covered,
                differ[true_differences == 0].any(),
                *detected,
                np.median(half_widths[is_known]) if is_known.any() else np.nan,
            )
        )
    return [_mean(column) for column in np.asarray(results, dtype=float).T]


def _mean(values: Logs) -> float:
    known = ~np.isnan(values)
    return float(values[known].mean()) if known.any() else np.nan


def main(argv: Sequence[str]) -> int:
    """Print the table as Markdown."""
    parser = argparse.ArgumentParser(prog="python -m harness.studies.coverage", description=__doc__)
    parser.add_argument("runs", nargs="?", type=int, default=1000, help="simulated runs per row (default: 1000)")
    parser.add_argument("words", nargs="*", help="print only rows whose name contains one of these words")
    options = parser.parse_args(list(argv))
    print("| | covered | false | false (A/A) | detected at 10 % | at 20 % | half-width |")
    print("|---|---|---|---|---|---|---|")
    for number, (name, world) in enumerate(WORLDS.items()):
        if not options.words or any(word in name for word in options.words):
            runs = options.runs if len(world.truth) < 100 else max(options.runs // 50, 4)
            print(f"| {name} | {simulate(world, runs, seed=number).cells} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
