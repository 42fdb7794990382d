"""The scripts in ``toolset/fleet``. A fake ``tfb`` prints its arguments."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from harness.paths import TOOLSET

FLEET = TOOLSET / "fleet"
FleetScript = Callable[..., list[str]]  # runs a script in a folder, with environment variables


def arguments(folder: Path, script: str, **environment: str) -> list[str]:
    """Run a script and return the arguments with which it calls tfb."""
    fake = folder / "tfb"
    fake.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n', encoding="utf-8")
    fake.chmod(0o755)
    values = {"PATH": f"{folder}:{os.environ['PATH']}", **environment}
    done = subprocess.run(
        ["sh", "-euc", script, "sh", *environment.get("WORDS", "").split()],
        check=True, capture_output=True, text=True, cwd=folder, env=values,
    )  # fmt: skip
    return done.stdout.split()


def pod(folder: Path, **environment: str) -> list[str]:
    (container,) = yaml.safe_load((FLEET / "kubernetes.yaml").read_text())["spec"]["template"]["spec"]["containers"]
    own = {each["name"]: each["value"] for each in container["env"]}
    script = container["command"][-1].replace("/results", str(folder / "results"))
    return arguments(folder, script, **{**own, "JOB_COMPLETION_INDEX": "1", **environment})


def task(folder: Path, **environment: str) -> list[str]:
    values = {"SLURM_SUBMIT_DIR": str(folder), "SLURM_ARRAY_JOB_ID": "7", "SLURM_ARRAY_TASK_ID": "3"}
    # The array has only one task, as when a user repeats a part.
    values |= {"SLURM_ARRAY_TASK_MIN": "3", "SLURM_ARRAY_TASK_COUNT": "1", "WORDS": "all --profile standard"}
    return arguments(folder, (FLEET / "slurm.sbatch").read_text(encoding="utf-8"), **{**values, **environment})


@pytest.mark.parametrize(
    ("start", "setting", "part"), [(pod, {"PARTS": "4"}, "2/4"), (task, {"TFB_PARTS": "8"}, "4/8")]
)
def test_fleet_measures_deployments_or_parts(
    start: FleetScript, setting: dict[str, str], part: str, tmp_path: Path
) -> None:
    expected = ["run", "all", "--profile", "standard"]
    assert start(tmp_path)[:4] == expected
    assert "--part" not in start(tmp_path)
    assert start(tmp_path, **setting)[:6] == [*expected, "--part", part]


@pytest.mark.parametrize(("start", "results"), [(pod, "results/1"), (task, "fleet/7.3")])
def test_fleet_resumes_the_run_of_an_index(start: FleetScript, results: str, tmp_path: Path) -> None:
    run = tmp_path / results / "20260101-000000"
    run.mkdir(parents=True)
    (run / "run.json").touch()
    assert start(tmp_path)[:4] == ["run", "--resume", "20260101-000000", "--accept-command"]
