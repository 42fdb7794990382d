"""The upstream of the fan-out test as a process: toolset/upstream, started when first needed, one for a whole run."""

import json
from functools import cache

from harness.errors import StartError
from harness.host import process
from harness.plan.discovery import Implementation
from harness.provisioning import crates
from harness.runtime import UpstreamStats

DELAY_MILLISECONDS = 5
CRATE = "upstream"


class UpstreamProcess:
    """Answers until this process ends, which stops all that it has started."""

    def __init__(self) -> None:
        # On a free port of the loopback address.
        command = [str(crates.upstream_program()), "--delay-ms", f"{DELAY_MILLISECONDS}"]
        self.child = process.Child(command, stdin=process.PIPE, stdout=process.PIPE, stderr=process.DEVNULL)
        self.url = f"http://127.0.0.1:{self._line()['port']}/value"  # what UPSTREAM_URL holds

    def reset(self) -> None:
        """Count from zero: once this returns, since a call that came before the line was read would be forgotten."""
        self._say("reset")
        self.stats()  # lines are read in their order

    def stats(self) -> UpstreamStats:
        """What was counted."""
        self._say("stats")
        line = self._line()
        return UpstreamStats(calls=line["calls"], sum=line["sum"], delay_seconds=DELAY_MILLISECONDS / 1000)

    def _say(self, line: str) -> None:
        stream = self.child.stdin
        try:
            if stream is not None:
                stream.write(f"{line}\n".encode())
                stream.flush()
        except (OSError, ValueError) as error:  # ended by itself, or stopped by us
            raise self._gone() from error

    def _line(self) -> dict[str, int]:
        stream = self.child.stdout
        line = stream.readline() if stream is not None else b""
        if not line:
            raise self._gone()
        found: dict[str, int] = json.loads(line)
        return found

    def _gone(self) -> StartError:
        status = self.child.poll()
        how = "it closed its output" if status is None else process.describe_status(status)
        return StartError(f"toolset/{CRATE} ended ({how}): the fan-out test cannot go on; run again")


def available() -> bool:
    """Whether it can be built here."""
    return crates.can_provide(CRATE, CRATE)


def upstream_for(implementation: Implementation) -> UpstreamProcess | None:
    """The upstream, for an implementation that has a test which calls it; None for others and where it can't be built.

    Raises BuildError, or StartError when it does not start.
    """
    calls = any(kind.calls_upstream for kind in implementation.test_types.values())
    return _shared() if calls and available() else None


@cache
def _shared() -> UpstreamProcess:
    return UpstreamProcess()
