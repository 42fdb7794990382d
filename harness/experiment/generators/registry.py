"""The registry of load generators: maps each generator's name to a function that creates it for a runtime."""

from collections.abc import Callable, Mapping

from harness.experiment.generators import GeneratorName, LoadGenerator
from harness.experiment.generators.h2load import H2load
from harness.experiment.generators.loadgen import Loadgen
from harness.experiment.generators.websocket_witness import WebSocketWitness
from harness.experiment.generators.wrk import Wrk
from harness.plan.plan import Plan
from harness.plan.testtypes import LoadProtocol
from harness.plan.testtypes.registry import TEST_TYPES
from harness.runtime import Runtime

GENERATORS: Mapping[str, Callable[[Runtime], LoadGenerator]] = {
    "loadgen": Loadgen.of,
    "wrk": lambda _: Wrk(),
    "h2load": H2load.of,
    "websocket-witness": WebSocketWitness.of,
}
# Protocol -> independent generator that repeats loadgen's loads.
WITNESSES: Mapping[LoadProtocol, GeneratorName] = {
    "http1": "wrk",
    "http2": "h2load",
    "websocket": "websocket-witness",
}


def witness(chosen: GeneratorName, test_type: str) -> GeneratorName:
    """Return the generator that checks the results of the chosen generator for a test type."""
    protocol = TEST_TYPES[test_type].protocol if test_type in TEST_TYPES else "http1"
    return WITNESSES[protocol] if chosen == "loadgen" else "loadgen"


def needed_generators(plan: Plan) -> frozenset[GeneratorName]:
    """Return the names of the generators for a plan: loadgen, wrk, and the witnesses of the test types."""
    types = {name for each in plan.candidates for name in each.test_types if plan.profile.has_witnesses}
    return frozenset({"loadgen", "wrk", *(witness("loadgen", name) for name in types)})
