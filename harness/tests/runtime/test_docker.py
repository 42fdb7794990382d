"""Tests for the Docker runtime that need no engine."""

import os
import re
from pathlib import Path
from typing import Any

import pytest

from harness.errors import EngineFullError, Exit, StartError, UsageError
from harness.host import process
from harness.plan import profile
from harness.plan.hosts import hosts_from_flags
from harness.plan.run_settings import Settings
from harness.provisioning import requirements
from harness.runtime import choice, compose, container
from harness.runtime.compose import Project
from harness.runtime.container import Container
from harness.runtime.docker import DockerRuntime, image_tag
from harness.tests.doubles.implementations import implementation
from harness.tests.scene import script


def settings(**values: Any) -> Settings:
    defaults = {
        "command": (),
        "profile": profile.load_profile("smoke"),
        "seed": 1,
        "results_name": "",
        "results_environment": "",
    }
    return Settings(**{**defaults, **values})


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a fake docker client on PATH. Return the file for the shell code that the client runs."""
    script(tmp_path / "docker", f". {tmp_path}/code")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return tmp_path / "code"


def test_each_implementation_has_a_unique_image_tag() -> None:
    """Names that differ only in characters forbidden in tags must still yield different tags."""
    assert image_tag(implementation(name="express")) == "tfb/express"
    tags = [image_tag(implementation(name=name)) for name in ("c", "C", "c#", "c++", "c-a", "c@a", "c--a", "日本")]
    assert len(set(tags)) == len(tags)
    assert all(re.fullmatch(r"tfb/[a-z0-9]+(-[a-z0-9]+)*", tag) for tag in tags), tags


THREE = hosts_from_flags("app", "db", ("c1", "c2"))

NEEDS = [pytest.mark.needs_extra("deployments"), pytest.mark.needs_extra("orders")]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        pytest.param(
            {"hosts": THREE, "test_types": ("order",)},
            "--type order cannot be used with other machines",
            marks=NEEDS,
        ),
        pytest.param(
            {"hosts": THREE, "runtime": "local"},
            "--runtime local cannot be used with other machines",
            marks=NEEDS,
        ),
        pytest.param(
            {"hosts": THREE, "network_mode": "bridge"},
            "--network-mode bridge cannot be used with other machines",
            marks=NEEDS,
        ),
        ({"container_memory": "lots"}, "--test-container-memory: 'lots' is not a valid size. Use a size such as"),
        (
            {"network_mode": "bridge", "hosts": hosts_from_flags(None, "postgresql://localhost", ())},
            "localhost:5432: with --network-mode bridge, this address refers to the container",
        ),
    ],
)
def test_unsupported_settings_are_refused_before_the_build(
    values: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(compose, "engine_version", lambda: "26.1")
    with pytest.raises(UsageError, match=message):
        choice.choose_runtime(settings(**{"runtime": "docker", **values}), (), tmp_path, run_id="x")


@pytest.mark.parametrize(
    ("values", "expected"), [({}, True), ({"server_port": 8080}, False), ({"network_mode": "bridge"}, False)]
)
def test_side_by_side_is_known_without_a_runtime(values: dict[str, Any], *, expected: bool, tmp_path: Path) -> None:
    given = settings(runtime="docker", **values)
    assert choice.can_run_side_by_side(given, ()) is expected
    assert choice.make_docker_runtime(given, (), tmp_path, "x", prepare=False).side_by_side is expected


def test_auto_means_local_without_an_engine(docker: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    docker.write_text("echo 'Cannot connect to the Docker daemon'; exit 1")
    monkeypatch.setattr(requirements, "tool_requirements", lambda *_, **__: ())
    auto_settings = settings(runtime="auto", consent="yes")
    assert choice.choose_runtime(auto_settings, (), tmp_path, run_id="x").name == "local"


def test_ids_are_separated_from_warnings(docker: Path) -> None:
    docker.write_text(f"printf 'WARNING: a\\n{'4f' * 32}\\n{'a0' * 32}\\n'")
    assert compose.find_labelled(compose.RESOURCE_KINDS[0], {"a": "b"}) == ["4f" * 32, "a0" * 32]
    docker.write_text("exit 1")
    assert compose.find_labelled(compose.RESOURCE_KINDS[0], {"a": "b"}) is None


def test_full_engine_disk_raises_an_error_with_remedy(docker: Path, tmp_path: Path) -> None:
    """A full disk affects all implementations, so it ends the run. Other build errors affect only one."""
    (tmp_path / "x.dockerfile").touch()
    runtime = DockerRuntime(project=Project(run_id="x", bridge=False), logs=tmp_path)
    docker.write_text("echo 'write /x/overlay2/4f: No space left on device'; exit 1")
    with pytest.raises(EngineFullError, match=r"free up space \(docker builder prune") as error:
        runtime.build(implementation(tmp_path), tmp_path / "log")
    assert error.value.exit_code is Exit.ENVIRONMENT
    assert isinstance(compose.start_error("no space left on device"), EngineFullError)
    docker.write_text('case "$*" in *build*) echo no such package; exit 1;; *inspect*) exit 1;; *) echo 26.1;; esac')
    assert runtime.build(implementation(tmp_path), tmp_path / "other.log").status == "failed"
    assert isinstance(compose.start_error("exit status 1"), StartError)


@pytest.mark.parametrize(("running", "expected"), [(True, "is on another machine"), (False, "exited immediately")])
def test_engine_on_another_machine_is_named(
    running: bool, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine reports a PID that does not exist on this machine."""
    state = {"Pid": 4_190_000, "Running": running, "OOMKilled": False, "ExitCode": 1, "Error": ""}
    document = {"State": state, "HostConfig": {"Memory": 0}}
    monkeypatch.setattr(container, "inspect", lambda *_: document)
    monkeypatch.setattr(container, "docker", lambda *_: process.CompletedCommand(status=0, stdout="buildhost\n"))
    monkeypatch.setattr(container, "follow_log", lambda *_: process.Child(["true"]))
    monkeypatch.setenv("DOCKER_HOST", "tcp://buildhost:2375")
    (tmp_path / "log").touch()
    with pytest.raises(StartError, match=expected) as caught:
        Container("shop", "0123", tmp_path / "log")
    if running:
        assert "buildhost" in str(caught.value)
        assert "unset DOCKER_HOST" in str(caught.value)
