"""What is drawn beside ranks says what the ranks say."""

import numpy as np
import pytest

from harness.stats import basis, pairs
from harness.stats.picture import comparison_intervals


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("servers", [2, 5, 40])
def test_rows_whose_intervals_are_disjoint_are_never_tied(seed: int, servers: int) -> None:
    generator = np.random.default_rng(seed)
    noise = 0.05 * generator.lognormal(size=(servers, 1)) * generator.normal(size=(servers, 4))
    table = basis.alone(np.linspace(0, 3, servers)[:, None] + noise, [str(row) for row in range(servers)])
    found = pairs.significant(table, 0.05)
    better = pairs.better(table, found.rejected, 0.02, higher=True)
    low, high = comparison_intervals(table, better, found.level)
    disjoint = low[:, None] > high + 1e-12
    assert not (disjoint & ~better).any()


def test_rows_alike_have_intervals_that_part_just_when_the_pair_is_decided() -> None:
    generator = np.random.default_rng(3)
    logs = np.linspace(0, 2, 12)[:, None] + 0.05 * generator.normal(size=(12, 30))
    table = basis.alone(logs, [str(row) for row in range(12)])
    found = pairs.significant(table, 0.05)
    better = pairs.better(table, found.rejected, 0.0, higher=True)
    low, high = comparison_intervals(table, better, found.level)
    assert (low[:, None] > high)[better].all()
