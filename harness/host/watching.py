"""Waits for a file below some folders to change, by looking: no package and no kernel queue to overflow."""

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

EVERY_SECONDS = 0.5
# What builds write, beside what begins with a dot.
BUILT = {"node_modules", "target", "dist", "build", "bin", "obj", "__pycache__", "_build", "deps", "vendor"}


def files(folders: Iterable[Path]) -> Mapping[Path, tuple[int, int]]:
    """The sources below the folders as they stand: modification time in nanoseconds, size."""
    found: dict[Path, tuple[int, int]] = {}
    for root, names, inside in (step for folder in folders for step in os.walk(folder)):
        names[:] = [name for name in names if name not in BUILT and not name.startswith(".")]
        for path in (Path(root) / name for name in inside):
            try:
                found[path] = (path.stat().st_mtime_ns, path.stat().st_size)
            except OSError:
                continue  # gone meanwhile, or a link to nowhere
    return found


def wait(folders: Iterable[Path], sleep: Callable[[float], None]) -> tuple[Path, ...]:
    """The files that are new, gone or different, by path, once some are and nothing more changes for a moment."""
    watched = tuple(folders)
    before = last = files(watched)
    while True:
        sleep(EVERY_SECONDS)
        now = files(watched)
        if now == last != before:  # an editor, or a checkout, writes several
            return tuple(sorted(path for path in before.keys() | now.keys() if before.get(path) != now.get(path)))
        last = now
