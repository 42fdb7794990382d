"""Lists the runs in a results folder, and finds runs by name."""

import re
from functools import lru_cache
from pathlib import Path

from harness.dashboard.documents import BrokenRun, RunList, RunSummary
from harness.dashboard.run_documents import PUBLISHED, DashboardRun, FileState, file_state
from harness.errors import StoreError
from harness.records.run_folders import started_at
from harness.report.summary import run_title

RUN_NAME = re.compile(r"[\w][\w.+-]*")  # name of a run's folder: no path separator, and no leading dot
EXCLUDED_FOLDERS = frozenset({"rounds"})  # folders in results/ that contain published runs
MAX_LISTED = 1000  # number of runs in a list
MAX_LISTED_BYTES = 128 << 20  # total size of the run.json files that are read for a list


class ResultsFolder:
    """The runs in a folder, or the published round if the folder contains no runs."""

    def __init__(self, results: Path, *, published: Path | None = None) -> None:
        self.results = results
        self.published = published or results / PUBLISHED

    def folder(self, name: str) -> Path:
        """Return the folder of the run with this name. Raises StoreError if it does not exist."""
        for results in (self.results, self.published):
            folder = results / name
            if RUN_NAME.fullmatch(name) and is_run_folder(folder):
                return folder
        raise StoreError(f"{name!r}: no such run")

    def listed(self) -> RunList:
        """Return all runs, newest first, and the folders with an unreadable run.json."""
        own, broken = _list_runs(self.results)
        found = own or _list_runs(self.published)[0]
        found.sort(key=lambda run: (run.started_at, run.run_id), reverse=True)
        return RunList(runs=tuple(found), broken=tuple(broken))


def is_run_folder(folder: Path) -> bool:
    """Return whether a path is a folder with a valid run name, and not a symbolic link."""
    try:
        own = folder.is_dir() and not folder.is_symlink()
    except OSError:  # the path is not a valid file name
        return False
    return bool(RUN_NAME.fullmatch(folder.name)) and own


def _list_runs(results: Path) -> tuple[list[RunSummary], list[BrokenRun]]:
    """Return the newest runs, and the folders that cannot be read or exceed the limits of a list."""
    runs: list[RunSummary] = []
    broken: list[BrokenRun] = []
    folders = (
        [each for each in results.iterdir() if is_run_folder(each) and each.name not in EXCLUDED_FOLDERS]
        if results.is_dir()
        else []
    )
    if len(folders) > MAX_LISTED:
        folders.sort(key=started_at, reverse=True)
    room = MAX_LISTED_BYTES
    for place, folder in enumerate(folders):
        state = file_state(folder / "run.json")
        room -= max(0, state[0])
        if place >= MAX_LISTED or room < 0:
            left = f"{len(folders) - place} older runs are not listed, because the folder has too many"
            broken.append(
                BrokenRun(run_id=results.name, file="run.json", message=f"{left}. Move old runs to a different folder")
            )
            break
        try:
            runs.append(_summarize_run(folder, state))
        except (StoreError, OSError, ValueError, ArithmeticError, RecursionError) as error:
            file, _, message = str(error).partition(": ")
            broken.append(BrokenRun(run_id=folder.name, file=file, message=message))
    return runs, broken


@lru_cache(maxsize=MAX_LISTED)
def _summarize_run(folder: Path, _state: FileState) -> RunSummary:
    """Return the list entry of a run. The state of run.json is part of the cache key."""
    run = DashboardRun(folder)
    info = run.info
    return RunSummary(
        run_id=run.id,
        title=run_title(info),
        example=run.example,
        status=info.status,
        profile=info.profile,
        started_at=info.started_at,
        completed_at=info.completed_at,
        implementations=tuple(item.name for item in info.implementations),
        test_types=tuple(info.loads),
        machine=f"{info.machine.cpu_model}, {info.machine.cpus_online} CPUs",
        grade=info.machine.grade,
        problems=tuple(run.problems),
    )
