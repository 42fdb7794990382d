"""The load generators by the name that a profile calls them; each is made for the runtime that will start it."""

from collections.abc import Callable

from harness.experiment.generators import Generator
from harness.experiment.generators.loadgen import Loadgen
from harness.experiment.generators.wrk import Wrk
from harness.runtime import Runtime

GENERATORS: dict[str, Callable[[Runtime], Generator]] = {"loadgen": Loadgen.of, "wrk": lambda _: Wrk()}
