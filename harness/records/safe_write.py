"""Creates, appends to and replaces files without following links, for folders that somebody else may have prepared.

Every folder of a path is opened with ``O_NOFOLLOW`` below the descriptor of its parent. A file that is to be written
must be a regular file with one name that belongs to this user or to the owner of its folder. Resolve a path that a
user named with ``Path.resolve`` before: that user may place links in it, the content of a results folder may not.
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
    """Something other than tfb's own file or folder is at a path that tfb has to write."""


@contextmanager
def folder(path: Path, *, make: bool = False) -> Iterator[int]:
    """Yield a descriptor of a folder that no link leads to; ``make`` creates it and its parents.

    Raises UnsafePathError for a link or a file in the path, and OSError as the system does.
    """
    descriptor = os.open("/", _FOLDER)
    try:
        for parent, name in _steps(Path(os.path.abspath(path))):  # noqa: PTH100 - resolve would follow links
            child = _enter(descriptor, name, parent / name, make=make)
            os.close(descriptor)
            descriptor = child
        yield descriptor
    finally:
        os.close(descriptor)


def make_folder(path: Path) -> None:
    """Create a folder and its parents. Raises as ``folder``."""
    with folder(path, make=True):
        pass


def append(path: Path, *, private: bool = False) -> IO[bytes]:
    """Open a file without a buffer to append to; create it if it does not exist.

    A ``private`` file is created for this user only: programs print secrets into their logs.

    Raises UnsafePathError for a file that is not tfb's own, and OSError as the system does.
    """
    return _opened(path, os.O_WRONLY | os.O_APPEND, "ab", 0o600 if private else 0o666)


def update(path: Path) -> IO[bytes]:
    """Open an existing file without a buffer to read and write. Raises as ``append``."""
    return _opened(path, os.O_RDWR, "r+b")


def read(path: Path) -> IO[bytes]:
    """Open a regular file to read, whoever owns it. Raises UnsafePathError for a link on the way to it."""
    with folder(path.parent) as parent:
        descriptor = _open(parent, path, os.O_RDONLY)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    raise UnsafePathError(f"{path}: is not a regular file")


def exists(path: Path) -> bool:
    """Return whether anything has this name, also a link that leads nowhere."""
    return os.path.lexists(path)


def replace(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Write a file beside its place and rename it there, so that a reader never sees half of it.

    ``durable`` waits until file and name are on the disk. Raises as ``append``.
    """
    with replacing(path, durable=durable) as file:
        file.write(data)


@contextmanager
def replacing(path: Path, *, durable: bool = True) -> Iterator[IO[bytes]]:
    """Yield a new file that takes the place of ``path`` at the end of the block. Raises as ``replace``.

    An exception of the block leaves the old file as it was.
    """
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
                os.unlink(name, dir_fd=parent)  # half a file would take room that the records need
            raise
    if durable:
        sync_folder(path.parent)


def replace_for(path: Path, data: bytes, owner: tuple[int, int] | None) -> None:
    """Replace a file in a folder that belongs to another account, which may place links there at any time.

    ``owner``: uid and gid of the new file, which only that account may read; None: those of this process.

    Raises UnsafePathError for a link in place of a folder, and OSError as the system does.
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
    """Wait until the names in a folder are on the disk. Some file systems cannot: then their own order counts."""
    with folder(path) as parent, contextlib.suppress(OSError):
        descriptor = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=parent)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _steps(path: Path) -> Iterable[tuple[Path, str]]:
    """Return each folder of an absolute path after the root, with its parent."""
    return ((Path(*path.parts[:place]), name) for place, name in enumerate(path.parts) if place)


def _enter(parent: int, name: str, path: Path, *, make: bool) -> int:
    """Open one folder below another one."""
    try:
        return os.open(name, _FOLDER, dir_fd=parent)
    except FileNotFoundError:
        if not make:
            raise
    except OSError as error:
        raise _explained(error, parent, name, path, "a folder of tfb") from error
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, dir_fd=parent)
    return _enter(parent, name, path, make=False)


def _explained(error: OSError, parent: int, name: str, path: Path, wanted: str) -> Exception:
    """Return the error that says what stands where a file or folder of tfb has to be."""
    if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.ENXIO, errno.EISDIR):
        with contextlib.suppress(OSError):
            kind = _KINDS.get(stat.S_IFMT(os.lstat(name, dir_fd=parent).st_mode), "another file")
            return UnsafePathError(f"{path}: is {kind} where {wanted} has to be; move it away and try again")
    return OSError(error.errno, error.strerror, str(path))


def _open(parent: int, path: Path, flags: int, mode: int = 0o666) -> int:
    """Open a file below a folder; what is in its place is named."""
    try:
        return os.open(path.name, flags | _FILE, mode, dir_fd=parent)
    except OSError as error:
        raise _explained(error, parent, path.name, path, "a file of tfb") from error


def _opened(path: Path, flags: int, mode: str, permissions: int = 0o666) -> IO[bytes]:
    """Open a file of tfb's own, or create it where ``flags`` only append."""
    with folder(path.parent) as parent:
        created = False
        if flags & os.O_APPEND:
            try:
                descriptor, created = _open(parent, path, flags | os.O_CREAT | os.O_EXCL, permissions), True
            except FileExistsError:
                descriptor = _open(parent, path, flags)
        else:
            descriptor = _open(parent, path, flags)
        try:
            if not created:  # some file systems show another owner than the creator
                require_own(os.fstat(descriptor), parent, path)
            return io.FileIO(descriptor, mode.replace("b", ""))
        except BaseException:
            os.close(descriptor)
            raise


def require_own(found: os.stat_result, parent: int, path: Path) -> None:
    """Raise UnsafePathError unless a file is a regular one with a single name, of this user or its folder's owner."""
    if not stat.S_ISREG(found.st_mode):
        kind = _KINDS.get(stat.S_IFMT(found.st_mode), "another file")
        raise UnsafePathError(f"{path}: is {kind} where a file of tfb has to be; move it away and try again")
    if found.st_nlink > 1:
        raise UnsafePathError(
            f"{path}: is a hard link: {found.st_nlink} names lead to it, and writing would change all. "
            "Remove the link and try again"
        )
    if found.st_uid not in (os.geteuid(), os.stat(".", dir_fd=parent).st_uid):
        raise UnsafePathError(
            f"{path}: belongs to another user (uid {found.st_uid}), so tfb does not write it; remove it and try again"
        )


def _require_replaceable(parent: int, path: Path, name: str) -> bool:
    """Return whether there is a file of this name; raises UnsafePathError unless it is tfb's own."""
    try:
        found = os.lstat(name, dir_fd=parent)
    except FileNotFoundError:
        return False
    require_own(found, parent, path.with_name(name))
    return True


def _temporary(parent: int, path: Path) -> str:
    """Return the name of the new file: what a killed command has left of this name is removed."""
    name = f".{path.name}.new"
    if len(os.fsencode(name)) > 255:  # the most that file systems take
        return f".tfb-{secrets.token_hex(8)}.new"
    if _require_replaceable(parent, path, name):
        os.unlink(name, dir_fd=parent)
    return name
