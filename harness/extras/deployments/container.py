"""One running container on another machine: what is asked of one here, asked of its engine and of a reader there.

The reader (toolset/meter) answers a line with a line over one stream, by that machine's own clock.
"""

import contextlib
import json
import os
import select
import time
from pathlib import Path
from typing import Any

from harness.errors import ServerDiedError, StartError
from harness.extras.deployments.machine import Machine
from harness.host import process
from harness.runtime import Reading, Sockets
from harness.runtime.compose import RUN_LABEL
from harness.runtime.container import SETTLE_SECONDS, exit_of
from harness.runtime.readiness import crash_reason

OPEN_SECONDS, READ_SECONDS = 30.0, 5.0  # a machine that has not answered by then is lost
LOST_GRACE_SECONDS = 0.1  # for a client of an engine that is lost: it has nobody to ask
METER_IMAGE = "tfb/meter"
# The host's namespaces, read-only.
NAMESPACES = (
    *("--pid", "host", "--cgroupns", "host", "--network", "host", "--volume", "/sys/fs/cgroup:/sys/fs/cgroup:ro"),
    *("--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"),
)


class MeterReader:
    """Reads one container of a machine until ``close``; ``port`` 0: no sockets."""

    def __init__(self, machine: Machine, run_id: str, pid: int, port: int = 0) -> None:
        self._machine = machine
        run = ("run", "--interactive", "--rm", "--pull", "never", *NAMESPACES, "--label", f"{RUN_LABEL}={run_id}")
        self.command = machine.command(*run, METER_IMAGE, str(pid), str(port))
        self._last: dict[str, Any] = {}
        self._last_at = -1.0
        self._open()

    def _open(self) -> None:
        self._child = process.Child(self.command, stdin=process.PIPE, stdout=process.PIPE, stderr=process.DEVNULL)
        self._rest = b""
        self._overdue = False  # a line was asked for and not waited for: it would be taken for the next one
        try:
            self._line(OPEN_SECONDS)  # it is ready
        except BaseException:
            self.close()
            raise

    def line(self) -> dict[str, Any]:
        """One reading; raises ServerDiedError when the container is gone, MachineLostError when the machine is."""
        # Readings so close together share one line.
        if time.monotonic() - self._last_at < 0.05:
            return self._last
        self._machine.require_reachable()
        if self._overdue:
            self.close()
            self._open()
        control = self._child.popen.stdin
        try:
            if control is not None:
                control.write(b"\n")
                control.flush()
        except OSError as error:
            raise self._lost() from error
        self._last, self._last_at = self._line(READ_SECONDS), time.monotonic()
        return self._last

    def _line(self, seconds: float) -> dict[str, Any]:
        output = self._child.popen.stdout
        until = time.monotonic() + seconds
        while b"\n" not in self._rest:
            left = until - time.monotonic()
            if output is None or left <= 0 or not select.select([output], [], [], left)[0]:
                self._overdue = True
                raise self._machine.lose(f"the machine {self._machine.name} has not answered for {seconds:.0f} s")
            part = os.read(output.fileno(), 1 << 16)
            if not part:
                raise self._lost()
            self._rest += part
        text, _, self._rest = self._rest.partition(b"\n")
        found: dict[str, Any] = json.loads(text)
        if "gone" in found:
            raise ServerDiedError(str(found["gone"]))
        return found

    def _lost(self) -> Exception:
        """Why the stream ended: the machine is gone, or the reader alone."""
        self._child.wait(READ_SECONDS)
        self._machine.require_answer()
        return ServerDiedError(f"the reader on {self._machine.name} has ended")

    def close(self) -> None:
        """End the reader: it ends with its input."""
        for stream in (self._child.popen.stdin, self._child.popen.stdout):
            with contextlib.suppress(OSError):
                if stream is not None:
                    stream.close()
        lost = self._machine.lost is not None
        if not lost:
            self._child.wait(2.0)
        self._child.stop(grace=LOST_GRACE_SECONDS if lost else process.STOP_SECONDS)


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
            self._follower = process.Child(machine.command("logs", "--follow", container), stdout=output)
        try:
            self.reader = MeterReader(machine, run_id, int(self._state().split()[-1] or 0), port)
        except ServerDiedError as error:
            how = self.how_it_ended()
            self._follower.stop()
            raise StartError(f"the container exited at once: {how}") from error

    def _state(self) -> str:
        """Start time and process id, as its engine says."""
        form = "{{.State.StartedAt}} {{.State.Pid}}"
        return self.machine.docker("container", "inspect", "--format", form, self.id).stdout.strip() or "0"

    def alive(self) -> bool:
        """Whether its output still flows; raises MachineLostError when that is the machine's fault."""
        if self._follower.poll() is None:
            return True
        self.machine.require_reachable()
        return False

    def identity(self) -> str:
        """Changes when the container is started again."""
        return f"{self.id} {self._state()}"

    def _line(self) -> dict[str, Any]:
        try:
            return self.reader.line()
        except ServerDiedError as error:
            raise ServerDiedError(self.crash_reason()) from error

    def read(self) -> Reading:
        """Counters of its control group, by that machine's clock; raises ServerDiedError, MachineLostError."""
        line = self._line()
        return Reading(
            at=line["at"],
            cpu_seconds=line["cpu"],
            rss=line["rss"],
            run_seconds=line["run"],
            wait_seconds=line["wait"],
            throttled_seconds=line["throttled"],
            pids=tuple(line["pids"]),
        )

    def steal(self) -> tuple[float, float]:
        """Stolen and all ticks of that machine."""
        stolen, every = self._line()["steal"]
        return float(stolen), float(every)

    def connections(self, port: int) -> "RemoteConnections":
        """The generators' connections, seen where the server runs."""
        return RemoteConnections(self)

    def sockets(self) -> Sockets | None:
        """Connections of others to its port, as the clients see the bytes; raises as ``read``."""
        found = self._line()["sockets"]
        if found is None:
            return None
        return Sockets(connections=found["connections"], bytes_received=found["received"], bytes_sent=found["sent"])

    def require_alive(self) -> None:
        """Raises ServerDiedError with how it ended and its last lines, MachineLostError."""
        if not self.alive():
            raise ServerDiedError(self.crash_reason())

    def crash_reason(self) -> str:
        """Name, machine, end, last lines and log."""
        how = f"its container on {self.machine.name} is gone: {self.how_it_ended()}"
        return crash_reason(self.name, how, self.log)

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
        return exit_of(int(code)) if code.isdigit() else status

    def stop(self) -> None:
        """Ask its first process to stop, kill it when it does not, and keep its last output."""
        self.reader.close()
        try:
            seconds = process.STOP_SECONDS
            self.machine.docker("stop", "--time", f"{seconds:.0f}", self.id, seconds=seconds + 10)
        finally:
            self.close()

    def close(self) -> None:
        """Follow its output no longer, and end the reader."""
        self.reader.close()
        lost = self.machine.lost is not None
        if not lost:
            self._follower.wait(1.0)
        self._follower.stop(grace=LOST_GRACE_SECONDS if lost else process.STOP_SECONDS)


class RemoteConnections:
    """The generators' connections, seen where the server runs."""

    def __init__(self, container: RemoteContainer) -> None:
        self._container = container

    def read(self) -> Sockets | None:
        """The counters now."""
        return self._container.sockets()

    def close(self) -> None:
        """The reader serves the container as long as it lives."""
