"""A load generator as a running program: its output goes into a file, and it may wait for ``go`` before it loads."""

import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO

from harness.errors import LoadError
from harness.host import process

GO = b"go\n"
OUTPUT_BYTES = 64 << 20


class GeneratorProgram:
    """Started, and told to begin where it waits for that; ``output`` is complete once it has ended."""

    def __init__(
        self, command: Sequence[str], child: process.Child, output: IO[bytes], control: IO[bytes] | None
    ) -> None:
        self.command = tuple(command)
        self._child = child
        self._output = output
        self._control = control

    def begin(self) -> None:
        """Wait for its ``ready`` line and send ``go``; nothing for a generator that loads from its start.

        Raises LoadError when it is not ready in time.
        """
        if self._control is not None:
            self.await_ready()
            self.go()

    def await_ready(self) -> None:
        """Wait for its ``ready`` line; raises LoadError when it does not come in time."""
        if not self._await_lines(1, 15.0):  # loadgen tries to connect for 10 s
            said = self.output().strip()[-500:] or "nothing at all"
            raise LoadError(f"{self.command[0]} did not say that it is ready: {said}")

    def await_begun(self) -> bool:
        """Wait a moment for the line after ``ready``, which a gate prints as its load begins; whether it came."""
        return self._await_lines(2, 2.0)

    def _await_lines(self, wanted: int, seconds: float) -> bool:
        until = time.monotonic() + seconds
        while self._written().count(b"\n") < wanted:
            if self._child.wait(0.002) is not None or time.monotonic() > until:
                return self._written().count(b"\n") >= wanted
        return True

    def go(self) -> None:
        """Send ``go``; raises LoadError when it has ended meanwhile."""
        try:
            if self._control is not None:
                self._control.write(GO)
                self._control.flush()
        except OSError as error:
            raise LoadError(f"{self.command[0]} ended before its load: {self.output().strip()[-500:]}") from error

    def wait(self, seconds: float) -> int | None:
        """Wait at most that long for its end; exit status (negative: the signal) or None."""
        return self._child.wait(seconds)

    def interrupt(self) -> None:
        """Ask it to end now and print what it has."""
        self._child.interrupt()

    def abandon(self) -> None:
        """End it without asking: whom it would have to tell answers no more."""
        self._child.kill()

    def output(self) -> str:
        """What it has printed."""
        return self._written().decode(errors="replace")

    def _written(self) -> bytes:
        descriptor = self._output.fileno()
        size = os.fstat(descriptor).st_size
        if size > OUTPUT_BYTES:
            raise LoadError(f"{self.command[0]} printed {size} bytes: no result is longer than {OUTPUT_BYTES}")
        return os.pread(descriptor, size, 0)  # the child writes at an offset that we share


@contextmanager
def run_generator(
    command: Sequence[str],
    *,
    waits_for_go: bool = False,
    env: Mapping[str, str] | None = None,
    cpus: Sequence[int] | None = None,
) -> Iterator[GeneratorProgram]:
    """Run the command, in the caller's environment unless ``env`` is given; stop it on the way out.

    ``cpus``: where it may run; None: on all.
    """
    with tempfile.TemporaryFile() as output:
        stdin = process.PIPE if waits_for_go else process.DEVNULL
        child = process.Child(command, process.ProcessOptions(env=env, cpus=cpus), stdin=stdin, stdout=output)
        with process.running(child):
            yield GeneratorProgram(command, child, output, child.stdin)
