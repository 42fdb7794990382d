"""The tables of docs/method.md that come from simulated servers: ``python -m harness.benchmarks.intervals``."""

import sys
from collections.abc import Sequence

import numpy as np

from harness.benchmarks import simulation
from harness.benchmarks.simulation import DRIFTING, NOISY, QUIET, World
from harness.errors import Exit
from harness.rank import estimates, pairs
from harness.request.profile import Replication

WORLDS = {"quiet": QUIET, "drifting": DRIFTING, "noisy": NOISY}
RULE = Replication(minimum=5, maximum=15, looks=(5, 7, 10, 15))


def coverage(world: World, servers: int, blocks: int, runs: int) -> tuple[list[float], list[float]]:
    """Share of 95 % intervals that hold the true ratio, and mean half-width: by Welch, paired, and as chosen."""
    truth = np.linspace(1.0, 1.2, servers)
    held, widths = np.zeros(3), np.zeros(3)
    for logs in simulation.logs(world, list(truth), blocks, runs, np.random.default_rng(31)):
        stats = estimates.moments(logs)
        for index, paired in enumerate((False, True, estimates.pairs_by_block(logs))):
            found = estimates.ratios(logs, stats, 0, paired, 0.95)
            inside = (found.low <= truth) & (truth <= found.high)
            held[index] += inside[1:].mean()
            widths[index] += np.log(found.high[1:] / found.low[1:]).mean() / 2
    return list(held / runs), list(np.expm1(widths / runs))


def false_differences(world: World, truth: Sequence[float], runs: int) -> tuple[float, float, float]:
    """Share of runs with a difference between equals: under the rule, and when looking after every replicate at 95 %.

    The third figure is the mean number of replicates that the rule took.
    """
    ties = np.equal.outer(np.asarray(truth), np.asarray(truth))
    ruled = naive = 0
    replicates = 0.0
    for logs in simulation.logs(world, truth, RULE.maximum, runs, np.random.default_rng(32)):
        stopped = simulation.sequential(logs, RULE)
        replicates += float(np.mean(stopped.replicates))
        rows = {row.implementation: row for row in stopped.ranking.test_types[simulation.TEST_TYPE].headline.rows}
        for index in range(len(truth)):
            standing = rows[f"s{index}"].throughput
            assert standing is not None  # noqa: S101 - every simulated server has a figure
            better = int(sum(other > truth[index] for other in truth))
            worse = int(sum(other < truth[index] for other in truth))
            if standing.rank.low > 1 + better or standing.rank.high < len(truth) - worse:
                ruled += 1
                break
        naive += any(
            (pairs.significant(logs[:, :n], 0.05, estimates.pairs_by_block(logs[:, :n])).rejected & ties).any()
            for n in range(3, RULE.maximum + 1)
        )
    return ruled / runs, naive / runs, replicates / runs


def main(argv: Sequence[str]) -> int:
    """Print both tables as Markdown; the argument is the number of simulated runs of the first (default 2,000)."""
    runs = int(argv[0]) if argv else 2000
    print("| machine | servers | replicates | Welch | paired | chosen |\n|---|---|---|---|---|---|")
    for name, world in WORLDS.items():
        for servers in (2, 4, 8):
            for blocks in (3, 5, 10):
                held, widths = coverage(world, servers, blocks, runs)
                cells = " | ".join(f"{h:.1%} ±{w:.1%}" for h, w in zip(held, widths, strict=True))
                print(f"| {name} | {servers} | {blocks} | {cells} |", flush=True)
    print("\n| machine | true speeds | false differences | looking each time | replicates |\n|---|---|---|---|---|")
    for name, world in WORLDS.items():
        for truth in ((1.0, 1.0), (1.0,) * 4, (1.0,) * 8, (1.0, 1.0, 1.1, 1.1)):
            ruled, naive, replicates = false_differences(world, truth, runs // 4)
            speeds = ", ".join(f"{speed:g}" for speed in truth)
            print(f"| {name} | {speeds} | {ruled:.1%} | {naive:.1%} | {replicates:.1f} |", flush=True)
    return Exit.OK


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
