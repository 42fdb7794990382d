"""The explicit list of load generators, and which of them makes loads at a given rate."""

import shutil
from collections.abc import Callable
from functools import partial

from harness.host import crates, process
from harness.measure.loadgen import LoadGenerator, RateGenerator, ScenarioGenerator
from harness.measure.loadgen.own import Own
from harness.measure.loadgen.scenario import Scenario, prepared
from harness.measure.loadgen.wrk import Wrk
from harness.plan.profile import LatencyRules
from harness.runtime import Runtime

reference_server = crates.reference_server
DEFAULT_GENERATOR = "wrk"
REALTIME = ("--rr", "1")  # chrt's: the lowest of the real-time priorities


def wrk(_: Runtime) -> LoadGenerator:
    """TechEmpower's."""
    return Wrk()


def own_closed_loop(runtime: Runtime) -> LoadGenerator:
    """The project's generator as wrk loads: as many requests as the connections get answered.

    Raises EnvironmentLacksError without cargo, and BuildError.
    """
    return Own(start_at_once=False, program=runtime.own_generator())


GENERATORS: dict[str, Callable[[Runtime], LoadGenerator]] = {"wrk": wrk, "loadgen": own_closed_loop}


def at_rates(runtime: str, rules: LatencyRules) -> RateGenerator:
    """The project's generator in an open loop, built for the local runtime; Docker has an image of it.

    Raises EnvironmentLacksError without cargo, and BuildError.
    """
    starter = _starter(runtime, realtime=rules.realtime)
    extra = ("--drain-seconds", f"{rules.drain_seconds:g}", "--spin", f"{rules.spin_microseconds:g}")
    return partial(_open_loop, *starter, extra)


def scenarios(runtime: str, drain_seconds: float = 2.0, *, realtime: bool = True) -> ScenarioGenerator:
    """The project's generator as it plays scenarios; ``drain_seconds``: to wait for what is under way at the end.

    Raises as ``at_rates`` does.
    """
    program, prefix = _starter(runtime, realtime=realtime)
    return partial(prepared, Scenario(program=program, prefix=prefix, drain_seconds=drain_seconds))


def _starter(runtime: str, *, realtime: bool) -> tuple[str, tuple[str, ...]]:
    """What starts the project's generator on a runtime, and the words before its arguments."""
    if runtime == "docker":
        return "loadgen", ()
    program = str(crates.loadgen())
    return promptly(program) if realtime else (program, ())


def promptly(program: str) -> tuple[str, tuple[str, ...]]:
    """What starts the program with real-time priority, and the words before its arguments; itself where not allowed.

    On CPUs that it shares with the server the generator would otherwise wait for it, and measure its own waiting.
    """
    chrt = shutil.which("chrt")
    if chrt is None or process.run([chrt, *REALTIME, "true"], seconds=10).status != 0:
        return program, ()
    return chrt, (*REALTIME, program)


def _open_loop(program: str, prefix: tuple[str, ...], extra: tuple[str, ...], rate: float, seed: int) -> LoadGenerator:
    return Own(rate=rate, seed=seed, start_at_once=False, program=program, prefix=prefix, extra=extra)
