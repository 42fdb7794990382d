"""One load of the order service: its figures a request and an arrival, its gates, and the file of its answers."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.errors import LoadError
from harness.measure.order_load import Taken, take_load
from harness.measure.testbed import Target, Testbed
from harness.plan import profile as profiles
from harness.plan.benchmark_config import TestEntry
from harness.plan.discovery import Implementation
from harness.plan.orders import plan
from harness.plan.testtypes.registry import TEST_TYPES
from harness.records.models import Gate, Closed, Outcome, Verdict
from harness.tests.doubles.fakes_orders import FakeScenarios
from harness.tests.doubles.fakes_runtime import FakeDatabase, FakeGenerator, FakeRuntime, FakeVerifier
from harness.tests.doubles.fakes_world import Behaviour, World

URL = "/json"  # the load names the server alone


@contextmanager
def running(folder: Path, behaviour: Behaviour) -> Iterator[tuple[Testbed, Target]]:
    """A server of the world, and with what it is measured."""
    world = World()
    world.behaviours["a"] = behaviour
    runtime, database = FakeRuntime(world), FakeDatabase(world)
    entry = TestEntry.model_validate({"language": "Fake", "json_url": URL})
    implementation = Implementation(
        name="a", variant="default", framework="a", folder=folder, maintainers=(), entry=entry
    )
    bed = Testbed(
        profile=profiles.load("smoke"),
        clock=world.clock,
        runtime=runtime,
        generator=FakeGenerator(),
        verifier=FakeVerifier(world),
        database=database,
        server_cpus=2,
        generator_cpus=2,
    )
    verdict = Verdict(
        implementation="a",
        test_type="json",
        replicate=0,
        thorough=True,
        outcome=Outcome.PASS,
        results=(),
        duration=0.0,
    )
    with runtime.start(implementation, database.address, folder / "log", ready_path=URL) as server:
        yield (
            bed,
            Target(
                server=server,
                test_type=TEST_TYPES["json"],
                levels=(Closed(connections=64),),
                verdict=verdict,
                database=database,
                jit=False,
                block=3,
                process=1,
            ),
        )


def take(folder: Path, scenarios: FakeScenarios, behaviour: Behaviour | None = None) -> Taken:
    with running(folder, behaviour or Behaviour(cpu_per_request=100e-6)) as (bed, target):
        return take_load(bed, target, 8.0, seconds=12, seed=5, generator=scenarios, folder=folder)


def failed(gates: tuple[Gate, ...]) -> set[str]:
    return {gate.name for gate in gates if gate.outcome is Outcome.FAIL}


def test_a_load_counts_by_arrival_what_the_server_used(tmp_path: Path) -> None:
    scenarios = FakeScenarios()
    sample = take(tmp_path, scenarios).sample
    assert scenarios.loads == [(plan(8.0), 5)]
    assert (sample.implementation, sample.block, sample.process, sample.factor) == ("a", 3, 1, 8.0)
    assert (sample.duration, sample.due, sample.done) == (12.0, 712, 712)  # 445 a minute at factor 1
    assert sample.cpu_per_arrival == pytest.approx(100e-6 * 1000 / 445, rel=0.01)
    assert sample.generator_threads == 2
    assert sample.generator_cpu_seconds == pytest.approx(1.2)
    assert sample.server is not None
    assert sample.server.rss_peak == 100e6
    assert sample.valid
    create = sample.operations[0]
    assert (create.use_case, create.operation, create.due, create.answered) == (
        "online shop order",
        "create order",
        480,
        480,
    )


def test_the_answers_are_in_the_caller_s_folder(tmp_path: Path) -> None:
    taken = take(tmp_path, FakeScenarios())
    assert taken.answers.parent == tmp_path
    assert taken.answers.read_text() == '{"complete": true}\n'


@pytest.mark.parametrize(
    ("shows", "gates"),
    [
        (FakeScenarios(failed=1), {"errors"}),
        (FakeScenarios(unfinished=1), {"unfinished"}),
        (FakeScenarios(failed=10), {"errors", "achieved-rate"}),
        (FakeScenarios(lag=0.001), {"generator-lag"}),
        (FakeScenarios(lag=0.00009, response=0.0002), set()),  # of no weight
    ],
)
def test_what_was_lost_or_late_fails_its_gate(tmp_path: Path, shows: FakeScenarios, gates: set[str]) -> None:
    sample = take(tmp_path, shows).sample
    assert failed(sample.gates) == gates
    assert sample.valid is not bool(gates)


def test_a_server_that_was_started_anew_under_load_fails_and_a_contended_one_is_said(tmp_path: Path) -> None:
    anew = take(tmp_path, FakeScenarios(), Behaviour(restarts=True)).sample
    assert anew.restarted
    assert failed(anew.gates) == {"restarted"}
    contended = take(tmp_path, FakeScenarios(), Behaviour(wait_share=0.4)).sample
    assert [gate.word for gate in contended.gates if gate.outcome is Outcome.WARN] == ["contended"]


def test_a_generator_that_plays_no_scenario_is_an_error(tmp_path: Path) -> None:
    with running(tmp_path, Behaviour()) as (bed, target), pytest.raises(LoadError, match="played no scenario"):
        take_load(bed, target, 1.0, seconds=2, seed=1, generator=lambda *_: FakeGenerator(), folder=tmp_path)
