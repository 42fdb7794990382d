"""Finds and removes processes, accounts and scratch folders that killed runs have left on this machine.

The owner of a leftover is the tfb process that created it. If that process is killed, the guardian runs ``python -m
harness.host.leftovers OWNER``.
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
SEARCHES = 10  # maximum number of searches; processes may start new processes during a search
# Age at which a folder without an owner file counts as a leftover. In a newer folder, the file may still be missing.
UNMARKED_SECONDS = 60.0


@dataclass(frozen=True, kw_only=True)
class Leftover:
    """A resource that a tfb process did not remove. ``is_certain`` is False if that process may still be running."""

    kind: str  # process, account, folder, container, network or volume
    name: str  # display name, for example ``postgres (pid 812)``
    is_certain: bool
    remove: Callable[[], None]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


def local_leftovers() -> tuple[Leftover, ...]:
    """Return the leftovers of exited owners. Processes come first, because they use the folders."""
    return (*_processes(), *folder_leftovers())


def remove_leftovers(leftovers: Sequence[Leftover]) -> tuple[str, ...]:
    """Remove leftovers in the given order. Return a message for each leftover that could not be removed."""
    messages = []
    for leftover in leftovers:
        try:
            leftover.remove()
        except (OSError, psutil.Error) as error:
            messages.append(f"{leftover}: {error}")
    return tuple(messages)


def _processes(owner: str | None = None) -> Iterator[Leftover]:
    """Yield the processes of ``owner``, or of all exited owners if ``owner`` is None.

    A process's uid, the guardian's ledger, or an environment variable reveals the owner.
    """
    yield from _accounts(owner)
    recorded = set(_listed(owner))
    for candidate in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            start = ownership.process_start(candidate.pid)
            is_leftover = (str(candidate.pid), start) in recorded or _marked(candidate, owner)
            if is_leftover and candidate.pid != os.getpid() and candidate.status() != psutil.STATUS_ZOMBIE:
                name = printable(f"{candidate.name()} (pid {candidate.pid})")
                yield Leftover(kind="process", name=name, is_certain=True, remove=partial(_end, candidate))


def _accounts(of: str | None) -> Iterator[Leftover]:
    """Yield the accounts of an owner, or of all exited owners.

    Removing such a leftover kills all processes of the account, including those that a search would miss.
    """
    for uid, owner in accounts.allocated_uids() if os.geteuid() == 0 else ():
        if owner and _gone(owner, of):
            remove = partial(_end_account, uid, owner)
            yield Leftover(kind="account", name=f"uid {uid} and its processes", is_certain=True, remove=remove)


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
    """Yield the pid and start time of each process in the ledgers of an owner, or of all exited owners."""
    for scratch in ownership.find_scratch_folders():
        if scratch.path.name.startswith(f"{ownership.SCRATCH_PREFIX}guardian-") and _gone(scratch.owner, of):
            with contextlib.suppress(OSError, ValueError):
                for line in _lines(scratch.path / spawn.LEDGER_FILE):
                    pid, start = line.split()
                    yield pid, start


def _lines(ledger: Path) -> list[str]:
    """Return a ledger's lines, or an empty list for a special or another user's file. Raises OSError for a link."""
    file = os.open(ledger, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(file, "rb") as opened:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
            return []
        return opened.read(LEDGER_BYTES).decode("ascii", errors="replace").splitlines()


def _end(candidate: psutil.Process) -> None:
    """Kill a process. PostgreSQL gets an immediate shutdown, which removes the shared memory."""
    with contextlib.suppress(psutil.NoSuchProcess):
        candidate.send_signal(signal.SIGQUIT if candidate.name() == "postgres" else signal.SIGKILL)
        try:
            candidate.wait(process.STOP_SECONDS)
        except psutil.TimeoutExpired:
            if candidate.status() != psutil.STATUS_ZOMBIE:  # a zombie counts as exited
                raise


def folder_leftovers(owner: str | None = None) -> Iterator[Leftover]:
    """Yield this user's scratch folders that belong to ``owner``.

    If ``owner`` is None, yield the folders of exited owners, and old folders without an owner.
    """
    for scratch in ownership.find_scratch_folders():
        if owner:
            is_abandoned = scratch.belongs_to(owner)
        elif scratch.owner:
            earlier_boot = ownership.boot_id(scratch.owner) != ownership.boot_id(ownership.own_identity())
            is_abandoned = earlier_boot or ownership.owner_state(scratch.owner) == "dead"
        else:
            is_abandoned = time.time() - scratch.changed_at > UNMARKED_SECONDS
        if is_abandoned:
            remove = partial(remove_tree, scratch.path, expected=scratch.identity)
            yield Leftover(kind="folder", name=printable(str(scratch.path)), is_certain=True, remove=remove)


def main(owner: str) -> None:
    """Kill an owner's processes until none remain, then remove the owner's folders."""
    for _ in range(SEARCHES):
        if not (processes := list(_processes(owner))):
            break
        remove_leftovers(processes)
    remove_leftovers(list(folder_leftovers(owner)))


if __name__ == "__main__":
    main(sys.argv[1])
