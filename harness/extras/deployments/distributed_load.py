"""Runs load generators on several client machines, which start together and act as a single generator."""

import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from harness.errors import LoadError, MachineLostError
from harness.extras.deployments.connected_machine import SETTLE_SECONDS, ConnectedMachine
from harness.runtime import GeneratorStart
from harness.runtime.compose import client_environment
from harness.runtime.generator import GeneratorProgram, run_generator

# Shell script that waits for the line "go", then starts the generator. If stdin is closed first, the generator is not
# started.
WAIT_FOR_GO = 'echo ready; read -r word && [ "$word" = go ] && echo begun && exec "$0" "$@"'
FLAGS = {  # load generator -> flags for the number of connections and threads
    "wrk": ("-c", "-t"),
    "h2load-timed": ("-c", "-t"),
    "loadgen": ("--connections", "--threads"),
    "websocket-witness": ("--connections", "--threads"),
}


@dataclass(frozen=True, kw_only=True)
class ClientShare:
    """A client's share of a load, and the arguments of the client's load generator."""

    connections: int
    threads: int
    arguments: Sequence[str]


def shares(program: str, arguments: Sequence[str], clients: int) -> list[ClientShare]:
    """Divide connections and threads evenly among the clients. Raises LoadError if clients outnumber connections."""
    indices = [arguments.index(flag) + 1 for flag in FLAGS[program]]
    connections, threads = (int(arguments[index]) for index in indices)
    if connections < clients:
        raise LoadError(
            f"{connections} connections cannot be divided among {clients} clients: "
            "use at least one connection per client"
        )
    client_shares = []
    for number in range(clients):
        own_connections, own_threads = (
            total // clients + (number < total % clients) for total in (connections, threads)
        )
        own_threads = min(own_connections, max(1, own_threads))
        own_arguments = list(arguments)
        own_arguments[indices[0]], own_arguments[indices[1]] = str(own_connections), str(own_threads)
        client_shares.append(ClientShare(connections=own_connections, threads=own_threads, arguments=own_arguments))
    return client_shares


class Generators:
    """The load generators on all clients. ``parts`` contains each client's machine, share of the load, and program."""

    def __init__(
        self,
        parts: Sequence[tuple[ConnectedMachine, ClientShare, GeneratorProgram]],
        machines: Collection[ConnectedMachine],
        *,
        reports_start: bool,
    ) -> None:
        self._parts, self._machines, self._reports_start = parts, machines, reports_start
        self.command = tuple(argument for *_, program in parts for argument in program.command)
        self._begun: Sequence[GeneratorStart] = ()

    def begin(self) -> None:
        """Wait until all generators are ready, then start them within about a millisecond of each other."""
        sent_at = []
        try:
            for *_, program in self._parts:
                program.await_ready()
            for *_, program in self._parts:
                sent_at.append(time.monotonic())
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
                start_seen_at=time.monotonic() if self._reports_start and program.await_begun() else None,
            )
            for (machine, share, program), go_sent_at in zip(self._parts, sent_at, strict=True)
        )

    def starts(self) -> Sequence[GeneratorStart]:
        """Return each client's connections, threads and start time.

        ``start_seen_at`` may be later than the actual start, but never earlier.
        """
        return self._begun

    def wait(self, seconds: float) -> int | None:
        """Return 0 if all generators succeeded, a failed generator's status, or None while generators are running.

        Wait for at most ``seconds`` per generator. Raises MachineLostError if a machine is lost.
        """
        try:
            for machine in self._machines:  # includes the database's machine, whose loss no generator would detect
                machine.require_reachable()
        except MachineLostError:
            for machine, _, program in self._parts:  # the docker client of a lost engine would wait forever
                if machine.lost is not None:
                    program.abandon()
            raise
        ended = True
        for machine, _, program in self._parts:
            status = program.wait(seconds if ended else 0.0)
            if status:  # a generator failed, so the other generators' results are useless
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
    reports_start: bool = False,
) -> Iterator[Generators]:
    """Start a load generator on every client, and stop all generators when the context ends.

    The generators do not send requests until ``Generators.begin`` is called.
    """
    with ExitStack() as stack:
        parts = [
            (machine, share, stack.enter_context(run_generator(command, waits_for_go=True, env=client_environment())))
            for machine, share, command in commands
        ]
        yield Generators(parts, machines, reports_start=reports_start)
