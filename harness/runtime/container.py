"""Meters a running container, copies the log, and determines why the container exited."""

import os
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from harness.errors import ServerDiedError, StartError
from harness.host import process
from harness.host.metering import CgroupMeter, Reading
from harness.host.ownership import process_start
from harness.records import safe_write
from harness.runtime import ServerProgram
from harness.runtime.compose import client_environment, docker, inspect
from harness.runtime.crashes import crash_reason

# Hard limit on the size of the log, in case ``read`` does not truncate the log to MAX_LOG_BYTES in time.
FOLLOWED_BYTES = 2 * process.MAX_LOG_BYTES
LAST_LINES, LAST_BYTES = "200", 64 << 10
# When the log reaches the hard limit, the kernel kills `docker logs`. The child then continues with `docker wait`, so
# that it still exits when the container exits.
FOLLOW = 'ulimit -f "$1"; id=$2; shift 2; "$@" logs --follow "$id" || exec "$@" wait "$id" >/dev/null'
SETTLE_SECONDS = 5.0  # time that the engine may take to notice an exit
SIGNALLED = 128  # a program killed by signal N exits with this status plus N


class Container(ServerProgram):
    """A started container. The output is copied to ``log`` until ``close`` is called.

    ``read`` uses the kernel's counters, because asking the engine would use more CPU time during the load.
    If the container has already exited, the constructor raises StartError with the last lines of the output.
    """

    place = ""  # suffix in messages, such as " on database"; empty for this machine

    def __init__(self, name: str, container: str, log: Path) -> None:
        self.name = name
        self.id = container
        self.log = log
        safe_write.make_folder(log.parent)
        self._follower = follow_log(("docker",), container, log)
        with ExitStack() as stack:
            stack.callback(self._follower.stop)
            state = (inspect("container", container) or {}).get("State", {})
            self.pid = int(state.get("Pid", 0))
            self._born = process_start(self.pid)
            try:
                self._meter = CgroupMeter(self.pid)  # fails for an exited container, which has pid 0
            except ServerDiedError as error:
                self._require_local_engine()
                raise StartError(f"the container exited immediately: {self.how_it_ended()}") from error
            stack.pop_all()

    def _require_local_engine(self) -> None:
        """Raise StartError if the container is running, but not on this machine."""
        state = (inspect("container", self.id) or {}).get("State", {})
        if state.get("Running") and int(state.get("Pid", 0)) == self.pid:
            engine = docker("info", "--format", "{{.Name}}").stdout.strip() or "unknown"
            raise StartError(
                f"the container is running, but this machine has no process {self.pid}: the Docker engine (machine "
                f"{engine}, DOCKER_HOST {os.environ.get('DOCKER_HOST', 'not set')}) is on another machine, in a "
                "virtual machine or outside this container. Use a local engine (unset DOCKER_HOST, docker context use "
                "default), or run tfb on the engine's machine"
            )

    def alive(self) -> bool:
        """Return whether the container's main process is running. A new process with the same pid does not count."""
        return self._born is not None and process_start(self.pid) == self._born

    def identity(self) -> str:
        """Return a text with id, pid and start time, which changes if the container restarts."""
        return f"{self.id}@{self.pid}.{self._born}"

    def read(self) -> Reading:
        """Return the control group's counters. Raises ServerDiedError if the container has exited."""
        process.truncate_log(self.log)
        try:
            return self._meter.read()
        except ServerDiedError as error:
            raise ServerDiedError(self.crash_reason()) from error

    def require_alive(self) -> None:
        """If the container has exited, raise ServerDiedError with the last lines of the log."""
        if not self.alive():
            raise ServerDiedError(self.crash_reason())

    def crash_reason(self) -> str:
        """Return why the container exited, and the last lines of the log."""
        return crash_reason(self.name, f"its container{self.place} has exited: {self.how_it_ended()}", self.log)

    def how_it_ended(self) -> str:
        """Complete the log and return how the container exited."""
        self._follower.wait(SETTLE_SECONDS)
        self._complete_log()
        return describe_end(self.id)

    def _complete_log(self) -> None:
        """Truncate the log. If copying stopped at ``FOLLOWED_BYTES``, append the last lines of the output."""
        full = self.log.stat().st_size >= FOLLOWED_BYTES
        process.truncate_log(self.log)
        if full:
            with safe_write.append(self.log, private=True) as log:
                log.write(self._last_lines()[-LAST_BYTES:].encode())

    def _last_lines(self) -> str:
        """Ask the engine for the last lines of the container's output."""
        return docker("logs", "--tail", LAST_LINES, self.id).stdout

    def address(self) -> str | None:
        """Return the container's IP address, or None on the host's network."""
        networks = ((inspect("container", self.id) or {}).get("NetworkSettings") or {}).get("Networks") or {}
        return next((str(each["IPAddress"]) for each in networks.values() if each.get("IPAddress")), None)

    def end(self) -> float | None:
        """Send SIGTERM to the main process. Return the seconds until it exits, or None if it keeps running."""
        began = time.monotonic()
        self.signal("TERM")
        while (seconds := time.monotonic() - began) < process.STOP_SECONDS:
            if not self.alive():
                return seconds
            time.sleep(0.02)
        return None

    def signal(self, name: str) -> None:
        """Send a signal to the container's main process."""
        docker("kill", "--signal", name, self.id)

    def stop(self) -> None:
        """Stop the container and complete the log."""
        try:
            docker("stop", "--time", f"{process.STOP_SECONDS:.0f}", self.id)
        finally:  # close even if the engine does not respond
            self.close()

    def close(self) -> None:
        """Complete a stopped container's log."""
        self._follower.wait(1.0)  # the last output may arrive shortly after the exit
        self._follower.stop()
        self._complete_log()


def follow_log(docker_command: Sequence[str], container: str, log: Path) -> process.Child:
    """Start a child that copies a container's output to ``log``, which is private and limited in size."""
    blocks = str(FOLLOWED_BYTES // 512)
    with safe_write.append(log, private=True) as output:
        command = ["sh", "-c", FOLLOW, "sh", blocks, container, *docker_command]
        return process.Child(command, process.ProcessOptions(env=client_environment()), stdout=output)


def describe_end(container: str, at: Sequence[str] = ()) -> str:
    """Return how a container exited, for example that it ran out of memory."""
    until = time.monotonic() + SETTLE_SECONDS
    while (details := inspect("container", container, at)) and details["State"]["Running"] and time.monotonic() < until:
        time.sleep(0.05)
    if details is None:
        return "it was removed"
    state, limit = details["State"], details["HostConfig"]["Memory"]
    if state["OOMKilled"]:
        reached = f"it reached the limit of {limit / 2**20:.0f} MiB (--test-container-memory)"
        return f"out of memory: {reached if limit else 'the machine has no free memory'}"
    how = f"exit status {state['ExitCode']}"
    if state["ExitCode"] > SIGNALLED:
        how = f"{process.describe_status(SIGNALLED - state['ExitCode'])} ({how})"
    return f"{how} {state['Error']}".strip()
