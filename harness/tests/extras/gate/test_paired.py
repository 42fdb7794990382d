"""Tests for paired costs."""

import numpy as np
import pytest

from harness.extras.gate.paired import SIDES, PairedCosts, weighted_total


def costs(processes: tuple[int, ...]) -> PairedCosts:
    """Return costs of 10, 20, … in the processes 0, 1, …, equal on all sides."""
    logs = np.log(np.array([[10.0 * (process + 1) for process in processes]] * len(SIDES)))
    return PairedCosts(processes=processes, logs=logs, rounds=np.full(len(processes), 3.0), round_variance=0.01)


def test_total_adds_costs_of_the_same_process() -> None:
    total = weighted_total({"a": costs((0, 1, 2)), "b": costs((1, 2))}, {"a": 1.0, "b": 2.0})
    assert total.processes == (1, 2)
    assert np.exp(total.logs[0]) == pytest.approx([20 + 2 * 20, 30 + 2 * 30])
