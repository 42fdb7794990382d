"""Finds implementations in a checkout, in a tree (``<Language>/<name>/benchmark_config.json``) or in a subfolder."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.paths import CONFIG_FILE

CHECKOUT = "frameworks"  # the subfolder of a checkout that contains the tree


@dataclass(frozen=True, kw_only=True)
class ImplementationTree:
    """A tree, and the folder in the tree that the user named."""

    root: Path  # parent of the language folders
    part: Path  # the root itself, a language's folder or an implementation's folder

    def folders(self) -> Iterator[Path]:
        """Yield the folders that should contain an implementation, sorted by path. Omit unreadable folders."""
        depth = len(self.part.relative_to(self.root).parts)
        folders = [self.part]
        for _ in range(depth, 2):
            folders = [child for folder in folders for child in _folders(folder)]
        yield from folders

    def misplaced(self) -> Iterator[Path]:
        """Yield implementations that are directly below the root, where only language folders belong."""
        if self.part == self.root:
            yield from (folder for folder in _folders(self.root) if is_implementation(folder))


def find_tree(folder: Path) -> ImplementationTree:
    """Return the tree that a folder contains or belongs to."""
    inner = folder / CHECKOUT
    if is_implementation(folder):
        return ImplementationTree(root=folder.parent.parent, part=folder)
    # Ignore configurations outside frameworks/, such as TechEmpower's toolset/scaffolding.
    if inner.is_dir() and not _holds_implementations(inner):
        return ImplementationTree(root=inner, part=inner)
    if _holds_implementations(folder) and not any(map(_is_language, _folders(folder))):
        return ImplementationTree(root=folder.parent, part=folder)
    return ImplementationTree(root=folder, part=folder)


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
