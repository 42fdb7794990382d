"""Every group in ``distribution.GROUPS`` matches existing tests, so renaming a test cannot silently empty it."""

import ast
from collections.abc import Iterator

import pytest

from harness.paths import REPOSITORY
from harness.tests.distribution import GROUPS, LEFTOVERS, group

TESTS = REPOSITORY / "harness" / "tests"


def list_ids() -> Iterator[str]:
    """Yield the id of each test function, without parameters."""
    for path in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                yield f"{path.relative_to(REPOSITORY).as_posix()}::{node.name}"


IDS = tuple(list_ids())


PREFIXES = sorted({prefix for prefixes in GROUPS.values() for prefix in prefixes})


def belongs_to_a_removed_extra(prefix: str) -> bool:
    return prefix.startswith("harness/tests/extras/") and not (REPOSITORY / prefix).is_dir()


@pytest.mark.parametrize("prefix", [each for each in PREFIXES if not belongs_to_a_removed_extra(each)])
def test_every_prefix_matches_a_test(prefix: str) -> None:
    assert [each for each in IDS if each.startswith(prefix)] != []


def test_tests_of_leftovers_share_a_process() -> None:
    assert len([each for each in IDS if group(each) == LEFTOVERS]) == 3
