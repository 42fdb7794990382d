"""One real run that is damaged in copies."""

import shutil
from collections.abc import Iterator

import pytest

from harness.tests.scene import Scene, new_scene


@pytest.fixture(scope="session")
def original() -> Iterator[Scene]:
    """A real run of two implementations, complete."""
    with new_scene() as found:
        found.add("one")
        found.add("two")
        found.measure("--test", "one", "two", "--type", "json").ends(0)
        yield found


@pytest.fixture
def recorded(original: Scene, scene: Scene) -> Scene:
    """A copy of that run, with its implementations."""
    for name in ("frameworks", "results"):
        shutil.copytree(original.root / name, scene.root / name, dirs_exist_ok=True)
    return scene
