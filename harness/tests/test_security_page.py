"""SECURITY.md links each promise to an existing test, and links to each module of adversarial tests."""

import re
from pathlib import Path

from harness.paths import REPOSITORY

PAGE = (REPOSITORY / "SECURITY.md").read_text(encoding="utf-8")
FOLDER = Path("harness/tests/adversarial")
LINKS = re.findall(rf"\[`(\w+)`\]\(({FOLDER}/\w+\.py)\)", PAGE)
ROWS = [line for line in PAGE.splitlines() if re.match(r"\| (?!asset|version|-)", line) and line.count("|") == 5]


def test_every_promise_names_a_test() -> None:
    assert len(ROWS) > 30
    assert [row for row in ROWS if f"]({FOLDER}/" not in row] == []


def test_every_named_test_exists() -> None:
    missing = []
    for name, path in LINKS:
        if f"def {name}(" not in (REPOSITORY / path).read_text(encoding="utf-8"):
            missing.append(f"{path}::{name}")
    assert missing == []


def test_every_adversarial_module_is_linked() -> None:
    modules = {path.relative_to(REPOSITORY).as_posix() for path in (REPOSITORY / FOLDER).glob("test_*.py")}
    # test_scans.py checks only this project's files, so no promise to users links to it.
    assert modules - {path for _, path in LINKS} - {f"{FOLDER}/test_scans.py"} == set()
