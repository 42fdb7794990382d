"""Finds the runs in a results folder."""

import json
import math
import os
import re
from pathlib import Path

from harness.errors import UsageError
from harness.records.reader import MAX_RUN_INFO_BYTES
from harness.records.safe_read import open_regular, parse_json

START_BYTES = 1 << 16  # length of the beginning of run.json that is searched for the start time first
START = re.compile(rb'"started_at"\s*:\s*([-+.0-9eE]{1,40})')  # cannot match inside a string, where quotes are escaped
NAME = re.compile(r"(\d{8}-\d{6})-(\d{1,9})")  # name of a run that started in the same second as an earlier run
MAX_SHOWN_CHARACTERS = 120  # maximum length of a name in a message


def list_runs(results: Path) -> tuple[Path, ...]:
    """Return the folders of all runs, oldest first.

    Runs with the same start time are ordered by name. Numeric suffixes are ordered by value: ``-2`` before ``-10``.
    """
    return tuple(sorted((path.parent for path in results.glob("*/run.json")), key=_order))


def find_run(results: Path, wanted: str | None) -> Path:
    """Return the folder of a run.

    Args:
        results: The results folder.
        wanted: An id, a unique beginning of an id, or a path. None and "latest" select the latest run.

    Raises:
        UsageError: No run matches, or several runs match.
    """
    if wanted is not None and wanted != "latest":
        if _holds_run(Path(wanted)):
            # The user may name a link. Inside the results folder, links are not followed when a run is written.
            return Path(wanted).resolve() if os.sep in wanted else Path(wanted)
        if os.sep not in wanted and _holds_run(results / wanted):
            return results / wanted
    folders = list_runs(results)
    if wanted is None or wanted == "latest":
        if not folders:
            raise UsageError(f"no run in {results}; start a run with ./tfb run")
        return folders[-1]
    matching = [path for path in folders if path.name.startswith(wanted)]
    if len(matching) != 1:
        names = ", ".join(path.name for path in (matching or folders)[-5:]) or "none"
        error = "is not unique" if matching else "does not exist"
        shown = wanted if len(wanted) <= MAX_SHOWN_CHARACTERS else f"{wanted[:MAX_SHOWN_CHARACTERS]}…"
        raise UsageError(f"run {shown!r} {error} in {results}; available runs: {names}")
    return matching[0]


def _holds_run(folder: Path) -> bool:
    """Return whether a folder contains a run.json. Return False for an invalid file name."""
    try:
        return (folder / "run.json").exists()
    except (OSError, ValueError):  # the name is too long, or contains a NUL character
        return False


def _order(folder: Path) -> tuple[float, str, int]:
    numbered = NAME.fullmatch(folder.name)
    return started_at(folder), *((numbered[1], int(numbered[2])) if numbered else (folder.name, 0))


def started_at(folder: Path) -> float:
    """Return the recorded start of a run in epoch seconds. If it is unreadable, return run.json's modification time."""
    path = folder / "run.json"
    try:
        with open_regular(path) as file:
            data = file.read(START_BYTES)
            start_key = START.search(data)
            if not start_key and len(data) == START_BYTES:
                document = parse_json(data + file.read(MAX_RUN_INFO_BYTES))
                start_key = START.search(json.dumps(document).encode())
        if start_key and math.isfinite(start := float(start_key[1])):
            return start
    except (OSError, ValueError):
        pass
    try:
        return path.stat().st_mtime
    except OSError:
        return -math.inf
