"""The registry of load generators: maps each generator's name to a function that creates it for a runtime."""

from collections.abc import Callable

from harness.experiment.generators import LoadGenerator
from harness.experiment.generators.loadgen import Loadgen
from harness.experiment.generators.wrk import Wrk
from harness.runtime import Runtime

GENERATORS: dict[str, Callable[[Runtime], LoadGenerator]] = {"loadgen": Loadgen.of, "wrk": lambda _: Wrk()}
