"""Attack: a server in a container uses io_uring, which Docker's default seccomp profile blocks, without consent."""

import json
import secrets
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from harness.errors import StartError
from harness.experiment import selection
from harness.experiment.selection import declared_privileges
from harness.paths import CONFIG_FILE
from harness.plan.implementation import Implementation
from harness.runtime import DatabaseAddress, choice
from harness.tests.doubles.implementations import implementation
from harness.tests.runtime.test_docker import settings


def at(folder: Path) -> Implementation:
    """Return an implementation that declares io_uring."""
    return implementation(folder, io_uring=True)


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a clone whose latest commit declares io_uring for the implementation x, but not for y."""
    monkeypatch.setattr(selection, "REPOSITORY", tmp_path / "clone")
    for name, declared in (("x", True), ("y", False)):
        folder = tmp_path / "clone" / "frameworks" / "C" / name
        folder.mkdir(parents=True)
        document = {
            "framework": name,
            "tests": [{"default": {"language": "C", "json_url": "/json", "io_uring": declared}}],
        }
        (folder / CONFIG_FILE).write_text(json.dumps(document), encoding="utf-8")
    for words in ("init --quiet", "add --all", "-c user.name=x -c user.email=x@example.org commit --quiet -m x"):
        subprocess.run(["git", *words.split()], cwd=tmp_path / "clone", check=True)
    return tmp_path / "clone" / "frameworks" / "C"


def test_only_the_latest_commit_may_declare_io_uring(clone: Path) -> None:
    assert declared_privileges(at(clone / "x")) == ("io_uring",)
    assert declared_privileges(implementation(clone / "x")) == ()
    assert declared_privileges(at(clone / "y")) == ()  # for example, changed by a pull request
    assert declared_privileges(at(clone / "new")) == ()


def test_other_folders_may_not_declare_io_uring(clone: Path, tmp_path: Path) -> None:
    other = tmp_path / "other" / "frameworks" / "C" / "x"
    shutil.copytree(clone / "x", other)
    assert declared_privileges(at(other)) == ()
    assert declared_privileges(at(clone / ".." / ".." / ".." / "other" / "frameworks" / "C" / "x")) == ()
    shutil.rmtree(clone / "x")
    (clone / "x").symlink_to(other)
    assert declared_privileges(at(clone / "x")) == ()


def test_without_git_no_folder_may_declare_io_uring(clone: Path) -> None:
    shutil.rmtree(clone.parent.parent / ".git")
    assert declared_privileges(at(clone / "x")) == ()


CALL_IO_URING_SETUP = "syscall(425, 1, 0); exit($! + 0)"  # the exit status is errno: 1 EPERM, 14 EFAULT


@pytest.mark.docker
@pytest.mark.parametrize(
    ("allowed", "expected"), [((), "exit status 1"), (("io_uring",), "exit status 14")], ids=["default", "allowed"]
)
@pytest.mark.parametrize("bridge", [False, True])
def test_container_needs_permission_for_io_uring(
    allowed: tuple[str, ...], expected: str, bridge: bool, tmp_path: Path
) -> None:
    """If seccomp permits the call, the kernel rejects the invalid argument."""
    recipe = f'FROM debian:trixie-slim\nCMD ["perl", "-e", "{CALL_IO_URING_SETUP}"]\n'
    (tmp_path / "e2e-io-uring.dockerfile").write_text(recipe, encoding="utf-8")
    server = replace(implementation(tmp_path, "e2e-io-uring", local={"run": ["server"]}), allowed=allowed)
    run_id = f"test-{secrets.token_hex(4)}"
    given = settings(runtime="docker", network_mode="bridge" if bridge else None)
    runtime = choice.make_docker_runtime(given, [server], tmp_path, run_id, prepare=False)
    runtime.force_rm = True
    try:
        assert runtime.build(server, tmp_path / "build.log").status == "ok"
        address = DatabaseAddress(host="127.0.0.1", port=5432)
        with (
            pytest.raises(StartError, match=rf"exited immediately: {expected}\n"),
            runtime.start(server, address, tmp_path / "server.log", ready_path="/json"),
        ):
            pass
    finally:
        runtime.close()
