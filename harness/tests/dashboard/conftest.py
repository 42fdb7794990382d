"""Generated runs for the dashboard's tests."""

import shutil
from pathlib import Path

import pytest

from harness.tests.doubles import sample_data


@pytest.fixture(scope="session")
def sample_results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a results folder with valid, hostile and invalid runs. Tests must not change it."""
    results = tmp_path_factory.mktemp("results")
    sample_data.small(results)
    sample_data.second(results)
    sample_data.hostile(results)
    return results


@pytest.fixture
def results(sample_results: Path, tmp_path: Path) -> Path:
    """Return a results folder with a valid run. The test may change it."""
    folder = tmp_path / "results"
    shutil.copytree(sample_results / "20250615-small", folder / "run")
    return folder
