"""Finds the runs of a results folder; their order is that of their recorded starts, never that of their names."""

import json
import math
import os
import re
from pathlib import Path

from harness.errors import UsageError
from harness.records.bounded import open_regular, parse
from harness.records.reader import RUN_BYTES

START_BYTES = 1 << 16  # of run.json, in which the start is looked for before the whole file is read
START = re.compile(rb'"started_at"\s*:\s*([-+.0-9eE]{1,40})')  # a quote within a text has a backslash before it
NAME = re.compile(r"(\d{8}-\d{6})-(\d{1,9})")  # of a run that started in the same second as another one
SHOWN = 120  # characters of a name in a message


def runs(results: Path) -> tuple[Path, ...]:
    """Return the folders of all runs, the one that started first at the beginning.

    Runs with the same start follow by name, where the number behind it counts as a number: ``-2`` before ``-10``.
    """
    return tuple(sorted((path.parent for path in results.glob("*/run.json")), key=_order))


def find(results: Path, wanted: str | None) -> Path:
    """Return a run by id, unique beginning of an id, or path; the latest without one. Raises UsageError."""
    if wanted is not None and wanted != "latest":
        if _holds_run(Path(wanted)):
            # The user may name a link; a link among the runs is not followed when the run is written.
            return Path(wanted).resolve() if os.sep in wanted else Path(wanted)
        if os.sep not in wanted and _holds_run(results / wanted):
            return results / wanted
    known = runs(results)
    if wanted is None or wanted == "latest":
        if not known:
            raise UsageError(f"no run in {results}; make one with ./tfb --test run")
        return known[-1]
    fitting = [path for path in known if path.name.startswith(wanted)]
    if len(fitting) != 1:
        names = ", ".join(path.name for path in (fitting or known)[-5:]) or "none"
        what = "is not unique" if fitting else "does not exist"
        shown = wanted if len(wanted) <= SHOWN else f"{wanted[:SHOWN]}…"
        raise UsageError(f"run {shown!r} {what} in {results}; there are {names}")
    return fitting[0]


def _holds_run(folder: Path) -> bool:
    """Return whether a folder holds a run.json; a name that no file system takes holds none."""
    try:
        return (folder / "run.json").exists()
    except (OSError, ValueError):  # too long, or with a NUL character
        return False


def _order(folder: Path) -> tuple[float, str, int]:
    found = NAME.fullmatch(folder.name)
    return started_at(folder), *((found[1], int(found[2])) if found else (folder.name, 0))


def started_at(folder: Path) -> float:
    """Return the recorded start of a run in epoch seconds; where that cannot be read, when run.json was written."""
    path = folder / "run.json"
    try:
        with open_regular(path) as file:
            data = file.read(START_BYTES)
            found = START.search(data)
            if not found and len(data) == START_BYTES:
                document = parse(data + file.read(RUN_BYTES))
                found = START.search(json.dumps(document).encode())
        if found and math.isfinite(start := float(found[1])):
            return start
    except (OSError, ValueError):
        pass
    try:
        return path.stat().st_mtime
    except OSError:
        return -math.inf
