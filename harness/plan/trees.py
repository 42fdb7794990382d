"""Finds the folders of implementations below a folder that a user names, which may be any level of a tree.

A tree contains files ``<Language>/<name>/benchmark_config.json``. A user may name the checkout that contains the tree,
the tree itself, a language's folder or an implementation's folder.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.paths import CONFIG_FILE

CHECKOUT = "frameworks"  # folder of a checkout that contains the tree


@dataclass(frozen=True, kw_only=True)
class ImplementationTree:
    """The tree of a named folder, and the part of it that was named."""

    root: Path  # parent of the language folders
    part: Path  # the root itself, a language's folder or an implementation's folder

    def folders(self) -> Iterator[Path]:
        """Yield the folders in which an implementation is expected, in order; unreadable folders are left out."""
        depth = len(self.part.relative_to(self.root).parts)
        folders = [self.part]
        for _ in range(depth, 2):
            folders = [child for folder in folders for child in _folders(folder)]
        yield from folders

    def misplaced(self) -> Iterator[Path]:
        """Yield implementations that are in the place of a language folder."""
        if self.part == self.root:
            yield from (folder for folder in _folders(self.root) if is_implementation(folder))


def find_tree(named: Path) -> ImplementationTree:
    """Return the tree that a named folder belongs to."""
    inner = named / CHECKOUT
    if is_implementation(named):
        return ImplementationTree(root=named.parent.parent, part=named)
    # Ignore configurations outside frameworks/, for example TechEmpower's toolset/scaffolding.
    if inner.is_dir() and not _holds_implementations(inner):
        return ImplementationTree(root=inner, part=inner)
    if _holds_implementations(named) and not any(map(_is_language, _folders(named))):
        return ImplementationTree(root=named.parent, part=named)
    return ImplementationTree(root=named, part=named)


def is_implementation(folder: Path) -> bool:
    """Return whether a folder contains a configuration, even if it cannot be read."""
    return os.path.lexists(folder / CONFIG_FILE)


def _is_language(folder: Path) -> bool:
    """Return whether a folder contains implementations and is not an implementation itself."""
    return not is_implementation(folder) and _holds_implementations(folder)


def _holds_implementations(folder: Path) -> bool:
    return any(map(is_implementation, _folders(folder)))


def _folders(folder: Path) -> list[Path]:
    """Return the subfolders of a folder by name; an empty list if the folder cannot be read."""
    try:
        return sorted(path for path in folder.iterdir() if path.is_dir())
    except OSError:
        return []
