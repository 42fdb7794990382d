"""Generated runs for the dashboard's tests."""

import shutil
from pathlib import Path

import pytest

from harness.tests.doubles import sample_data


@pytest.fixture(scope="session")
def sample_results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One good run, one a week later, one hostile, three folders that are no runs; not to be changed by a test."""
    results = tmp_path_factory.mktemp("results")
    sample_data.small(results)
    sample_data.second(results)
    sample_data.hostile(results)
    return results


@pytest.fixture
def results(sample_results: Path, tmp_path: Path) -> Path:
    """One good run, to be spoilt."""
    folder = tmp_path / "results"
    shutil.copytree(sample_results / "20250615-small", folder / "run")
    return folder
