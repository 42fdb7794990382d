"""Rankings by any metric."""

import pytest

from harness.plan.profile import Processes
from harness.records.models import ProcessRecord, RunRecords
from harness.stats.ranking import rank_by
from harness.stats.values import METRICS
from harness.studies.runs import run_info, trial


def records() -> RunRecords:
    made = []
    for name, megabytes in (("small", 20), ("large", 200), ("same", 200)):
        for process in range(5):
            one = trial(name, 1000.0, process)
            server = one.server.model_copy(update={"rss_peak": megabytes * 1e6 * (1 + process / 100)})
            made.append(one.model_copy(update={"server": server}))
    started = [
        ProcessRecord(implementation="small", process=p, started_at=0.0, startup_time=0.5 + p / 100, status="ok")
        for p in range(3)
    ]
    info = run_info(["small", "large", "same"], Processes(minimum=5, maximum=5), reference="large")
    return RunRecords(info=info, trials=made, processes=started)


def test_less_memory_is_better_and_throughput_per_memory_follows() -> None:
    for name, value in (("memory", 20.4e6), ("throughput-per-memory", 1000 / 20.4)):
        (table,) = rank_by(records(), name).tables
        first = table.rows[0]
        assert first.implementation == "small"
        assert first.standing
        assert first.standing.rank.label == "1"
        assert first.standing.estimate.median == pytest.approx(value)
        assert {row.standing.rank.label for row in table.rows[1:] if row.standing} == {"2–3"}


def test_a_metric_of_processes_has_one_table_and_says_who_lacks_it() -> None:
    (table,) = rank_by(records(), "startup-time").tables
    assert (table.test_type, table.load) == (None, None)
    assert table.rows[0].standing
    assert table.rows[0].standing.estimate.median == pytest.approx(0.51)


def test_what_was_not_recorded_is_named() -> None:
    (table,) = rank_by(records(), "response-time").tables
    assert {row.reason for row in table.rows} == {"no response time, mean of a valid trial"}


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_can_be_asked_for(name: str) -> None:
    assert rank_by(records(), name).tables
