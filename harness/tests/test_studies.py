"""The parts of studies that compute: ratios of trials, of runs, and the invented run that the dashboard is shown."""

import json
import math
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.plan.profile import Processes
from harness.records import store
from harness.records.models import Evidence, RunRecords, Trial
from harness.studies import auditing, runs, viewers, warmth


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
    assert (value, cells) == (pytest.approx(1.1), 3)
    assert low <= value <= high
    assert auditing.ratio(auditing.halves(trials, "cpu_per_request", seed=3))[0] in (pytest.approx(1.0), math.nan)


def test_without_trials_of_both_kinds_there_is_no_ratio() -> None:
    assert math.isnan(auditing.ratio(auditing.halves([audited(0, 1e-5, looked_at=True)], "cpu_per_request"))[0])


def run(**cpus: float) -> RunRecords:
    trials = [runs.trial(name, 1000.0, process, cpu=cpu) for name, cpu in cpus.items() for process in (0, 1)]
    return RunRecords(info=runs.run_info(list(cpus), Processes(minimum=2, maximum=2)), trials=trials)


def test_warmth_is_relative_to_a_server_that_has_nothing_to_warm() -> None:
    cold, warm = warmth.figures(run(one=2.2e-5, floor=1.1e-5)), warmth.figures(run(one=1e-5, floor=1e-5))
    assert warmth.ratios(cold, warm)["one", "json"] == pytest.approx(2.2)
    assert warmth.ratios(cold, warm, "floor") == {("one", "json"): pytest.approx(2.0)}
    with pytest.raises(UsageError, match="elsewhere has no json"):
        warmth.ratios(cold, warm, "elsewhere")


def test_the_invented_run_is_whole_and_grows(tmp_path: Path) -> None:
    folder = tmp_path / viewers.RUN
    viewers.invent(folder, 2000)
    records = store.read(folder)
    assert (records.problems, len(records.trials)) == ((), 2000)
    assert len({trial.id for trial in records.trials}) == 2000
    assert set(json.loads((folder / "ranking.json").read_text())["test_types"]) == set(viewers.TYPES)
    viewers.append(folder, 2000, 0.1)
    assert len(store.read(folder).trials) == 2001
