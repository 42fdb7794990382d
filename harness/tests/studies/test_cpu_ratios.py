"""Tests for ratios between implementations whose names are joined with "+"."""

import pytest

from harness.plan.profile import ProcessLimits
from harness.records.run_records import RunRecords
from harness.studies.cpu_ratios import cpu_ratios
from harness.tests.doubles.runs import run_info, trial

COSTS = {("ours", "json"): 2e-5, ("ours", "db"): 6e-5, ("theirs", "json"): 1e-5, ("theirs-db", "db"): 4e-5}


def test_joined_tests_have_ratios_and_geometric_mean() -> None:
    trials = [
        trial(
            name, 1000.0, process, test_type=kind, cpu_per_request=cost * (1 + 0.01 * ((process * 7 + len(kind)) % 3))
        )
        for (name, kind), cost in COSTS.items()
        for process in range(4)
    ]
    info = run_info(["ours", "theirs", "theirs-db"], ProcessLimits(minimum=4, maximum=4))
    records = RunRecords(info=info, trials=tuple(trials), processes=(), verdicts=())
    ratios = cpu_ratios(records, "ours", ("theirs", "theirs-db"))
    assert list(ratios) == ["json", "db", "geometric mean"]
    assert [ratios[name].value for name in ratios] == pytest.approx([2.0, 1.5, 3.0**0.5], rel=0.02)
    assert (ratios["geometric mean"].low or 9) < 3.0**0.5 < (ratios["geometric mean"].high or 0)
    assert cpu_ratios(records, "ours", ("nobody",)) == {}
