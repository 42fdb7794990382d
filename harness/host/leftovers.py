"""What a run that was killed has left on this machine: processes and scratch folders, told by their owner's mark.

``python -m harness.host.leftovers OWNER`` removes what one owner has left: the guardian of its children runs it.
"""

import contextlib
import os
import shutil
import signal
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psutil

from harness.host import accounts, guardian, ownership, process, spawn
from harness.plain_text import printable

LEDGER_BYTES = 1 << 20
LOOKS = 5
ROUNDS = 10  # of looking for what was being started meanwhile


@dataclass(frozen=True, kw_only=True)
class Leftover:
    """Something that its maker can no longer remove; ``certain`` where the maker is known to be dead."""

    kind: str  # process, folder, container or network
    name: str  # for a person: ``postgres (pid 812)``
    certain: bool
    remove: Callable[[], None]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


def on_this_machine() -> tuple[Leftover, ...]:
    """Of anybody who is dead. Processes first: they use the folders."""
    return (*_processes(), *folders())


def remove(found: Sequence[Leftover]) -> tuple[str, ...]:
    """Remove them in their order; what could not be removed, and why."""
    kept = []
    for leftover in found:
        try:
            leftover.remove()
        except (OSError, psutil.Error) as error:
            kept.append(f"{leftover}: {error}")
    return tuple(kept)


def _processes(of: str | None = None) -> Iterator[Leftover]:
    """Yield the processes of an owner, or of all dead ones: by uid, by pid and start, or by mark."""
    yield from _accounts(of)
    listed = dict(_listed(of))
    for candidate in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            told = listed.get((candidate.pid, ownership.start_of(candidate.pid) or ""))
            known = (told is not None and told in (0, candidate.uids().real)) or _marked(candidate, of)
            if known and candidate.pid != os.getpid() and candidate.status() != psutil.STATUS_ZOMBIE:
                name = printable(f"{candidate.name()} (pid {candidate.pid})")
                yield Leftover(kind="process", name=name, certain=True, remove=partial(_end, candidate))


def _accounts(of: str | None) -> Iterator[Leftover]:
    """Yield the accounts of an owner's servers that still have processes, each as a whole: none can fork away."""
    uids = {uid for uid, owner in accounts.claimed() if _gone(owner, of)} if os.geteuid() == 0 else set()
    for _ in range(LOOKS if uids else 0):  # a process that hands on its work to a child is easily overlooked
        for candidate in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                uid = candidate.uids().real
                if uid in uids and candidate.status() != psutil.STATUS_ZOMBIE:
                    uids.discard(uid)
                    name = printable(f"{candidate.name()} and all else of uid {uid}")
                    yield Leftover(kind="process", name=name, certain=True, remove=partial(_end_account, uid))


def _end_account(uid: int) -> None:
    for _ in range(guardian.SWEEPS):
        if not guardian.kill_account(uid):
            return
        time.sleep(0.01)


def _gone(owner: str, of: str | None) -> bool:
    return owner == of if of else ownership.state(owner) == "dead"


def _marked(candidate: psutil.Process, of: str | None) -> bool:
    with contextlib.suppress(psutil.Error, OSError):
        return _gone(candidate.environ().get(process.MARK, "").rpartition(".")[0], of)
    return False


def _listed(of: str | None) -> Iterator[tuple[tuple[int, str], int]]:
    """Yield ((pid, start), uid of the list's owner) of what the guardian of an owner has written down."""
    for folder in sorted(Path(tempfile.gettempdir()).glob(f"{ownership.PREFIX}guardian-*")):
        with contextlib.suppress(OSError, ValueError):
            facts = folder.lstat()
            if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.geteuid() != 0:
                continue
            if _gone(ownership.of_folder(folder), of):
                for line in _lines(folder / spawn.LEDGER):
                    pid, start = line.split()
                    yield (int(pid), start), facts.st_uid


def _lines(ledger: Path) -> list[str]:
    """Return the lines of a regular file; raises OSError for anything else."""
    file = os.open(ledger, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(file, "rb") as opened:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return []
        return opened.read(LEDGER_BYTES).decode("ascii", errors="replace").splitlines()


def _end(candidate: psutil.Process) -> None:
    """PostgreSQL by its immediate shutdown, which gives its shared memory back; all others at once."""
    with contextlib.suppress(psutil.NoSuchProcess):
        candidate.send_signal(signal.SIGQUIT if candidate.name() == "postgres" else signal.SIGKILL)
        try:
            candidate.wait(process.STOP_SECONDS)
        except psutil.TimeoutExpired:
            if candidate.status() != psutil.STATUS_ZOMBIE:  # dead, and its parent has not looked yet
                raise


def folders(of: str | None = None) -> Iterator[Leftover]:
    """Scratch folders of a dead owner, and those that nobody owns: cut short as they were made or removed."""
    for folder in sorted(Path(tempfile.gettempdir()).glob(f"{ownership.PREFIX}*")):
        with contextlib.suppress(OSError):
            if folder.is_symlink() or not folder.is_dir() or os.geteuid() not in (0, folder.stat().st_uid):
                continue
            owner = ownership.of_folder(folder)
            if of:
                gone = owner == of
            elif owner:  # this machine's folders: whoever made one before it was started again is dead, too
                earlier = ownership.boot_of(owner) != ownership.boot_of(ownership.me())
                gone = earlier or ownership.state(owner) == "dead"
            else:
                # Its maker may not yet have written its name into it.
                gone = time.time() - folder.stat().st_mtime > 60
            if gone:
                name = printable(str(folder))
                yield Leftover(kind="folder", name=name, certain=True, remove=partial(shutil.rmtree, folder))


def main(owner: str) -> None:
    """End its processes until none is left, then remove its folders."""
    for _ in range(ROUNDS):
        if not (found := list(_processes(owner))):
            break
        remove(found)
    remove(list(folders(owner)))


if __name__ == "__main__":
    main(sys.argv[1])
