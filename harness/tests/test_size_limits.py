"""Size limits for modules, approved outputs, the function that executes a run, and test names."""

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

from harness.experiment.workflow import benchmark
from harness.paths import REPOSITORY

HARNESS = REPOSITORY / "harness"
TESTS = HARNESS / "tests"
MODULE_LINES = 400
APPROVED_LINES = 1500
BENCHMARK_LINES = 25
TEST_NAME_WORDS = 8
BUILT = {"node_modules", "target", "dist"}


def sources(folder: Path, suffix: str) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob(f"*{suffix}")) if not BUILT & set(path.parts))


def lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def test_modules_have_at_most_400_lines() -> None:
    product = [path for path in sources(HARNESS, ".py") if TESTS not in path.parents]
    rust = [*sources(REPOSITORY / "toolset", ".rs"), *sources(TESTS / "fuzz" / "rust", ".rs")]

    assert {str(path): lines(path) for path in (*product, *rust) if lines(path) > MODULE_LINES} == {}


def test_approved_outputs_have_at_most_1500_lines() -> None:
    assert sum(map(lines, (TESTS / "approved").glob("*"))) <= APPROVED_LINES


def test_a_run_is_a_short_list_of_stages() -> None:
    assert len(inspect.getsource(benchmark).splitlines()) <= BENCHMARK_LINES


def test_no_record_is_built_from_vars() -> None:
    spread = [
        f"{path.relative_to(HARNESS)}:{node.lineno}"
        for path in sources(HARNESS, ".py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.keyword) and node.arg is None and "vars(" in ast.unparse(node.value)
    ]

    assert spread == []


def test_test_names_have_at_most_eight_words() -> None:
    long = [
        f"{path.relative_to(TESTS)}: {node.name}"
        for path in sources(TESTS, ".py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
        and node.name.startswith("test_")
        and node.name.count("_") > TEST_NAME_WORDS
    ]

    assert long == []
