"""One running container on another machine: the same questions as of one here, asked of its engine and reader."""

import logging
from pathlib import Path

from harness.errors import ServerDiedError, StartError
from harness.host import process
from harness.runtime import Reading, Sockets
from harness.runtime.compose import client
from harness.runtime.container import SETTLE_SECONDS, SIGNALLED
from harness.runtime.machines.machine import Machine
from harness.runtime.machines.meter import LOST_GRACE_SECONDS, MeterReader

logger = logging.getLogger("tfb.machines")


class RemoteContainer:
    """A container that has started there; its output is followed into ``log`` until ``close``.

    The stream of its output ends when it ends: whether it lives costs nothing under load. Raises StartError with its
    last lines when it has ended at once.
    """

    def __init__(self, name: str, container: str, log: Path, machine: Machine, run_id: str, *, port: int = 0) -> None:
        self.name = name
        self.id = container
        self.log = log
        self.machine = machine
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            words = [client() or "docker", *machine.at, "logs", "--follow", container]
            self._follower = process.Child(words, stdout=output)
        self._identity = self._state()
        pid = int(self._identity.split()[-1] or 0)
        try:
            self.reader = MeterReader(machine, run_id, pid, port)
        except ServerDiedError as error:
            how = self.how_it_ended()
            self._follower.stop()
            raise StartError(f"the container exited at once: {how}") from error

    def _state(self) -> str:
        """Start time and process id, as its engine says."""
        form = "{{.State.StartedAt}} {{.State.Pid}}"
        return self.machine.docker("container", "inspect", "--format", form, self.id).stdout.strip()

    def alive(self) -> bool:
        """Whether its output still flows; raises MachineLostError when that is the machine's fault."""
        if self._follower.poll() is None:
            return True
        self.machine.require_reachable()
        return False

    def identity(self) -> str:
        """Changes when the container is started again."""
        return f"{self.id} {self._state()}"

    def read(self) -> Reading:
        """Counters of its control group; raises ServerDiedError with how it ended, MachineLostError."""
        try:
            return self.reader.reading()
        except ServerDiedError as error:
            raise ServerDiedError(self.obituary()) from error

    def sockets(self) -> Sockets | None:
        """Connections of others to its port; raises as ``read``."""
        try:
            return self.reader.sockets()
        except ServerDiedError as error:
            raise ServerDiedError(self.obituary()) from error

    def require_alive(self) -> None:
        """Raises ServerDiedError with how it ended and its last lines, MachineLostError."""
        if not self.alive():
            raise ServerDiedError(self.obituary())

    def obituary(self) -> str:
        """Name, machine, end, last lines and log."""
        how = self.how_it_ended()
        where = f"{self.name}: its container on {self.machine.name} is gone"
        return f"{where}: {how}\n{process.tail(self.log)}\nlog: {self.log}"

    def how_it_ended(self) -> str:
        """By its engine; waits until its last output is in the log."""
        self._follower.wait(SETTLE_SECONDS)
        form = "{{.State.Status}} {{.State.OOMKilled}} {{.State.ExitCode}}"
        done = self.machine.docker("container", "inspect", "--format", form, self.id)
        if done.status != 0:
            return "it was removed"
        status, killed, code = (*done.stdout.split(), "", "", "")[:3]
        if killed == "true":
            return "out of memory (--test-container-memory, or the machine has no more)"
        if code.isdigit() and int(code) > SIGNALLED:
            return f"{process.describe_status(SIGNALLED - int(code))} (exit status {code})"
        return f"{status}, exit status {code}"

    def nofile(self) -> int | None:
        """Not read there: compose sets it."""
        return None

    def stop(self) -> None:
        """Ask its first process to stop, kill it when it does not, and keep its last output."""
        seconds = process.STOP_SECONDS
        self.reader.close()
        try:
            self.machine.docker("stop", "--time", f"{seconds:.0f}", self.id, seconds=seconds + 10)
        finally:
            self.close()

    def close(self) -> None:
        """Follow its output no longer, and end the reader."""
        self.reader.close()
        if self.machine.lost is None:
            self._follower.wait(1.0)
        self._follower.stop(grace=LOST_GRACE_SECONDS if self.machine.lost else process.STOP_SECONDS)


class RemoteConnections:
    """The generators' connections, seen where the server runs."""

    def __init__(self, container: RemoteContainer) -> None:
        self._container = container

    def read(self) -> Sockets | None:
        """The counters now."""
        return self._container.sockets()

    def close(self) -> None:
        """The reader serves the container as long as it lives."""
