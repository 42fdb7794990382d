"""Measures one test type on one running server: primer, warm-up by rule, then every level, each sample gated."""

import logging
import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

from harness.host.clock import JUMPS
from harness.measure import gates
from harness.measure.loadgen import Load, LoadResult
from harness.measure.observe import Observation, observe
from harness.measure.steady import SteadyDetector
from harness.measure.testbed import Target, Testbed
from harness.records.models import Latency, Level, Outcome, Sample, WarmUp, Window

logger = logging.getLogger("tfb.sweep")

PRIMER_CONNECTIONS = 8  # TechEmpower's
HISTOGRAM_DIGITS = 2  # kept behind the first significant one


@dataclass
class Budget:
    """Seconds that a run may spend on repeating contended samples."""

    seconds: float

    def take(self, seconds: float) -> bool:
        """Whether that much is left; takes it if so."""
        if self.seconds < seconds:
            return False
        self.seconds -= seconds
        return True


def sweep(
    testbed: Testbed,
    target: Target,
    budget: Budget,
    note: Callable[[str, Level | None], None] = lambda _stage, _level: None,
) -> Iterator[Sample]:
    """Warm the server on this test type, then yield one sample a level (more where a contended one is repeated)."""
    profile = testbed.profile
    note("warm-up", None)
    warm_up: WarmUp | None = warm(testbed, target)
    steady = warm_up.steady if warm_up else None
    for index, level in enumerate(target.levels):
        if index and profile.pause_seconds:
            testbed.clock.sleep(profile.pause_seconds)
        for attempt in range(1 + profile.gates.repeats):
            note("measure", level)
            sample = take_sample(testbed, target, level, seconds=profile.duration_seconds, attempt=attempt)
            yield sample.model_copy(update={"warm_up": warm_up, "steady": steady})
            warm_up = None
            contended = any(g.name == "contended" and g.outcome is not Outcome.PASS for g in sample.gates)
            if attempt == profile.gates.repeats or not contended or not budget.take(profile.duration_seconds):
                break


def warm(testbed: Testbed, target: Target) -> WarmUp | None:
    """Primer, then TechEmpower's fixed warm-up or load until the steady rule is met or its cap is reached."""
    rule, clock = testbed.profile.warm_up, testbed.clock
    level = warm_up_level(target.levels)
    load = load_of(testbed, target, level, rule.primer_seconds)
    if rule.primer_seconds > 0:
        primer = replace(load, connections=min(PRIMER_CONNECTIONS, level.concurrency), threads=1)
        _observe(testbed, target, primer, level)
        clock.sleep(rule.pause_seconds)
    if rule.kind == "fixed":
        connections = rule.fixed_concurrency or level.concurrency
        threads = _threads(testbed, connections)
        load = replace(load, seconds=rule.fixed_seconds, connections=connections, threads=threads)
        seen = _observe(testbed, target, load, level)
        clock.sleep(rule.pause_seconds)
        return warmed([seen], None)
    detector = SteadyDetector(rule, jit=target.jit)
    if detector.cap_seconds <= 0:
        return None
    seen = _observe(testbed, target, replace(load, seconds=detector.cap_seconds), level, stop=detector.observe)
    return warmed([seen], detector)


def warm_burst(testbed: Testbed, target: Target, detector: SteadyDetector, seconds: float) -> Observation:
    """So many seconds of warm-up at most: the detector sees its windows and may end it."""
    level = warm_up_level(target.levels)
    return _observe(testbed, target, load_of(testbed, target, level, seconds), level, stop=detector.observe)


def warmed(bursts: Sequence[Observation], detector: SteadyDetector | None) -> WarmUp:
    """All bursts as one warm-up: the time between them is left out. Without a detector nobody asked what is steady."""
    before, windows = 0.0, []
    for burst in bursts:
        windows += [window.model_copy(update={"start": round(before + window.start, 4)}) for window in burst.windows]
        before += burst.result.duration
    worst = [burst.result.latency.max for burst in bursts if burst.result.latency]
    return WarmUp(
        duration=before,
        requests=sum(burst.result.requests for burst in bursts),
        steady=detector.steady if detector else None,
        seconds_to_steady=detector.seconds_to_steady if detector else None,
        requests_to_steady=detector.requests_to_steady if detector else None,
        worst_latency=max((each for each in worst if each is not None), default=None),
        windows=tuple(windows),
    )


def warm_up_level(levels: Sequence[Level]) -> Level:
    """The query tests are ranked at their highest count; the others are warmed at the level that is measured first."""
    return levels[-1] if levels[-1].queries is not None else levels[0]


def take_sample(testbed: Testbed, target: Target, level: Level, *, seconds: float, attempt: int = 0) -> Sample:
    """One generator run of so many seconds with its readings, a watch on the answers, and its gates.

    It is made again where somebody set the time of day meanwhile, by which wrk times its requests.
    """
    load = load_of(testbed, target, level, seconds)
    for _ in range(1 + JUMPS):
        watch = testbed.verifier.watch(target.server, target.test_type, level, target.database.address)
        with watch if seconds >= 1 else nullcontext():
            seen = _observe(testbed, target, load, level)
        if target.ledger:
            target.ledger.watched(target.test_type, level, watch.exchanges)
        if not seen.clock_set:
            break
        logger.warning("the machine's clock was set by %+.1f s under a load: measured again", seen.clock_set)
    result = seen.result
    good = result.requests - result.errors.status
    implementation = target.server.implementation.name
    name = f"{implementation}/{target.test_type.name}/{level.label.replace(' ', '-')}"
    sample = Sample(
        id=f"{name}/r{target.block}.{attempt if target.round is None else target.round}"
        + (f"+{target.partner}" if target.partner else ""),
        implementation=implementation,
        test_type=target.test_type.name,
        level=level,
        block=target.block,
        process=target.process,
        round=target.round,
        attempt=attempt,
        duet_partner=target.partner,
        started_at=seen.started_at,
        command=seen.command,
        duration=result.duration,
        asked_duration=load.seconds,
        requests=result.requests,
        bytes=result.bytes,
        errors=result.errors,
        throughput=good / result.duration,
        cpu_per_request=seen.server.cpu_seconds / result.requests if result.requests else None,
        latency=binned(result.latency),
        server=seen.server,
        generator_cpu_seconds=result.cpu_seconds,
        generator_threads=load.threads,
        database_cpu_seconds=seen.database_cpu_seconds,
        windows=seen.windows,
        connections=seen.connections,
        steal_share=seen.steal_share,
        restarted=seen.restarted,
        responses_per_request=seen.responses_per_request,
        idle_cpu_share=seen.idle_cpu_share,
        probe_failures=tuple(watch.failures),
        clients=seen.clients,
        link_share=link_share(result, testbed.links),
    )
    expected = gates.Expected(response_bytes=target.response_bytes(level), server_cpus=testbed.server_cpus)
    return sample.model_copy(update={"gates": gates.judge(sample, expected, testbed.profile.gates)})


def link_share(result: LoadResult, links: Mapping[str, float]) -> float | None:
    """Bytes of answers in a second, over what the links from the server to its clients carry together; None unknown."""
    capacity = sum(links.values())
    return result.bytes / result.duration / capacity if capacity > 0 and result.duration > 0 else None


def _observe(
    testbed: Testbed, target: Target, load: Load, level: Level, stop: Callable[[Window], bool] | None = None
) -> Observation:
    sizes = target.response_bytes(level)
    seen = observe(
        testbed,
        target,
        load,
        response_bytes=statistics.fmean(sizes) if sizes else None,
        stop=lambda window: bool(stop and stop(window)) or target.stop(),
    )
    if target.ledger:
        failed = seen.result.errors.status
        target.ledger.load_answered(target.test_type, level, seen.result.requests - failed, failed)
    return seen


def load_of(testbed: Testbed, target: Target, level: Level, seconds: float) -> Load:
    """The closed loop of a level on this target."""
    endpoint = target.server.endpoint
    return Load(
        url=endpoint.url(target.test_type.path(target.url, level)),
        host=endpoint.host,
        accept=target.test_type.accept,
        seconds=seconds,
        connections=level.concurrency,
        threads=_threads(testbed, level.concurrency),
        pipeline=level.pipeline,
    )


def _threads(testbed: Testbed, connections: int) -> int:
    """TechEmpower's rule: one thread a CPU, and no more than connections."""
    return max(1, min(connections, testbed.generator_cpus))


def binned(latency: Latency | None) -> Latency | None:
    """The histogram with values rounded to three significant digits, which keeps a sample's line short."""
    if latency is None:
        return None
    bins: dict[float, int] = {}
    for value, count in latency.histogram:
        digits = HISTOGRAM_DIGITS - math.floor(math.log10(value)) if value > 0 else 6
        key = round(value, digits)
        bins[key] = bins.get(key, 0) + count
    return latency.model_copy(update={"histogram": tuple(sorted(bins.items()))})
