"""The load generators by their names in profiles. A generator is created for the runtime that starts it."""

from collections.abc import Callable

from harness.experiment.generators import LoadGenerator
from harness.experiment.generators.loadgen import Loadgen
from harness.experiment.generators.wrk import Wrk
from harness.runtime import Runtime

GENERATORS: dict[str, Callable[[Runtime], LoadGenerator]] = {"loadgen": Loadgen.of, "wrk": lambda _: Wrk()}
