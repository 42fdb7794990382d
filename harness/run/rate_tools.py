"""What a run needs from outside to load at given rates: the generator, and a server that does nothing."""

import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from harness.errors import BuildError, EnvironmentLacksError, LoadError
from harness.host import process
from harness.measure.loadgen import RateGenerator, ScenarioGenerator
from harness.measure.loadgen.registry import at_rates, reference_server, scenarios
from harness.plan.profile import LatencyRules

READY_SECONDS = 10.0
GLANCE_SECONDS = 0.02


@contextmanager
def null_server() -> Iterator[str | None]:
    """The URL of a server that does nothing, on which the machine's own wake-up shows, while it runs.

    None where it cannot be built. Raises LoadError when it does not come up.
    """
    try:
        program = reference_server()
    except (EnvironmentLacksError, BuildError):
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


@dataclass(frozen=True, kw_only=True)
class RateTools:
    """Tests give doubles of them."""

    generator: Callable[[str, LatencyRules], RateGenerator] = at_rates  # by the runtime's name
    scenarios: Callable[[str, float], ScenarioGenerator] = scenarios  # by the runtime's name and the time to drain
    null_server: Callable[[], AbstractContextManager[str | None]] = null_server
