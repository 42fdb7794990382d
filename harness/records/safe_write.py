"""Creates, replaces and appends to files without following links that another user may have placed in a folder.

Each folder in a path is opened with ``O_NOFOLLOW``, relative to the descriptor of the parent folder. An existing file
must be a regular file without additional hard links, and belong to this user or to the owner of the folder.

A path from the user may contain links, so resolve it with ``Path.resolve`` first.
"""

import contextlib
import errno
import io
import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from harness.errors import StoreError

_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_KINDS = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
}


class UnsafePathError(StoreError):
    """An unsafe path: writing would follow a link, or change a special file or another user's file."""


@contextmanager
def folder(path: Path, *, create: bool = False) -> Iterator[int]:
    """Open a folder without following links, and yield the descriptor. ``create`` creates missing folders.

    Raises UnsafePathError if the path contains a link or a file, and OSError for other failures.
    """
    descriptor = os.open("/", _FOLDER)
    try:
        for parent, name in _steps(Path(os.path.abspath(path))):  # noqa: PTH100 - resolve would follow links
            child = _enter(descriptor, name, parent / name, create=create)
            os.close(descriptor)
            descriptor = child
        yield descriptor
    finally:
        os.close(descriptor)


def make_folder(path: Path) -> None:
    """Create a folder and missing parents. Raises the same errors as ``folder``."""
    with folder(path, create=True):
        pass


def append(path: Path, *, private: bool = False) -> IO[bytes]:
    """Open a file for unbuffered appending. Only this user can read a ``private`` file, such as a log with secrets.

    Raises UnsafePathError for special files, hard links and other users' files, and OSError for other failures.
    """
    return _opened(path, os.O_WRONLY | os.O_APPEND, "ab", 0o600 if private else 0o666)


def update(path: Path) -> IO[bytes]:
    """Open an existing file for unbuffered reading and writing. Raises the same errors as ``append``."""
    return _opened(path, os.O_RDWR, "r+b")


def read(path: Path) -> IO[bytes]:
    """Open a regular file of any owner for reading. Raises UnsafePathError if a component of the path is a link."""
    with folder(path.parent) as parent:
        descriptor = _open(parent, path, os.O_RDONLY)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    raise UnsafePathError(f"{path} is not a regular file")


def exists(path: Path) -> bool:
    """Return whether a path exists. A broken link counts as existing."""
    return os.path.lexists(path)


def replace(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Replace a file atomically. ``durable`` waits until it is on disk. Raises the same errors as ``append``."""
    with replacing(path, durable=durable) as file:
        file.write(data)


@contextmanager
def replacing(path: Path, *, durable: bool = True) -> Iterator[IO[bytes]]:
    """Yield a new file that replaces ``path`` at the end of the block, unless the block raises an exception."""
    with folder(path.parent) as parent:
        _require_replaceable(parent, path, path.name)
        name = _temporary(parent, path)
        descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FILE, 0o666, dir_fd=parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                yield file
                file.flush()
                if durable:
                    os.fsync(descriptor)
            os.replace(name, path.name, src_dir_fd=parent, dst_dir_fd=parent)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name, dir_fd=parent)  # a partial file would take up disk space that the records need
            raise
    if durable:
        sync_folder(path.parent)


def replace_for_owner(path: Path, data: bytes, owner: tuple[int, int] | None) -> None:
    """Replace a file in a folder whose owner may place links in it at any time.

    Only ``owner`` (uid, gid) can read the file; None stands for this user. Raises UnsafePathError if the path contains
    a link, and OSError for other failures.
    """
    with folder(path.parent) as parent:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path.name, dir_fd=parent)
        descriptor = os.open(path.name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FILE, 0o600, dir_fd=parent)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            if owner:
                os.fchown(descriptor, *owner)


def sync_folder(path: Path) -> None:
    """Flush a folder's directory entries to disk, if the file system supports it."""
    with folder(path) as parent, contextlib.suppress(OSError):
        descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=parent)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _steps(path: Path) -> Iterable[tuple[Path, str]]:
    """Return (parent path, name) for each component of an absolute path, except the root."""
    return ((Path(*path.parts[:place]), name) for place, name in enumerate(path.parts) if place)


def _enter(parent: int, name: str, path: Path, *, create: bool) -> int:
    """Open a subfolder. ``create`` creates it if it is missing."""
    try:
        return os.open(name, _FOLDER, dir_fd=parent)
    except FileNotFoundError:
        if not create:
            raise
    except OSError as error:
        raise _explained(error, parent, name, path, "a folder") from error
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, dir_fd=parent)
    return _enter(parent, name, path, create=False)


def _explained(error: OSError, parent: int, name: str, path: Path, expected_kind: str) -> Exception:
    """Return an error that names the kind of file at the path, and the kind that tfb needs."""
    if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.ENXIO, errno.EISDIR):
        with contextlib.suppress(OSError):
            kind = _KINDS.get(stat.S_IFMT(os.lstat(name, dir_fd=parent).st_mode), "a file")
            return UnsafePathError(
                f"{path} is {kind}, but tfb needs {expected_kind} here; move it elsewhere and try again"
            )
    return OSError(error.errno, error.strerror, str(path))


def _open(parent: int, path: Path, flags: int, mode: int = 0o666) -> int:
    """Open a file in a folder. If this fails, the error names the kind of file at the path."""
    try:
        return os.open(path.name, flags | _FILE, mode, dir_fd=parent)
    except OSError as error:
        raise _explained(error, parent, path.name, path, "a file") from error


def _opened(path: Path, flags: int, mode: str, permissions: int = 0o666) -> IO[bytes]:
    """Open a file and check that tfb may change it. If ``flags`` contains ``O_APPEND``, create a missing file."""
    with folder(path.parent) as parent:
        is_new = False
        if flags & os.O_APPEND:
            try:
                descriptor, is_new = _open(parent, path, flags | os.O_CREAT | os.O_EXCL, permissions), True
            except FileExistsError:
                descriptor = _open(parent, path, flags)
        else:
            descriptor = _open(parent, path, flags)
        try:
            if not is_new:  # on some file systems, the creator of a new file is not the owner
                require_own(os.fstat(descriptor), parent, path)
            return io.FileIO(descriptor, mode.replace("b", ""))
        except BaseException:
            os.close(descriptor)
            raise


def require_own(status: os.stat_result, parent: int, path: Path) -> None:
    """Raise UnsafePathError unless a file is regular, has no other hard links, and has an accepted owner.

    Accepted owners are this user and the owner of the folder.
    """
    if not stat.S_ISREG(status.st_mode):
        kind = _KINDS[stat.S_IFMT(status.st_mode)]
        raise UnsafePathError(f"{path} is {kind}, but tfb needs a file here; move it elsewhere and try again")
    if status.st_nlink > 1:
        raise UnsafePathError(
            f"{path} has {status.st_nlink} hard links, so writing would change the file under all of its names. Remove "
            "this link and try again"
        )
    if status.st_uid not in (os.geteuid(), os.stat(".", dir_fd=parent).st_uid):
        raise UnsafePathError(
            f"{path} belongs to another user (uid {status.st_uid}), so tfb does not change it; remove it and try again"
        )


def _require_replaceable(parent: int, path: Path, name: str) -> bool:
    """Return whether a file with this name exists. Raises UnsafePathError if tfb must not replace it."""
    try:
        status = os.lstat(name, dir_fd=parent)
    except FileNotFoundError:
        return False
    require_own(status, parent, path.with_name(name))
    return True


def _temporary(parent: int, path: Path) -> str:
    """Return a name for a temporary file next to ``path``. Remove any file that a killed process left there."""
    name = f".{path.name}.new"
    if len(os.fsencode(name)) > 255:  # maximum length in common file systems
        return f".tfb-{secrets.token_hex(8)}.new"
    if _require_replaceable(parent, path, name):
        os.unlink(name, dir_fd=parent)
    return name
