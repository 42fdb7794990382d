"""Equal and unequal servers, measured where it decides: ``python -m harness.benchmarks.allocated [runs]``.

Each simulated run starts a few processes of each server, gives each some windows in turn and the rest where pairs are
open, and looks after each process with that look's share of the error. Printed: runs with a false difference, pairs
that differ and were decided, and windows of the server that decides least.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from harness.errors import Exit
from harness.plan.profile import Replication
from harness.stats import allocation, nested, pairs, rules
from harness.stats.nested import Nested, Reading

TEST_TYPE = "json"


@dataclass(frozen=True, kw_only=True)
class World:
    """Noise on logarithms, as standard deviations, and how a run goes."""

    between: float = 0.02
    within: float = 0.05
    drift: float = 0.02
    processes: int = 3
    first: int = 3  # windows of each server in each process before any are given out
    windows: int = 8  # of each server in each process, on average


@dataclass(frozen=True, kw_only=True)
class Played:
    """One run: the pairs that were ever called different, and the windows of each server."""

    different: frozenset[tuple[int, int]]
    windows: tuple[int, ...]


def play(truth: Sequence[float], world: World, generator: np.random.Generator, *, adaptive: bool) -> Played:
    """One run over servers of these log speeds. A pair that was decided at a look stays decided."""
    names = [f"s{server}" for server in range(len(truth))]
    rule = Replication(minimum=2, maximum=world.processes, looks=tuple(range(2, world.processes + 1)))
    readings: dict[str, list[Reading]] = {name: [] for name in names}
    different: set[tuple[int, int]] = set()
    turn, level = 0, 0.0
    plan: list[str] = []
    for process in range(world.processes):
        luck = world.between * generator.normal(size=len(names))
        queue = [names] * world.first
        rest = (world.windows - world.first) * len(names)
        given = plan or [name for _ in range(world.windows - world.first) for name in names]
        queue += _rounds(given[:rest])
        for members in queue:
            level += world.drift * generator.normal()
            for name in members:
                server = names.index(name)
                log = truth[server] + luck[server] + level + world.within * generator.normal()
                readings[name].append(Reading(process=process, round=turn, log=float(log)))
            turn += 1
        if process + 1 < rule.minimum:
            continue
        fit = nested.fit(Nested(readings=readings))
        table, _ = nested.comparable(fit, nested.prior([fit]))
        found = pairs.significant(table, rules.alpha_at(rule, process + 1))
        different |= {(int(i), int(j)) for i, j in zip(*np.nonzero(np.triu(found.rejected)), strict=True)}
        if adaptive:
            fixed = np.maximum(table.means.squared_error - fit.within_error, 0.0)
            seen = allocation.pairs_of(TEST_TYPE, names, table, found, fixed)
            measured = {(name, TEST_TYPE): len(readings[name]) for name in names}
            following = allocation.next_cells(
                seen, measured, window_seconds=1.0, remaining_seconds=float(rest), seed=process, batch=rest
            )
            plan = [name for name, _ in following.cells]
    return Played(different=frozenset(different), windows=tuple(len(readings[name]) for name in names))


def _rounds(given: Sequence[str]) -> list[list[str]]:
    """As many of each as were given, in rounds with nobody twice."""
    rounds: list[list[str]] = []
    for name in given:
        free = next((members for members in rounds if name not in members), None)
        if free is None:
            rounds.append([name])
        else:
            free.append(name)
    return rounds


def summary(truth: Sequence[float], runs: int, *, adaptive: bool, seed: int = 41) -> tuple[float, float, float]:
    """Share of runs with a false difference, share of true differences decided, least windows of a server."""
    generator = np.random.default_rng(seed)
    equal = np.equal.outer(np.asarray(truth), np.asarray(truth))
    unequal = int((~equal).sum()) // 2
    false, decided, least = 0, 0, 0.0
    for _ in range(runs):
        played = play(truth, World(), generator, adaptive=adaptive)
        false += any(equal[i, j] for i, j in played.different)
        decided += sum(not equal[i, j] for i, j in played.different)
        least += min(played.windows)
    return false / runs, decided / runs / unequal if unequal else float("nan"), least / runs


def main(argv: Sequence[str]) -> int:
    """Print the table as Markdown."""
    parser = argparse.ArgumentParser(prog="python -m harness.benchmarks.allocated", description=__doc__)
    parser.add_argument("runs", nargs="?", type=int, default=500, help="simulated runs of a row (default 500)")
    runs = parser.parse_args(list(argv)).runs
    print("| log speeds | windows | false differences | true ones decided | least windows of a server |")
    print("|---|---|---|---|---|")
    for truth in ((0.0,) * 4, (0.0,) * 8, (0.0, 0.0, 0.1, 0.8), (0.0, 0.0, 0.7, 1.4, 2.1, 2.8)):
        for adaptive in (False, True):
            false, decided, least = summary(truth, runs, adaptive=adaptive)
            how = "where it decides" if adaptive else "even"
            speeds = ", ".join(f"{speed:g}" for speed in truth)
            print(f"| {speeds} | {how} | {false:.1%} | {decided:.0%} | {least:.0f} |", flush=True)
    return Exit.OK


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
