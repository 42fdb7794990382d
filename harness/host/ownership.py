"""Identifies the tfb process that owns a resource. Unlike a pid, an identity is never reused, even after a reboot."""

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Literal

from harness.records import safe_write
from harness.records.remove_tree import remove_tree_if_possible

OwnerState = Literal["alive", "dead", "unknown"]
SCRATCH_PREFIX = "tfb-scratch-"  # prefix of each scratch folder's name
OWNER_FILE = "owner"  # file in a scratch folder that identifies the owner
_parents: list[Path] = []  # new scratch folders are created in the last entry; default: the temporary folder


def own_identity() -> str:
    """Return the identity of this process: ``pid.start.namespace.boot``."""
    return f"{os.getpid()}.{process_start(os.getpid()) or '0'}.{_namespace_and_boot()}"


def owner_state(owner: str) -> OwnerState:
    """Return whether an owner is alive or dead, or "unknown" if it runs on another machine or in another container."""
    pid, start, namespace_and_boot = (*owner.split(".", 2), "", "")[:3]
    if namespace_and_boot != _namespace_and_boot() or not pid.isdecimal() or len(pid) > 9:
        return "unknown"
    return "alive" if process_start(int(pid)) == start else "dead"


def boot_id(owner: str) -> str:
    """Return the boot id in an owner's identity."""
    return owner.rpartition(".")[2]


def _digest(owner: str) -> str:
    return sha256(owner.encode("ascii", "replace")).hexdigest()[:8]


@cache
def _namespace_and_boot() -> str:
    """Return the pid namespace and the boot id of this process."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()[:8]
        return f"{Path('/proc/self/ns/pid').stat().st_ino}.{boot}"
    except OSError:
        return "0.0"


@contextmanager
def scratch_within(folder: Path) -> Iterator[None]:
    """Until the block ends, create this process's scratch folders in ``folder``."""
    _parents.append(folder)
    try:
        yield
    finally:
        _parents.pop()


@contextmanager
def make_scratch_folder(kind: str) -> Iterator[Path]:
    """Yield a new folder with mode 0700, then remove it. If tfb is killed, the owner file identifies the leftover."""
    parent = _parents[-1] if _parents else None
    owner = own_identity()
    folder = Path(tempfile.mkdtemp(prefix=f"{SCRATCH_PREFIX}{kind}-{_digest(owner)}-", dir=parent)).resolve()
    try:
        with safe_write.append(folder / OWNER_FILE) as file:
            file.write(owner.encode("ascii"))
        yield folder
    finally:
        remove_tree_if_possible(folder)


@dataclass(frozen=True, kw_only=True)
class ScratchFolder:
    """A scratch folder that a process of this user created."""

    path: Path
    owner: str  # identity of the owning process; empty if unknown
    changed_at: float  # epoch seconds
    identity: tuple[int, int]  # device and inode; they differ if the folder has been replaced

    def belongs_to(self, owner: str) -> bool:
        """Return whether the folder belongs to ``owner``. If there is no owner file, the folder's name decides."""
        return self.owner == owner or (not self.owner and f"-{_digest(owner)}-" in self.path.name)


def find_scratch_folders() -> Iterator[ScratchFolder]:
    """Yield the scratch folders of this user's processes, sorted by name. Ignore other users' folders, even as root.

    If tfb runs as root, the account of a server or of PostgreSQL may own a scratch folder. tfb recognises the folder by
    its owner file, which belongs to root, so other accounts cannot forge it.
    """
    temporary = Path(tempfile.gettempdir())
    with os.scandir(temporary) as entries:
        names = sorted(entry.name for entry in entries if entry.name.startswith(SCRATCH_PREFIX))
    for name in names:
        with suppress(OSError):
            if scratch := _read_scratch_folder(temporary / name):
                yield scratch


def _read_scratch_folder(path: Path) -> ScratchFolder | None:
    """Return a scratch folder, or None if another user created it. Raises OSError if it cannot be opened."""
    folder = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        status, owner = os.fstat(folder), _read_owner(folder)
    finally:
        os.close(folder)
    if status.st_uid != os.geteuid() and not owner:
        return None
    return ScratchFolder(path=path, owner=owner, changed_at=status.st_mtime, identity=(status.st_dev, status.st_ino))


def _read_owner(folder: int) -> str:
    """Return the owner of an open scratch folder. Return "" unless this user wrote the owner file."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
    try:
        if not stat.S_ISREG(os.lstat(OWNER_FILE, dir_fd=folder).st_mode):
            return ""  # opening a device could have side effects
        descriptor = os.open(OWNER_FILE, flags, dir_fd=folder)
    except OSError:
        return ""
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or status.st_nlink > 1:
            return ""
        return file.read(200).decode("ascii", "replace").strip()


def process_start(pid: int) -> str | None:
    """Return the start time of a process in clock ticks, or None if the process has exited."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]
