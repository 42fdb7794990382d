"""What a run that was killed has left on this machine: processes and scratch folders, told by their owner's mark.

``python -m harness.host.leftovers OWNER`` removes what one owner has left: the guardian of its children runs it.
"""

import contextlib
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import psutil

from harness.host import ownership, process
from harness.plain_text import printable
from harness.records.remove_tree import remove_tree

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
    for candidate in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            owner = candidate.environ().get(process.MARK, "").rpartition(".")[0]
            gone = owner == of if of else ownership.state(owner) == "dead"
            if gone and candidate.status() != psutil.STATUS_ZOMBIE:
                name = printable(f"{candidate.name()} (pid {candidate.pid})")
                yield Leftover(kind="process", name=name, certain=True, remove=partial(_end, candidate))


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
    for found in ownership.scratch_folders():
        if of:
            gone = found.owner == of
        elif found.owner:  # this machine's folders: whoever made one before it was started again is dead, too
            earlier = ownership.boot_of(found.owner) != ownership.boot_of(ownership.me())
            gone = earlier or ownership.state(found.owner) == "dead"
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
