"""A running container on a remote machine, with the interface of a local container.

The remote Docker engine reports whether the container is running. A second container on that machine, the reader
(toolset/meter), responds to each line on stdin with a line of counters. Times refer to the remote machine's clock.
"""

import contextlib
import json
import os
import select
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import MachineLostError, ServerDiedError, StartError, TfbError
from harness.extras.deployments.connected_machine import ConnectedMachine
from harness.host import process
from harness.host.metering import Reading
from harness.host.sockets import SocketCounters
from harness.records import safe_write
from harness.runtime.compose import client_environment, label_flags, ownership_labels
from harness.runtime.container import LAST_LINES, SETTLE_SECONDS, Container, describe_end, follow_log
from harness.runtime.limits import Limits

OPEN_SECONDS, READ_SECONDS = 30.0, 5.0  # time limits to start the reader and to get a reading
METER_IMAGE = "tfb/meter"
# docker flags that let the reader see the host's processes, control groups and sockets, without write access.
NAMESPACES = (
    *("--pid", "host", "--cgroupns", "host", "--network", "host", "--volume", "/sys/fs/cgroup:/sys/fs/cgroup:ro"),
    *("--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"),
)


class RemoteContainer(Container):
    """A running container on a remote machine. Until ``close``, the container's output is appended to ``log``.

    ``alive`` checks whether the output stream has ended, so it sends no request to the machine during a trial. If
    ``port`` is 0, the reader does not count connections. Raises StartError if the container exits immediately.
    """

    def __init__(
        self, name: str, container: str, log: Path, machine: ConnectedMachine, run_id: str, *, port: int = 0
    ) -> None:
        self.name = name
        self.id = container
        self.log = log
        self.machine, self.place = machine, f" on {machine.name}"
        self._last: dict[str, Any] = {}
        self._last_at = -1.0
        self._incomplete_line = b""
        pid = self._state().split()[-1]
        safe_write.make_folder(log.parent)
        self._follower = follow_log(machine.command(), container, log)
        run = ("run", "--interactive", "--rm", "--pull", "never", *NAMESPACES, *Limits().flags)
        labels = label_flags(ownership_labels(run_id))
        command = machine.command(*run, *labels, METER_IMAGE, pid, str(port))
        self._reader = process.Child(
            command,
            process.ProcessOptions(env=client_environment()),
            stdin=process.PIPE,
            stdout=process.PIPE,
            stderr=process.DEVNULL,
        )
        try:
            self._line(OPEN_SECONDS)  # the first line means that the reader is ready
        except ServerDiedError as error:
            self.close()
            raise StartError(f"the container exited at once: {self.how_it_ended()}") from error
        except BaseException:
            self.close()
            raise

    def _state(self) -> str:
        """Return the container's start time and process id, as the engine reports them, separated by a space."""
        form = "{{.State.StartedAt}} {{.State.Pid}}"
        return self.machine.docker("container", "inspect", "--format", form, self.id).stdout.strip() or "0"

    def line(self) -> dict[str, Any]:
        """Return the current counters.

        Raises ServerDiedError if the container or the reader has exited, or MachineLostError if the machine is lost.
        """
        # Reuse a reading for 50 ms.
        if time.monotonic() - self._last_at < 0.05:
            return self._last
        self.machine.require_reachable()
        if control := self._reader.stdin:
            with contextlib.suppress(OSError):  # if the reader has exited, ``_line`` reports it
                control.write(b"\n")
                control.flush()
        self._last, self._last_at = self._line(READ_SECONDS), time.monotonic()
        return self._last

    def _line(self, seconds: float) -> dict[str, Any]:
        output = self._reader.stdout
        deadline = time.monotonic() + seconds
        while b"\n" not in self._incomplete_line:
            seconds_left = deadline - time.monotonic()
            if output is None or seconds_left <= 0 or not select.select([output], [], [], seconds_left)[0]:
                raise self.machine.lose(f"the machine {self.machine.name} has not responded for {seconds:.0f} s")
            part = os.read(output.fileno(), 1 << 16)
            if not part:
                self._reader.wait(READ_SECONDS)
                self.machine.require_response()
                raise ServerDiedError(f"the reader on {self.machine.name} has exited")
            self._incomplete_line += part
        text, _, self._incomplete_line = self._incomplete_line.partition(b"\n")
        counters: dict[str, Any] = json.loads(text)
        if "gone" in counters:
            raise ServerDiedError(self.crash_reason())
        return counters

    def alive(self) -> bool:
        """Return whether the container is running. Raises MachineLostError if the machine is lost."""
        if self._follower.poll() is None:
            return True
        self.machine.require_reachable()
        return False

    def identity(self) -> str:
        """Return a string that changes whenever the container is restarted."""
        return f"{self.id} {self._state()}"

    def read(self) -> Reading:
        """Return the counters of the container's control group. Raises the same errors as ``line``.

        The reading's times refer to the remote machine's clock.
        """
        process.truncate_log(self.log)
        counters = self.line()["reading"]
        return Reading(**counters | {"pids": tuple(counters["pids"])})

    def steal_ticks(self) -> tuple[float, float] | None:
        """Return the stolen and the total CPU ticks of the machine, or None if they cannot be read."""
        with contextlib.suppress(TfbError):
            stolen, every = self.line()["steal"]
            return float(stolen), float(every)
        return None

    def connections(self, port: int) -> "RemoteConnections":
        """Return counters for connections to the container's port."""
        return RemoteConnections(self)

    def how_it_ended(self) -> str:
        """Append the remaining output to the log, and return the engine's description of how the container ended."""
        self._follower.wait(SETTLE_SECONDS)
        self.machine.require_response()
        self._complete_log()
        return describe_end(self.id, self.machine.engine)

    def signal(self, name: str) -> None:
        """Send a signal to PID 1 of the container."""
        self.machine.docker("kill", "--signal", name, self.id)

    def stop(self) -> None:
        """Stop the container, and append the remaining output to the log.

        Kill the container if it is still running after ``STOP_SECONDS``.
        """
        try:
            seconds = process.STOP_SECONDS
            self.machine.docker("stop", "--time", f"{seconds:.0f}", self.id, seconds=seconds + 10)
        finally:
            self.close()

    def close(self) -> None:
        """Stop logging the output and stop the reader."""
        for stream in filter(None, (self._reader.stdin, self._reader.stdout)):
            with contextlib.suppress(OSError):
                stream.close()
        self.machine.end(self._reader)
        self.machine.end(self._follower)
        with contextlib.suppress(MachineLostError):
            self._complete_log()

    def _last_lines(self) -> str:
        """Ask the engine for the last lines of the container's output. Raises MachineLostError."""
        return self.machine.docker("logs", "--tail", LAST_LINES, self.id).stdout


@dataclass(frozen=True)
class RemoteConnections:
    """Counters for the clients' connections to a container's port, read on the server's machine."""

    container: RemoteContainer

    def read(self) -> SocketCounters | None:
        """Return the current counters. Raises the same errors as ``RemoteContainer.line``."""
        counters = self.container.line()["sockets"]
        return counters and SocketCounters(**counters)

    def close(self) -> None:
        """Do nothing, because ``RemoteContainer.close`` stops the reader."""
