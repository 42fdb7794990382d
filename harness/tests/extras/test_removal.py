"""Each extra can be removed: the rest of the project passes linting, type checks and fast tests."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Set
from pathlib import Path

import pytest

from harness.cli.check import FAST, LINT_IMPORTS
from harness.cli.scans import SKIPPED_VARIABLE
from harness.paths import REPOSITORY
from harness.plan.testtypes.registry import TEST_TYPES
from harness.plugins import installed
from harness.tests.e2e.conftest import LATE, left

EXTRAS = sorted(path.parent.name for path in (REPOSITORY / "harness" / "extras").glob("*/__init__.py"))
# Imports every core module, prints the help and the list of implementations, and performs a run.
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
    """Copy the repository without an extra.

    Its tests are omitted, too, and so are the implementations and claims of its test types.
    """
    for name in git(REPOSITORY, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0"):
        if name and (REPOSITORY / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(REPOSITORY / name, target / name, follow_symlinks=False)
    shutil.rmtree(target / "harness" / "extras" / extra)
    shutil.rmtree(target / "harness" / "tests" / "extras" / extra, ignore_errors=True)
    (plugin,) = (plugin for plugin in installed() if plugin.name == extra)
    types = plugin.parts.test_types
    if types:
        for config in target.glob("frameworks/*/*/benchmark_config.json"):
            remove_urls(config, {TEST_TYPES[name].url_key for name in types})
        for claim in target.glob("config/claims/*.toml"):
            if any(f'"{name}"' in claim.read_text(encoding="utf-8") for name in types):
                claim.unlink()
        python(target, "-m", "harness.plan.benchmark_config")  # updates the JSON schema
    git(target, "init", "--quiet")
    git(target, "add", "--all")
    git(target, "-c", "user.name=tfb", "-c", "user.email=tfb@example.org", "commit", "--quiet", "--message", "Copy")
    return target


def remove_urls(config: Path, keys: Set[str]) -> None:
    """Remove the URLs with these keys from a benchmark_config.json. Remove the folder if no URL is left."""
    document = json.loads(config.read_text(encoding="utf-8"))
    entries = [entry for tests in document["tests"] for entry in tests.values()]
    if not any(keys & entry.keys() for entry in entries):
        return
    for entry in entries:
        for key in keys & entry.keys():
            del entry[key]
    if not any(key.endswith("_url") for entry in entries for key in entry):
        shutil.rmtree(config.parent)
    else:
        config.write_text(json.dumps(document, indent=2), encoding="utf-8")


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=True).stdout


def python(tree: Path, *arguments: str, seconds: float = 120) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTEST_ADDOPTS": "-p no:cacheprovider"}
    environment.pop(SKIPPED_VARIABLE, None)  # otherwise, the check would report the removed extra's tests as skipped
    command = [sys.executable, *arguments]
    completed = subprocess.run(
        command, cwd=tree, env=environment, capture_output=True, text=True, timeout=seconds, check=False
    )
    assert completed.returncode == 0, f"{arguments}: {completed.stdout[-3000:]}{completed.stderr[-2000:]}"
    return completed


@pytest.mark.e2e
@pytest.mark.timeout(600)
@pytest.mark.parametrize("extra", EXTRAS)
def test_the_core_works_without_an_extra(extra: str, tmp_path: Path) -> None:
    tree = without(extra, tmp_path / "tree")
    assert "warning" not in python(tree, "-c", CORE, str(tmp_path / "run")).stderr
    python(tree, "-m", "ruff", "check", ".")
    python(tree, "-c", LINT_IMPORTS)
    python(tree, "-m", "pytest", "-q", "--collect-only", "-m", FAST)


@pytest.mark.e2e
@pytest.mark.every
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("extra", EXTRAS)
def test_the_check_passes_without_an_extra(extra: str, tmp_path: Path) -> None:
    """An extra takes four minutes, so no test starts after the deadline of ``./tfb check``."""
    if left() <= 0:
        pytest.skip(LATE)
    tree = without(extra, tmp_path / "tree")
    python(tree, "-m", "mypy", seconds=600)
    python(tree, "-m", "pytest", "-q", "-m", FAST, "-n", "2", "--dist", "loadgroup", seconds=1500)


def test_every_extra_is_declared_as_an_entry_point() -> None:
    text = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")

    assert [extra for extra in EXTRAS if f"harness.extras.{extra}:" not in text] == []
