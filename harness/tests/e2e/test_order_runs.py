"""A real run of the order service: verification, loads at several arrival rates, and a check of the tables' rows."""

import json
from pathlib import Path

import pytest

from harness.extras.orders.test_type import USE_CASES
from harness.records import store
from harness.records.loads import Scenario
from harness.records.run_folders import find_run
from harness.records.verification_record import Outcome
from harness.tests.e2e.conftest import require_tools, tfb

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


def test_order_services_are_ranked_by_response_time(tmp_path: Path) -> None:
    require_tools("express-orders")
    where = ("--runtime", "local", "--results", str(tmp_path), "--yes")
    run = tfb("run", "express-orders", "--type", "order", "--profile", "smoke", *where)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "by the response time of create order" in run.stdout
    records = store.read_run(find_run(tmp_path, None))
    assert records.problems == ()
    loads = [trial for trial in records.trials if isinstance(trial.load, Scenario)]
    assert {trial.load.label for trial in loads} >= {"x4"}
    for trial in loads:
        assert {each.use_case for each in trial.arrivals.use_cases} == {case.name for case in USE_CASES}
        assert (trial.arrivals.failed, trial.arrivals.unfinished, trial.errors.total) == (0, 0, 0), trial.id
        assert trial.arrivals.done == trial.arrivals.due > 0
        assert (trial.cpu_per_request or 0) > 0
    failed = [r for v in records.verdicts for r in v.results if r.outcome is Outcome.FAIL]
    assert failed == []
    ranking = json.loads(tfb("report", records.info.run_id, "--format", "json", *where[2:4]).stdout)
    assert set(ranking["orders"]["points"]) == {"express-orders"}
