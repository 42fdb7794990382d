"""Simulated runs of known truth: the noise of a benchmark, without the benchmark.

A logarithm is the truth of its server, what its process got by luck (partly the same in all test types), what its
process number shares with the others (drift of the machine), and the noise of its window. Windows of a round stand
next to one another, and what slows the machine lasts longer than one of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Logs = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class World:
    """A run and its machine; noise as standard deviations of logarithms."""

    truth: Sequence[float]  # log figure of each server
    processes: int
    rounds: int = 1
    tables: int = 6  # test types, each measured in every process
    process: float = 0.046  # between fresh processes
    shared: float = 0.7  # share of its variance that a process has in all test types
    window: float = 0.18
    correlation: float = 0.6  # of windows next to one another
    drift: float = 0.02  # step of a random walk from one process number to the next
    unlike: float = np.inf  # degrees of freedom of the scaled inverse chi² of servers' variances; infinite: all alike
    heavy: bool = False  # windows with errors from t(5)
    lost: float = 0.0  # share of trials that a gate kept out, the first of a process apart


def draw(world: World, generator: np.random.Generator) -> list[Logs]:
    """One run: for each table servers x processes x rounds, NaN where a trial was lost."""
    servers, shape = len(world.truth), (len(world.truth), world.processes)
    factor = np.ones(servers)
    if np.isfinite(world.unlike):
        factor = np.sqrt(world.unlike / generator.chisquare(world.unlike, servers))
    luck = generator.normal(size=shape)
    walk = np.cumsum(generator.normal(size=world.processes) * world.drift)
    found = []
    for _ in range(world.tables):
        own = np.sqrt(world.shared) * luck + np.sqrt(1 - world.shared) * generator.normal(size=shape)
        noise = _windows(world, servers, generator)
        logs = np.asarray(world.truth)[:, None] + world.process * factor[:, None] * own + walk
        logs = logs[:, :, None] + world.window * factor[:, None, None] * noise
        gone = generator.random(size=logs.shape) < world.lost
        gone[:, :, 0] = False
        found.append(np.where(gone, np.nan, logs))
    return found


def _windows(world: World, servers: int, generator: np.random.Generator) -> Logs:
    """Noise of one table, servers in random order within each round; neighbours in time are alike."""
    shape = servers, world.processes, world.rounds
    fresh = generator.standard_t(5, shape) / np.sqrt(5 / 3) if world.heavy else generator.normal(size=shape)
    in_time = np.empty(shape)
    in_time[0] = fresh[0]
    for place in range(1, servers):
        in_time[place] = world.correlation * in_time[place - 1] + np.sqrt(1 - world.correlation**2) * fresh[place]
    order = np.argsort(generator.random(size=shape), axis=0)
    return np.take_along_axis(in_time, order, axis=0)
