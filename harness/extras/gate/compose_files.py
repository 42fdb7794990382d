"""Checks that a compose file refers only to files in the repository, before Docker Compose reads these files."""

import os
from collections.abc import Iterator
from pathlib import Path

import yaml

from harness.errors import UsageError

MOST_BYTES = 1 << 20  # maximum size of a compose file in bytes
MOST_NODES = 100_000  # maximum number of values in a compose file after all aliases are expanded
READING_KEYS = ("env_file", "extends", "include", "label_file")  # keys whose values contain file paths
REMOTE = ("://", "git@", "oci:", "github.com/")


def confined(path: Path, root: Path) -> bool:
    """Return whether a path is within ``root``, regardless of the order in which ``..`` and links are resolved.

    Docker Compose removes ``..`` before it follows links. The kernel follows links first. Both resulting paths must be
    within ``root``.
    """
    root = root.resolve()
    ways = (path.resolve(), Path(os.path.normpath(path.absolute())).resolve())
    return all(way == root or root in way.parents for way in ways)


def require_confined(file: Path, root: Path) -> None:
    """Raise UsageError if a compose file, or a file that it includes or extends, reads a file outside ``root``.

    The check covers keys at any depth, because includes and merges can move a key to a different level.
    """
    pending, visited = [file], set[Path]()
    while pending:
        current = pending.pop()
        if not confined(current, root):
            raise UsageError(f"{current}: the file is outside {root}. Keep every compose file in the repository")
        if current.resolve() in visited:
            continue
        visited.add(current.resolve())
        for key, leaf in _paths(_read(current)):
            _require_path(current, key, leaf, root)
            named = current.parent / leaf
            if key in ("extends", "include") and named.is_file():
                pending.append(named)


def _require_path(file: Path, key: str, leaf: str, root: Path) -> None:
    location = f"{file}: {key}: {leaf!r}"
    if key == "project_directory":
        raise UsageError(f"{location}: tfb cannot check paths in a different project directory. Remove the key")
    if "$" in leaf:
        raise UsageError(
            f"{location}: the path contains a variable, so tfb cannot check it. Replace the variable with its value"
        )
    if any(word in leaf for word in REMOTE):
        raise UsageError(f"{location}: the file is remote. Copy it into the repository")
    if (named := file.parent / leaf).exists() and not (named.is_file() or named.is_dir()):
        raise UsageError(f"{location} is not a regular file. Replace it with a regular file")
    if not confined(file.parent / leaf, root):
        raise UsageError(
            f"{location}: the file is outside {root}. Move it to the repository, or list it in service.files"
        )


def _read(file: Path) -> list[yaml.Node]:
    """Parse a YAML file into document nodes. Raises UsageError if the file is missing, too large or invalid."""
    try:
        if not file.is_file():
            raise UsageError(f"{file}: the compose file does not exist. Correct service.compose in tfb.toml")
        if file.stat().st_size > MOST_BYTES:
            raise UsageError(f"{file}: the file has more than {MOST_BYTES} bytes. Shorten it")
        # compose_all returns plain nodes and creates no Python objects, so the file's tags have no effect.
        documents = [node for node in yaml.compose_all(file.read_text(encoding="utf-8"), yaml.SafeLoader) if node]
    except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
        raise UsageError(f"cannot read {file} as a compose file: {str(error)[:300]}") from error
    sizes: dict[int, int] = {}
    pending, counted = list(documents), set[int]()
    while pending:
        node = pending[-1]
        if id(node) not in sizes:
            sizes[id(node)] = 1
            pending += [part for part in _parts(node) if id(part) not in sizes]
            continue
        pending.pop()
        if id(node) not in counted:
            counted.add(id(node))
            sizes[id(node)] = 1 + sum(sizes[id(part)] for part in _parts(node))
    if sum(sizes[id(node)] for node in documents) > MOST_NODES:
        raise UsageError(f"{file}: the aliases expand to more than {MOST_NODES} values. Use fewer aliases")
    return documents


def _parts(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


def _paths(documents: list[yaml.Node]) -> Iterator[tuple[str, str]]:
    """Yield (key, value) for each path and each ``project_directory`` in the values of ``READING_KEYS``."""
    for key, value in _entries(documents):
        if key in READING_KEYS:
            for inner, below in _entries([value]):
                if inner == "project_directory":
                    yield inner, below.value if isinstance(below, yaml.ScalarNode) else ""
            yield from ((key, node.value) for node in _nodes([value]) if isinstance(node, yaml.ScalarNode))


def _entries(documents: list[yaml.Node]) -> Iterator[tuple[str, yaml.Node]]:
    for node in _nodes(documents):
        if isinstance(node, yaml.MappingNode):
            yield from ((key.value, value) for key, value in node.value if isinstance(key, yaml.ScalarNode))


def _nodes(documents: list[yaml.Node]) -> Iterator[yaml.Node]:
    """Yield every node exactly once, even if aliases form a cycle."""
    pending, visited = list(documents), set[int]()
    while pending:
        node = pending.pop()
        if id(node) in visited:
            continue
        visited.add(id(node))
        yield node
        pending += _parts(node)
