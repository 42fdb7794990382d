"""Fixtures for end-to-end tests. The tests share one real smoke run per runtime."""

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.cli.check import DEADLINE_VARIABLE
from harness.cli.scans import NOT_JUDGED
from harness.paths import REPOSITORY
from harness.plan.discovery import Selection, scan_folders, select_implementations
from harness.provisioning import requirements
from harness.records import store
from harness.records.run_folders import find_run
from harness.records.run_records import RunRecords
from harness.stats.ranking_model import Ranking

RUN_SECONDS = 1800
LATE = f"{NOT_JUDGED}the check's time for other implementations was over: pytest -m every has no limit"


@dataclass(frozen=True)
class Finished:
    """A finished ./tfb run."""

    status: int
    stderr: str
    folder: Path
    records: RunRecords
    ranking: Ranking


def left() -> float:
    """Return the seconds during which tests marked ``every`` may still start."""
    return float(os.environ.get(DEADLINE_VARIABLE) or "inf") - time.time()


def tfb(*arguments: str, seconds: float = RUN_SECONDS, cwd: Path = REPOSITORY) -> subprocess.CompletedProcess[str]:
    """Run tfb in a separate process, as a user would."""
    command = [sys.executable, "-m", "harness", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    return subprocess.run(
        command, check=False, capture_output=True, text=True, cwd=cwd, env=environment, timeout=seconds
    )


def require_tools(*names: str) -> None:
    """Skip the test if a tool that the named implementations need is missing."""
    needs = requirements.tool_requirements(
        select_implementations(scan_folders(), Selection(test=names)), own_database=True
    )
    if missing := [need.description for need in needs if need.tool is None]:
        pytest.skip(f"{', '.join(missing)} is missing: ./tfb doctor")


def smoke(runtime: str) -> Finished:
    """Measure the core implementations. In Docker, ``./tfb check --all`` measures all implementations."""
    if runtime == "local":
        require_tools("run")
    every = runtime == "docker" and os.environ.get("TFB_CHECK") == "all"
    words = ("--test", "all" if every else "run", "--profile", "smoke", "--seed", "7", "--yes", "--json")
    completed = tfb(*words, "--runtime", runtime)
    assert completed.stdout.startswith("{"), f"exit {completed.returncode}\n{completed.stderr}"
    ranking = Ranking.model_validate(json.loads(completed.stdout))
    folder = find_run(REPOSITORY / "results", ranking.run_id)
    return Finished(completed.returncode, completed.stderr, folder, store.read_run(folder, with_series=True), ranking)


@pytest.fixture(scope="session", params=["local", pytest.param("docker", marks=pytest.mark.docker)])
def run(request: pytest.FixtureRequest) -> Finished:
    """Return a runtime's smoke run. Tests that use this fixture run once per runtime."""
    return smoke(request.param)
