"""Blocks of fresh processes: each in a closed loop first, then at given rates, then for the capacity at a goal."""

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from statistics import fmean

from harness.errors import ENDS_THE_RUN, LoadError
from harness.measure import sweep
from harness.measure.loadgen import RateGenerator
from harness.measure.rates import Asked, GoalSearch, machine_alone, rules_of, take_rate
from harness.measure.testbed import Target
from harness.plan.latency import asked_rates
from harness.plan.plan import Plan, PlannedReplicate
from harness.plan.rounds import headline
from harness.plan.testtypes import TestType
from harness.records import rates, store
from harness.records.models import RateSample, RunInfo
from harness.run.answered import Answered
from harness.run.blocks import Done
from harness.run.replicate import RECORDED, Replicate
from harness.run.running import Run
from harness.stats.whole import rank_whole

MACHINE_CONNECTIONS = 16
LEAST_BLOCKS = 2


def measure(run: Run, plan: Plan, info: RunInfo, done: Done) -> RunInfo:
    """Run the plan's blocks; returns run.json's record with the schedule as it was carried out."""
    at_rate = run.rate_tools.generator(run.testbed.runtime.name, rules_of(run.testbed))
    _machine(run, at_rate)
    time = _Time(run, plan, done)
    ended, total = 0, sum(len(block) for block in plan.blocks)
    for block in plan.blocks:
        if time.is_over(block):
            run.progress.note(f"the time is over: {len(info.schedule)} of {len(plan.blocks)} replicates")
            break
        info = info.model_copy(update={"schedule": (*info.schedule, tuple(p.implementation for p in block))})
        run.store.write_info(info)
        for planned in block:
            run.progress.replicate(planned.implementation, planned.block, len(plan.blocks))
            if (planned.implementation, planned.process) not in done:
                with time.process(planned.implementation):
                    _replicate(run, planned, plan.seed, time, at_rate)
            ended += 1
            run.progress.replicate_done(ended, total, ended / total)
        records = store.read(run.store.folder)
        ranking, _ = rank_whole(run.store.folder, info, records.samples, records.replicates, records.verdicts)
        run.store.write_text("ranking.json", ranking.recorded())
    return info


class _Time:
    """How long each cell may take, so that all of them end in the profile's time."""

    def __init__(self, run: Run, plan: Plan, done: Done) -> None:
        self._clock = run.testbed.clock
        self._cells = sum(
            len(p.test_types) for block in plan.blocks for p in block if (p.implementation, p.process) not in done
        )
        self._end = self._clock.monotonic() + rules_of(run.testbed).time_seconds * self._cells / max(1, _all(plan))
        # Seconds that the last process of an implementation took, its searches left out.
        self._least: dict[str, float] = {}
        self._searched = 0.0

    def is_over(self, block: Sequence[PlannedReplicate]) -> bool:
        """Whether a block beyond the second would end too late, searches left out: with two there are intervals."""
        known = list(self._least.values())
        if not block or block[0].block < LEAST_BLOCKS or not known:
            return False
        needs = sum(self._least.get(p.implementation, fmean(known)) for p in block)
        return self._clock.monotonic() + needs > self._end

    def cell(self) -> float:
        """The moment at which the cell that begins now had better end; the time left is shared by those to come."""
        now = self._clock.monotonic()
        until = now + max(0.0, self._end - now) / max(1, self._cells)
        self._cells -= 1
        return until

    @contextmanager
    def process(self, implementation: str) -> Iterator[None]:
        """What a process needs beside its searches."""
        began, self._searched = self._clock.monotonic(), 0.0
        yield
        self._least[implementation] = self._clock.monotonic() - began - self._searched

    @contextmanager
    def search(self) -> Iterator[None]:
        """A load that is left out where there is no time."""
        began = self._clock.monotonic()
        yield
        self._searched += self._clock.monotonic() - began


@dataclass(frozen=True, kw_only=True)
class _Slice:
    """Of the run's time, what one cell has."""

    time: _Time
    until: float


def _all(plan: Plan) -> int:
    return sum(len(planned.test_types) for block in plan.blocks for planned in block)


def _machine(run: Run, at_rate: RateGenerator) -> None:
    """What the machine's own wake-up costs, on a server that does nothing; a run goes on without it."""
    try:
        with run.rate_tools.null_server() as url:
            if url is not None:
                run.progress.stage("measuring", "measuring the machine alone, on the null server")
                run.store.add_line(rates.RATES, machine_alone(run.testbed, url, MACHINE_CONNECTIONS, at_rate))
    except LoadError as error:
        run.progress.note(f"the machine's own latency is not known: {error}")


def _replicate(run: Run, planned: PlannedReplicate, seed: int, time: _Time, at_rate: RateGenerator) -> None:
    """One fresh process to its end."""
    try:
        with Replicate(run, planned) as replicate:
            for name in planned.test_types:
                target = replicate.target(name)
                until = time.cell()
                if target is not None:
                    drawn = random.Random(f"{seed}/{planned.block}/{planned.implementation}/{name}")
                    _cell(run, replicate, target, drawn, _Slice(time=time, until=until), at_rate)
                replicate.server.require_alive()
    except ENDS_THE_RUN:
        raise
    except RECORDED:
        pass  # it did not start; its record says why


def _cell(
    run: Run, replicate: Replicate, target: Target, drawn: random.Random, own: _Slice, at_rate: RateGenerator
) -> None:
    """One test type: the closed loop, loads at shares of it and at common rates in random order, the search."""
    bed, name = run.testbed, target.test_type.name
    level = headline(target.levels)
    try:
        run.progress.cell(name, "warm-up", level)
        warm_up = sweep.warm(bed, target)
        audit_behind = replicate.audit_place(replace(target, levels=(level,))).behind
        if not audit_behind:
            replicate.audit(target, level)
        run.progress.cell(name, "measure", level)
        sample = sweep.take_sample(bed, target, level, seconds=bed.profile.duration_seconds)
        steady = warm_up.steady if warm_up else None
        replicate.keep(
            sample.model_copy(update={"warm_up": warm_up, "steady": steady}),
            audit_behind=target if audit_behind else None,
        )
        if sample.rankable and sample.throughput > 0:
            search = GoalSearch(rules_of(bed), sample.throughput)
            for asked in _loads(run, search, sample.throughput, drawn, own.until):
                run.progress.cell(name, f"{asked.rate:,.0f} req/s", level)
                with own.time.search() if asked.purpose == "search" else nullcontext():
                    seen = take_rate(bed, target, level, asked, at_rate)
                run.store.add_line(rates.RATES, seen)
                _count(replicate.answered, target.test_type, seen)
                search.add(seen)
            run.store.add_line(rates.CAPACITIES, search.capacity(target))
        replicate.verify_after_load(target)
    except LoadError as error:
        replicate.fail(f"{name}: {error}")


def _loads(run: Run, search: GoalSearch, capacity: float, drawn: random.Random, until: float) -> Iterator[Asked]:
    """The planned rates in random order, then those that the search asks for while there is time."""
    rules = rules_of(run.testbed)
    planned = [Asked(rate=r.rate, purpose=r.purpose, share=r.share, seed=0) for r in asked_rates(rules, capacity)]
    drawn.shuffle(planned)
    for asked in planned:
        yield Asked(rate=asked.rate, purpose=asked.purpose, share=asked.share, seed=drawn.randrange(1 << 31))
    for _ in range(rules.search_loads):
        rate = search.next_rate()
        if rate is None or run.testbed.clock.monotonic() + rules.seconds > until:
            return
        yield Asked(rate=rate, purpose="search", seed=drawn.randrange(1 << 31))


def _count(answered: Answered, kind: TestType, sample: RateSample) -> None:
    """Good answers, to be held against what the database did; and what may have been written without one."""
    answered.load_answered(kind, sample.level, sample.answered, sample.errors.status)
