"""What CONTRIBUTING.md says of extensions: a test type and an exporter of a test's own go through a whole run."""

import io
from pathlib import Path
from typing import TextIO

import pytest

from harness.errors import Exit
from harness.plan.testtypes import Crowd, Requests, TestType
from harness.plan.testtypes.registry import TEST_TYPES
from harness.report import Report
from harness.report.csv import export as csv
from harness.report.exporters import EXPORTERS
from harness.tests.doubles.fakes_run import FakeRun
from harness.tests.doubles.fakes_world import Behaviour
from harness.verify.checks.registry import CHECKS

GREET = TestType(
    name="greet",
    answer="greeting",
    concurrency=(3, 30),
    crowd=Crowd(thorough=(Requests(times=10),)),
)


class Costs:
    """Implementation and microseconds of CPU a request, one line each."""

    def export(self, report: Report, out: TextIO) -> None:
        for row in report.ranking.test_types["greet"].headline.rows:
            assert row.cpu_per_request is not None
            out.write(f"{row.implementation} {row.cpu_per_request.estimate.median * 1e6:.0f}\n")


def test_a_test_type_and_an_exporter_are_a_line_in_a_registry_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TEST_TYPES, GREET.name, GREET)
    monkeypatch.setitem(EXPORTERS, "costs", Costs())
    servers = {"a": Behaviour(cpu_per_request=50e-6), "b": Behaviour(cpu_per_request=200e-6)}
    outcome = FakeRun(tmp_path, servers, test_types=("greet",)).run()
    assert (outcome.failures, outcome.exit_code) == ((), Exit.OK)
    assert {(t.test_type, t.load.label) for t in outcome.records.trials} == {("greet", "c3"), ("greet", "c30")}
    out = io.StringIO()
    report = Report(folder=tmp_path, records=outcome.records, ranking=outcome.ranking)
    EXPORTERS["costs"].export(report, out)
    assert sorted(out.getvalue().splitlines()) == ["a 50", "b 200"]
    csv(report, out)
    assert ",greet,c30," in out.getvalue()


def test_the_rules_of_its_traits_hold_for_a_new_test_type(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [name for name, check in CHECKS.items() if check.applies("greet")] == []
    monkeypatch.setitem(TEST_TYPES, GREET.name, GREET)
    found = {name for name, check in CHECKS.items() if check.applies("greet")}
    assert {"status-ok", "content-type", "plaintext-body"} <= found
    assert not found & {"json-valid", "rows-read", "never-early"}
