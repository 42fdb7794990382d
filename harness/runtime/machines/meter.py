"""The reader on another machine (toolset/meter), asked a line at a time over one stream."""

import json
import os
import select
import time
from collections.abc import Sequence
from typing import Any

from harness.errors import ServerDiedError
from harness.host import process
from harness.runtime import Reading, Sockets
from harness.runtime.compose import RUN_LABEL, client
from harness.runtime.machines.machine import Machine

READ_SECONDS = 5.0  # a machine that has not answered by then is lost
LOST_GRACE_SECONDS = 0.1  # for a client of an engine that is lost: it has nobody to ask
FRESH_SECONDS = 0.05  # readings so close together share one line
IMAGE = "tfb/meter"


class MeterReader:
    """Reads one container of a machine until ``close``; ``port`` 0: no sockets."""

    def __init__(self, machine: Machine, run_id: str, pid: int, port: int = 0) -> None:
        self._machine = machine
        self.command: Sequence[str] = [
            *(client() or "docker", *machine.at, "run", "--interactive", "--rm", "--pull", "never"),
            *(
                "--pid",
                "host",
                "--cgroupns",
                "host",
                "--network",
                "host",
                "--volume",
                "/sys/fs/cgroup:/sys/fs/cgroup:ro",
            ),
            *("--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"),
            *("--label", f"{RUN_LABEL}={run_id}", IMAGE, str(pid), str(port)),
        ]
        self._last: dict[str, Any] = {}
        self._last_at = -1.0
        self._open()

    def _open(self) -> None:
        self._child = process.Child(self.command, stdin=process.PIPE, stdout=process.PIPE, stderr=process.DEVNULL)
        self._rest = b""
        self._overdue = False  # a line was asked for and not waited for: it would be taken for the next one
        try:
            self._line(30.0)  # it is ready
        except BaseException:
            self.close()
            raise

    def line(self) -> dict[str, Any]:
        """One reading; raises ServerDiedError when the container is gone, MachineLostError when the machine is."""
        if time.monotonic() - self._last_at < FRESH_SECONDS:
            return self._last
        if self._overdue:
            self._machine.require_reachable()
            self.close()
            self._open()
        control = self._child.popen.stdin
        try:
            assert control is not None  # noqa: S101 - a pipe was asked for
            control.write(b"\n")
            control.flush()
        except OSError as error:
            raise self._lost() from error
        self._last, self._last_at = self._line(READ_SECONDS), time.monotonic()
        return self._last

    def reading(self) -> Reading:
        """As the spine takes it; times are of that machine's own clock."""
        line = self.line()
        return Reading(
            at=line["at"], cpu_seconds=line["cpu"], rss=line["rss"], run_seconds=line["run"],
            wait_seconds=line["wait"], throttled_seconds=line["throttled"], pids=tuple(line["pids"]),
        )  # fmt: skip

    def sockets(self) -> Sockets | None:
        """As the clients see them."""
        found = self.line()["sockets"]
        if found is None:
            return None
        return Sockets(connections=found["connections"], bytes_received=found["received"], bytes_sent=found["sent"])

    def steal(self) -> tuple[float, float]:
        """Stolen and all ticks of that machine."""
        stolen, every = self.line()["steal"]
        return float(stolen), float(every)

    def _line(self, seconds: float) -> dict[str, Any]:
        output = self._child.popen.stdout
        assert output is not None  # noqa: S101 - a pipe was asked for
        until = time.monotonic() + seconds
        while b"\n" not in self._rest:
            left = until - time.monotonic()
            if left <= 0 or not select.select([output], [], [], left)[0]:
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
        done = self._machine.docker("version", "--format", "{{.Server.Version}}")
        if done.status != 0:
            said = done.stdout.strip()[-200:]
            return self._machine.lose(f"the engine of the machine {self._machine.name} answers no more: {said}")
        return ServerDiedError(f"the reader on {self._machine.name} has ended")

    def close(self) -> None:
        """End the reader: it ends with its input."""
        for stream in (self._child.popen.stdin, self._child.popen.stdout):
            if stream is not None:
                try:
                    stream.close()
                except OSError:
                    continue
        if self._machine.lost is None:
            self._child.wait(2.0)
        self._child.stop(grace=LOST_GRACE_SECONDS if self._machine.lost else process.STOP_SECONDS)
