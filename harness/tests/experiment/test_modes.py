"""``./tfb verify``: what is left to an author is said once the code passes."""

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
