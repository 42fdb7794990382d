"""The scenes of the faults, and one real run that is damaged in copies."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.tests.faults.scene import Scene


@pytest.fixture
def scene() -> Iterator[Scene]:
    """A new one, open to PostgreSQL's account."""
    with_room = Path(tempfile.mkdtemp(prefix="tfb-fault-"))
    with_room.chmod(0o755)
    yield Scene(with_room)
    shutil.rmtree(with_room, ignore_errors=True)


@pytest.fixture(scope="session")
def original() -> Iterator[Scene]:
    """A real run of two implementations, complete."""
    root = Path(tempfile.mkdtemp(prefix="tfb-fault-run-"))
    root.chmod(0o755)
    place = Scene(root)
    place.add("one")
    place.add("two")
    place.measure("--test", "one", "two", "--type", "json").ends(0)
    yield place
    shutil.rmtree(root, ignore_errors=True)


@pytest.fixture
def recorded(original: Scene, scene: Scene) -> Scene:
    """A copy of that run, with its implementations."""
    for name in ("frameworks", "results"):
        shutil.copytree(original.root / name, scene.root / name, dirs_exist_ok=True)
    return scene
