"""Opens files inside a folder, and rejects paths that leave the folder through a link or ``..``."""

import errno
import os
import shutil
import stat
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import BinaryIO

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def opened(root: Path, name: str) -> Iterator[BinaryIO]:
    """Open a regular file below ``root``. Raises OSError for any other file, or if the path leaves ``root``."""
    with _located(root, name, create=False) as (folder, last):
        descriptor = os.open(last, READ, dir_fd=folder)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise OSError(errno.EINVAL, "is not a regular file", name)
            yield file


def read(root: Path, name: str, max_bytes: int) -> bytes:
    """Read a file below ``root``. Raises OSError as ``opened`` does, or if the file exceeds ``max_bytes``."""
    with opened(root, name) as file:
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise OSError(errno.EFBIG, f"is larger than {max_bytes / 2**20:g} MiB", name)
    return data


def exists(root: Path, name: str) -> bool:
    """Return whether a path exists below ``root``. Raises OSError if the path leaves ``root``."""
    try:
        with _located(root, name, create=False) as (folder, last):
            os.stat(last, dir_fd=folder, follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def copy(source: Path, name: str, target: Path, copied_name: str) -> None:
    """Copy a regular file to another folder. Raises OSError if the target exists or a path leaves its folder."""
    with (
        opened(source, name) as file,
        _located(target, copied_name, create=True) as (folder, last),
        os.fdopen(os.open(last, CREATE, os.fstat(file.fileno()).st_mode & 0o777, dir_fd=folder), "wb") as copied,
    ):
        shutil.copyfileobj(file, copied)
        os.fchmod(copied.fileno(), os.fstat(file.fileno()).st_mode & 0o777)


def write(root: Path, name: str, data: bytes, mode: int) -> None:
    """Create a file and its parents below ``root``. Raises OSError if the file exists or the path leaves ``root``."""
    with (
        _located(root, name, create=True) as (folder, last),
        os.fdopen(os.open(last, CREATE, mode, dir_fd=folder), "wb") as file,
    ):
        file.write(data)


def remove_socket(root: Path, name: str) -> None:
    """Remove a Unix socket below ``root``, if any. Raises OSError for other files, or if the path leaves ``root``."""
    with suppress(FileNotFoundError), _located(root, name, create=False) as (folder, last):
        if not stat.S_ISSOCK(os.stat(last, dir_fd=folder, follow_symlinks=False).st_mode):
            raise OSError(errno.EINVAL, "is not a socket", name)
        os.unlink(last, dir_fd=folder)


@contextmanager
def opened_socket(root: Path, name: str) -> Iterator[int]:
    """Yield an O_PATH descriptor of a Unix socket below ``root``. Raises OSError if the path is or contains a link."""
    with ExitStack() as stack:
        current = _opened(stack, os.fspath(root), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, None)
        for part in PurePosixPath(name).parts:
            current = _opened(stack, part, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, current)
            if part in ("/", "..") or stat.S_ISLNK(os.fstat(current).st_mode):
                raise OSError(errno.ELOOP, "is a link", part)
        if not stat.S_ISSOCK(os.fstat(current).st_mode):
            raise OSError(errno.EINVAL, "is not a socket", name)
        yield current


def link(root: Path, name: str, target: str | bytes) -> None:
    """Create a symbolic link and missing parent folders below ``root``. Raises OSError as ``write`` does."""
    with _located(root, name, create=True) as (folder, last):
        os.symlink(os.fsdecode(target), last, dir_fd=folder)


@contextmanager
def _located(root: Path, name: str, *, create: bool) -> Iterator[tuple[int, str]]:
    """Resolve a path below ``root``. Yield the descriptor of the parent folder, and the last component.

    Follow links that stay inside ``root``. With ``create``, create missing folders, and do not follow a link in the
    last component.
    """
    parts, links = deque(PurePosixPath(name).parts), 0
    with ExitStack() as stack:
        opened_folders = [_opened(stack, os.fspath(root), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, None)]
        while parts:
            part, current = parts.popleft(), opened_folders[-1]
            if part == "/" or (part == ".." and len(opened_folders) == 1):
                raise OSError(errno.EXDEV, f"leads out of {root}", name)
            if part == "..":
                opened_folders.pop()
            elif (target := None if create and not parts else _target(current, part)) is not None:
                links += 1
                if links > 40:  # Linux has the same limit
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
                parts.extendleft(reversed(PurePosixPath(target).parts))
            elif not parts:
                yield current, part
                return
            else:
                if create:
                    with suppress(FileExistsError):
                        os.mkdir(part, dir_fd=current)
                opened_folders.append(_opened(stack, part, FOLDER, current))
        raise OSError(errno.EISDIR, "is a folder", name)


def _opened(stack: ExitStack, name: str, flags: int, folder: int | None) -> int:
    descriptor = os.open(name, flags, dir_fd=folder)
    stack.callback(os.close, descriptor)
    return descriptor


def _target(folder: int, name: str) -> str | None:
    """Return the target of a link, or None if the path is missing or not a link."""
    with suppress(OSError):
        return os.readlink(name, dir_fd=folder)
    return None
