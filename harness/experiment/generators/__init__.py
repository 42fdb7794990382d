"""Load generators behind one Protocol; ``GENERATORS`` lists them."""

import shutil
from collections.abc import Callable

from harness.experiment.generators.model import (
    ANSWERS,
    TIMEOUT_SECONDS,
    Generator,
    LoadResult,
    LoadRun,
)
from harness.experiment.generators.own import REALTIME, Loadgen
from harness.experiment.generators.wrk import Wrk
from harness.host import process
from harness.runtime import Runtime

__all__ = [
    "ANSWERS",
    "GENERATORS",
    "TIMEOUT_SECONDS",
    "Generator",
    "LoadResult",
    "LoadRun",
]


def loadgen(runtime: Runtime) -> Generator:
    """The project's own, built if it is not yet; raises EnvironmentLacksError and BuildError where it cannot be."""
    binary = runtime.own_generator()
    return Loadgen(binary=binary, chrt=_chrt() if runtime.name == "local" else None)


def _chrt() -> str | None:
    """What starts a program with real-time priority; None where that is not allowed.

    On CPUs that it shares with the server the generator would otherwise wait for it, and measure its own waiting.
    """
    chrt = shutil.which("chrt")
    return chrt if chrt and process.run([chrt, *REALTIME, "true"], seconds=10).status == 0 else None


GENERATORS: dict[str, Callable[[Runtime], Generator]] = {"loadgen": loadgen, "wrk": lambda _: Wrk()}
