"""Who made what may outlive its maker: a process by pid, start, namespace and boot, so that no later one is meant."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, Self

State = Literal["alive", "dead", "unknown"]
PREFIX = "tfb-scratch-"  # of the names of all scratch folders
FILE = "owner"  # in a scratch folder: its maker


@dataclass(frozen=True, kw_only=True)
class Owner:
    """A process, as it is written down: ``pid.start.namespace.boot``."""

    pid: int
    start: str  # ticks since the boot
    namespace: str  # of pids
    boot: str

    def __str__(self) -> str:
        return f"{self.pid}.{self.start}.{self.namespace}.{self.boot}"

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """The owner in a text, or None where there is none."""
        parts = text.strip().split(".")
        if len(parts) != 4 or not parts[0].isdecimal() or len(parts[0]) > 9:
            return None
        return cls(pid=int(parts[0]), start=parts[1], namespace=parts[2], boot=parts[3])

    def state(self) -> State:
        """Whether it lives; unknown of another machine or container, whose processes are not seen from here."""
        if (self.boot, self.namespace) != _place():
            return "unknown"
        return "alive" if start_of(self.pid) == self.start else "dead"


@cache
def _place() -> tuple[str, str]:
    """Boot and pid namespace."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()[:8]
        return boot, str(Path("/proc/self/ns/pid").stat().st_ino)
    except OSError:
        return "0", "0"


@contextmanager
def scratch(kind: str) -> Iterator[Path]:
    """A folder of this process's own while it is needed; with its mark, so that a killed run's is told and removed."""
    with tempfile.TemporaryDirectory(prefix=f"{PREFIX}{kind}-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / FILE).write_text(str(me()), encoding="ascii")
        yield folder


def of_folder(folder: Path) -> Owner | None:
    """Who made a scratch folder; None where nobody has written that down."""
    try:
        with (folder / FILE).open(encoding="ascii", errors="replace") as file:
            return Owner.parse(file.read(200))
    except OSError:
        return None


def me() -> Owner:
    """This process."""
    boot, namespace = _place()
    return Owner(pid=os.getpid(), start=start_of(os.getpid()) or "0", namespace=namespace, boot=boot)


def start_of(pid: int) -> str | None:
    """When a living process began, in ticks; None when there is none of that number."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]
