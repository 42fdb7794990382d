"""What a run that was killed has left on this machine: processes and scratch folders, told by their owner's mark.

``python -m harness.host.leftovers OWNER`` removes what one owner has left: the guardian of its children runs it.
"""

import contextlib
import os
import signal
import stat
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psutil

from harness.host import accounts, guardian, ownership, process, spawn
from harness.plain_text import printable
from harness.records.remove_tree import remove_tree

LEDGER_BYTES = 1 << 20
ROUNDS = 10  # of looking for what was being started meanwhile
UNMARKED_SECONDS = 60.0  # a younger folder's maker may not have written its mark into it


@dataclass(frozen=True, kw_only=True)
class Leftover:
    """Something that its maker can no longer remove; ``certain`` where the maker is known to be dead."""

    kind: str  # process, folder, container or network
    name: str  # for a person: ``postgres (pid 812)``
    certain: bool
    remove: Callable[[], None]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


def local_leftovers() -> tuple[Leftover, ...]:
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
    recorded = set(_listed(of))
    for candidate in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            known = (str(candidate.pid), ownership.process_start(candidate.pid)) in recorded or _marked(candidate, of)
            if known and candidate.pid != os.getpid() and candidate.status() != psutil.STATUS_ZOMBIE:
                name = printable(f"{candidate.name()} (pid {candidate.pid})")
                yield Leftover(kind="process", name=name, certain=True, remove=partial(_end, candidate))


def _accounts(of: str | None) -> Iterator[Leftover]:
    """Yield the accounts that an owner took and never gave back, with all of their processes.

    Whether an account has processes is not looked at: a process that forks and exits all the time is easily missed.
    """
    for uid, owner in accounts.allocated_uids() if os.geteuid() == 0 else ():
        if owner and _gone(owner, of):
            remove = partial(_end_account, uid, owner)
            yield Leftover(kind="account", name=f"uid {uid} with its processes", certain=True, remove=remove)


def _end_account(uid: int, owner: str) -> None:
    for _ in range(guardian.KILL_ATTEMPTS):
        guardian.kill_account(uid)
        time.sleep(0.005)
    accounts.release_uid(uid, owner)


def _gone(owner: str, of: str | None) -> bool:
    return owner == of if of else ownership.owner_state(owner) == "dead"


def _marked(candidate: psutil.Process, of: str | None) -> bool:
    with contextlib.suppress(psutil.Error, OSError):
        return _gone(candidate.environ().get(process.MARK_VARIABLE, "").rpartition(".")[0], of)
    return False


def _listed(of: str | None) -> Iterator[tuple[str, str]]:
    """Yield (pid, start) of the processes that the guardians of an owner, or of all dead owners, have recorded."""
    for scratch in ownership.find_scratch_folders():
        if scratch.path.name.startswith(f"{ownership.SCRATCH_PREFIX}guardian-") and _gone(scratch.owner, of):
            with contextlib.suppress(OSError, ValueError):
                for line in _lines(scratch.path / spawn.LEDGER_FILE):
                    pid, start = line.split()
                    yield pid, start


def _lines(ledger: Path) -> list[str]:
    """Return the lines of a regular file; raises OSError for anything else."""
    file = os.open(ledger, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(file, "rb") as opened:
        facts = os.fstat(file)
        if not stat.S_ISREG(facts.st_mode) or facts.st_uid != os.geteuid():
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
    """Yield this user's scratch folders whose maker has exited, and those without a mark, cut short when made."""
    for found in ownership.find_scratch_folders():
        if of:
            gone = found.owner == of
        elif found.owner:  # this machine's folders: whoever made one before it was started again is dead, too
            earlier = ownership.boot_id(found.owner) != ownership.boot_id(ownership.own_identity())
            gone = earlier or ownership.owner_state(found.owner) == "dead"
        else:
            gone = time.time() - found.changed_at > UNMARKED_SECONDS
        if gone:
            remove = partial(remove_tree, found.path, expected=found.identity)
            yield Leftover(kind="folder", name=printable(str(found.path)), certain=True, remove=remove)


def main(owner: str) -> None:
    """End its processes until none is left, then remove its folders."""
    for _ in range(ROUNDS):
        if not (found := list(_processes(owner))):
            break
        remove(found)
    remove(list(folders(owner)))


if __name__ == "__main__":
    main(sys.argv[1])
