"""What a run that was killed has left on this machine: processes and scratch folders, told by their owner's mark."""

import contextlib
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import psutil

from harness.host import ownership, process
from harness.host.ownership import Owner
from harness.plain_text import printable

END_SECONDS = 5.0  # what PostgreSQL has for its immediate shutdown


@dataclass(frozen=True, kw_only=True)
class Leftover:
    """Something that its maker can no longer remove; ``certain`` where the maker is known to be dead."""

    kind: Literal["process", "folder", "container", "network"]
    name: str  # for a person: ``postgres (pid 812)``
    certain: bool
    remove: Callable[[], None]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


def on_this_machine() -> tuple[Leftover, ...]:
    """Processes first: they use the folders."""
    return (*_processes(), *_folders(Path(tempfile.gettempdir())))


def remove(found: Sequence[Leftover]) -> tuple[str, ...]:
    """Remove them in their order; what could not be removed, and why."""
    kept = []
    for leftover in found:
        try:
            leftover.remove()
        except (OSError, psutil.Error) as error:
            kept.append(f"{leftover}: {error}")
    return tuple(kept)


def owner_of(mark: str) -> Owner | None:
    """The harness in a child's mark, ``pid.number.start.namespace.boot``."""
    pid, _, rest = mark.partition(".")
    return Owner.parse(f"{pid}.{rest.partition('.')[2]}")


def _processes() -> Iterator[Leftover]:
    for candidate in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            owner = owner_of(candidate.environ().get(process.MARK, ""))
            if owner and owner.state() == "dead" and candidate.status() != psutil.STATUS_ZOMBIE:
                name = printable(f"{candidate.name()} (pid {candidate.pid})")
                yield Leftover(kind="process", name=name, certain=True, remove=lambda p=candidate: _end(p))  # type: ignore[misc]


def _end(candidate: psutil.Process) -> None:
    """PostgreSQL by its immediate shutdown, which gives its shared memory back; all others at once."""
    with contextlib.suppress(psutil.NoSuchProcess):
        if candidate.name() == "postgres":
            candidate.send_signal(signal.SIGQUIT)
            with contextlib.suppress(psutil.TimeoutExpired):
                candidate.wait(END_SECONDS)
                return
        candidate.kill()
        try:
            candidate.wait(END_SECONDS)
        except psutil.TimeoutExpired:
            if candidate.status() != psutil.STATUS_ZOMBIE:  # dead, and its parent has not looked yet
                raise


def _folders(below: Path) -> Iterator[Leftover]:
    try:
        names = sorted(below.glob("tfb-*"))
    except OSError:
        return
    for folder in names:
        try:
            with (folder / ownership.FILE).open("rb") as file:
                owner = Owner.parse(file.read(200).decode(errors="replace"))
            mine = folder.stat().st_uid in (os.geteuid(), 0) or os.geteuid() == 0
        except OSError:
            continue
        if mine and owner and owner.state() == "dead" and not folder.is_symlink():
            yield Leftover(kind="folder", name=str(folder), certain=True, remove=lambda f=folder: shutil.rmtree(f))  # type: ignore[misc]
