"""Prepares the sides of a comparison from the values of ``--base`` and ``--head``.

Each value is a target: a revision, a folder, a command, an image, or a running service.
"""

import os
import re
import shutil
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.errors import EnvironmentLacksError, TfbError, UsageError
from harness.extras.gate.runtime import resolve_private_url
from harness.host import ownership
from harness.host.git import Repository, not_checked_out
from harness.plain_text import printable
from harness.plan import service
from harness.records import confined
from harness.report.tables import format_count

# These settings keep the index valid when a side's files change owner.
CONFIG = "[core]\n\trepositoryformatversion = {version}\n\tbare = false\n\ttrustctime = false\n\tcheckStat = minimal\n"
SHA256 = "[extensions]\n\tobjectFormat = sha256\n"


def add_git_folder(source: Repository, commit: str, side: Path) -> str:
    """Create ``.git`` in a side's folder, because some builds need it. Return a note if this fails, otherwise ""."""
    try:
        _create(source, commit, side / ".git")
        repository = Repository(root=side)
        with ownership.make_scratch_folder("pack") as folder:
            tags = source.read("for-each-ref", f"--merged={commit}", "--format=%(objectname) %(refname)", "refs/tags")
            (side / ".git" / "packed-refs").write_bytes(tags.stdout)
            tagged = "".join(f"{line.split()[0]}\n" for line in tags.text.splitlines())
            # First pack the commits and tags, then the commit's files.
            for number, (revisions, *options) in enumerate(
                ((f"{commit}\n{tagged}", "--revs", "--filter=tree:0"), (_objects(source, commit),))
            ):
                wanted, pack = folder / f"wanted{number}", folder / f"pack{number}"
                wanted.write_text(revisions, encoding="utf-8", errors="surrogateescape")
                with pack.open("wb") as output:
                    source.read("pack-objects", "-q", "--stdout", *options, stdin=wanted, output=output)
                repository.read("index-pack", "--stdin", stdin=pack)
        repository.read("read-tree", commit)
        repository.run("update-index", "-q", "--refresh")
    except (TfbError, OSError) as error:
        return f"the sides have no .git folder, which some builds need: {error}"
    return ""


def _create(source: Repository, commit: str, folder: Path) -> None:
    """Create a repository whose HEAD is the commit. The caller adds the objects."""
    for name in ("objects/pack", "refs/heads", "refs/tags", "info"):
        (folder / name).mkdir(parents=True)
    (folder / "HEAD").write_text(f"{commit}\n", encoding="ascii")
    is_sha256 = len(commit) > 40  # a SHA-1 has 40 digits
    text = CONFIG.format(version=int(is_sha256)) + (SHA256 if is_sha256 else "")
    (folder / "config").write_text(text, encoding="ascii")
    if source.read("rev-parse", "--is-shallow-repository").text.strip() == "true":
        roots = source.read("rev-list", "--max-parents=0", commit)
        (folder / "shallow").write_bytes(roots.stdout)


def _objects(source: Repository, commit: str) -> str:
    """Return the object names of a commit's trees and files."""
    listed = source.read("rev-list", "--objects", "--no-walk", "--no-object-names", commit)
    if not listed.text:
        raise UsageError(f"commit {commit} has no files")
    return listed.text


VERDICT_FILES = re.compile(r"\?\? (.*/)?tfb-(verdict|history)[^/]*")  # tfb's output files in the output of git status
FOLDER = "dir:"
# Prefix of a target -> corresponding key of [service].
TARGET_PREFIXES = {"cmd:": "start", "image:": "image", "http:": "url", "https:": "url"}
TWO_FOLDERS = "pass two folders (--base dir:A --head dir:B)"
NAMES_SHOWN = 3


@dataclass(frozen=True, kw_only=True)
class Side:
    """A version to measure: the copied files, the service's folder in the copy, and the parsed tfb.toml."""

    root: Path
    folder: Path
    file: service.ServiceFile
    borrowed: bool = False  # whether the tfb.toml is from a different version or from the working tree


def copy_side(
    repository: Path,
    target: str | None,
    target_folder: Path,
    notes: list[str],
    default_file: service.ServiceFile | None = None,
) -> Side:
    """Create a side in ``target_folder``, and append notes for the report to ``notes``.

    A ``target`` of None means the working tree. ``default_file`` is used if the side has no tfb.toml. Raises UsageError
    for an invalid target.
    """
    start_keys: dict[str, str] = {}
    for prefix, key in TARGET_PREFIXES.items():
        if target and target.startswith(prefix):
            start_keys = {key: target.rstrip("/") if key == "url" else target.removeprefix(prefix)}
    folder = _folder(repository, f"{FOLDER}{repository}" if start_keys else target, target_folder, notes)
    file = default_file if default_file and not os.path.lexists(folder / service.FILE) else _read(target_folder, folder)
    if file is default_file:
        notes.append(f"base has no {service.FILE}: head's file applies to both")
    if start_keys:
        file = file.model_copy(update={"service": file.service.started_by(**start_keys)})
    if url := file.service.url:
        resolve_private_url(url)
        notes.append(f"{url} is already running: CPU time is unknown, so the verdict uses response time")
    for key in ("dockerfile", "compose"):
        if name := getattr(file.service, key):
            _require_inside(target_folder, folder, key, name)
    side = Side(root=target_folder, folder=folder, file=file, borrowed=bool(start_keys) or (file is default_file))
    _copy_listed_files(repository, side)
    notes += filter(None, [_add_git(repository, None if start_keys else target, target_folder)])
    return side


def _add_git(repository: Path, target: str | None, folder_of_side: Path) -> str:
    """Add a ``.git`` folder to a copy of a repository. Return a note if this fails, otherwise an empty string."""
    folder = Path(target.removeprefix(FOLDER)).resolve() if target and target.startswith(FOLDER) else None
    try:
        git = Repository.containing(folder or repository)
        if os.path.lexists(folder_of_side / ".git") or (folder and git.root != folder):
            return ""
        return add_git_folder(git, git.commit("HEAD" if target is None or folder else target), folder_of_side)
    except (UsageError, EnvironmentLacksError):
        return ""  # a folder without git, or a repository without a commit


def divergence_notes(repository: Path, base: str, head: str | None) -> list[str]:
    """Return notes about commits that only one version has. The verdict attributes their effect to head's change."""
    targets = (base, head or "HEAD")
    if any(target.startswith((FOLDER, *TARGET_PREFIXES)) for target in targets):
        return []
    git = _repository(repository)
    first, second = (git.commit(target) for target in targets)
    ancestor = _common_commit(git, first, second)
    notes = []
    if ancestor not in (None, first):
        notes.append(
            f"{base} contains changes that head does not, so the comparison treats them as reverted: use --base "
            f"{ancestor[:12]}"
        )
    return [*notes, *_merged_notes(git, base, first, second)]


def _merged_notes(git: Repository, base: str, first: str, second: str) -> list[str]:
    """Return a list with a note if head (``second``) contains other branches' commits that base (``first``) lacks."""
    if re.search(r"[~^@]", base) or git.run("rev-parse", "--verify", "--quiet", f"refs/tags/{base}").status == 0:
        return []  # the user chose an earlier version on purpose
    branch = base.removeprefix("origin/")
    for newer in (f"refs/remotes/origin/{branch}", "refs/remotes/origin/HEAD", f"refs/heads/{branch}"):
        commit = git.run("rev-parse", "--verify", "--quiet", "--end-of-options", f"{newer}^{{commit}}").text.strip()
        merged = commit and commit != second and _common_commit(git, commit, second)
        if merged and merged != second and (count := _count(git, first, merged)):
            name = newer.removeprefix("refs/remotes/").removeprefix("refs/heads/")
            return [
                f"head contains {format_count(count, 'commit')} from {name} that base does not, so they count "
                f"as head's change: use --base {merged[:12]}"
            ]
    for line in git.run("rev-list", "--first-parent", "--merges", "--parents", f"{first}..{second}").text.splitlines():
        parts = [(parent, count) for parent in line.split()[1:] if (count := _count(git, first, parent))]
        if len(parts) > 1:
            several = " and ".join(f"{parent[:12]} ({format_count(count, 'commit')})" for parent, count in parts)
            return [
                f"head merges {several}, which base lacks: if only one of them is the change, compare with the other "
                "as --base"
            ]
    return []


def _common_commit(git: Repository, first: str, second: str) -> str | None:
    """Return the latest common ancestor of two commits, or None if there is none."""
    parted = git.run("merge-base", first, second)
    return parted.text.strip() if parted.status == 0 else None


def _count(git: Repository, first: str, second: str) -> int:
    """Return the number of commits that ``second`` has and ``first`` lacks."""
    counted = git.run("rev-list", "--count", second, f"^{first}")
    return int(counted.text) if counted.status == 0 else 0


# ---- copies ---------------------------------------------------------------------------------------------------------


def _folder(repository: Path, target: str | None, root: Path, notes: list[str]) -> Path:
    """Copy a revision, a folder (``dir:PATH``) or the working tree (None) to ``root``; return the service's folder."""
    if target and target.startswith(FOLDER):
        return _copy_of_folder(target, Path(target.removeprefix(FOLDER)).resolve(), root)
    git = _repository(repository)
    relative = repository.resolve().relative_to(git.root)
    if target is None:
        _copy_of_working_tree(git, root, notes)
    else:
        notes += git.export(git.commit(target), root)
    folder = root / relative
    if not folder.is_dir() or folder.resolve() != root.resolve() / relative:
        raise UsageError(f"{target or 'the working tree'} has no folder {relative}")
    return folder


def _copy_of_folder(target: str, folder: Path, root: Path) -> Path:
    if not folder.is_dir():
        raise UsageError(f"{target}: {folder} is not a folder")
    try:
        shutil.copytree(folder, root, symlinks=True, ignore=shutil.ignore_patterns(".git"))
    except shutil.Error as error:  # some files cannot be copied, for example the socket of a running server
        source, _, why = error.args[0][0]
        raise UsageError(f"cannot copy {source}: {why}: remove it, or move it elsewhere") from error
    return root


def _copy_of_working_tree(git: Repository, root: Path, notes: list[str], prefix: str = "") -> None:
    """Copy a working tree and its submodules, except for files that git ignores.

    Append notes about uncommitted files and omitted folders. ``prefix`` is the submodule's path in the outer tree.
    """
    root.mkdir(exist_ok=True)
    files, submodules = git.tracked_files()
    untracked = git.read("ls-files", "-z", "--others", "--exclude-standard").names
    for name in (*files, *untracked):
        source, target = git.root / name, f"{prefix}{name}"
        try:
            if name.endswith("/"):
                notes.append(f"{printable(target)} is left out, because it is a separate repository")
            elif source.is_symlink():
                confined.link(root, target, str(source.readlink()))
            elif source.is_file():
                confined.copy(git.root, name, root, target)
        except OSError as error:
            raise UsageError(f"cannot copy {source}: {error.strerror}") from error
    for name in submodules:
        if inner := git.submodule(name):
            _copy_of_working_tree(inner, root, notes, f"{prefix}{name}/")
        else:
            notes.append(not_checked_out(f"{prefix}{name}"))
    options = ("--porcelain", "-z", "--no-renames", "--untracked-files=normal", "--ignore-submodules=dirty")
    changed = git.read("status", *options).names
    if names := [f"{prefix}{entry[3:]}" for entry in changed if not VERDICT_FILES.fullmatch(entry)]:
        notes.append(f"head is the working tree, with uncommitted files: {_some(names)}")


def _repository(folder: Path) -> Repository:
    """Return a folder's repository. If there is none, raise a UsageError that explains how to compare without git."""
    try:
        return Repository.containing(folder)
    except (UsageError, EnvironmentLacksError) as error:
        raise UsageError(f"{error}; or {TWO_FOLDERS}") from error


# ---- files of a side ------------------------------------------------------------------------------------------------


def _name(root: Path, folder: Path, name: str) -> str:
    """Return the path of a service's file relative to ``root``. Keep ``..``, and return absolute paths unchanged."""
    return f"{folder.relative_to(root)}/{name}" if not name.startswith("/") else name


def _read(root: Path, folder: Path) -> service.ServiceFile:
    """Parse a side's tfb.toml. Raises ConfigError if it is invalid, or UsageError if it is outside the repository."""
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
            f"{key}: {name}: {_reason(error)}: it must be a regular file in the service's repository"
        ) from error


def _copy_listed_files(repository: Path, side: Side) -> None:
    """Copy the files and folders in ``service.files`` from the working tree. Skip files that the side already has.

    Raises UsageError for a file outside the repository. Also raises UsageError for a tracked file, because the working
    tree may contain a different version of the file. Skip tracked files in a listed folder.
    """
    names = side.file.service.files
    if not names:
        return
    try:
        git: Repository | None = Repository.containing(repository)
    except (UsageError, EnvironmentLacksError):
        git = None  # without git, the service's folder counts as the repository
    root = git.root.resolve() if git else repository.resolve()
    tracked = set(git.read("ls-files", "-z", "--cached").names) if git else set()
    for name in names:
        source = _name(root, repository.resolve(), name)
        target = _name(side.root, side.folder, name)
        path = (root / source).resolve()
        if path.is_dir() and path.is_relative_to(root):
            copies = [
                (str((folder / each).relative_to(root)), f"{target}/{(folder / each).relative_to(path)}")
                for folder, each in _files_below(path)
            ]
            copies = [(each, copied) for each, copied in copies if each not in tracked]
        else:
            copies = [(source, target)]
        for original, copy in copies:
            if not _exists(side, copy, name):
                _require_untracked(root, original, name, tracked)
                try:
                    if original != source and (root / original).is_symlink():
                        confined.link(side.root, copy, str((root / original).readlink()))
                    else:
                        confined.copy(root, original, side.root, copy)
                except OSError as error:
                    raise UsageError(f"service.files: cannot copy {root / original}: {_reason(error)}") from error


def _files_below(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield the files and links in a folder, except for git's files."""
    for place, folders, files in os.walk(folder):
        folders[:] = [each for each in folders if each.lower() != ".git"]
        links = [each for each in folders if Path(place, each).is_symlink()]
        yield from ((Path(place), each) for each in sorted((*files, *links)) if each.lower() != ".git")


def _require_untracked(root: Path, source: str, name: str, tracked: Container[str]) -> None:
    """Raise UsageError for files in ``.git`` and for tracked files."""
    places = (Path(os.path.normpath(root / source)), (root / source).resolve())
    relative_paths = [place.relative_to(root) for place in places if place.is_relative_to(root)]
    if any(part.lower() == ".git" for place in relative_paths for part in place.parts):
        raise UsageError(
            f"service.files: {name}: tfb does not copy git's own files, which may contain credentials: remove the entry"
        )
    if any(str(place) in tracked for place in relative_paths):
        raise UsageError(
            f"service.files: {name}: git tracks the file, but this version does not contain it. tfb copies only "
            "untracked files: remove the entry"
        )


def _exists(to: Side, copied: str, name: str) -> bool:
    try:
        return confined.exists(to.root, copied)
    except OSError as error:
        raise UsageError(f"service.files: cannot copy {name}: {_reason(error)}") from error


def _reason(error: OSError) -> str:
    return error.strerror or str(error)


def _some(names: Iterable[str]) -> str:
    known = list(map(printable, names))
    more = f" and {len(known) - NAMES_SHOWN} more" if known[NAMES_SHOWN:] else ""
    return f"{', '.join(known[:NAMES_SHOWN])}{more}"
