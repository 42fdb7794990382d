"""Runs of small real servers, with each profile and from a fresh clone."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from harness.paths import PROFILES, REPOSITORY
from harness.records.loads import ClosedLoop, OpenLoop
from harness.records.trial_record import Trial
from harness.tests.scene import PROFILE, Scene

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]


def trials(scene: Scene, purpose: str = "measure") -> list[Trial]:
    return [trial for trial in scene.records().trials if trial.purpose == purpose]


def test_a_run_measures_every_cell_and_adds_witnesses(scene: Scene) -> None:
    more = PROFILE.replace("witness = false", "").replace("maximum = 1", "maximum = 2").replace("m = 1\n", "m = 2\n")
    scene.profile.write_text(more)
    for name in ("one", "two"):
        scene.add(name)
    scene.measure("--test", "one", "two").ends(0).says("one", "two", "json", "plaintext")
    cells = [(name, kind) for name in ("one", "two") for kind in ("json", "plaintext")]
    measured_cells = {(t.implementation, t.test_type, t.process, t.generator) for t in trials(scene) if t.rankable}
    assert measured_cells == {(*cell, process, "loadgen") for cell in cells for process in (0, 1)}
    measured_cells = {(t.implementation, t.test_type, t.process, t.generator) for t in trials(scene, "witness")}
    assert measured_cells == {(*cell, 0, "wrk") for cell in cells}


def short(name: str, **values: str) -> str:
    """Return a profile from config/ with other values, such as shorter times."""
    text = (PROFILES / f"{name}.toml").read_text(encoding="utf-8")
    for key, value in values.items():
        text, times = re.subn(rf"^{key} = .*$", f"{key} = {value}", text, flags=re.MULTILINE)
        assert times, key
    return text


def test_the_techempower_profile_runs_wrk_in_order(scene: Scene) -> None:
    scene.add("one")
    levels = {"concurrency": "[4, 16]", "pipeline_concurrency": "[4]"}
    scene.profile.write_text(short("techempower", duration_seconds="1.0", **levels))
    scene.measure("--test", "one").ends(0)
    found = [(trial.test_type, trial.load.connections, trial.generator) for trial in trials(scene)]
    assert found == [("json", 4, "wrk"), ("json", 16, "wrk"), ("plaintext", 4, "wrk")]
    document = json.loads((scene.folder() / "results.json").read_text())
    assert len(document["rawData"]["json"]["one"]) == 2


def test_the_latency_profile_searches_the_capacity(scene: Scene) -> None:
    scene.add("one")
    scene.profile.write_text(short("latency", concurrency="[8]", minimum="1", maximum="1"))
    scene.measure("--test", "one", "--type", "json", "--time", "40s").ends(0, 1).says("p99")
    loads = [trial.load for trial in scene.records().trials]
    assert any(isinstance(load, ClosedLoop) for load in loads)
    rates = [trial for trial in scene.records().trials if isinstance(trial.load, OpenLoop)]
    assert {trial.purpose for trial in rates} >= {"share"}
    for trial in rates:
        assert trial.due is not None
        assert trial.latency is None or trial.latency.basis == "open-loop, intended send time"


def test_the_first_command_of_a_fresh_clone_measures(scene: Scene) -> None:
    """./tfb run needs only the checkout and the locked packages."""
    if shutil.which("cargo") is None:
        pytest.skip("cargo is missing: ./tfb doctor")
    clone = scene.root / "clone"
    subprocess.run(["git", "clone", "-q", "--depth", "1", f"file://{REPOSITORY}", str(clone)], check=True)
    scene.add("one")
    shutil.copytree(scene.frameworks, clone / "frameworks", dirs_exist_ok=True)
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("TFB_", "PYTHON"))}
    environment |= {"TFB_VENV": sys.prefix, "TFB_STATE": os.environ.get("TFB_STATE", str(REPOSITORY / ".tfb"))}
    completed = subprocess.run(
        [str(clone / "tfb"), "run", "one", "--profile", "smoke", "--runtime", "local", "--yes"],
        cwd=clone, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert completed.returncode == 0, completed.stdout + completed.stderr
    assert "In a browser: ./tfb dashboard" in completed.stdout
    (run,) = (clone / "results").glob("2*")
    assert json.loads((run / "run.json").read_text())["status"] == "complete"
