"""One running container: its counters, its output, whether it lives, and how it ended."""

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

FOLLOWED_BYTES = 2 * process.MAX_LOG_BYTES  # which the kernel holds a log to; readings cut it at LOG_BYTES
LAST_LINES, LAST_BYTES = "200", 64 << 10
# The kernel ends the first command when the log is full. The second then waits for the container's end.
FOLLOW = 'ulimit -f "$1"; id=$2; shift 2; "$@" logs --follow "$id" || exec "$@" wait "$id" >/dev/null'
SETTLE_SECONDS = 5.0  # what the engine has to notice that a process is gone
SIGNALLED = 128  # a shell's convention, and the engine's: 128 + signal


class Container(ServerProgram):
    """A container that has started; its output is followed into ``log`` until ``close``.

    Whether it lives is asked of the kernel, not of the engine, so that it costs nothing under load. Raises StartError
    with its last lines when it has ended at once.
    """

    place = ""  # as messages name another machine's

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
                self._meter = CgroupMeter(self.pid)  # pid 0, of one that has ended, has no control group
            except ServerDiedError as error:
                raise StartError(f"the container exited at once: {self.how_it_ended()}") from error
            stack.pop_all()

    def alive(self) -> bool:
        """Whether its first process runs, and not a later one under its number."""
        return self._born is not None and process_start(self.pid) == self._born

    def identity(self) -> str:
        """Changes when the container is started again."""
        return f"{self.id}@{self.pid}.{self._born}"

    def read(self) -> Reading:
        """Return the counters of its control group; raise ServerDiedError with how it ended."""
        process.truncate_log(self.log)
        try:
            return self._meter.read()
        except ServerDiedError as error:
            raise ServerDiedError(self.crash_reason()) from error

    def require_alive(self) -> None:
        """Raises ServerDiedError with how it ended and its last lines."""
        if not self.alive():
            raise ServerDiedError(self.crash_reason())

    def crash_reason(self) -> str:
        """Name, end, last lines and log."""
        return crash_reason(self.name, f"its container{self.place} is gone: {self.how_it_ended()}", self.log)

    def how_it_ended(self) -> str:
        """Return how it ended, once its last output is in the log."""
        self._follower.wait(SETTLE_SECONDS)
        self._complete_log()
        return describe_end(self.id)

    def _complete_log(self) -> None:
        """Cut a log that is too long, and add the last lines to one that was full."""
        full = self.log.stat().st_size >= FOLLOWED_BYTES
        process.truncate_log(self.log)
        if full:
            with safe_write.append(self.log, private=True) as log:
                log.write(self._last_lines()[-LAST_BYTES:].encode())

    def _last_lines(self) -> str:
        """Return the end of its output, as the engine has it."""
        return docker("logs", "--tail", LAST_LINES, self.id).stdout

    def address(self) -> str | None:
        """Its address in the first network that gives it one; None on the host's own."""
        networks = ((inspect("container", self.id) or {}).get("NetworkSettings") or {}).get("Networks") or {}
        return next((str(each["IPAddress"]) for each in networks.values() if each.get("IPAddress")), None)

    def end(self) -> float | None:
        """Send SIGTERM to its first process; return the seconds until it had ended, or None if it still runs then."""
        began = time.monotonic()
        self.signal("TERM")
        while (seconds := time.monotonic() - began) < process.STOP_SECONDS:
            if not self.alive():
                return seconds
            time.sleep(0.02)
        return None

    def signal(self, name: str) -> None:
        """Send a signal to its first process."""
        docker("kill", "--signal", name, self.id)

    def stop(self) -> None:
        """Ask its first process to stop, kill it when it does not, and keep its last output."""
        try:
            docker("stop", "--time", f"{process.STOP_SECONDS:.0f}", self.id)
        finally:  # also where the engine hangs
            self.close()

    def close(self) -> None:
        """Stop following the log of a container that has been stopped; its last output is written within moments."""
        self._follower.wait(1.0)
        self._follower.stop()
        self._complete_log()


def follow_log(docker_command: Sequence[str], container: str, log: Path) -> process.Child:
    """Start a child that writes a container's output into ``log``, with a size limit that the kernel enforces.

    ``docker_command`` is docker with its arguments for the engine. The child ends when the container does. Only this
    user may read the log, because programs print secrets.
    """
    blocks = str(FOLLOWED_BYTES // 512)
    with safe_write.append(log, private=True) as output:
        command = ["sh", "-c", FOLLOW, "sh", blocks, container, *docker_command]
        return process.Child(command, process.ProcessOptions(env=client_environment()), stdout=output)


def describe_end(container: str, at: Sequence[str] = ()) -> str:
    """How a container ended, with its memory limit when that was the reason; ``at``: docker's, of another engine."""
    until = time.monotonic() + SETTLE_SECONDS
    while (found := inspect("container", container, at)) and found["State"]["Running"] and time.monotonic() < until:
        time.sleep(0.05)
    if found is None:
        return "it was removed"
    state, limit = found["State"], found["HostConfig"]["Memory"]
    if state["OOMKilled"]:
        reached = f"it reached its limit of {limit / 2**20:.0f} MiB (--test-container-memory)"
        return f"out of memory: {reached if limit else 'the machine has no more'}"
    how = f"exit status {state['ExitCode']}"
    if state["ExitCode"] > SIGNALLED:
        how = f"{process.describe_status(SIGNALLED - state['ExitCode'])} ({how})"
    return f"{how} {state['Error']}".strip()
