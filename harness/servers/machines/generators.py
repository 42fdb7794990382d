"""Load generators on several clients as one: started, gated on their standard input, and begun together."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from harness.errors import LoadError
from harness.servers.machines.machine import SETTLE_SECONDS, Machine
from harness.servers.program import GeneratorProgram, started

# exec only after the word has come: when the stream ends first, nothing is loaded.
GATE = 'echo ready; read -r word && [ "$word" = go ] && exec "$0" "$@"'
SHARED = {"wrk": ("-c", "-t"), "loadgen": ("--connections", "--threads", "--rate")}
LEAST = {"-t": 1, "--threads": 1}


class Generators:
    """One on each client; ``output`` holds all of their results, one after another."""

    def __init__(self, parts: Sequence[tuple[Machine, GeneratorProgram]]) -> None:
        self._parts = parts
        self.command = tuple(word for _, part in parts for word in part.command)

    def begin(self) -> None:
        """Wait until all are ready, then send each its word: first to last within a millisecond."""
        for machine, part in self._parts:
            try:
                part.await_ready()
            except LoadError:
                machine.require_reachable(SETTLE_SECONDS)
                raise
        for machine, part in self._parts:
            try:
                part.go()
            except LoadError:
                machine.require_reachable(SETTLE_SECONDS)
                raise

    def wait(self, seconds: float) -> int | None:
        """0 when all have ended well within the time, the status of one that failed, else None.

        Raises MachineLostError.
        """
        for machine, _ in self._parts:
            machine.require_reachable()
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


def shares(program: str, arguments: Sequence[str], clients: int) -> list[list[str]]:
    """The arguments of each client: connections, threads and rate divided, the first ones taking what is left over.

    Raises LoadError when there are fewer connections than clients.
    """
    words = list(arguments)
    parts = [list(words) for _ in range(clients)]
    for flag in SHARED.get(program, ()):
        if flag not in words:
            continue
        place = words.index(flag) + 1
        value = words[place]
        if flag == "--rate":
            for part in parts:
                part[place] = f"{float(value) / clients:g}"
            continue
        total = int(value)
        if total < clients and flag not in LEAST:
            raise LoadError(f"{total} connections cannot be shared by {clients} clients: leave out this level")
        for number, part in enumerate(parts):
            part[place] = str(max(LEAST.get(flag, 0), total // clients + (number < total % clients)))
    if program == "wrk":  # as many threads as connections at most
        for part in parts:
            part[part.index("-t") + 1] = str(min(int(part[part.index("-t") + 1]), int(part[part.index("-c") + 1])))
    return parts


@contextmanager
def gated(commands: Sequence[tuple[Machine, Sequence[str]]]) -> Iterator[Generators]:
    """Started on every client and waiting for ``begin``; what is left of them is stopped on the way out."""
    with ExitStack() as stack:
        parts = [(machine, stack.enter_context(started(command, waits_for_go=True))) for machine, command in commands]
        running = Generators(parts)
        yield running
