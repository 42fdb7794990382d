"""Who made what may outlive its maker: a process by pid, start, namespace and boot, so that no later one is meant."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Literal

State = Literal["alive", "dead", "unknown"]
PREFIX = "tfb-scratch-"  # of the names of all scratch folders
FILE = "owner"  # in a scratch folder: its maker


def me() -> str:
    """This process, as it is written down: ``pid.start.namespace.boot``."""
    return f"{os.getpid()}.{start_of(os.getpid()) or '0'}.{_place()}"


def state(owner: str) -> State:
    """Whether a process lives; unknown of another machine or container, whose processes are not seen from here."""
    pid, start, place = (*owner.split(".", 2), "", "")[:3]
    if place != _place() or not pid.isdecimal() or len(pid) > 9:
        return "unknown"
    return "alive" if start_of(int(pid)) == start else "dead"


def boot_of(owner: str) -> str:
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
def scratch(kind: str) -> Iterator[Path]:
    """A folder of this process's own while it is needed; with its mark, so that a killed run's is told and removed."""
    with tempfile.TemporaryDirectory(prefix=f"{PREFIX}{kind}-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / FILE).write_text(me(), encoding="ascii")
        yield folder


def of_folder(folder: Path) -> str:
    """Who made a scratch folder; empty where nobody has written that down."""
    try:
        with (folder / FILE).open(encoding="ascii", errors="replace") as file:
            return file.read(200).strip()
    except OSError:
        return ""


def start_of(pid: int) -> str | None:
    """When a living process began, in ticks; None when there is none of that number."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]
