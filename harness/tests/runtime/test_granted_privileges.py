"""Tests for ``--allow``: privileges of implementations in this repository and in other folders, on both runtimes."""

import logging
import os
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.errors import EnvironmentLacksError, StartError, UsageError
from harness.paths import DOCKER
from harness.plan.implementation import Implementation
from harness.runtime import DatabaseAddress, privileges
from harness.runtime.compose import Project
from harness.runtime.docker import DockerRuntime
from harness.runtime.privileges import SECCOMP, parse_allow, require_usable, warn_without_consent
from harness.tests.doubles.implementations import implementation
from harness.tests.scene import script

LOCAL = {"run": ["server"]}


def one(*, allowed: tuple[str, ...] = (), **entry: object) -> Implementation:
    return replace(implementation(Path("/tree/C/x"), "x", **entry), allowed=allowed)


@pytest.fixture(autouse=True)
def sysctl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Replace the kernel's setting by a file that permits io_uring."""
    path = tmp_path / "io_uring_disabled"
    path.write_text("0\n", encoding="ascii")
    monkeypatch.setattr(privileges, "IO_URING_SYSCTL", path)
    return path


def test_allow_is_parsed_by_name() -> None:
    assert parse_allow(["a=io_uring,io_uring", "b=privileged", "a=privileged"]) == {
        "a": ("io_uring", "privileged"),
        "b": ("privileged",),
    }


@pytest.mark.parametrize("runtime", ["local", "docker"])
@pytest.mark.parametrize("entry", [{"local": LOCAL}, {}])
def test_io_uring_is_allowed_on_both_runtimes(runtime: str, entry: dict[str, Any]) -> None:
    require_usable([one(allowed=("io_uring",), **entry)], runtime)


@pytest.mark.parametrize(
    ("runtime", "entry", "reason"),
    [
        ("docker", {"local": LOCAL}, "x has a local block, so its container is unprivileged"),
        ("local", {"local": LOCAL}, "x runs without a container"),
    ],
)
def test_privileged_applies_only_to_techempower_folders(runtime: str, entry: dict[str, Any], reason: str) -> None:
    with pytest.raises(UsageError, match=rf"--allow x=privileged: {reason}.* Remove it"):
        require_usable([one(allowed=("privileged",), **entry)], runtime)
    require_usable([one(allowed=("privileged",))], "docker")


@pytest.mark.parametrize("runtime", ["local", "docker"])
def test_kernel_without_io_uring_is_reported(runtime: str, sysctl: Path) -> None:
    sysctl.write_text("2\n", encoding="ascii")
    expected = r"--allow x=io_uring: .*io_uring_disabled is 2, but must be 0\). Run sysctl"
    with pytest.raises(EnvironmentLacksError, match=expected):
        require_usable([one(allowed=("io_uring",), local=LOCAL)], runtime)
    require_usable([one(local=LOCAL)], runtime)
    require_usable([one(allowed=("io_uring",), local=LOCAL)], runtime, own_kernel=False)
    sysctl.unlink()  # before Linux 6.6
    require_usable([one(allowed=("io_uring",), local=LOCAL)], runtime)


def test_declaration_without_consent_causes_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    declared = one(io_uring=True)
    with caplog.at_level(logging.WARNING, "tfb.privileges"):
        warn_without_consent([one(), replace(declared, declared_privileges=("io_uring",))])
        warn_without_consent([replace(declared, allowed=("io_uring",))])
        assert not caplog.messages
        warn_without_consent([declared])
    assert caplog.messages[0].endswith("To permit it, add --allow x=io_uring")


@pytest.mark.parametrize(
    ("allowed", "declared", "permitted"), [((), (), False), (("io_uring",), (), True), ((), ("io_uring",), True)]
)
def test_compose_permits_io_uring_only_if_granted(
    allowed: tuple[str, ...],
    declared: tuple[str, ...],
    permitted: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The fake client fails to start the container, after it has recorded the command."""
    log = tmp_path / "commands"
    script(tmp_path / "docker", f'echo "$*" >>{shlex.quote(str(log))}; case "$*" in *" up "*) exit 1;; esac')
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    runtime = DockerRuntime(project=Project(run_id="x", bridge=False), logs=tmp_path)
    server = replace(one(local=LOCAL, allowed=allowed), declared_privileges=declared)
    address = DatabaseAddress(host="127.0.0.1", port=5432)
    with pytest.raises(StartError), runtime.start(server, address, tmp_path / "x.log", ready_path="/json"):
        pass
    (command,) = [line for line in log.read_text(encoding="utf-8").splitlines() if " up " in line]
    assert (str(DOCKER / "compose.io_uring.yaml") in command) is permitted


def test_compose_file_names_the_seccomp_profile() -> None:
    assert f'"seccomp={SECCOMP.name}"' in (DOCKER / "compose.io_uring.yaml").read_text(encoding="utf-8")
    assert SECCOMP.is_file()
