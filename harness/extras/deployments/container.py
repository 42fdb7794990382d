"""One running container on another machine: what is asked of one here, asked of its engine and of a reader there.

The reader (toolset/meter) answers a line with a line over one stream, by that machine's own clock.
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
from harness.extras.deployments.machine import Machine
from harness.host import process
from harness.host.metering import Reading
from harness.host.sockets import Sockets
from harness.records import safe_write
from harness.runtime.compose import client_environment, label_flags, ownership_labels
from harness.runtime.container import LAST_LINES, SETTLE_SECONDS, Container, ended, follow
from harness.runtime.limits import Limits

OPEN_SECONDS, READ_SECONDS = 30.0, 5.0  # a machine that has not answered by then is lost
METER_IMAGE = "tfb/meter"
# The host's namespaces, read-only.
NAMESPACES = (
    *("--pid", "host", "--cgroupns", "host", "--network", "host", "--volume", "/sys/fs/cgroup:/sys/fs/cgroup:ro"),
    *("--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"),
)


class RemoteContainer(Container):
    """A container that has started there, read and its output followed into ``log`` until ``close``.

    The stream of its output ends when it ends: whether it lives costs nothing under load. ``port`` 0: no sockets are
    read. Raises StartError with its last lines when it has ended at once.
    """

    def __init__(self, name: str, container: str, log: Path, machine: Machine, run_id: str, *, port: int = 0) -> None:
        self.name = name
        self.id = container
        self.log = log
        self.machine, self.place = machine, f" on {machine.name}"
        self._last: dict[str, Any] = {}
        self._last_at = -1.0
        self._rest = b""
        pid = self._state().split()[-1]
        safe_write.make_folder(log.parent)
        self._follower = follow(machine.command(), container, log)
        run = ("run", "--interactive", "--rm", "--pull", "never", *NAMESPACES, *Limits().flags)
        labels = label_flags(ownership_labels(run_id))
        command = machine.command(*run, *labels, METER_IMAGE, pid, str(port))
        self._reader = process.Child(
            command, stdin=process.PIPE, stdout=process.PIPE, stderr=process.DEVNULL, env=client_environment()
        )
        try:
            self._line(OPEN_SECONDS)  # it is ready
        except ServerDiedError as error:
            self.close()
            raise StartError(f"the container exited at once: {self.how_it_ended()}") from error
        except BaseException:
            self.close()
            raise

    def _state(self) -> str:
        """Start time and process id, as its engine says."""
        form = "{{.State.StartedAt}} {{.State.Pid}}"
        return self.machine.docker("container", "inspect", "--format", form, self.id).stdout.strip() or "0"

    def line(self) -> dict[str, Any]:
        """What its reader says now; raises ServerDiedError with how it ended, and MachineLostError."""
        # Readings so close together share one line.
        if time.monotonic() - self._last_at < 0.05:
            return self._last
        self.machine.require_reachable()
        if control := self._reader.stdin:
            with contextlib.suppress(OSError):  # its output has ended, too, which says why
                control.write(b"\n")
                control.flush()
        self._last, self._last_at = self._line(READ_SECONDS), time.monotonic()
        return self._last

    def _line(self, seconds: float) -> dict[str, Any]:
        output = self._reader.stdout
        until = time.monotonic() + seconds
        while b"\n" not in self._rest:
            left = until - time.monotonic()
            if output is None or left <= 0 or not select.select([output], [], [], left)[0]:
                raise self.machine.lose(f"the machine {self.machine.name} has not answered for {seconds:.0f} s")
            part = os.read(output.fileno(), 1 << 16)
            if not part:
                self._reader.wait(READ_SECONDS)
                self.machine.require_answer()
                raise ServerDiedError(f"the reader on {self.machine.name} has ended")
            self._rest += part
        text, _, self._rest = self._rest.partition(b"\n")
        found: dict[str, Any] = json.loads(text)
        if "gone" in found:
            raise ServerDiedError(self.crash_reason())
        return found

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
        """Return the counters of its control group, by that machine's clock. Raises as ``line``."""
        process.bound(self.log)
        found = self.line()["reading"]
        return Reading(**found | {"pids": tuple(found["pids"])})

    def steal_ticks(self) -> tuple[float, float] | None:
        """Of that machine."""
        with contextlib.suppress(TfbError):
            stolen, every = self.line()["steal"]
            return float(stolen), float(every)
        return None

    def connections(self, port: int) -> "RemoteConnections":
        """To its port."""
        return RemoteConnections(self)

    def how_it_ended(self) -> str:
        """By its engine; waits until its last output is in the log."""
        self._follower.wait(SETTLE_SECONDS)
        self.machine.require_answer()
        self._complete_log()
        return ended(self.id, self.machine.at)

    def signal(self, name: str) -> None:
        """Send a signal to its first process."""
        self.machine.docker("kill", "--signal", name, self.id)

    def stop(self) -> None:
        """Ask its first process to stop, kill it when it does not, and keep its last output."""
        try:
            seconds = process.STOP_SECONDS
            self.machine.docker("stop", "--time", f"{seconds:.0f}", self.id, seconds=seconds + 10)
        finally:
            self.close()

    def close(self) -> None:
        """Follow its output no longer, and end the reader, which ends with its input."""
        for stream in filter(None, (self._reader.stdin, self._reader.stdout)):
            with contextlib.suppress(OSError):
                stream.close()
        self.machine.end(self._reader)
        self.machine.end(self._follower)
        with contextlib.suppress(MachineLostError):
            self._complete_log()

    def _last_lines(self) -> str:
        """Return the end of its output, as that machine's engine has it. Raises MachineLostError."""
        return self.machine.docker("logs", "--tail", LAST_LINES, self.id).stdout


@dataclass(frozen=True)
class RemoteConnections:
    """The generators' connections to a container's port, seen where it runs, as the clients see the bytes."""

    container: RemoteContainer

    def read(self) -> Sockets | None:
        """The counters now; raises as ``RemoteContainer.line``."""
        found = self.container.line()["sockets"]
        return found and Sockets(**found)

    def close(self) -> None:
        """The reader serves the container as long as it lives."""
