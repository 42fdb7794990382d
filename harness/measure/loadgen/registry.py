"""The explicit list of load generators, and which of them makes loads at a given rate."""

from collections.abc import Callable
from functools import partial

from harness.measure.loadgen import LoadGenerator, RateGenerator, build
from harness.measure.loadgen.own import Own
from harness.measure.loadgen.wrk import Wrk
from harness.request.profile import LatencyRules

DEFAULT_GENERATOR = "wrk"


def own_closed_loop() -> LoadGenerator:
    """The project's generator as wrk loads: as many requests as the connections get answered.

    Raises EnvironmentLacksError without cargo.
    """
    return Own(start_at_once=False, program=str(build.loadgen()))


GENERATORS: dict[str, Callable[[], LoadGenerator]] = {"wrk": Wrk, "loadgen": own_closed_loop}


def at_rates(runtime: str, rules: LatencyRules) -> RateGenerator:
    """The project's generator in an open loop, built for the local runtime; Docker has an image of it.

    Raises EnvironmentLacksError without cargo, and BuildError.
    """
    program = "loadgen" if runtime == "docker" else str(build.loadgen())
    extra = ("--drain-seconds", f"{rules.drain_seconds:g}", "--spin", f"{rules.spin_microseconds:g}")
    return partial(_open_loop, program, extra)


def _open_loop(program: str, extra: tuple[str, ...], rate: float, seed: int) -> LoadGenerator:
    return Own(rate=rate, seed=seed, start_at_once=False, program=program, extra=extra)
