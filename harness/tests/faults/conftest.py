"""Fixtures: a real run, and copies that tests may damage."""

import shutil
from collections.abc import Iterator

import pytest

from harness.tests.scene import Scene, new_scene


@pytest.fixture(scope="session")
def original() -> Iterator[Scene]:
    """Yield a scene with a complete run of two implementations."""
    with new_scene() as scene:
        scene.add("one")
        scene.add("two")
        scene.measure("--test", "one", "two", "--type", "json").ends(0)
        yield scene


@pytest.fixture
def recorded(original: Scene, scene: Scene) -> Scene:
    """Return a scene with a copy of the run and its implementations."""
    for name in ("frameworks", "results"):
        shutil.copytree(original.root / name, scene.root / name, dirs_exist_ok=True)
    return scene
