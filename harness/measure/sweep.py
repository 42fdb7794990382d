"""Measures one test type on one running server: primer, warm-up by rule, then every level, each sample gated."""

import math
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

from harness.measure import gates
from harness.measure.loadgen import Load, LoadGenerator
from harness.measure.observe import Observation, observe
from harness.measure.steady import SteadyDetector
from harness.request.plan import PlannedReplicate
from harness.request.profile import Profile
from harness.request.testtypes import TestType
from harness.results.records import CheckResult, Gate, Latency, Level, Outcome, Sample, Verdict, WarmUp, Window
from harness.servers import Database, Runtime, Server
from harness.verify.probe import Probe

PRIMER_CONNECTIONS = 8  # TechEmpower's
HISTOGRAM_DIGITS = 2  # kept behind the first significant one


@dataclass(frozen=True, kw_only=True)
class Bench:
    """What every measurement of a replicate shares."""

    profile: Profile
    runtime: Runtime
    generator: LoadGenerator
    server: Server
    database: Database
    replicate: PlannedReplicate
    server_cpus: int  # CPUs that the server may use
    generator_cpus: int
    duet_partner: str | None = None
    stop: Callable[[], bool] = lambda: False  # asked once a second; True ends a load early


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
    bench: Bench,
    test_type: TestType,
    url: str,
    verdict: Verdict,
    budget: Budget,
    note: Callable[[str, Level | None], None] = lambda _stage, _level: None,
) -> Iterator[Sample]:
    """Warm the server on this test type, then yield one sample a level (more where a contended one is repeated)."""
    levels = bench.replicate.test_types[test_type.name]
    note("warm-up", None)
    warm_up: WarmUp | None = warm(bench, test_type, url, verdict, levels)
    steady = warm_up.steady if warm_up else None
    for index, level in enumerate(levels):
        if index and bench.profile.pause_seconds:
            time.sleep(bench.profile.pause_seconds)
        for attempt in range(1 + bench.profile.gates.repeats):
            note("measure", level)
            sample = take_sample(bench, test_type, url, verdict, level, attempt)
            yield sample.model_copy(update={"warm_up": warm_up, "steady": steady})
            warm_up = None
            contended = any(g.name == "contended" and g.outcome is not Outcome.PASS for g in sample.gates)
            if not contended or not budget.take(bench.profile.duration_seconds):
                break


def warm(bench: Bench, test_type: TestType, url: str, verdict: Verdict, levels: tuple[Level, ...]) -> WarmUp | None:
    """Primer, then TechEmpower's fixed warm-up or load until the steady rule is met or its cap is reached."""
    rule = bench.profile.warm_up
    # The query tests are ranked at their highest count, the others are warmed at the level that is measured first.
    level = levels[-1] if levels[-1].queries is not None else levels[0]
    load = _load(bench, test_type, url, level, rule.primer_seconds)
    if rule.primer_seconds > 0:
        _observe(
            bench, replace(load, connections=min(PRIMER_CONNECTIONS, level.concurrency), threads=1), verdict, level
        )
        time.sleep(rule.pause_seconds)
    if rule.kind == "fixed":
        connections = rule.fixed_concurrency or level.concurrency
        load = replace(load, seconds=rule.fixed_seconds, connections=connections, threads=_threads(bench, connections))
        seen = _observe(bench, load, verdict, level)
        time.sleep(rule.pause_seconds)
        return _warm_up(seen, None)
    detector = SteadyDetector(rule, jit=bench.replicate.jit)
    cap = rule.jit_cap_seconds if bench.replicate.jit else rule.cap_seconds
    if cap <= 0:
        return None
    seen = _observe(bench, replace(load, seconds=cap), verdict, level, stop=detector.observe)
    return _warm_up(seen, detector)


def _warm_up(seen: Observation, detector: SteadyDetector | None) -> WarmUp:
    return WarmUp(
        duration=seen.result.duration,
        requests=seen.result.requests,
        steady=detector.steady if detector else None,
        seconds_to_steady=detector.seconds_to_steady if detector else None,
        requests_to_steady=detector.requests_to_steady if detector else None,
        worst_latency=seen.result.latency.max if seen.result.latency else None,
        windows=seen.windows,
    )


def take_sample(bench: Bench, test_type: TestType, url: str, verdict: Verdict, level: Level, attempt: int) -> Sample:
    """One generator run with its readings, its probe and its gates."""
    seconds = bench.profile.duration_seconds
    load = _load(bench, test_type, url, level, seconds)
    probe = Probe(
        endpoint=bench.server.endpoint, test_type=test_type, url=url, level=level, database=bench.database.address
    )
    with probe if seconds >= 1 else nullcontext():
        seen = _observe(bench, load, verdict, level)
    result = seen.result
    good = result.requests - result.errors.status
    replicate = bench.replicate
    name = f"{replicate.implementation}/{test_type.name}/{level.label.replace(' ', '-')}"
    return Sample(
        id=f"{name}/r{replicate.block}.{attempt}" + (f"+{bench.duet_partner}" if bench.duet_partner else ""),
        implementation=replicate.implementation,
        test_type=test_type.name,
        level=level,
        block=replicate.block,
        replicate=replicate.block,
        attempt=attempt,
        duet_partner=bench.duet_partner,
        started_at=seen.started_at,
        command=seen.command,
        duration=result.duration,
        asked_duration=load.seconds,
        requests=result.requests,
        bytes=result.bytes,
        errors=result.errors,
        throughput=good / result.duration,
        cpu_per_request=seen.server.cpu_seconds / result.requests if result.requests else None,
        latency=_binned(result.latency),
        server=seen.server,
        generator_cpu_seconds=result.cpu_seconds,
        generator_threads=load.threads,
        database_cpu_seconds=seen.database_cpu_seconds,
        windows=seen.windows,
        gates=(
            *gates.judge(_facts(bench, load, level, verdict, seen), bench.profile.gates),
            _probe_gate(probe.failures),
        ),
        probe_failures=tuple(probe.failures),
    )


def _probe_gate(failures: Sequence[CheckResult]) -> Gate:
    """What the probe saw while the load was on, as a gate."""
    bad = [failure for failure in failures if failure.outcome is Outcome.FAIL]
    return Gate(
        name="probe",
        outcome=Outcome.FAIL if bad else Outcome.PASS,
        value=float(len(bad)),
        threshold=0.0,
        word="wrong answers" if bad else "",
    )


def _facts(bench: Bench, load: Load, level: Level, verdict: Verdict, seen: Observation) -> gates.SampleFacts:
    result = seen.result
    return gates.SampleFacts(
        level=level,
        errors=result.errors.total,
        requests=result.requests,
        bytes=result.bytes,
        asked_duration=load.seconds,
        duration=result.duration,
        response_bytes=response_range(verdict, level),
        connections=seen.connections,
        latency_mean=result.latency.mean if result.latency else None,
        latency_samples=sum(count for _, count in result.latency.histogram) if result.latency else None,
        generator_cpu_seconds=result.cpu_seconds,
        generator_threads=load.threads,
        server_cpu_seconds=seen.server.cpu_seconds,
        server_cpus=bench.server_cpus,
        wait_share=seen.server.wait_share,
        throttled_seconds=seen.server.throttled_seconds,
        steal_share=seen.steal_share,
        restarted=seen.restarted,
    )


def response_range(verdict: Verdict, level: Level) -> tuple[float, float] | None:
    """Fewest and most bytes of one verified response at this level."""
    return verdict.response_bytes.get("" if level.queries is None else str(level.queries))


def _observe(
    bench: Bench, load: Load, verdict: Verdict, level: Level, stop: Callable[[Window], bool] | None = None
) -> Observation:
    sizes = response_range(verdict, level)
    return observe(
        load,
        runtime=bench.runtime,
        generator=bench.generator,
        server=bench.server,
        database=None if bench.duet_partner else bench.database.meter(),
        response_bytes=statistics.fmean(sizes) if sizes else None,
        stop=lambda window: bool(stop and stop(window)) or bench.stop(),
    )


def _load(bench: Bench, test_type: TestType, url: str, level: Level, seconds: float) -> Load:
    endpoint = bench.server.endpoint
    return Load(
        url=endpoint.url(test_type.path(url, level)),
        host=endpoint.host,
        accept=test_type.accept,
        seconds=seconds,
        connections=level.concurrency,
        threads=_threads(bench, level.concurrency),
        pipeline=level.pipeline,
    )


def _threads(bench: Bench, connections: int) -> int:
    """TechEmpower's rule: one thread a CPU, and no more than connections."""
    return max(1, min(connections, bench.generator_cpus))


def _binned(latency: Latency | None) -> Latency | None:
    """The histogram with values rounded to three significant digits, which keeps a sample's line short."""
    if latency is None:
        return None
    bins: dict[float, int] = {}
    for value, count in latency.histogram:
        digits = HISTOGRAM_DIGITS - math.floor(math.log10(value)) if value > 0 else 6
        key = round(value, digits)
        bins[key] = bins.get(key, 0) + count
    return latency.model_copy(update={"histogram": tuple(sorted(bins.items()))})
