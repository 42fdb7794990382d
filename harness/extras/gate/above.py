"""Watches the parent folders of the sides, in which programs look for libraries and settings.

All accounts can write to folders such as /tmp. Head could therefore create a library there while base starts.
"""

import ctypes
import os
import struct
from collections.abc import Sequence
from pathlib import Path

# Names that runtimes look for in all parent folders of a program.
READ_ABOVE = frozenset(
    (
        *("node_modules", "package.json", ".npmrc", ".yarnrc.yml", "tsconfig.json", "deno.json", "bunfig.toml"),
        *("pyproject.toml", "Gemfile", "composer.json", "global.json", "nuget.config", "NuGet.Config", "go.work"),
        *("Directory.Build.props", "Directory.Build.targets", "rust-toolchain", "rust-toolchain.toml", ".mvn", ".git"),
        *(".tool-versions", ".node-version", ".nvmrc", ".python-version", ".ruby-version", ".java-version"),
        *(".cargo", ".sdkmanrc"),
    )
)
_CREATE, _MOVED_TO, _OVERFLOW = 0x100, 0x80, 0x4000  # values from <sys/inotify.h>
_EVENT = struct.Struct("iIII")  # struct inotify_event without the name that follows
_READ_BYTES = 1 << 16
_libc = ctypes.CDLL(None, use_errno=True)


class FolderWatch:
    """A record of the files named in ``READ_ABOVE`` that were created in some folders, even if they were removed."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = folders
        self._before = _present(folders)
        self._made = set[str]()
        # Open until tfb ends; -1 if the limit of queues is reached.
        self._queue = _libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        self._watched: dict[int, Path] = {}
        for folder in folders if self._queue >= 0 else ():
            number = _libc.inotify_add_watch(self._queue, os.fsencode(folder), _CREATE | _MOVED_TO)
            self._watched[number] = folder

    def made(self) -> set[str]:
        """Return the created paths. Call this method regularly, because the kernel's queue is limited."""
        while data := self._read():
            place = 0
            while place < len(data):
                number, mask, _, length = _EVENT.unpack_from(data, place)
                place += _EVENT.size
                name = os.fsdecode(data[place : place + length].rstrip(b"\0"))
                place += length
                if mask & _OVERFLOW:
                    self._made.add("more files than could be watched")
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
