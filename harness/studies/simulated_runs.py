"""Simulated runs with known true values and the noise of a benchmark.

The logarithm of a figure is the sum of the server's true value, an effect of the process (partly equal in all test
types), an effect of the process number (drift of the machine), and the noise of the window. The noise of neighbouring
windows in a round is correlated, because a disturbance of the machine lasts longer than a window.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Logs = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class SimulatedRun:
    """Parameters of a simulated run; noise is given as standard deviations of natural logarithms."""

    truth: Sequence[float]  # true logarithm of each server's figure
    processes: int
    rounds: int = 1
    tables: int = 6  # test types, each measured in every process
    process: float = 0.046  # noise between processes
    shared: float = 0.7  # share of a process's variance that is common to all test types
    window: float = 0.18
    correlation: float = 0.6  # correlation of the noise of neighbouring windows
    drift: float = 0.02  # step of a random walk between consecutive process numbers
    unlike: float = np.inf  # df of the scaled inverse chi² distribution of servers' variances; infinity: all equal
    heavy: bool = False  # whether window noise follows Student's t with 5 df
    lost: float = 0.0  # share of trials excluded by validity checks, without the first trial of each process


def draw_run(world: SimulatedRun, generator: np.random.Generator) -> list[Logs]:
    """Draw a run: for each table, servers x processes x rounds, with NaN for excluded trials."""
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


def _windows(world: SimulatedRun, servers: int, generator: np.random.Generator) -> Logs:
    """Draw the noise of a table, correlated in time; the order of servers within each round is random."""
    shape = servers, world.processes, world.rounds
    fresh = generator.standard_t(5, shape) / np.sqrt(5 / 3) if world.heavy else generator.normal(size=shape)
    in_time = np.empty(shape)
    in_time[0] = fresh[0]
    for place in range(1, servers):
        in_time[place] = world.correlation * in_time[place - 1] + np.sqrt(1 - world.correlation**2) * fresh[place]
    order = np.argsort(generator.random(size=shape), axis=0)
    return np.take_along_axis(in_time, order, axis=0)
