"""What counts as a change of an implementation's files."""

from collections.abc import Callable, Iterator
from pathlib import Path

from harness.experiment.modes import wait_for_change


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
    assert [path.name for path in wait_for_change([tmp_path], sleep)] == ["gone.go", "kept.go", "new.go"]
