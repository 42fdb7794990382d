"""Finds the folders of implementations below a folder that a user names, whichever level of a tree it is.

A tree holds ``<Language>/<name>/benchmark_config.json``. A user may name the checkout around the tree, the tree itself,
one language's folder or one implementation's folder.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.paths import CONFIG_FILE

CHECKOUT = "frameworks"  # folder of a checkout that holds the tree


@dataclass(frozen=True, kw_only=True)
class Tree:
    """The tree of a named folder, and the part of it that was named."""

    root: Path  # holds the language folders
    part: Path  # the root itself, a language's folder or an implementation's folder

    def folders(self) -> Iterator[Path]:
        """Yield the folders in which an implementation is expected, in order; unreadable folders are left out."""
        depth = len(self.part.relative_to(self.root).parts)
        found = [self.part]
        for _ in range(depth, 2):
            found = [child for folder in found for child in _folders(folder)]
        yield from found

    def misplaced(self) -> Iterator[Path]:
        """Yield folders one level too high: they hold a configuration, but stand where a language should."""
        if self.part == self.root:
            yield from (folder for folder in _folders(self.root) if is_implementation(folder))


def find(named: Path) -> Tree:
    """Return the tree that a named folder belongs to."""
    inner = named / CHECKOUT
    if is_implementation(named):
        return Tree(root=named.parent.parent, part=named)
    # Checkouts hold further configurations, such as TechEmpower's toolset/scaffolding: only frameworks/ counts.
    if inner.is_dir() and not _holds_implementations(inner):
        return Tree(root=inner, part=inner)
    if _holds_implementations(named) and not any(map(_is_language, _folders(named))):
        return Tree(root=named.parent, part=named)
    return Tree(root=named, part=named)


def is_implementation(folder: Path) -> bool:
    """Tell whether a folder has a configuration, readable or not."""
    return os.path.lexists(folder / CONFIG_FILE)


def _is_language(folder: Path) -> bool:
    """Tell whether a folder holds implementations and is none itself."""
    return not is_implementation(folder) and _holds_implementations(folder)


def _holds_implementations(folder: Path) -> bool:
    return any(map(is_implementation, _folders(folder)))


def _folders(folder: Path) -> list[Path]:
    """Return the folders in a folder by name; empty for a folder that cannot be read."""
    try:
        return sorted(path for path in folder.iterdir() if path.is_dir())
    except OSError:
        return []
