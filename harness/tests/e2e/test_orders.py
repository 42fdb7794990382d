"""The order service for real: verified, loaded with arrivals at factors, every answer held against the rows."""

import csv
import io
import subprocess
import sys
from pathlib import Path

import pytest

from harness.paths import REPOSITORY
from harness.records import orders, store
from harness.records.models import Outcome

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

USE_CASES = {
    "online shop order",
    "rescinding an order",
    "changing payment information",
    "order with multiple items",
    "order with unwanted items",
}


def tfb(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "harness", *arguments], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )


def test_an_order_service_is_ranked_by_what_its_customers_waited_for(tmp_path: Path) -> None:
    run = tfb(
        *("--test", "express-orders", "--type", "order", "--profile", "smoke"),
        *("--runtime", "local", "--results", str(tmp_path)),
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "order ×4, by the response time of create order" in run.stdout
    folder = store.find(tmp_path, None)
    records, loads = store.read(folder), orders.read(folder)
    assert (records.problems, loads.problems) == ((), ())
    assert {sample.level.factor for sample in records.samples} == {1.0, 4.0}
    assert {load.factor for load in loads.samples} >= {1.0, 4.0}
    for load in loads.samples:
        assert {use.use_case for use in load.use_cases} == USE_CASES
        assert (load.failed, load.unfinished, load.errors.total) == (0, 0, 0), load.id
        assert load.done == load.due > 0
        assert load.cpu_per_arrival is not None
        assert load.cpu_per_arrival > 0
    (capacity,) = loads.capacities
    assert capacity.loads == len(loads.samples)
    order = [verdict for verdict in records.verdicts if verdict.test_type == "order"]
    assert [(r.check, r.message) for v in order for r in v.results if r.outcome is Outcome.FAIL] == []
    lines = list(csv.DictReader(io.StringIO(tfb("report", str(folder), "--format", "orders-csv").stdout)))
    assert {line["operation"] for line in lines} >= {"create order", "read order", "the whole arrival"}
    assert {line["use_case"] for line in lines} == USE_CASES
