"""The sides of a comparison: copies of revisions and folders, or commands, images and running services."""

import os
import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from harness.errors import EnvironmentLacksError, UsageError
from harness.extras.gate.runtime import require_private_address
from harness.host.git import Repository
from harness.plan import service
from harness.records import confined

VERDICT_FILES = re.compile(r"\?\? (.*/)?tfb-(verdict|history)[^/]*")  # files with verdicts in the output of git status
FOLDER = "dir:"
# Prefix of a target -> corresponding key of [service].
TARGET_PREFIXES = {"cmd:": "start", "image:": "image", "http:": "url"}
TWO_FOLDERS = "give two folders (--base dir:A --head dir:B)"
NAMES_SHOWN = 3


@dataclass(frozen=True, kw_only=True)
class Side:
    """A copy of a repository or folder, the service's folder in the copy, and the parsed tfb.toml."""

    root: Path
    folder: Path
    file: service.ServiceFile


def copy_side(
    repository: Path, target: str | None, place: Path, notes: list[str], usual: service.ServiceFile | None = None
) -> Side:
    """Make a side in ``place``; ``target`` None means the working tree.

    ``usual`` is used if the side has no tfb.toml. Raises UsageError for a target that cannot be a side.
    """
    way: dict[str, str] = {}
    for prefix, key in TARGET_PREFIXES.items():
        if target and target.startswith(prefix):
            way = {key: target.rstrip("/") if key == "url" else target.removeprefix(prefix)}
    if target and target.startswith("https:"):
        raise UsageError(f"{target}: tfb has no TLS: give the http:// address behind it")
    folder = _folder(repository, f"{FOLDER}{repository}" if way else target, place, notes)
    file = usual if usual and not os.path.lexists(folder / service.FILE) else _read(place, folder)
    if file is usual:
        notes.append(f"base has no {service.FILE}: head's is used for both")
    if way:
        file = file.model_copy(update={"service": file.service.started_by(**way)})
    if url := file.service.url:
        require_private_address(url)
        notes.append(f"{url} runs already: its CPU is not known, so response time decides; tfb does not restart it")
    for key in ("dockerfile", "compose"):
        if name := getattr(file.service, key):
            _require_inside(place, folder, key, name)
    _bring(repository, Side(root=place, folder=folder, file=file))
    return Side(root=place, folder=folder, file=file)


def divergence_notes(repository: Path, base: str, head: str | None) -> list[str]:
    """Return a note if base has commits that head lacks, because the comparison treats them as reverted by head."""
    targets = (base, head or "HEAD")
    if any(target.startswith((FOLDER, *TARGET_PREFIXES)) for target in targets):
        return []
    git = _repository(repository)
    first, second = (git.commit(target) for target in targets)
    parted = git.run("merge-base", first, second)
    if parted.status != 0 or (common := parted.text.strip()) == first:
        return []
    return [
        f"{base} has changes that head lacks, which count as if head had undone them: compare with --base {common[:12]}"
    ]


# ---- copies ---------------------------------------------------------------------------------------------------------


def _folder(repository: Path, target: str | None, place: Path, notes: list[str]) -> Path:
    """Copy a revision, a folder (``dir:PATH``) or the working tree (None) to ``place``; return the service's folder."""
    if target and target.startswith(FOLDER):
        return _copy_of_folder(target, Path(target.removeprefix(FOLDER)).resolve(), place)
    git = _repository(repository)
    inside = repository.resolve().relative_to(git.top)
    if (git.top / ".gitmodules").exists():
        notes.append(f"submodules are not included: {TWO_FOLDERS} where they are needed")
    if target is None:
        _copy_of_working_tree(git, place, notes)
    else:
        notes += git.export(git.commit(target), place)
    folder = place / inside
    if not folder.is_dir() or folder.resolve() != place.resolve() / inside:
        raise UsageError(f"{target or 'the working tree'} has no folder {inside}")
    return folder


def _copy_of_folder(target: str, folder: Path, place: Path) -> Path:
    if not folder.is_dir():
        raise UsageError(f"{target}: {folder} is not a folder")
    try:
        shutil.copytree(folder, place, symlinks=True, ignore=shutil.ignore_patterns(".git"))
    except shutil.Error as error:  # some files cannot be copied, for example the socket of a running server
        source, _, why = error.args[0][0]
        raise UsageError(f"{source} cannot be copied: {why}: remove it, or move it elsewhere") from error
    return place


def _copy_of_working_tree(git: Repository, place: Path, notes: list[str]) -> None:
    """Copy the files of a working tree that git does not ignore. Add a note about uncommitted files."""
    place.mkdir()
    for name in dict.fromkeys(git.read("ls-files", "-z", "-co", "--exclude-standard").names):
        source = git.top / name
        try:
            if source.is_symlink():
                confined.link(place, name, str(source.readlink()))
            elif source.is_file():
                confined.copy(git.top, name, place, name)
        except OSError as error:
            raise UsageError(f"{source} cannot be copied: {error.strerror}") from error
    changed = git.read("status", "--porcelain", "-z", "--no-renames", "--ignore-submodules=all").names
    if names := [entry[3:] for entry in changed if not VERDICT_FILES.fullmatch(entry)]:
        notes.append(f"head is the working tree with files that are not committed: {_some(names)}")


def _repository(folder: Path) -> Repository:
    """Return the repository of a folder. Otherwise, raise UsageError that explains how to compare without git."""
    try:
        return Repository.containing(folder)
    except (UsageError, EnvironmentLacksError) as error:
        raise UsageError(f"{error}; or {TWO_FOLDERS}") from error


# ---- files of a side ------------------------------------------------------------------------------------------------


def _name(root: Path, folder: Path, name: str) -> str:
    """Return the path of a file of the service relative to the root, keeping ``..`` parts."""
    return f"{folder.relative_to(root)}/{name}" if not name.startswith("/") else name


def _read(root: Path, folder: Path) -> service.ServiceFile:
    """Return the tfb.toml of a side. Raises ConfigError if it is invalid and UsageError if it is a link to outside."""
    if os.path.lexists(folder / service.FILE):
        _require_inside(root, folder, service.FILE, service.FILE)
    return service.read_service(folder)


def _require_inside(root: Path, folder: Path, key: str, name: str) -> None:
    """Raise UsageError if a side's file is missing, is not a regular file, or is outside the repository."""
    try:
        with confined.opened(root, _name(root, folder, name)):
            pass
    except OSError as error:
        raise UsageError(
            f"{key}: {name}: {_reason(error)}: it has to be a regular file of the service's repository"
        ) from error


def _bring(repository: Path, to: Side) -> None:
    """Copy the files of ``service.files`` that a side lacks from the working tree.

    Raises UsageError for a file outside the repository, and for a file that git tracks, which would be head's version.
    """
    lacking = [name for name in to.file.service.files if not _lacks_nothing(to, name)]
    if not lacking:
        return
    try:
        git: Repository | None = Repository.containing(repository)
    except (UsageError, EnvironmentLacksError):
        git = None  # without git, files outside the folder are not copied
    top = git.top if git else repository.resolve()
    tracked = set(git.read("ls-files", "-z", "--cached").names) if git else set()
    for name in lacking:
        source = _name(top, repository.resolve(), name)
        target = _name(to.root, to.folder, name)
        places = (Path(os.path.normpath(top / source)), (top / source).resolve())
        within = [place.relative_to(top) for place in places if place.is_relative_to(top)]
        if any(part.lower() == ".git" for place in within for part in place.parts):
            raise UsageError(
                f"service.files: {name}: git's own files may hold credentials and are not copied: remove the name"
            )
        if any(str(place) in tracked for place in within):
            raise UsageError(
                f"service.files: {name}: git tracks it in the working tree, and this side lacks it: only files that "
                "git does not have are copied"
            )
        try:
            confined.copy(top, source, to.root, target)
        except OSError as error:
            raise UsageError(f"service.files: {repository / name} cannot be copied: {_reason(error)}") from error


def _lacks_nothing(to: Side, name: str) -> bool:
    try:
        return confined.exists(to.root, _name(to.root, to.folder, name))
    except OSError as error:
        raise UsageError(f"service.files: {name} cannot be copied: {_reason(error)}") from error


def _reason(error: OSError) -> str:
    return error.strerror or str(error)


def _some(names: Iterable[str]) -> str:
    known = list(names)
    more = f" and {len(known) - NAMES_SHOWN} more" if known[NAMES_SHOWN:] else ""
    return f"{', '.join(known[:NAMES_SHOWN])}{more}"
