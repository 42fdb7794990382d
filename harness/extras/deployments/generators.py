"""Load generators on several clients as one: started, gated on their standard input, and begun together."""

import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from harness.errors import LoadError, MachineLostError
from harness.extras.deployments.machine import SETTLE_SECONDS, Machine
from harness.runtime import Begun
from harness.runtime.compose import client_environment
from harness.runtime.generator import GeneratorProgram, started

# exec only after the word has come: when the stream ends first, nothing is loaded.
GATE = 'echo ready; read -r word && [ "$word" = go ] && echo begun && exec "$0" "$@"'
FLAGS = {"wrk": ("-c", "-t"), "loadgen": ("--connections", "--threads")}


@dataclass(frozen=True, kw_only=True)
class Share:
    """What one client does of a load."""

    connections: int
    threads: int
    arguments: Sequence[str]


def shares(program: str, arguments: Sequence[str], clients: int) -> list[Share]:
    """Connections and threads divided among the clients, the first ones taking what is left over.

    Raises LoadError when there are fewer connections than clients.
    """
    places = [arguments.index(flag) + 1 for flag in FLAGS[program]]
    connections, threads = (int(arguments[place]) for place in places)
    if connections < clients:
        raise LoadError(f"{connections} connections cannot be shared by {clients} clients: leave out this level")
    found = []
    for number in range(clients):
        own, its_threads = (total // clients + (number < total % clients) for total in (connections, threads))
        its_threads = min(own, max(1, its_threads))
        part = list(arguments)
        part[places[0]], part[places[1]] = str(own), str(its_threads)
        found.append(Share(connections=own, threads=its_threads, arguments=part))
    return found


class Generators:
    """One on each client; ``output`` holds all of their results, one after another.

    ``tell``: a gate before them prints a line as they begin. ``machines``: those without which the load means nothing.
    """

    def __init__(
        self, parts: Sequence[tuple[Machine, Share, GeneratorProgram]], machines: Collection[Machine], *, tell: bool
    ) -> None:
        self._parts, self._machines, self._tell = parts, machines, tell
        self.command = tuple(argument for *_, program in parts for argument in program.command)
        self._begun: Sequence[Begun] = ()

    def begin(self) -> None:
        """Wait until all are ready, then tell each to begin: first to last within a millisecond."""
        told = []
        try:
            for *_, program in self._parts:
                program.await_ready()
            for *_, program in self._parts:
                told.append(time.monotonic())
                program.go()
        except LoadError:
            for machine, *_ in self._parts:
                machine.require_reachable(SETTLE_SECONDS)
            raise
        self._begun = tuple(
            Begun(
                client=machine.name,
                connections=share.connections,
                threads=share.threads,
                word_at=word_at,
                seen_at=time.monotonic() if self._tell and program.await_begun() else None,
            )
            for (machine, share, program), word_at in zip(self._parts, told, strict=True)
        )

    def begun(self) -> Sequence[Begun]:
        """Each client's share and beginning; those that are looked at later are seen a little late, never early."""
        return self._begun

    def wait(self, seconds: float) -> int | None:
        """0 when all have ended well within the time, the status of one that failed, else None.

        Raises MachineLostError.
        """
        try:
            for machine in self._machines:  # a load goes on without the database's machine, and means nothing
                machine.require_reachable()
        except MachineLostError:
            for machine, _, program in self._parts:  # clients of engines that are lost would wait for an answer
                if machine.lost is not None:
                    program.abandon()
            raise
        ended = True
        for machine, _, program in self._parts:
            status = program.wait(seconds if ended else 0.0)
            if status:  # one has failed: the others are of no use
                machine.require_reachable(SETTLE_SECONDS)
                self.interrupt()
                return status
            ended = ended and status is not None
        return 0 if ended else None

    def interrupt(self) -> None:
        """Ask all to end now."""
        for *_, program in self._parts:
            program.interrupt()

    def output(self) -> str:
        """What all have printed."""
        return "\n".join(program.output() for *_, program in self._parts)


@contextmanager
def gated(
    commands: Sequence[tuple[Machine, Share, Sequence[str]]], machines: Collection[Machine] = (), *, tell: bool = False
) -> Iterator[Generators]:
    """Started on every client and waiting for ``begin``; what is left of them is stopped on the way out."""
    with ExitStack() as stack:
        parts = [
            (machine, share, stack.enter_context(started(command, waits_for_go=True, env=client_environment())))
            for machine, share, command in commands
        ]
        yield Generators(parts, machines, tell=tell)
