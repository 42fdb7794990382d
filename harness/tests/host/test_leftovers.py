"""Leftovers of killed runs are recognised by their owner. Everything else is kept."""

import os
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from harness.host import leftovers, ownership


def dead() -> str:
    """Return the identity of a process that has exited."""
    with subprocess.Popen(["sleep", "60"]) as child:
        start = ownership.process_start(child.pid)
        child.kill()
    return f"{child.pid}.{start}.{ownership.own_identity().split('.', 2)[2]}"


def test_owner_is_alive_dead_or_unknown() -> None:
    pid, start, namespace, boot = ownership.own_identity().split(".")
    assert (int(pid), ownership.owner_state(ownership.own_identity())) == (os.getpid(), "alive")
    assert ownership.owner_state(dead()) == "dead"
    for owner in ("", "1", "a.b.c.d", f"a.{start}.{namespace}.{boot}", f"{pid}.{start}.{namespace}.other"):
        assert ownership.owner_state(owner) == "unknown"


def folder(below: Path, name: str, owner: str = "", *, age: float = 0.0) -> None:
    path = below / f"{ownership.SCRATCH_PREFIX}{name}"
    (path / "data").mkdir(parents=True)
    if owner:
        (path / ownership.OWNER_FILE).write_text(owner)
    os.utime(path, (time.time() - age,) * 2)


def test_only_folders_of_exited_owners_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An owner may have exited, belong to an earlier boot, or have been killed before it wrote the owner file."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    pid, start, namespace, boot = ownership.own_identity().split(".")
    folder(tmp_path, "dead", dead())
    folder(tmp_path, "earlier-boot", f"{pid}.{start}.{namespace}.earlier")
    folder(tmp_path, "nameless", age=600)
    folder(tmp_path, "being-made")
    folder(tmp_path, "alive", ownership.own_identity())
    folder(tmp_path, "other-container", f"{pid}.{start}.1.{boot}")
    (tmp_path / "tfb-of-somebody").mkdir()
    folders = list(leftovers.folder_leftovers())
    assert [Path(leftover.name).name for leftover in folders] == [
        f"{ownership.SCRATCH_PREFIX}{name}" for name in ("dead", "earlier-boot", "nameless")
    ]
    assert all(leftover.is_certain for leftover in folders)
    assert leftovers.remove_leftovers(folders) == ()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "tfb-of-somebody",
        *(f"{ownership.SCRATCH_PREFIX}{name}" for name in ("alive", "being-made", "other-container")),
    ]
