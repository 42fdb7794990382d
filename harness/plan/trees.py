"""Finds implementations below a folder at any level of a tree.

A tree contains files ``<Language>/<name>/benchmark_config.json``. The folder may be the checkout that contains the
tree, the tree itself, a language's folder or an implementation's folder.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.paths import CONFIG_FILE

CHECKOUT = "frameworks"  # subfolder of a checkout that is the root of its tree


@dataclass(frozen=True, kw_only=True)
class ImplementationTree:
    """A tree, and the part of it that the user named."""

    root: Path  # parent of the language folders
    part: Path  # the root itself, a language's folder or an implementation's folder

    def folders(self) -> Iterator[Path]:
        """Yield the folders that should contain an implementation, in order. Unreadable folders are omitted."""
        depth = len(self.part.relative_to(self.root).parts)
        folders = [self.part]
        for _ in range(depth, 2):
            folders = [child for folder in folders for child in _folders(folder)]
        yield from folders

    def misplaced(self) -> Iterator[Path]:
        """Yield implementations at the level of language folders."""
        if self.part == self.root:
            yield from (folder for folder in _folders(self.root) if is_implementation(folder))


def find_tree(named: Path) -> ImplementationTree:
    """Return the tree that a folder belongs to."""
    inner = named / CHECKOUT
    if is_implementation(named):
        return ImplementationTree(root=named.parent.parent, part=named)
    # Configurations outside frameworks/, such as TechEmpower's toolset/scaffolding, are ignored.
    if inner.is_dir() and not _holds_implementations(inner):
        return ImplementationTree(root=inner, part=inner)
    if _holds_implementations(named) and not any(map(_is_language, _folders(named))):
        return ImplementationTree(root=named.parent, part=named)
    return ImplementationTree(root=named, part=named)


def is_implementation(folder: Path) -> bool:
    """Return whether a folder contains a configuration file, readable or not."""
    return os.path.lexists(folder / CONFIG_FILE)


def _is_language(folder: Path) -> bool:
    """Return whether a folder contains implementations but is not an implementation itself."""
    return not is_implementation(folder) and _holds_implementations(folder)


def _holds_implementations(folder: Path) -> bool:
    return any(map(is_implementation, _folders(folder)))


def _folders(folder: Path) -> list[Path]:
    """Return the sorted subfolders of a folder, or an empty list if it cannot be read."""
    try:
        return sorted(path for path in folder.iterdir() if path.is_dir())
    except OSError:
        return []
