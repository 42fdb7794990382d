"""``./tfb verify``: what is left to an author is said once the code passes; what counts as a change of its files."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.cli import new
from harness.experiment import modes
from harness.plan.discovery import CONFIG_FILE, read


@pytest.mark.parametrize(
    ("text", "routes", "left"),
    [(None, False, "README.md, maintainers"), ("# done\n", True, "removing ROUTES.md"), ("# done\n", False, "")],
)
def test_what_new_left_to_its_author_is_named_with_what_comes_next(
    text: str | None, routes: bool, left: str, tmp_path: Path
) -> None:
    folder, _ = new.make(tmp_path, "mine", language="Go", blank=True)
    (implementation,) = read(folder / CONFIG_FILE)
    assert "./tfb run mine" in modes.unfinished(implementation)
    readme = folder / "README.md"
    readme.unlink() if text is None else readme.write_text(text)
    if not routes:
        (folder / "ROUTES.md").unlink()
    found = modes.unfinished(implementation)
    assert left in found
    assert bool(found) == bool(left)


def steps(*actions: Callable[[], object]) -> Callable[[float], None]:
    """A sleep during which the next thing happens."""
    left: Iterator[Callable[[], object]] = iter(actions)

    def sleep(_seconds: float) -> None:
        if action := next(left, None):
            action()

    return sleep


def test_new_changed_and_removed_sources_are_changes_and_what_a_build_writes_is_none(tmp_path: Path) -> None:
    kept, gone = tmp_path / "kept.go", tmp_path / "gone.go"
    kept.write_text("a")
    gone.write_text("a")
    for folder in ("target/classes", "node_modules/x", ".venv/lib", "__pycache__", "bin/Release"):
        (tmp_path / folder).mkdir(parents=True)

    def build() -> None:
        for folder in ("target/classes", "node_modules/x", ".venv/lib", "__pycache__", "bin/Release"):
            (tmp_path / folder / "file").write_text("a")

    sleep = steps(build, lambda: kept.write_text("ab"), gone.unlink, lambda: (tmp_path / "new.go").write_text("a"))
    assert [path.name for path in modes.wait_for_change([tmp_path], sleep)] == ["gone.go", "kept.go", "new.go"]
