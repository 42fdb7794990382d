"""Removes a folder tree of any depth, without following links or entering other file systems."""

import contextlib
import errno
import os
import stat
from dataclasses import dataclass
from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
ATTEMPTS = 3  # number of attempts to empty a folder into which a process may still be writing

Identity = tuple[int, int, str]  # device, inode and mount


@dataclass(kw_only=True)
class _Level:
    """A folder on the path from the root of the tree to the folder that is being emptied."""

    name: str
    identity: Identity
    folders: list[str]  # names of subfolders that still have to be removed
    attempts: int = 1


def remove_tree(path: Path, *, expected: tuple[int, int] | None = None) -> None:
    """Remove a folder and everything in it.

    If ``expected`` (device, inode) is given, the folder must match. Raises OSError if a file cannot be removed, or if
    another program replaced a folder.
    """
    parent = os.open(path.parent, _FOLDER & ~os.O_NOFOLLOW)
    try:
        root = _enter(parent, path.name)
        status = os.fstat(root)
        if expected and (status.st_dev, status.st_ino) != expected:
            os.close(root)
            raise OSError(errno.ESTALE, "is no longer the folder that was inspected", str(path))
        _empty(root, path)
        os.rmdir(path.name, dir_fd=parent)
    finally:
        os.close(parent)


def remove_tree_if_possible(path: Path) -> None:
    """Remove a folder as ``remove_tree`` does, but stop silently at the first error."""
    with contextlib.suppress(OSError):
        remove_tree(path)


def _empty(current: int, path: Path) -> None:
    """Remove the content of an open folder and close the folder."""
    try:
        mount = _identity(current)[2]
        levels = [_Level(name="", identity=_identity(current), folders=_clear(current))]
        while True:
            level = levels[-1]
            if level.folders:
                name = level.folders.pop()
                child = _enter(current, name)
                os.close(current)
                current = child
                if _identity(current)[2] != mount:
                    raise OSError(errno.EXDEV, "contains a mounted file system: unmount it first", str(path))
                levels.append(_Level(name=name, identity=_identity(current), folders=_clear(current)))
                continue
            if level.attempts < ATTEMPTS and (new_folders := _clear(current)):
                level.folders, level.attempts = new_folders, level.attempts + 1
                continue
            if len(levels) == 1:
                return
            levels.pop()
            parent = os.open("..", _FOLDER, dir_fd=current)
            os.close(current)
            current = parent
            if _identity(current) != levels[-1].identity:
                raise OSError(errno.ESTALE, "a folder was moved while it was being removed", str(path))
            os.rmdir(level.name, dir_fd=current)
    finally:
        os.close(current)


def _clear(current: int) -> list[str]:
    """Remove all files in an open folder and return the names of the subfolders."""
    folders = []
    with os.scandir(current) as entries:
        children = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_folder in children:
        if is_folder:
            folders.append(name)
            continue
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=current)
    return folders


def _enter(parent: int, name: str) -> int:
    """Open a folder. If this user owns it, add the permissions that are needed to remove the content."""
    try:
        descriptor = os.open(name, _FOLDER, dir_fd=parent)
    except PermissionError:
        handle = os.open(name, _FOLDER | os.O_PATH, dir_fd=parent)
        try:
            os.chmod(f"/proc/self/fd/{handle}", stat.S_IRWXU)  # noqa: PTH101 - a descriptor, not a path
        finally:
            os.close(handle)
        descriptor = os.open(name, _FOLDER, dir_fd=parent)
    status = os.fstat(descriptor)
    if status.st_uid == os.geteuid() and status.st_mode & stat.S_IRWXU != stat.S_IRWXU:
        os.fchmod(descriptor, stat.S_IRWXU)
    return descriptor


def _identity(descriptor: int) -> Identity:
    """Return the device, inode and mount that identify an open folder."""
    status, mount = os.fstat(descriptor), ""
    with contextlib.suppress(OSError):
        lines = Path(f"/proc/self/fdinfo/{descriptor}").read_text(encoding="ascii").splitlines()
        mount = next((line for line in lines if line.startswith("mnt_id:")), "")
    return status.st_dev, status.st_ino, f"{status.st_dev} {mount}"
