"""Detects whether head's build, or a program during the measurements, tampers with base.

tfb compares file fingerprints from before and after each phase. They cover the files of base and the control copy. They
also cover the programs that all sides use, which are outside the sides' folders.
"""

import ctypes
import hashlib
import os
import site
import stat
import struct
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from harness.paths import REPOSITORY

# Names that runtimes look for in every parent folder of a program.
READ_ABOVE = frozenset(
    (
        *("node_modules", "package.json", ".npmrc", ".yarnrc.yml", "tsconfig.json", "deno.json", "bunfig.toml"),
        *("pyproject.toml", "Gemfile", "composer.json", "global.json", "nuget.config", "NuGet.Config", "go.work"),
        *("Directory.Build.props", "Directory.Build.targets", "rust-toolchain", "rust-toolchain.toml", ".mvn", ".git"),
        *(".tool-versions", ".node-version", ".nvmrc", ".python-version", ".ruby-version", ".java-version"),
        *(".cargo", ".sdkmanrc"),
    )
)
_CREATE, _MOVED_TO, _OVERFLOW = 0x100, 0x80, 0x4000  # constants from <sys/inotify.h>
_EVENT = struct.Struct("iIII")  # struct inotify_event without the trailing name
_READ_BYTES = 1 << 16
OVERFLOWED = "so many files that tfb missed some of their names"  # reported instead of paths if the queue overflowed
_libc = ctypes.CDLL(None, use_errno=True)


class FolderWatch:
    """A watch for new files with names in ``READ_ABOVE``. It also reports files that existed only briefly."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = folders
        self._before = _present(folders)
        self._made = set[str]()
        # The queue stays open until tfb exits. It is -1 if the kernel allows no more queues.
        self._queue = _libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        self._watched: dict[int, Path] = {}
        for folder in folders if self._queue >= 0 else ():
            number = _libc.inotify_add_watch(self._queue, os.fsencode(folder), _CREATE | _MOVED_TO)
            self._watched[number] = folder

    def created_paths(self) -> set[str]:
        """Return the created paths. Call this method regularly, because the kernel's queue is limited."""
        while data := self._read():
            offset = 0
            while offset < len(data):
                number, mask, _, length = _EVENT.unpack_from(data, offset)
                offset += _EVENT.size
                name = os.fsdecode(data[offset : offset + length].rstrip(b"\0"))
                offset += length
                if mask & _OVERFLOW:
                    self._made.add(OVERFLOWED)
                elif name in READ_ABOVE:
                    self._made.add(str(self._watched[number] / name))
        return self._made | (_present(self._folders) - self._before)

    def _read(self) -> bytes:
        try:
            return os.read(self._queue, _READ_BYTES) if self._queue >= 0 else b""
        except BlockingIOError:
            return b""


def _present(folders: Sequence[Path]) -> set[str]:
    return {str(folder / name) for folder in folders for name in READ_ABOVE if os.path.lexists(folder / name)}


# Suffixes of files that servers may change under load. ``changed_paths`` explains how other changes count.
DATA_SUFFIXES = (
    *(".db", ".sqlite", ".sqlite3", ".log", ".pid", ".lock", ".tmp", "-wal", "-shm", "-journal"),
    "/.git/index",  # git status updates the index
)
CODE_SUFFIXES = (
    *(".py", ".pth", ".so", ".js", ".mjs", ".cjs", ".json", ".node", ".ts", ".jar", ".class", ".rb", ".php", ".dll"),
    *(".sh", ".lua", ".pl", ".pm", ".toml", ".yaml", ".yml", ".properties", ".xml", ".env"),
)
# Folders in the user's home that contain programs and libraries used by builds. Package managers add files to them, but
# never change existing files.
LIBRARIES = (".cargo/bin", ".cargo/registry/src", ".m2/repository", ".nuget/packages", ".rustup/toolchains", "go/pkg")
MAX_LIBRARY_FILES = 300_000


@dataclass(frozen=True)
class Fingerprint:
    """A file's metadata, which every write changes, and the file's mode and content hash."""

    metadata: tuple[int, ...]
    content: str


def _files(root: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the path and the metadata of every file, link and folder below a folder, without following links."""
    pending = [root]
    while pending:
        folder = pending.pop()
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                yield entry.path, entry.stat(follow_symlinks=False)
                if entry.is_dir(follow_symlinks=False):
                    pending.append(Path(entry.path))


def _metadata(status: os.stat_result) -> tuple[int, ...]:
    """Return metadata that every write changes. Programs cannot restore it, because it includes the ctime."""
    return status.st_dev, status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _content(path: str, status: os.stat_result) -> str:
    """Return the mode, followed by the content hash of a file or the target of a link."""
    mode = f"{status.st_mode:o}"
    try:
        if stat.S_ISLNK(status.st_mode):
            return f"{mode} {os.readlink(path)}"  # noqa: PTH115 - keeps the target as a string
        if stat.S_ISREG(status.st_mode):
            with open(path, "rb") as file:  # noqa: PTH123 - path is a string
                return f"{mode} {hashlib.file_digest(file, 'sha256').hexdigest()}"
    except OSError as error:
        return f"{mode} {error.strerror}"
    return mode


def fingerprints(root: Path) -> dict[str, Fingerprint]:
    """Return the fingerprint of each file, link and folder below a folder."""
    return {path: Fingerprint(_metadata(status), _content(path, status)) for path, status in _files(root)}


def changed_paths(root: Path, before: Mapping[str, Fingerprint], *, after_load: bool, separated: bool) -> Iterator[str]:
    """Yield the paths of changed, new and removed files, relative to ``root``.

    If ``after_load`` is set, skip files that servers write, such as logs and databases, and new files that are not
    code. With ``after_load`` and ``separated``, also skip every file that only the owner may write to. With
    ``after_load`` but not ``separated``, also yield files that were rewritten with unchanged content.
    """

    def may_change(path: str) -> bool:
        return after_load and (path.endswith(DATA_SUFFIXES) or (separated and not _others_may_write(path)))

    current_paths = set()
    for path, status in _files(root):
        current_paths.add(path)
        if path not in before:
            is_changed = not after_load or _is_code(path, status)
        else:
            is_changed = _is_changed(path, before[path], status, restored=after_load and not separated)
        if is_changed and not may_change(path):
            yield os.path.relpath(path, root)
    yield from (os.path.relpath(path, root) for path in before.keys() - current_paths if not may_change(path))


def _is_changed(path: str, fingerprint: Fingerprint, status: os.stat_result, *, restored: bool) -> bool:
    """Return whether a file has changed. If ``restored`` is set, rewriting the old content counts as a change."""
    if fingerprint.metadata == _metadata(status):
        return False
    if restored and not stat.S_ISDIR(status.st_mode):
        return True
    size = fingerprint.metadata[3]
    if size != status.st_size and stat.S_ISREG(status.st_mode):
        return True  # the file may be very large, so do not read the content
    return fingerprint.content != _content(path, status)


def _others_may_write(path: str) -> bool:
    """Return whether other accounts may change a file or create files in the same folder."""
    for place in (path, os.path.dirname(path)):  # noqa: PTH120 - pathlib is slow for many files
        with suppress(FileNotFoundError):  # the server has removed the file or the folder
            status = os.lstat(place)
            # Group permissions count, because all sides share a group.
            if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not stat.S_ISLNK(status.st_mode):
                return True
    return False


def _is_code(path: str, status: os.stat_result) -> bool:
    """Return whether a server could load a new file as a program or as configuration."""
    if stat.S_ISDIR(status.st_mode):
        return False
    return stat.S_ISLNK(status.st_mode) or path.endswith(CODE_SUFFIXES) or bool(status.st_mode & 0o111)


def shared_programs() -> dict[str, tuple[int, ...]]:
    """Return the metadata of programs and libraries outside the sides' folders that tfb's account can replace.

    A program folder has empty metadata. It is included so that ``changed_program`` can find new programs in it.
    """
    programs: dict[str, tuple[int, ...]] = {}
    for folder in _writable_program_folders():
        programs[folder] = ()
        with suppress(OSError), os.scandir(folder) as entries:
            programs |= {entry.path: _metadata(entry.stat()) for entry in entries if entry.is_file()}
    # Include tfb's modules, because tfb imports some of them later.
    own = (REPOSITORY / "harness", Path(sysconfig.get_path("purelib")))
    for library in (*own, *(Path.home() / name for name in LIBRARIES)):
        for path, about in _files(library):
            if len(programs) > MAX_LIBRARY_FILES:
                return programs
            if stat.S_ISREG(about.st_mode) and (path.endswith(CODE_SUFFIXES) or about.st_mode & 0o111):
                programs[path] = _metadata(about)
    return programs


def _writable_program_folders() -> list[str]:
    """Return the writable folders on PATH, and the user's Python package folder if it is writable."""
    folders = [*os.environ.get("PATH", "").split(os.pathsep), site.getusersitepackages()]
    return [folder for folder in dict.fromkeys(folders) if folder.startswith("/") and os.access(folder, os.W_OK)]


def changed_program(before: Mapping[str, tuple[int, ...]]) -> str:
    """Return the path of a changed, removed or new program in a shared folder, or an empty string if there is none."""
    for path, metadata in before.items():
        if metadata:
            try:
                about = os.stat(path)  # noqa: PTH116 - pathlib is slow for many files
            except OSError:
                return path
            if metadata != _metadata(about):
                return path
            continue
        with suppress(OSError), os.scandir(path) as entries:
            for entry in entries:
                if entry.path not in before and entry.is_file():
                    return entry.path
    return ""
