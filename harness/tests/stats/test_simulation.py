"""The method against servers whose truth is known. Seeds are fixed: a failure is a change of the method.

A fast part: ``python -m harness.benchmarks.intervals`` and ``.allocated`` make the figures of docs/method.md.
"""

import numpy as np
import pytest

from harness.benchmarks import simulation
from harness.benchmarks.simulation import DRIFTING, NOISY, QUIET, World
from harness.plan.profile import Replication
from harness.stats import basis, estimates, pairs

SEQUENTIAL = Replication(minimum=5, maximum=12, looks=(5, 7, 9, 12))
WORLDS = {"quiet": QUIET, "drifting": DRIFTING, "noisy": NOISY}


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("blocks", [3, 5])
@pytest.mark.parametrize("servers", [2, 8])
def test_95_percent_intervals_of_ratios_hold_the_true_ratio_in_93_to_98_percent(
    world: str, blocks: int, servers: int
) -> None:
    truth = np.linspace(1.0, 1.2, servers)
    held = total = 0
    runs = 150 if servers == 2 else 75  # 300 and 1,050 ratios
    for logs in simulation.logs(WORLDS[world], list(truth), blocks, runs, np.random.default_rng(11)):
        table = basis.alone(logs, [f"s{server}" for server in range(servers)])
        for reference in (0, servers - 1):
            found = table.against(reference)
            error = np.abs(found.difference - np.log(truth / truth[reference]))
            held += int((error <= found.half_width(0.95)).sum()) - 1  # without the reference itself
            total += servers - 1
    assert 0.93 <= held / total <= 0.98


def test_intervals_that_ignore_blocks_are_far_too_wide_when_the_host_drifts() -> None:
    """The counter-proof of pairing: Welch alone would fail the test above."""
    truth = [1.0, 1.1, 1.2, 1.3]
    held = 0
    for logs in simulation.logs(DRIFTING, truth, 10, 300, np.random.default_rng(12)):
        ratios = estimates.ratios(logs, estimates.moments(logs), 0, False, 0.95)
        held += int(ratios.low[1] <= 1.1 <= ratios.high[1])
    assert held / 300 > 0.985


def test_intervals_over_windows_instead_of_replicates_miss_the_truth_far_too_often() -> None:
    """The counter-proof of the replicate as unit: ten windows of one process are not ten replicates."""
    generator = np.random.default_rng(13)
    held = 0
    for _ in range(500):
        process = generator.normal(scale=0.017, size=2)
        windows = process[:, None] + generator.normal(scale=0.01, size=(2, 10))
        ratios = estimates.ratios(windows, estimates.moments(windows), 0, False, 0.95)
        held += int(ratios.low[1] <= 1.0 <= ratios.high[1])
    assert held / 500 < 0.60


@pytest.mark.parametrize("blocks", [5, 10])
def test_95_percent_intervals_of_estimates_hold_the_true_throughput_in_93_to_97_percent(blocks: int) -> None:
    world = World(window=0.0, block=0.01)
    held = 0
    for logs in simulation.logs(world, [1.0, 1.1], blocks, 2000, np.random.default_rng(14)):
        low, high = estimates.intervals(estimates.moments(logs), 0.95)
        held += int(((low <= [1.0, 1.1]) & (high >= [1.0, 1.1])).sum())
    assert 0.93 <= held / 4000 <= 0.97


@pytest.mark.parametrize("world", ["drifting", "noisy"])
@pytest.mark.parametrize("truth", [(1.0,) * 4], ids=["four"])
def test_the_sequential_rule_calls_a_tie_a_difference_in_at_most_5_percent_of_runs(
    world: str, truth: tuple[float, ...]
) -> None:
    runs = 12
    drawn = simulation.logs(WORLDS[world], truth, SEQUENTIAL.maximum, runs, np.random.default_rng(21))
    assert sum(_excludes_a_true_rank(logs, truth) for logs in drawn) / runs <= 0.05


@pytest.mark.parametrize("world", ["drifting"])
def test_rank_intervals_hold_every_true_rank_at_once_in_at_least_95_percent_of_runs(world: str) -> None:
    truth = (1.0, 1.02, 1.05, 1.1, 1.2)
    runs = 12
    drawn = simulation.logs(WORLDS[world], truth, SEQUENTIAL.maximum, runs, np.random.default_rng(22))
    assert sum(_excludes_a_true_rank(logs, truth) for logs in drawn) / runs <= 0.05


def test_looking_after_every_replicate_at_95_percent_calls_ties_differences() -> None:
    """The counter-proof of the sequential rule: what it prevents happens without it."""
    false = 0
    runs = 60
    for logs in simulation.logs(QUIET, [1.0, 1.0], 12, runs, np.random.default_rng(23)):
        false += any(pairs.significant(basis.alone(logs[:, :n], ["a", "b"]), 0.05).rejected.any() for n in range(3, 13))
    assert false / runs > 0.12


def test_a_difference_of_10_percent_on_a_quiet_machine_is_found_and_needs_few_replicates() -> None:
    truth = (1.0, 1.1)
    found = replicates = 0
    for logs in simulation.logs(QUIET, truth, SEQUENTIAL.maximum, 20, np.random.default_rng(24)):
        stopped = simulation.sequential(logs, SEQUENTIAL)
        rows = stopped.ranking.test_types["json"].headline.rows
        best = rows[0].throughput
        found += rows[0].implementation == "s1" and best is not None and best.rank.label == "1"
        replicates += stopped.replicates[0]
    assert found == 20
    assert replicates / 20 < 8


def test_a_difference_below_the_noise_floor_is_never_called_one() -> None:
    generator = np.random.default_rng(25)
    logs = np.log([[1.0], [1.02]]) + generator.normal(scale=0.001, size=(2, 10))
    table = basis.alone(logs, ["a", "b"])
    decided = pairs.significant(table, 0.05).rejected
    assert decided[0, 1]
    assert pairs.better(table, decided, 0.0, higher=True)[1, 0]
    assert not pairs.better(table, decided, 0.03, higher=True).any()


def _excludes_a_true_rank(logs: simulation.Logs, truth: tuple[float, ...]) -> bool:
    """True when some interval lacks a rank that is its server's: among equals, every place of the group."""
    speeds = np.asarray(truth)
    rows = simulation.sequential(logs, SEQUENTIAL).ranking.test_types["json"].headline.rows
    for row in rows:
        assert row.throughput is not None
        own = speeds[int(row.implementation[1:])]
        best, worst = 1 + int((speeds > own).sum()), len(speeds) - int((speeds < own).sum())
        if row.throughput.rank.low > best or row.throughput.rank.high < worst:
            return True
    return False
