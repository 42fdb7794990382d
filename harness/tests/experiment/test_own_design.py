"""The design of one's own in docs/architecture.md runs as it stands there."""

import dataclasses
import re
from pathlib import Path

import pytest

from harness.errors import Exit
from harness.experiment import designs, steps
from harness.paths import REPOSITORY
from harness.plan import plan
from harness.plan import profile as profiles
from harness.tests.doubles.fakes_run import FakeRun
from harness.tests.doubles.fakes_world import Behaviour


def test_the_worked_example_measures_every_cell_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (REPOSITORY / "docs" / "architecture.md").read_text(encoding="utf-8")
    (source,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(source.splitlines()) <= 40
    names = {**vars(steps), "Plan": plan.Plan, "groups": plan.groups, "replace": dataclasses.replace}
    exec(compile(source, "docs/architecture.md", "exec"), names)  # noqa: S102 - it is what the page says
    monkeypatch.setitem(designs.DESIGNS, "interleaved", names["once"])
    profile = profiles.load("quick")
    outcome = FakeRun(tmp_path, {"a": Behaviour(), "b": Behaviour()}, profile, test_types=("json", "query")).run()
    assert outcome.exit_code == Exit.OK
    cells = [(t.implementation, t.test_type, t.load) for t in outcome.records.trials]
    assert len(cells) == len(set(cells)) == 2 * (len(profile.levels.concurrency) + len(profile.levels.query))
