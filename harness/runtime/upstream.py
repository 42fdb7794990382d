"""Runs toolset/upstream, the server that implementations call in the fan-out test type, as a single process."""

import json
from functools import cache

from harness.errors import StartError
from harness.host import process
from harness.plan.implementation import Implementation
from harness.provisioning import crates
from harness.runtime import UpstreamStats

DELAY_MILLISECONDS = 5
CRATE = "upstream"


class UpstreamProcess:
    """A running upstream server, which exits when tfb closes its stdin."""

    def __init__(self) -> None:
        command = [str(crates.upstream_program()), "--delay-ms", f"{DELAY_MILLISECONDS}"]
        self.child = process.Child(command, stdin=process.PIPE, stdout=process.PIPE, stderr=process.DEVNULL)
        self.url = f"http://127.0.0.1:{self._line()['port']}/value"  # value of UPSTREAM_URL

    def reset(self) -> None:
        """Reset the counters to zero and wait until the upstream server has done so."""
        self._send("reset")
        self.stats()  # the server handles lines in order, so the response confirms the reset

    def stats(self) -> UpstreamStats:
        """Return the counters since the last reset."""
        self._send("stats")
        line = self._line()
        return UpstreamStats(calls=line["calls"], sum=line["sum"], delay_seconds=DELAY_MILLISECONDS / 1000)

    def _send(self, line: str) -> None:
        stream = self.child.stdin
        try:
            if stream is not None:
                stream.write(f"{line}\n".encode())
                stream.flush()
        except (OSError, ValueError) as error:  # the process has exited or was stopped
            raise self._exit_error() from error

    def _line(self) -> dict[str, int]:
        stream = self.child.stdout
        line = stream.readline() if stream is not None else b""
        if not line:
            raise self._exit_error()
        message: dict[str, int] = json.loads(line)
        return message

    def _exit_error(self) -> StartError:
        status = self.child.poll()
        reason = "it closed its output" if status is None else process.describe_status(status)
        return StartError(f"toolset/{CRATE} exited ({reason}), so the fan-out test cannot continue: run tfb again")


def available() -> bool:
    """Return whether the upstream server has been built or can be built here."""
    return crates.can_provide(CRATE, CRATE)


def upstream_for(implementation: Implementation) -> UpstreamProcess | None:
    """Return the upstream server, or None if no test type calls it or this machine cannot build it."""
    calls = any(kind.calls_upstream for kind in implementation.test_types.values())
    return _shared() if calls and available() else None


@cache
def _shared() -> UpstreamProcess:
    return UpstreamProcess()
