"""The wheel works outside the clone after the GitHub action's steps install it into an empty environment."""

import itertools
import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.errors import Exit
from harness.experiment.run_setup import read_revision
from harness.paths import REPOSITORY, TOOLSET
from harness.records import store
from harness.tests.doubles.standalone import write_implementations
from harness.tests.e2e.test_gate_runs import git, shop

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.needs("cargo", ">=1.85"),
    pytest.mark.needs("npm", ">=10"),
    pytest.mark.timeout(600),
]
__all__ = ["shop"]


def steps(path: Path) -> list[str]:
    """Return the ``run`` scripts of a composite action's steps."""
    found = re.findall(r"^ +run: (?:\|\n((?: {8}.*\n)+)|(.+)\n)", path.read_text(encoding="utf-8"), re.MULTILINE)
    return [textwrap.dedent(block) or line for block, line in found]


def sh(text: str, folder: Path, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-e", "-c", text], check=False, capture_output=True, text=True, cwd=folder, env=environment, timeout=500
    )


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Install the wheel into RUNNER_TEMP and return the environment variables of the installation."""
    folder = tmp_path_factory.mktemp("installed")
    environment = {
        **{name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_", "npm_", "CARGO"))},
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(folder),
        "RUNNER_TEMP": str(folder),
        "GITHUB_ACTION_PATH": str(REPOSITORY),
        "CARGO_HOME": os.environ.get("CARGO_HOME", str(Path.home() / ".cargo")),
        "RUSTUP_HOME": os.environ.get("RUSTUP_HOME", str(Path.home() / ".rustup")),
    }
    done = sh(steps(REPOSITORY / "action.yml")[0], folder, environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return environment


def test_the_action_gives_a_verdict_outside_the_clone(installed: dict[str, str], shop: Path, tmp_path: Path) -> None:
    git(shop, "commit", "-q", "--allow-empty", "-m", "a change")
    inputs = {"BASE": "HEAD~1", "SERVICE": ".", "THRESHOLD": "5", "TIME": "25s", "STRICT": "false"}
    environment = {**installed, **inputs, "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md")}
    done = sh(steps(REPOSITORY / "action.yml")[2], shop, environment)
    assert done.returncode == 0, done.stdout + done.stderr
    summary = (tmp_path / "summary.md").read_text(encoding="utf-8")
    assert summary.startswith("**")
    assert "| root |" in summary


def test_installed_tfb_measures_a_folder(installed: dict[str, str], tmp_path: Path) -> None:
    write_implementations(tmp_path / "elsewhere" / "frameworks", "one", "two")
    (tmp_path / "here").mkdir()

    def tfb(arguments: str) -> subprocess.CompletedProcess[str]:
        return sh(f'"$RUNNER_TEMP/tfb/bin/tfb" {arguments}', tmp_path / "here", installed)

    assert tfb("--version").stdout.startswith("tfb ")
    missing = tfb("run")
    assert missing.returncode == Exit.USAGE
    assert f"{tmp_path}/here/frameworks is not a folder; expected" in missing.stderr
    assert "Clone the repository" in tfb("check").stderr
    assert "contains no implementations to copy" in tfb("new x").stderr

    there = f"--frameworks {tmp_path}/elsewhere"
    assert "  one    JP\n" in tfb(f"list {there}").stdout
    assert "did you mean one" in tfb(f"verify onee {there}").stderr
    verified = tfb(f"verify one {there} --runtime local --no-install")
    assert verified.returncode == Exit.OK, verified.stdout + verified.stderr
    done = tfb(f"run one two {there} --profile smoke --runtime local --no-install --part 1/1")
    assert done.returncode == Exit.OK, done.stdout + done.stderr
    (folder,) = (tmp_path / "here" / "tfb-results").iterdir()
    records = store.read_run(folder)
    measured = {(each.implementation, each.test_type) for each in records.trials if each.throughput > 0}
    assert measured == {*itertools.product(("one", "two"), ("json", "plaintext"))}
    assert (records.info.revision, records.info.dirty) == read_revision()
    assert "two" in tfb(f"report {folder.name}").stdout


IMAGE = "tfb-test/tfb"


@pytest.fixture(scope="module")
def image(installed: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Build a release image with two small implementations and yield its name."""
    context = tmp_path_factory.mktemp("context")
    write_implementations(context / "frameworks", "one", "two")
    shutil.copy(REPOSITORY / "requirements.lock", context)
    # Without git, the wheel records no uncommitted changes. Runs with uncommitted changes could not be merged.
    wheel = 'GIT_DIR=/nonexistent "$RUNNER_TEMP/tfb/bin/pip" wheel -q --no-deps --no-build-isolation -w dist '
    dockerfile = REPOSITORY / "docker" / "tfb.dockerfile"
    build = f'docker build --quiet --network host --tag {IMAGE} --file "{dockerfile}" .'
    done = sh(f'{wheel} "{REPOSITORY}"; {build}', context, {**installed, "DOCKER_BUILDKIT": "1"})
    assert done.returncode == 0, done.stdout + done.stderr
    yield IMAGE
    sh(f"docker image rm --force {IMAGE}", context, installed)


def completed_index(image: str, index: int, volume: Path) -> subprocess.CompletedProcess[str]:
    """Run the manifest's container for a completion index, with a short profile."""
    manifest = (TOOLSET / "fleet" / "kubernetes.yaml").read_text(encoding="utf-8")
    pod: dict[str, Any] = yaml.safe_load(manifest)["spec"]["template"]["spec"]
    (container,), (claimed,) = pod["containers"], pod["volumes"]
    (mount,) = container["volumeMounts"]
    assert mount["name"] == claimed["name"]
    environment = {each["name"]: each["value"] for each in container["env"]}
    environment |= {"JOB_COMPLETION_INDEX": f"{index}", "ARGUMENTS": "all --profile smoke"}
    program, *arguments = container["command"]
    command = [
        *("docker", "run", "--rm", "--entrypoint", program, "--volume", f"{volume}:{mount['mountPath']}"),
        *("--user", f"{container['securityContext']['runAsUser']}"),
        *itertools.chain.from_iterable(("--env", f"{name}={value}") for name, value in environment.items()),
        *(image, *arguments),
    ]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=300)


@pytest.mark.docker
@pytest.mark.timeout(1200)  # builds an image
def test_kubernetes_job_runs_in_the_image(image: str, installed: dict[str, str], tmp_path: Path) -> None:
    for index in (0, 1):
        done = completed_index(image, index, tmp_path)
        assert done.returncode == Exit.OK, done.stdout + done.stderr
    merge = '"$RUNNER_TEMP/tfb/bin/tfb" report 0/* 1/* --deployments --results .'
    done = sh(merge, tmp_path, installed)
    assert done.returncode == Exit.OK, done.stdout + done.stderr
    (folder,) = tmp_path.glob("*-merged")
    records = store.read_run(folder)
    assert [each.name.partition("/")[0] for each in records.info.sets] == ["0", "1"]
    cells = itertools.product(("one", "two"), ("json", "plaintext"), (0, 1))
    assert {(each.implementation, each.test_type, each.process) for each in records.trials} == {*cells}
