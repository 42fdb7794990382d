"""A full disk behind the engine's data root is named, with what to do, whatever failed because of it."""

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.errors import BuildError, EngineFullError, Exit, StartError
from harness.host import process
from harness.runtime import data_root, docker
from harness.runtime.compose import Project
from harness.runtime.docker import DockerRuntime

SAID = "write /x/overlay2/4f: no space left on device"


def disk(free: int, files: int = 100) -> Callable[[object], SimpleNamespace]:
    return lambda _: SimpleNamespace(f_bfree=free // 4096, f_frsize=4096, f_files=1000, f_ffree=files)


def runtime(root: Path) -> DockerRuntime:
    made = DockerRuntime(project=Project(run_id="20260101-000000", bridge=False), logs=root)
    made._root = root
    return made


@pytest.mark.parametrize(
    ("free", "files", "said", "words"),
    [
        (10 << 30, 100, "", ""),
        (10 << 30, 100, "exit status 1", ""),
        (0, 100, "", "/x is full (0.0 MiB left): make room there (docker builder prune"),
        (3 << 20, 100, "", "/x is full (3.0 MiB left)"),
        (10 << 30, 0, "", "/x is full (no further file left)"),
        (10 << 30, 100, SAID, "/x is full (10240.0 MiB left)"),  # the build that filled it has given the room back
    ],
)
def test_a_disk_is_full_by_its_own_word_or_by_that_of_what_failed(
    free: int, files: int, said: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "statvfs", disk(free, files))
    found = data_root.full(Path("/x"), said)
    assert words in found
    assert bool(found) == bool(words)


def test_of_a_data_root_elsewhere_only_words_are_known() -> None:
    assert data_root.full(None) == ""
    assert "data root is full: make room" in data_root.full(None, SAID)


@pytest.mark.parametrize(
    ("status", "said", "found"), [(0, "WARNING: x\n/\n", Path("/")), (0, "/no/such\n", None), (1, "/", None)]
)
def test_the_data_root_is_what_the_engine_says_where_it_is_here(
    status: int, said: str, found: Path | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = process.Completed(status=status, stdout=said, seconds=0.0)
    monkeypatch.setattr(data_root, "docker", lambda *_: done)
    assert data_root.data_root() == found


def test_a_run_looks_at_the_disk_after_a_failure_and_waits_for_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = runtime(tmp_path)
    made.require_machines()
    monkeypatch.setattr(os, "statvfs", disk(0))
    with pytest.raises(EngineFullError, match="is full") as caught:
        made.require_machines()
    assert caught.value.exit_code is Exit.ENVIRONMENT
    assert not made.recovered(0.0)
    looks = [0, 0, 1 << 30]

    def freed(root: object) -> SimpleNamespace:
        return disk(looks.pop(0))(root)

    monkeypatch.setattr(os, "statvfs", freed)
    monkeypatch.setattr(docker, "ROOM_SECONDS", 0.0)
    assert made.recovered(60.0)


@pytest.mark.parametrize(("said", "expected"), [(SAID, EngineFullError), ("no such file", StartError)])
def test_what_fails_before_anything_runs_names_the_disk(
    said: str, expected: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = runtime(tmp_path)

    def prepare(_: DockerRuntime) -> None:
        raise StartError(said)

    monkeypatch.setattr(DockerRuntime, "_prepare", prepare)
    monkeypatch.setattr(data_root, "data_root", lambda: tmp_path)
    with pytest.raises(expected, match=said):
        made.prepare()


def test_a_build_that_fills_the_disk_is_the_failure_of_its_implementation_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from harness.tests.runtime.test_docker import named

    def build(*_: object, **__: object) -> None:
        raise BuildError(SAID)

    implementation = named("big")
    (tmp_path / "default.dockerfile").touch()
    monkeypatch.setattr(type(implementation), "dockerfile", tmp_path / "default.dockerfile")
    monkeypatch.setattr(docker, "inspect", lambda *_: None)
    monkeypatch.setattr(docker, "engine", lambda: "26.1")
    monkeypatch.setattr(DockerRuntime, "_build", build)
    built = runtime(tmp_path).build(implementation, tmp_path / "build.log")
    assert built.status == "failed"
    assert built.reason.startswith(f"{SAID}\nthe disk of the Docker engine's data root {tmp_path} is full")
