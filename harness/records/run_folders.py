"""Finds the runs in a results folder."""

import json
import math
import os
import re
from pathlib import Path

from harness.errors import UsageError
from harness.paths import RESULTS
from harness.records.reader import MAX_RUN_INFO_BYTES
from harness.records.safe_read import open_regular, parse_json

START_BYTES = 1 << 16  # number of bytes at the beginning of run.json that usually contain the start time
# The pattern cannot match inside a JSON string, because quotes are escaped there.
START = re.compile(rb'"started_at"\s*:\s*([-+.0-9eE]{1,40})')
NUMBERED_NAME = re.compile(r"(\d{8}-\d{6})-(\d{1,9})")  # runs that start in the same second have a numeric suffix
ROUNDS = "rounds"  # subfolder of a results folder that contains published rounds
ROUND_NAME = re.compile(r"round-(\w+)")  # name of a published round on the command line
MAX_SHOWN_CHARACTERS = 120  # longer names are truncated in messages


def list_runs(results: Path) -> tuple[Path, ...]:
    """Return the folders of all runs, oldest first. Runs with the same start time are ordered by suffix."""
    return tuple(sorted((path.parent for path in results.glob("*/run.json")), key=_order))


def numbered_rounds(rounds: Path) -> list[Path]:
    """Return the folders of the rounds whose names are numbers, oldest first."""
    folders = (folder for folder in rounds.glob("*") if folder.name.isascii() and folder.name.isdecimal())
    return sorted(folders, key=lambda folder: int(folder.name))


def round_title(folder: Path) -> str:
    """Return the title of the published round that contains a run, such as ``Round 1``, or an empty string."""
    return f"Round {folder.parent.name}" if folder.parent.parent.name == ROUNDS else ""


def _find_published(results: Path, number: str) -> Path:
    """Return the latest run of a published round. Search ``results``, then tfb's own results folder."""
    for rounds in (results / ROUNDS, RESULTS / ROUNDS):
        if folders := list_runs(rounds / number):
            return folders[-1]
    available = sorted({path.parents[1].name for path in (RESULTS / ROUNDS).glob("*/*/run.json")})
    names = ", ".join(f"round-{name}" for name in available) or "none"
    raise UsageError(f"round-{number} does not exist in {results / ROUNDS}; available rounds: {names}")


def find_run(results: Path, name: str | None) -> Path:
    """Find a run's folder by id, unique prefix, path, round or "latest". Raises UsageError without a unique match."""
    if name is not None and name != "latest":
        if _holds_run(Path(name)):
            # Resolve links here, because the user may name a link and RunStore does not follow links.
            return Path(name).resolve() if os.sep in name else Path(name)
        if os.sep not in name and _holds_run(results / name):
            return results / name
        if published := ROUND_NAME.fullmatch(name):
            return _find_published(results, published[1])
    folders = list_runs(results)
    if name is None or name == "latest":
        if not folders:
            raise UsageError(f"there is no run in {results}; start a run with ./tfb run")
        return folders[-1]
    matching = [path for path in folders if path.name.startswith(name)]
    if len(matching) != 1:
        names = ", ".join(path.name for path in (matching or folders)[-5:]) or "none"
        error = "is not unique" if matching else "does not exist"
        shortened = name if len(name) <= MAX_SHOWN_CHARACTERS else f"{name[:MAX_SHOWN_CHARACTERS]}…"
        raise UsageError(f"run {shortened!r} {error} in {results}; available runs: {names}")
    return matching[0]


def _holds_run(folder: Path) -> bool:
    """Return whether a folder contains a run.json. Return False if the folder's name is invalid."""
    try:
        return (folder / "run.json").exists()
    except (OSError, ValueError):  # for example, the name is too long or contains a NUL character
        return False


def _order(folder: Path) -> tuple[float, str, int]:
    numbered = NUMBERED_NAME.fullmatch(folder.name)
    return started_at(folder), *((numbered[1], int(numbered[2])) if numbered else (folder.name, 0))


def started_at(folder: Path) -> float:
    """Return when a run started, in epoch seconds.

    If run.json is unreadable, return the file's modification time. If it is missing, return minus infinity.
    """
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
