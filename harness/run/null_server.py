"""A server of this project that does nothing: how late the machine itself wakes up shows on it."""

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from harness.errors import EnvironmentLacksError, LoadError
from harness.host import process
from harness.measure.loadgen import build

READY_SECONDS = 10.0
GLANCE_SECONDS = 0.02


@contextmanager
def null_server() -> Iterator[str | None]:
    """Its URL while it runs; None where it cannot be built. Raises LoadError when it does not come up."""
    try:
        program = build.reference_server()
    except EnvironmentLacksError:
        yield None
        return
    with tempfile.TemporaryFile() as output:
        child = process.Child([str(program)], stdout=output, stdin=process.PIPE)
        with process.running(child):
            waited = 0.0
            while True:
                output.seek(0)
                line = output.readline()
                if line.endswith(b"\n"):
                    break
                if child.wait(GLANCE_SECONDS) is not None or waited > READY_SECONDS:
                    raise LoadError(f"{program.name} did not say on which port it answers: {line[:200]!r}")
                waited += GLANCE_SECONDS
            yield f"http://127.0.0.1:{json.loads(line)['port']}/"
