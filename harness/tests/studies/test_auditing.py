"""What auditing costs, as a ratio of trials."""

import math

import pytest

from harness.records.models import Evidence, Trial
from harness.studies import auditing
from harness.tests.doubles import runs


def audited(process: int, cpu: float, *, looked_at: bool) -> Trial:
    found = runs.trial("one", 1000.0, process, cpu=cpu)
    return found.model_copy(update={"evidence": Evidence(answers=10 * looked_at, of=1000)})


def test_what_auditing_costs_is_a_ratio_within_each_process() -> None:
    trials = [
        audited(process, cpu * (1.1 if looked_at else 1.0), looked_at=looked_at)
        for process, cpu in enumerate((1e-5, 3e-5, 2e-5))  # processes may differ by any factor
        for looked_at in (True, False, False)
    ]
    value, low, high, cells = auditing.ratio(auditing.halves(trials, "cpu_per_request"))
    assert value == pytest.approx(1.1)
    assert cells == 3
    assert low <= value <= high
    assert auditing.ratio(auditing.halves(trials, "cpu_per_request", seed=3))[0] in (pytest.approx(1.0), math.nan)
