"""The parts of studies that compute: ratios of trials, and the invented run that the dashboard is shown."""

import json
import math
from pathlib import Path

import pytest

from harness.records import store
from harness.records.models import Evidence, Trial
from harness.studies import auditing, runs, viewers


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


def test_without_trials_of_both_kinds_there_is_no_ratio() -> None:
    assert math.isnan(auditing.ratio(auditing.halves([audited(0, 1e-5, looked_at=True)], "cpu_per_request"))[0])


def test_the_invented_run_is_whole_and_grows(tmp_path: Path) -> None:
    folder = tmp_path / viewers.RUN
    viewers.invent(folder, 300)
    records = store.read(folder)
    assert (records.problems, len(records.trials)) == ((), 300)
    assert len({trial.id for trial in records.trials}) == 300
    assert set(json.loads((folder / "ranking.json").read_text())["test_types"]) == set(viewers.TYPES)
    viewers.append(folder, 300, 0.1)
    assert len(store.read(folder).trials) == 301
