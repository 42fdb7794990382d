"""Tests for the comparison of short runs with a long run."""

from collections.abc import Mapping

import pytest

from harness.plan.profile import ProcessLimits
from harness.records.run_records import RunRecords
from harness.studies.agreement import compare_cells
from harness.tests.doubles.runs import run_info, trial


def records(costs: Mapping[str, float]) -> RunRecords:
    """Return a run of two processes per implementation, given each implementation's CPU seconds per request."""
    trials = [
        trial(name, 1000.0, process, test_type="json", cpu_per_request=cost * (1 + 0.01 * process))
        for name, cost in costs.items()
        for process in range(2)
    ]
    info = run_info(list(costs), ProcessLimits(minimum=2, maximum=2))
    return RunRecords(info=info, trials=tuple(trials), processes=(), verdicts=())


def test_cells_agree_within_a_tenth() -> None:
    long = records({"steady": 1e-5, "cold": 1e-5, "absent": 1e-5})
    cells = {cell.implementation: cell for cell in compare_cells(long, records({"steady": 1.05e-5, "cold": 1.2e-5}))}
    assert {name: cell.agrees() for name, cell in cells.items()} == {"steady": True, "cold": False}
    assert cells["cold"].ratio == pytest.approx(1.2)
    assert {name: cell.agrees(1.2) for name, cell in cells.items()} == {"steady": False, "cold": True}
