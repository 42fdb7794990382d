"""One load at a given rate on one running server: open loop, latency from the intended send time, gated."""

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from harness.errors import LoadError
from harness.measure import goal_search, rate_gates
from harness.measure.goal_search import Tried
from harness.measure.loadgen import Load, LoadResult, RateGenerator
from harness.measure.observe import observe
from harness.measure.sweep import binned, load_of
from harness.measure.testbed import Target, Testbed
from harness.plan.profile import LatencyRules
from harness.records.models import NULL_SERVER, GoalCapacity, Level, RateSample

Purpose = Literal["share", "common", "search"]


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A rate to load with, and why."""

    rate: float  # requests/s
    purpose: Purpose
    seed: int  # of the arrivals
    share: float | None = None


def take_rate(testbed: Testbed, target: Target, level: Level, asked: Asked, at_rate: RateGenerator) -> RateSample:
    """Run it; raises LoadError and ServerDiedError."""
    rules = rules_of(testbed)
    load = load_of(testbed, target, level, rules.seconds)
    sizes = target.response_bytes(level)
    seen = observe(
        replace(testbed, generator=at_rate(asked.rate, asked.seed)),
        target,
        load,
        response_bytes=statistics.fmean(sizes) if sizes else None,
        stop=lambda _: target.stop(),
    )
    implementation = target.server.implementation.name
    cell = f"{implementation}/{target.test_type.name}/{level.label.replace(' ', '-')}"
    sample = _sample(seen.result, load, rules, asked.rate).model_copy(
        update={
            "id": f"{cell}/{asked.rate:.0f}-r{target.block}.{asked.seed}",
            "implementation": implementation,
            "test_type": target.test_type.name,
            "level": level,
            "block": target.block,
            "process": target.process,
            "purpose": asked.purpose,
            "share": asked.share,
            "started_at": seen.started_at,
            "command": seen.command,
            "server": seen.server,
            "cpu_per_request": seen.server.cpu_seconds / seen.result.requests if seen.result.requests else None,
            "steal_share": seen.steal_share,
            "restarted": seen.restarted,
        }
    )
    return sample.model_copy(update={"gates": rate_gates.judge(sample, rules, testbed.profile.gates, sizes)})


def machine_alone(testbed: Testbed, url: str, connections: int, at_rate: RateGenerator) -> RateSample:
    """The same load on a server that does nothing: what waking up costs here. Raises LoadError."""
    rules = rules_of(testbed)
    runtime, generator = testbed.runtime, at_rate(rules.machine_rate, 1)
    load = Load(
        url=url,
        host="tfb-server",
        accept="*/*",
        seconds=rules.seconds,
        connections=connections,
        threads=max(1, min(connections, testbed.generator_cpus)),
    )
    started_at = testbed.clock.time()
    with runtime.generator(
        generator.program, generator.arguments(load), waits_for_go=generator.waits_for_go
    ) as load_on:
        load_on.begin()
        status = load_on.wait(load.seconds + generator.timeout_seconds)
        if status != 0:
            raise LoadError(f"the load on the null server did not end well: {load_on.output().strip()[-300:]}")
        result = generator.result(load, load_on.output())
    sample = _sample(result, load, rules, rules.machine_rate).model_copy(update={"started_at": started_at})
    return sample.model_copy(update={"gates": rate_gates.judge(sample, rules, testbed.profile.gates)})


def _sample(result: LoadResult, load: Load, rules: LatencyRules, rate: float) -> RateSample:
    """What the generator counted; whose it is comes from the caller."""
    counted = result.at_rate
    if counted is None:
        raise LoadError(f"the generator made no open loop on {load.url}")
    return RateSample(
        id=f"{NULL_SERVER}/{rate:.0f}",
        implementation=NULL_SERVER,
        test_type="machine",
        level=Level(concurrency=load.connections),
        block=0,
        process=0,
        purpose="machine",
        asked_rate=rate,
        started_at=0.0,
        duration=result.duration,
        due=counted.due,
        answered=counted.answered,
        achieved_rate=result.requests / result.duration,
        unfinished=counted.unfinished,
        errors=result.errors,
        late=counted.due - counted.answered + counted.late(rules.goal.seconds),
        latency=binned(result.latency),
        service=binned(counted.service),
        lag_p99=counted.lag_p99,
        lag_max=counted.lag_max,
        sent_late=rate_gates.sent_late(counted.sent_late, result.latency, rules),
        bytes=result.bytes,
        generator_cpu_seconds=result.cpu_seconds,
        generator_threads=load.threads,
    )


def rules_of(testbed: Testbed) -> LatencyRules:
    """The profile's; raises LoadError where it has none."""
    if testbed.profile.latency is None:
        raise LoadError(f"profile {testbed.profile.name} has no section [latency]")
    return testbed.profile.latency


class GoalSearch:
    """The search on one process: told of every load, it says which rate is next, and what was found."""

    def __init__(self, rules: LatencyRules, closed_loop: float) -> None:
        self._rules, self._closed_loop = rules, closed_loop
        self._tried: dict[float, Tried] = {}
        self._loads = 0

    def add(self, sample: RateSample) -> None:
        """A load counts, unless the goal was missed while the generator was late itself."""
        seen = Tried(rate=sample.asked_rate, due=sample.due, late=sample.late)
        late_share = self._rules.goal.late_share
        missed = not seen.met(late_share)
        self._loads += 1
        if sample.restarted or (
            missed and rate_gates.measured_the_generator(sample) and not rate_gates.saturated(sample)
        ):
            return
        if not missed and rate_gates.saturated(sample):
            seen = replace(seen, late=seen.due)  # a backlog that the load was too short to show as latency
        before = self._tried.get(sample.asked_rate)
        if before:
            seen = replace(seen, due=seen.due + before.due, late=seen.late + before.late)
        self._tried[sample.asked_rate] = seen

    @property
    def tried(self) -> Mapping[float, Tried]:
        """By rate."""
        return self._tried

    def next_rate(self) -> float | None:
        """Requests/s of the next load; None when the search is over."""
        rules = self._rules
        return goal_search.next_rate(
            self._bracket(),
            self._closed_loop,
            late_share=rules.goal.late_share,
            width=rules.bracket,
            confidence=rules.confidence,
            seconds=0.9 * rules.seconds,  # arrivals are drawn: by chance there are fewer
        )

    def capacity(self, target: Target) -> GoalCapacity:
        """What was found."""
        found, rules = self._bracket(), self._rules
        decided = [end.decided(rules.goal.late_share, rules.confidence) for end in found.ends]
        return GoalCapacity(
            implementation=target.server.implementation.name,
            test_type=target.test_type.name,
            block=target.block,
            process=target.process,
            goal=rules.goal,
            rate=found.low.rate if found.low else None,
            above=found.high.rate if found.high else None,
            decided=bool(decided) and all(decided),
            confidence=rules.confidence,
            loads=self._loads,
            contradictions=found.contradictions,
            closed_loop=self._closed_loop,
        )

    def _bracket(self) -> goal_search.Bracket:
        """Of the rates with enough requests to decide anything."""
        late_share = self._rules.goal.late_share
        enough = goal_search.requests_to_decide(late_share, self._rules.confidence)
        usable = [one for one in self._tried.values() if one.due >= enough or not one.met(late_share)]
        return goal_search.bracket(usable, late_share)
