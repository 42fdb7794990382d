"""The explicit list of load generators."""

from harness.measure.loadgen import LoadGenerator
from harness.measure.loadgen.wrk import Wrk

DEFAULT_GENERATOR = "wrk"
GENERATORS: dict[str, type[LoadGenerator]] = {"wrk": Wrk}
