"""Complete runs with the example extensions from CONTRIBUTING.md and docs/architecture.md."""

import dataclasses
import io
import re
from pathlib import Path
from typing import TextIO

import pytest

from harness.errors import Exit
from harness.experiment import designs, steps
from harness.paths import REPOSITORY
from harness.plan import plan
from harness.plan import profile as profiles
from harness.plan.testtypes import RequestBatch, TestType
from harness.plan.testtypes.registry import TEST_TYPES
from harness.report import Report
from harness.report.exporters import EXPORTERS
from harness.tests.doubles.fakes_run import FakeRun
from harness.tests.doubles.fakes_world import Behaviour
from harness.verify.checks.registry import CHECKS

GREET = TestType(name="greet", response_shape="greeting", concurrency=(3, 30), thorough=(RequestBatch(times=10),))


def costs(report: Report, out: TextIO) -> None:
    """Write each implementation's CPU microseconds per request on a line."""
    for row in report.ranking.test_types["greet"].headline.rows:
        assert row.cpu_per_request is not None
        out.write(f"{row.implementation} {row.cpu_per_request.estimate.median * 1e6:.0f}\n")


def test_test_types_and_exporters_can_be_registered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TEST_TYPES, GREET.name, GREET)
    monkeypatch.setitem(EXPORTERS, "costs", costs)
    servers = {"a": Behaviour(cpu_per_request=50e-6), "b": Behaviour(cpu_per_request=200e-6)}
    outcome = FakeRun(tmp_path, servers, test_types=("greet",)).run()
    assert (outcome.failures, outcome.exit_code) == ((), Exit.OK)
    assert {(t.test_type, t.load.label) for t in outcome.records.trials} == {("greet", "c3"), ("greet", "c30")}
    out = io.StringIO()
    report = Report(records=outcome.records, ranking=outcome.ranking)
    EXPORTERS["costs"](report, out)
    assert sorted(out.getvalue().splitlines()) == ["a 50", "b 200"]


def test_a_new_test_type_gets_matching_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [name for name, check in CHECKS.items() if check.applies("greet")] == []
    monkeypatch.setitem(TEST_TYPES, GREET.name, GREET)
    names = {name for name, check in CHECKS.items() if check.applies("greet")}
    assert {"status-ok", "content-type", "plaintext-body"} <= names
    assert not names & {"json-valid", "rows-read", "never-early"}


def test_the_worked_example_measures_every_cell_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (REPOSITORY / "docs" / "architecture.md").read_text(encoding="utf-8")
    (source,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(source.splitlines()) <= 40
    names = {**vars(steps), **vars(plan), "replace": dataclasses.replace}
    exec(compile(source, "docs/architecture.md", "exec"), names)  # noqa: S102 - it is what the page says
    monkeypatch.setitem(designs.DESIGNS, "interleaved", names["once"])
    profile = profiles.load_profile("quick")
    outcome = FakeRun(tmp_path, {"a": Behaviour(), "b": Behaviour()}, profile, test_types=("json", "query")).run()
    assert outcome.exit_code == Exit.OK
    cells = [(t.implementation, t.test_type, t.load) for t in outcome.records.trials]
    assert len(cells) == len(set(cells)) == 2 * (len(profile.levels.concurrency) + len(profile.levels.query))
