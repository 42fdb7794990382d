"""Runs a load generator and writes the output to a file. The generator may wait for ``go`` before it sends requests."""

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
    """A started load generator. The output is complete after the generator has exited."""

    def __init__(
        self, command: Sequence[str], child: process.Child, output: IO[bytes], control: IO[bytes] | None
    ) -> None:
        self.command = tuple(command)
        self._child = child
        self._output = output
        self._control = control

    def begin(self) -> None:
        """If the generator waits for ``go``, wait until it is ready and send ``go``. Raises LoadError if it is late."""
        if self._control is not None:
            self.await_ready()
            self.go()

    def await_ready(self) -> None:
        """Wait for the line ``ready``. Raises LoadError if the generator does not print it in time."""
        if not self._await_lines(1, 15.0):  # loadgen tries to connect for up to 10 s
            output = self.output().strip()[-500:] or "nothing"
            raise LoadError(f"{self.command[0]} did not become ready; it printed: {output}")

    def await_begun(self) -> bool:
        """Wait for the second line, which reports the start of the load. Return whether the generator printed it."""
        return self._await_lines(2, 2.0)

    def _await_lines(self, count: int, seconds: float) -> bool:
        until = time.monotonic() + seconds
        while self._written().count(b"\n") < count:
            if self._child.wait(0.002) is not None or time.monotonic() > until:
                return self._written().count(b"\n") >= count
        return True

    def go(self) -> None:
        """Send ``go``. Raises LoadError if the generator has exited."""
        try:
            if self._control is not None:
                self._control.write(GO)
                self._control.flush()
        except OSError as error:
            raise LoadError(f"{self.command[0]} exited before sending load: {self.output().strip()[-500:]}") from error

    def wait(self, seconds: float) -> int | None:
        """Wait for the generator. Return the exit status, or None if it is still running after ``seconds``."""
        return self._child.wait(seconds)

    def interrupt(self) -> None:
        """Ask the generator to stop and print the results so far."""
        self._child.interrupt()

    def abandon(self) -> None:
        """Kill the generator, for example if the client machine no longer responds."""
        self._child.kill()

    def output(self) -> str:
        """Return the generator's output so far."""
        return self._written().decode(errors="replace")

    def _written(self) -> bytes:
        descriptor = self._output.fileno()
        size = os.fstat(descriptor).st_size
        if size > OUTPUT_BYTES:
            raise LoadError(f"{self.command[0]} printed {size} bytes, more than the maximum of {OUTPUT_BYTES}")
        return os.pread(descriptor, size, 0)  # read() would move the offset that the child shares


@contextmanager
def run_generator(
    command: Sequence[str],
    *,
    waits_for_go: bool = False,
    env: Mapping[str, str] | None = None,
    cpus: Sequence[int] | None = None,
) -> Iterator[GeneratorProgram]:
    """Start a load generator, with the given environment and CPUs, and stop it at the end of the block."""
    with tempfile.TemporaryFile() as output:
        stdin = process.PIPE if waits_for_go else process.DEVNULL
        child = process.Child(command, process.ProcessOptions(env=env, cpus=cpus), stdin=stdin, stdout=output)
        with process.running(child):
            yield GeneratorProgram(command, child, output, child.stdin)
