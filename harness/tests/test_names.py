"""Names are unique, so that a search for a class or module finds one definition."""

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from harness.paths import REPOSITORY

HARNESS = REPOSITORY / "harness"
# By convention, any package may contain modules with these names.
SHARED_MODULES = frozenset({"__init__.py", "cli.py", "registry.py"})
SHARED_TEST_MODULES = frozenset({"__init__.py", "conftest.py"})


def sources() -> Iterator[Path]:
    for path in sorted(HARNESS.rglob("*.py")):
        if not {"node_modules", "services"} & set(path.parts):  # services are separate programs
            yield path.relative_to(HARNESS)


def defined(path: Path) -> Iterator[str]:
    """Yield the names of a module's top-level classes and type aliases."""
    for node in ast.parse((HARNESS / path).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name) and target.id[0].isupper() and not target.id.isupper():
                yield target.id


def repeated(places: Mapping[str, list[str]]) -> dict[str, list[str]]:
    return {name: found for name, found in places.items() if len(found) > 1}


def test_no_two_classes_or_aliases_share_a_name() -> None:
    places = defaultdict[str, list[str]](list)
    for path in sources():
        for name in defined(path):
            places[name].append(str(path))
    assert repeated(places) == {}


def test_no_two_modules_share_a_name() -> None:
    product, tests = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
    for path in sources():
        own, shared = (tests, SHARED_TEST_MODULES) if path.parts[0] == "tests" else (product, SHARED_MODULES)
        if path.name not in shared:
            own[path.name].append(str(path))
    assert repeated(product) == {}
    assert repeated(tests) == {}
