"""Which generator a run loads with."""

from harness.measure.loadgen.registry import GENERATORS
from harness.tests.doubles.fakes_runtime import FakeRuntime
from harness.tests.doubles.fakes_world import World


def test_the_projects_own_generator_is_the_one_that_the_runtime_has_and_waits_for_its_go() -> None:
    runtime = FakeRuntime(World())
    own, wrk = GENERATORS["loadgen"](runtime), GENERATORS["wrk"](runtime)
    assert (own.program, own.waits_for_go) == (runtime.own_generator(), True)
    assert wrk.program == "wrk"
