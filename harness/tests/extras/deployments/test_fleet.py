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


def git(folder: Path, *words: str) -> None:
    own = ("git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run([*own, *words], check=True, capture_output=True)


def submitted_clone(folder: Path) -> Path:
    """Create a repository whose ``tfb`` prints its location and its arguments."""
    clone = folder / "submitted"
    clone.mkdir(exist_ok=True)
    (clone / "tfb").write_text('#!/bin/sh\nprintf "%s\\n" "$0" "$@"\n', encoding="utf-8")
    (clone / "tfb").chmod(0o755)
    git(clone, "init", "--quiet")
    git(clone, "add", "tfb")
    git(clone, "commit", "--quiet", "--allow-empty", "--message", "a")
    return clone


def run_task(clone: Path, temporary: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run the task with index 3 of the array job 7 on a node that has its own folder for temporary files."""
    values = {"SLURM_SUBMIT_DIR": str(clone), "SLURM_ARRAY_JOB_ID": "7", "SLURM_ARRAY_TASK_ID": "3"}
    command = ["sh", str(FLEET / "slurm.sbatch"), "all", "--profile", "standard"]
    values |= {"PATH": os.environ["PATH"], "TMPDIR": str(temporary), **environment}
    return subprocess.run(command, check=False, capture_output=True, text=True, env=values)


def task(folder: Path, **environment: str) -> list[str]:
    done = run_task(submitted_clone(folder), folder / "node", **environment)
    return done.stdout.split()[1:]


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


@pytest.mark.parametrize(("start", "results"), [(pod, "results/1"), (task, "submitted/fleet/7.3")])
def test_fleet_resumes_the_run_of_an_index(start: FleetScript, results: str, tmp_path: Path) -> None:
    run = tmp_path / results / "20260101-000000"
    run.mkdir(parents=True)
    (run / "run.json").touch()
    assert start(tmp_path)[:4] == ["run", "--resume", "20260101-000000", "--accept-command"]


def test_nodes_work_in_separate_copies_of_the_commit(tmp_path: Path) -> None:
    """Builds write to the implementations' folders, so two nodes must not build in the same clone."""
    clone = submitted_clone(tmp_path)
    programs = [run_task(clone, tmp_path / node).stdout.split()[0] for node in ("n1", "n2", "n1")]
    assert programs == [f"{tmp_path / node}/tfb-{os.getuid()}/clone/tfb" for node in ("n1", "n2", "n1")]
    (clone / "tfb").write_text("#!/bin/sh\necho newer\n", encoding="utf-8")
    refused = run_task(clone, tmp_path / "n1")
    assert (refused.returncode, "not committed" in refused.stderr) == (2, True)
    git(clone, "commit", "--quiet", "--all", "--message", "newer")
    assert run_task(clone, tmp_path / "n1").stdout == "newer\n"


@pytest.mark.parametrize("foreign", [True, False], ids=["another user's", "a link"])
def test_node_folders_of_others_are_refused(foreign: bool, tmp_path: Path) -> None:
    planted = tmp_path / "planted"
    planted.mkdir()
    node = tmp_path / "node" / f"tfb-{os.getuid()}"
    node.parent.mkdir()
    if not foreign:
        node.symlink_to(planted)
    elif os.getuid() == 0:
        node.mkdir()
        os.chown(node, 65534, 65534)
    else:
        pytest.skip("only root can create another user's folder")
    refused = run_task(submitted_clone(tmp_path), tmp_path / "node")
    assert refused.returncode == 2
    assert "belongs to another user" in refused.stderr
    assert not list(planted.iterdir())
