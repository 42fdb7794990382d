"""Load generators on several clients that behave like a single generator and start at the same time."""

import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from harness.errors import LoadError, MachineLostError
from harness.extras.deployments.connected_machine import SETTLE_SECONDS, ConnectedMachine
from harness.runtime import GeneratorStart
from harness.runtime.compose import client_environment
from harness.runtime.generator import GeneratorProgram, run_generator

# Start the generator only after the line "go". If the stream ends first, there is no load.
WAIT_FOR_GO = 'echo ready; read -r word && [ "$word" = go ] && echo begun && exec "$0" "$@"'
FLAGS = {"wrk": ("-c", "-t"), "loadgen": ("--connections", "--threads")}


@dataclass(frozen=True, kw_only=True)
class ClientShare:
    """The share of a load that a client generates."""

    connections: int
    threads: int
    arguments: Sequence[str]


def shares(program: str, arguments: Sequence[str], clients: int) -> list[ClientShare]:
    """Divide connections and threads evenly among the clients. The first clients get the remainder.

    Raises LoadError if there are fewer connections than clients.
    """
    places = [arguments.index(flag) + 1 for flag in FLAGS[program]]
    connections, threads = (int(arguments[place]) for place in places)
    if connections < clients:
        raise LoadError(f"{connections} connections cannot be divided among {clients} clients: remove this level")
    found = []
    for number in range(clients):
        own, its_threads = (total // clients + (number < total % clients) for total in (connections, threads))
        its_threads = min(own, max(1, its_threads))
        part = list(arguments)
        part[places[0]], part[places[1]] = str(own), str(its_threads)
        found.append(ClientShare(connections=own, threads=its_threads, arguments=part))
    return found


class Generators:
    """Load generators on all clients.

    Args:
        parts: For each generator, the client, its share of the load, and the program.
        machines: Machines that must remain reachable during the load.
        tell: Whether each program prints a line when it starts.
    """

    def __init__(
        self,
        parts: Sequence[tuple[ConnectedMachine, ClientShare, GeneratorProgram]],
        machines: Collection[ConnectedMachine],
        *,
        tell: bool,
    ) -> None:
        self._parts, self._machines, self._tell = parts, machines, tell
        self.command = tuple(argument for *_, program in parts for argument in program.command)
        self._begun: Sequence[GeneratorStart] = ()

    def begin(self) -> None:
        """Wait until all generators are ready, then start them within about a millisecond."""
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
            GeneratorStart(
                client=machine.name,
                connections=share.connections,
                threads=share.threads,
                go_sent_at=go_sent_at,
                start_seen_at=time.monotonic() if self._tell and program.await_begun() else None,
            )
            for (machine, share, program), go_sent_at in zip(self._parts, told, strict=True)
        )

    def starts(self) -> Sequence[GeneratorStart]:
        """Return the share and the start of each client. ``start_seen_at`` may be slightly late, but never early."""
        return self._begun

    def wait(self, seconds: float) -> int | None:
        """Return 0 if all generators succeeded, the status of a failed generator, or None if a generator still runs.

        Raises MachineLostError.
        """
        try:
            for machine in self._machines:  # without the database's machine, the load would continue but be meaningless
                machine.require_reachable()
        except MachineLostError:
            for machine, _, program in self._parts:  # the docker clients of a lost engine would wait forever
                if machine.lost is not None:
                    program.abandon()
            raise
        ended = True
        for machine, _, program in self._parts:
            status = program.wait(seconds if ended else 0.0)
            if status:  # a generator failed, so all other results are useless
                machine.require_reachable(SETTLE_SECONDS)
                self.interrupt()
                return status
            ended = ended and status is not None
        return 0 if ended else None

    def interrupt(self) -> None:
        """Interrupt all generators."""
        for *_, program in self._parts:
            program.interrupt()

    def output(self) -> str:
        """Return the output of all generators, joined by line breaks."""
        return "\n".join(program.output() for *_, program in self._parts)


@contextmanager
def start_generators(
    commands: Sequence[tuple[ConnectedMachine, ClientShare, Sequence[str]]],
    machines: Collection[ConnectedMachine] = (),
    *,
    tell: bool = False,
) -> Iterator[Generators]:
    """Start a waiting generator on every client, and yield the group. Stop all generators at the end."""
    with ExitStack() as stack:
        parts = [
            (machine, share, stack.enter_context(run_generator(command, waits_for_go=True, env=client_environment())))
            for machine, share, command in commands
        ]
        yield Generators(parts, machines, tell=tell)
