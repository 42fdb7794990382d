"""Lists the runs in a results folder and finds runs by name."""

import re
from functools import lru_cache
from pathlib import Path

from harness.dashboard.documents import BrokenRun, PreparingRun, RunList, RunSummary
from harness.dashboard.run_documents import DashboardRun, FileState, file_state, silence
from harness.errors import StoreError
from harness.records.reader import read_progress
from harness.records.run_folders import ROUNDS, numbered_rounds, started_at

RUN_NAME = re.compile(r"[\w][\w.+-]*")  # valid folder name of a run: no path separator, no leading dot
MAX_LISTED = 1000  # maximum number of runs in a list
MAX_LISTED_BYTES = 128 << 20  # maximum total size of the run.json files that are read for a list


class ResultsFolder:
    """The runs in a results folder and in the published rounds."""

    def __init__(self, results: Path, *, rounds: Path | None = None) -> None:
        self.results = results
        self.rounds = rounds or results / ROUNDS

    def _published(self) -> list[Path]:
        """Return the folders of the published rounds, newest first."""
        return [folder for folder in reversed(numbered_rounds(self.rounds)) if is_run_folder(folder)]

    def folder(self, name: str) -> Path:
        """Return the folder of the run with this name. Raises StoreError if it does not exist."""
        for results in (self.results, *self._published()):
            folder = results / name
            if RUN_NAME.fullmatch(name) and is_run_folder(folder):
                return folder
        raise StoreError(f"{name!r}: no such run")

    def listed(self) -> RunList:
        """Return the user's runs, newest first, followed by the published runs. Also list unreadable folders."""
        runs, broken = _list_runs(self.results)
        preparing = {run.run_id: run for each in broken if (run := _find_preparing(self.results / each.run_id))}
        runs.sort(key=lambda run: (run.started_at, run.run_id), reverse=True)
        published = [run for folder in self._published() for run in _list_runs(folder)[0]]
        return RunList(
            runs=(*runs, *published),
            preparing=tuple(preparing.values()),
            broken=tuple(each for each in broken if each.run_id not in preparing),
        )


def is_run_folder(folder: Path) -> bool:
    """Return whether a path is a folder with a valid run name. Symbolic links do not count."""
    try:
        is_real_folder = folder.is_dir() and not folder.is_symlink()
    except OSError:  # the path is not a valid file name
        return False
    return bool(RUN_NAME.fullmatch(folder.name)) and is_real_folder


def _list_runs(results: Path) -> tuple[list[RunSummary], list[BrokenRun]]:
    """Return the runs, and the folders that cannot be read.

    If the results folder has too many runs, return only the newest. The last entry of the second list then states how
    many runs are omitted.
    """
    runs: list[RunSummary] = []
    broken: list[BrokenRun] = []
    folders = (
        [each for each in results.iterdir() if is_run_folder(each) and each.name != ROUNDS] if results.is_dir() else []
    )
    states = {folder: file_state(folder / "run.json") for folder in folders}
    if len(folders) > MAX_LISTED or sum(max(0, state[0]) for state in states.values()) > MAX_LISTED_BYTES:
        folders.sort(key=started_at, reverse=True)
    free_bytes = MAX_LISTED_BYTES
    for index, folder in enumerate(folders):
        state = states[folder]
        free_bytes -= max(0, state[0])
        if index >= MAX_LISTED or free_bytes < 0:
            message = (
                f"{len(folders) - index} older runs are not listed, because the folder has too many. Move old runs to "
                "a different folder"
            )
            broken.append(BrokenRun(run_id=results.name, file="run.json", message=message))
            break
        try:
            runs.append(_summarize_run(folder, state))
        except (StoreError, OSError, ValueError, ArithmeticError, RecursionError) as error:
            file, _, message = str(error).partition(": ")
            broken.append(BrokenRun(run_id=folder.name, file=file, message=message))
    return runs, broken


def _find_preparing(folder: Path) -> PreparingRun | None:
    """Return the progress of a run that is still being prepared, or None if the folder contains no such run."""
    if (folder / "run.json").exists():
        return None
    progress = read_progress(folder)
    if progress is None or progress.status != "running":
        return None
    return PreparingRun(
        run_id=folder.name,
        stage=progress.stage,
        elapsed=progress.elapsed,
        silent_for=silence([file_state(folder / "progress.json")]),
    )


@lru_cache(maxsize=MAX_LISTED)
def _summarize_run(folder: Path, _state: FileState) -> RunSummary:
    """Return a run's entry in the list. ``_state`` is part of the cache key, so a changed run.json is read again."""
    run = DashboardRun(folder)
    info = run.info
    return RunSummary(
        run_id=run.id,
        title=run.title,
        published=run.published,
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
