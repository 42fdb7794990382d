"""What counts as a change of an implementation's files."""

from collections.abc import Callable, Iterator
from pathlib import Path

from harness.host import watching


def steps(*actions: Callable[[], object]) -> Callable[[float], None]:
    """A sleep during which the next thing happens."""
    left: Iterator[Callable[[], object]] = iter(actions)

    def sleep(_seconds: float) -> None:
        if action := next(left, None):
            action()

    return sleep


def test_a_new_a_changed_and_a_removed_file_are_changes(tmp_path: Path) -> None:
    kept, gone = tmp_path / "kept.go", tmp_path / "gone.go"
    kept.write_text("a")
    gone.write_text("a")
    before = watching.files([tmp_path])
    kept.write_text("ab")
    gone.unlink()
    (tmp_path / "new.go").write_text("a")
    names = [path.name for path in watching.changed(before, watching.files([tmp_path]))]
    assert names == ["gone.go", "kept.go", "new.go"]


def test_what_a_build_writes_is_none(tmp_path: Path) -> None:
    before = watching.files([tmp_path])
    for folder in ("target/classes", "node_modules/x", ".venv/lib", "__pycache__", "bin/Release"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "file").write_text("a")
    assert watching.changed(before, watching.files([tmp_path])) == ()


def test_waiting_ends_when_nothing_more_changes(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    sleep = steps(lambda: None, lambda: one.write_text("a"), lambda: two.write_text("a"))
    assert watching.wait([tmp_path], sleep) == (one, two)
