"""Who made what may outlive its maker: a process by pid, start, namespace and boot, so that no later one is meant."""

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from harness.records import safe_write
from harness.records.remove_tree import remove_tree_if_possible

OwnerState = Literal["alive", "dead", "unknown"]
SCRATCH_PREFIX = "tfb-scratch-"  # of the names of all scratch folders
OWNER_FILE = "owner"  # in a scratch folder: its maker
MARK_BYTES = 200  # of that file, at most
_places: list[Path] = []  # where further scratch folders are made; empty: in the temporary folder


def own_identity() -> str:
    """This process, as it is written down: ``pid.start.namespace.boot``."""
    return f"{os.getpid()}.{process_start(os.getpid()) or '0'}.{_place()}"


def owner_state(owner: str) -> OwnerState:
    """Whether a process lives; unknown of another machine or container, whose processes are not seen from here."""
    pid, start, place = (*owner.split(".", 2), "", "")[:3]
    if place != _place() or not pid.isdecimal() or len(pid) > 9:
        return "unknown"
    return "alive" if process_start(int(pid)) == start else "dead"


def boot_id(owner: str) -> str:
    """The boot in which a process lives or has lived."""
    return owner.rpartition(".")[2]


@cache
def _place() -> str:
    """Pid namespace and boot."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()[:8]
        return f"{Path('/proc/self/ns/pid').stat().st_ino}.{boot}"
    except OSError:
        return "0.0"


@contextmanager
def scratch_within(folder: Path) -> Iterator[None]:
    """Make this process's further scratch folders in a scratch folder of its own."""
    _places.append(folder)
    try:
        yield
    finally:
        _places.pop()


@contextmanager
def make_scratch_folder(kind: str) -> Iterator[Path]:
    """Yield a folder of this process's own, of mode 0700; its mark tells a killed run's folder, which is removed."""
    place = _places[-1] if _places else None
    folder = Path(tempfile.mkdtemp(prefix=f"{SCRATCH_PREFIX}{kind}-", dir=place)).resolve()
    try:
        with safe_write.append(folder / OWNER_FILE) as file:
            file.write(own_identity().encode("ascii"))
        yield folder
    finally:
        remove_tree_if_possible(folder)


@dataclass(frozen=True, kw_only=True)
class ScratchFolder:
    """A scratch folder of this user: whose it is, and what tells it from a folder that took its place."""

    path: Path
    owner: str  # as ``own_identity`` writes it; empty where nobody has written that down
    changed_at: float  # epoch seconds
    identity: tuple[int, int]  # device and inode


def find_scratch_folders() -> Iterator[ScratchFolder]:
    """Yield the scratch folders that processes of this user have made, by name.

    A folder belongs to its maker, or, for servers and PostgreSQL of a run as root, to their account: there the mark in
    it belongs to root, which no other account can imitate. Folders of other users are passed over, also for root.
    """
    place = Path(tempfile.gettempdir())
    with os.scandir(place) as entries:
        names = sorted(entry.name for entry in entries if entry.name.startswith(SCRATCH_PREFIX))
    for name in names:
        with suppress(OSError):
            if found := _scratch(place / name):
                yield found


def _scratch(path: Path) -> ScratchFolder | None:
    """Return a scratch folder of this user, or None; raises OSError for what is no folder or cannot be entered."""
    folder = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        found, owner = os.fstat(folder), _mark(folder)
    finally:
        os.close(folder)
    if found.st_uid != os.geteuid() and not owner:
        return None
    return ScratchFolder(path=path, owner=owner, changed_at=found.st_mtime, identity=(found.st_dev, found.st_ino))


def _mark(folder: int) -> str:
    """Return what this user has written down as the maker of an open scratch folder; empty for anything else."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
    try:
        if not stat.S_ISREG(os.lstat(OWNER_FILE, dir_fd=folder).st_mode):
            return ""  # opening a device may do something
        descriptor = os.open(OWNER_FILE, flags, dir_fd=folder)
    except OSError:
        return ""
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_nlink > 1:
            return ""
        return file.read(MARK_BYTES).decode("ascii", "replace").strip()


def process_start(pid: int) -> str | None:
    """When a living process began, in ticks; None when there is none of that number."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]
