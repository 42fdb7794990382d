"""Load generators on several clients as one: started, gated on their standard input, and begun together."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import pairwise

from harness.errors import LoadError, MachineLostError
from harness.extras.deployments.machine import SETTLE_SECONDS, Machine
from harness.runtime import Begun
from harness.runtime.generator import GeneratorProgram, started

# exec only after the word has come: when the stream ends first, nothing is loaded.
GATE = 'echo ready; read -r word && [ "$word" = go ] && echo begun && exec "$0" "$@"'
CONNECTIONS, THREADS = {"wrk": "-c", "loadgen": "--connections"}, {"wrk": "-t", "loadgen": "--threads"}


class Generators:
    """One on each client; ``output`` holds all of their results, one after another.

    ``tell``: a gate before them prints a line as they begin. ``others``: machines without which the load means nothing.
    """

    def __init__(
        self, parts: Sequence[tuple[Machine, GeneratorProgram]], others: Sequence[Machine] = (), *, tell: bool = False
    ) -> None:
        self._parts, self._tell = parts, tell
        self._machines = tuple({id(each): each for each in (*others, *(machine for machine, _ in parts))}.values())
        self.command = tuple(argument for _, part in parts for argument in part.command)
        self._told: list[float] = []
        self._seen: list[float | None] = []

    def begin(self) -> None:
        """Wait until all are ready, then tell each to begin: first to last within a millisecond."""
        try:
            for _, part in self._parts:
                part.await_ready()
            for _, part in self._parts:
                self._told.append(time.monotonic())
                part.go()
        except LoadError:
            for machine, _ in self._parts:
                machine.require_reachable(SETTLE_SECONDS)
            raise
        self._seen = [time.monotonic() if self._tell and part.await_begun() else None for _, part in self._parts]

    def begun(self) -> Sequence[Begun]:
        """Each client's share and beginning; those that are looked at later are seen a little late, never early."""
        return tuple(
            Begun(
                client=machine.name,
                connections=_number(part.command, CONNECTIONS),
                threads=_number(part.command, THREADS),
                word_at=told,
                seen_at=seen,
            )
            for (machine, part), told, seen in zip(self._parts, self._told, self._seen, strict=False)
        )

    def wait(self, seconds: float) -> int | None:
        """0 when all have ended well within the time, the status of one that failed, else None.

        Raises MachineLostError.
        """
        try:
            for machine in self._machines:  # a load goes on without the database's machine, and means nothing
                machine.require_reachable()
        except MachineLostError:
            for machine, part in self._parts:  # clients of engines that are lost would wait for an answer
                if machine.lost is not None:
                    part.abandon()
            raise
        statuses: list[int | None] = []
        for machine, part in self._parts:
            status = part.wait(seconds if not statuses or statuses[-1] is not None else 0.0)
            if status:  # one has failed: the others are of no use
                machine.require_reachable(SETTLE_SECONDS)
                self.interrupt()
                return status
            statuses.append(status)
        return None if None in statuses else 0

    def interrupt(self) -> None:
        """Ask all to end now."""
        for _, part in self._parts:
            part.interrupt()

    def output(self) -> str:
        """What all have printed."""
        return "\n".join(part.output() for _, part in self._parts)


def _number(command: Sequence[str], flags: Mapping[str, str]) -> int:
    """The value of whichever of these flags the command has; 0 where it has none.

    The last one: docker's and the gate's own come first, and have a -c too.
    """
    pairs = reversed([*pairwise(command)])
    return next((int(value) for flag, value in pairs if flag in flags.values() and value.isdigit()), 0)


def shares(program: str, arguments: Sequence[str], clients: int) -> list[list[str]]:
    """The arguments of each client: connections, threads and rate divided, the first ones taking what is left over.

    Raises LoadError when there are fewer connections than clients.
    """
    parts = [list(arguments) for _ in range(clients)]
    connections, threads = CONNECTIONS.get(program, ""), THREADS.get(program, "")
    for flag in (connections, threads):
        if flag not in arguments:
            continue
        place = list(arguments).index(flag) + 1
        total = int(arguments[place])
        if total < clients and flag == connections:
            raise LoadError(f"{total} connections cannot be shared by {clients} clients: leave out this level")
        for number, part in enumerate(parts):
            part[place] = str(max(1, total // clients + (number < total % clients)))
    if "--rate" in arguments:
        place = list(arguments).index("--rate") + 1
        for part in parts:
            part[place] = f"{float(arguments[place]) / clients:g}"
    for part in parts if program == "wrk" else ():  # as many threads as connections at most
        place = part.index(threads) + 1
        part[place] = str(min(int(part[place]), int(part[part.index(connections) + 1])))
    return parts


@contextmanager
def gated(
    commands: Sequence[tuple[Machine, Sequence[str]]], others: Sequence[Machine] = (), *, tell: bool = False
) -> Iterator[Generators]:
    """Started on every client and waiting for ``begin``; what is left of them is stopped on the way out."""
    with ExitStack() as stack:
        parts = [(machine, stack.enter_context(started(command, waits_for_go=True))) for machine, command in commands]
        yield Generators(parts, others, tell=tell)
