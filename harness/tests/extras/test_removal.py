"""Every extra can be removed: its folder, and the line that registers it; the core stays whole."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness.paths import REPOSITORY

pytestmark = pytest.mark.e2e  # each loads every module of the core in a process of its own

EXTRAS = sorted(path.parent.name for path in (REPOSITORY / "harness" / "extras").glob("*/__init__.py"))
# Every module of the core, help, the list, verification's checks, and a run from the selection to the reports.
CORE = """
import importlib, pathlib, pkgutil, sys
import harness
for found in pkgutil.walk_packages(harness.__path__, "harness."):
    if not found.name.startswith(("harness.tests", "harness.extras", "harness.studies", "harness.__main__")):
        importlib.import_module(found.name)
from harness import cli
assert cli.main(["--help"]) == 0
assert cli.main(["list"]) == 0
from harness.tests.doubles.fakes_run import FakeRun
from harness.tests.doubles.fakes_world import Behaviour
outcome = FakeRun(pathlib.Path(sys.argv[1]), {"a": Behaviour(), "b": Behaviour()}).run()
assert {row.implementation for row in outcome.ranking.test_types["json"].headline.rows} == {"a", "b"}
assert outcome.exit_code == 0, outcome.records.problems
"""


def without(extra: str, target: Path) -> Path:
    left_out = shutil.ignore_patterns("web", "__pycache__", "node_modules", ".*", "target", "examples")
    for part in ("harness", "config", "docker", "docs", "toolset", "frameworks"):
        shutil.copytree(REPOSITORY / part, target / part, ignore=left_out)
    shutil.copy(REPOSITORY / "pyproject.toml", target)
    shutil.rmtree(target / "harness" / "extras" / extra)
    registered = target / "harness" / "extras" / "__init__.py"
    text, removed = re.subn(rf'"[\w-]+": \(?"harness\.extras\.{extra}\b[^\n}}]*', "", registered.read_text())
    assert removed, f"{extra} is registered nowhere"
    registered.write_text(text)
    return target


@pytest.mark.parametrize("extra", EXTRAS)
def test_the_core_is_whole_without(extra: str, tmp_path: Path) -> None:
    tree = without(extra, tmp_path / "tree")
    done = subprocess.run(
        [sys.executable, "-c", CORE, str(tmp_path / "run")],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
