"""One load of the order service at a factor on one running server: arrivals of its use cases, gated."""

from dataclasses import dataclass, replace
from pathlib import Path

from harness.errors import LoadError
from harness.measure import rate_gates
from harness.measure.loadgen import Load, LoadResult, Played, ScenarioGenerator
from harness.measure.loadgen.scenario import ANSWERS
from harness.measure.observe import Observation, observe
from harness.measure.sweep import binned, load_of
from harness.measure.testbed import Target, Testbed
from harness.plan.orders import plan
from harness.records.models import Gate, Level, RateSample
from harness.records.orders import ArrivalTimes, OperationTimes, OrderSample


@dataclass(frozen=True, kw_only=True)
class Taken:
    """A load, and what was answered in it."""

    sample: OrderSample
    answers: Path  # a JSON object a line of each arrival, in the folder that was given


def take_load(
    bed: Testbed,
    target: Target,
    factor: float,
    *,
    seconds: float,
    seed: int,
    generator: ScenarioGenerator,
    folder: Path,
) -> Taken:
    """Run it over the connections of the target's levels; raises LoadError and ServerDiedError.

    ``folder`` is for the generator's files alone, and the caller's to remove.
    """
    level = target.levels[0].model_copy(update={"queries": None, "pipeline": 1})
    load = load_of(bed, target, level, seconds)
    seen = observe(
        replace(bed, generator=generator(plan(factor), seed, folder)),
        target,
        load,
        response_bytes=None,
        stop=lambda _: target.stop(),
    )
    sample = _sample(bed, target, load, seen, factor, seed)
    answers = folder / ANSWERS
    if not answers.is_file():
        raise LoadError(f"the generator wrote no answers into {answers}")
    return Taken(sample=sample, answers=answers)


def _sample(bed: Testbed, target: Target, load: Load, seen: Observation, factor: float, seed: int) -> OrderSample:
    played = seen.result.played
    if played is None:
        raise LoadError(f"the generator played no scenario on {load.url}")
    implementation = target.server.implementation.name
    return OrderSample(
        id=f"{implementation}/{target.test_type.name}/x{factor:g}-r{target.block}.{seed}",
        implementation=implementation,
        block=target.block,
        process=target.process,
        factor=factor,
        started_at=seen.started_at,
        command=seen.command,
        duration=seen.result.duration,
        due=played.due,
        done=played.done,
        failed=played.failed,
        unfinished=played.unfinished,
        operations=tuple(_shortened(one) for one in played.operations),
        use_cases=tuple(_shortened_arrivals(one) for one in played.use_cases),
        bytes=seen.result.bytes,
        lag_p99=played.lag_p99,
        lag_max=played.lag_max,
        cpu_per_arrival=seen.server.cpu_seconds / played.due if played.due else None,
        database_cpu_seconds=seen.database_cpu_seconds,
        server=seen.server,
        generator_cpu_seconds=seen.result.cpu_seconds,
        generator_threads=load.threads,
        steal_share=seen.steal_share,
        restarted=seen.restarted,
        gates=_gates(bed, load, seen, played),
    )


def _shortened(times: OperationTimes) -> OperationTimes:
    return times.model_copy(update={"latency": binned(times.latency), "service": binned(times.service)})


def _shortened_arrivals(times: ArrivalTimes) -> ArrivalTimes:
    return times.model_copy(update={"latency": binned(times.latency)})


def _gates(bed: Testbed, load: Load, seen: Observation, played: Played) -> tuple[Gate, ...]:
    """Those of a load at a given rate, held against its requests: all that was due, answered, late or lost."""
    return rate_gates.judge(_as_rate(bed, load, seen, played), bed.profile.orders.at_rates, bed.profile.gates)


def _as_rate(bed: Testbed, load: Load, seen: Observation, played: Played) -> RateSample:
    """The load's requests as one at the rate that its arrivals made."""
    result: LoadResult = seen.result
    return RateSample(
        id=load.url,
        implementation="",
        test_type="order",
        level=Level(concurrency=load.connections),
        block=0,
        process=0,
        purpose="share",
        asked_rate=played.requests_due / result.duration,
        started_at=seen.started_at,
        duration=result.duration,
        due=played.requests_due,
        answered=played.requests_answered,
        achieved_rate=played.requests_answered / result.duration,
        unfinished=played.requests_unfinished,
        errors=result.errors,
        late=0,
        latency=played.latency,
        lag_p99=played.lag_p99,
        lag_max=played.lag_max,
        sent_late=rate_gates.sent_late(played.sent_late, played.latency, bed.profile.orders.at_rates),
        server=seen.server,
        steal_share=seen.steal_share,
        restarted=seen.restarted,
    )
