"""Waits for a file below some folders to change, by looking: no package and no kernel queue to overflow."""

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

EVERY_SECONDS = 0.5
# What builds write, beside what begins with a dot.
BUILT = {"node_modules", "target", "dist", "build", "bin", "obj", "__pycache__", "_build", "deps", "vendor"}

Files = Mapping[Path, tuple[int, int]]  # modification time in nanoseconds, size


def files(folders: Iterable[Path]) -> Files:
    """The sources below the folders as they stand."""
    found: dict[Path, tuple[int, int]] = {}
    for folder in folders:
        for root, names, inside in os.walk(folder):
            names[:] = [name for name in names if name not in BUILT and not name.startswith(".")]
            for name in inside:
                path = Path(root) / name
                try:
                    status = path.stat()
                except OSError:
                    continue  # gone meanwhile, or a link to nowhere
                found[path] = (status.st_mtime_ns, status.st_size)
    return found


def changed(before: Files, after: Files) -> tuple[Path, ...]:
    """The files that are new, gone or different, by path."""
    return tuple(sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path)))


def wait(folders: Iterable[Path], sleep: Callable[[float], None]) -> tuple[Path, ...]:
    """The files that have changed since now, once they have and nothing more changes for a moment."""
    watched = tuple(folders)
    before = files(watched)
    while True:
        sleep(EVERY_SECONDS)
        after = files(watched)
        if after != before:
            break
    while True:  # an editor, or a checkout, writes several
        sleep(EVERY_SECONDS)
        later = files(watched)
        if later == after:
            return changed(before, later)
        after = later
