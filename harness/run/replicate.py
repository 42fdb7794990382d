"""One fresh process of an implementation on fresh database state: verified, measured, and held to account."""

import logging
import random
import statistics
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from types import TracebackType
from typing import Self

import psycopg

from harness.errors import ENDS_THE_RUN, LoadError, TfbError
from harness.host.clock import JUMP_SECONDS, JUMPS, time_of_day
from harness.measure import sweep
from harness.measure.audit import LEAST_SECONDS, drawn_seconds
from harness.measure.testbed import Audited, Target
from harness.plan.plan import PlannedReplicate
from harness.plan.testtypes import TestType
from harness.plan.testtypes.registry import TEST_TYPES
from harness.records.models import AuditedLoad, CheckResult, Level, Outcome, ReplicateRecord, Sample, Verdict
from harness.run.answered import Answered
from harness.run.running import Run
from harness.runtime import Database, Server
from harness.verify.checks import audit as audit_checks
from harness.verify.verification import worst

logger = logging.getLogger("tfb.replicate")

PUBLISH_SECONDS = 10.0
UNKNOWN_RATE = 20_000.0  # requests in a second, where nothing has been measured yet
LOOK_SECONDS = 0.2

DATABASE_DEATHS = 2  # in the replicates of one process, before the implementation is to blame for it

RECORDED = (TfbError, psycopg.Error)


@dataclass(frozen=True, kw_only=True)
class AuditPlace:
    """Where the audit of a test type stands among the samples of a process."""

    level: Level
    behind: bool  # the first sample of the level; else before it


@dataclass(frozen=True, kw_only=True)
class _Audit:
    """What an audited sample showed, for what is compared with it later."""

    level: Level
    load: AuditedLoad
    came_first: bool  # before any other sample of its level

    @property
    def seconds(self) -> float | None:
        """Of the server's CPU a request."""
        return self.load.cpu_per_request


class Replicate:
    """Context manager around one process; what fails in it is in its record, not an exception of the block.

    Entering raises what kept the server from starting, which is recorded too. Only an interruption and a StoreError
    (nothing can be kept any more) leave the block as exceptions.
    """

    server: Server
    database: Database
    answered: Answered

    def __init__(self, run: Run, planned: PlannedReplicate, *, own_database: bool = False) -> None:
        self.planned = planned
        self.reasons: list[str] = []  # for which it counts as failed
        self._run = run
        self._implementation = run.implementations[planned.implementation]
        self._own_database = own_database
        self._log = run.store.log(planned.implementation, f"r{planned.process}")
        self._began = run.testbed.clock.time()
        self._first_answer: float | None = None
        self._connection: tuple[CheckResult, ...] = ()
        self._stack = ExitStack()
        self._measured: list[Sample] = []
        self._audited: dict[str, _Audit] = {}  # of each test type
        self._unclaimed: dict[tuple[str, Level], AuditedLoad] = {}  # until a sample beside them is kept
        self._verdicts: dict[str, Verdict] = {}  # of test types that were audited, with what the audit showed

    @property
    def thorough(self) -> bool:
        """The first process of an implementation is verified thoroughly, later ones briefly."""
        return self.planned.process == 0

    def __enter__(self) -> Self:
        bed, name = self._run.testbed, self.planned.implementation
        try:
            if self._own_database:
                self.database = self._stack.enter_context(bed.database.own(f"{name}-{self.planned.process}"))
            else:
                bed.database.restore()
                self.database = bed.database
            self.answered = Answered(
                before=bed.verifier.table_use(self.database.address),
                look=partial(bed.verifier.statements, self.database.address),
                now=bed.clock.time,
            )
            self._stack.push(self._hold_to_account)  # once the server has stopped
            path = self._implementation.ready_path
            self.server = self._stack.enter_context(
                bed.runtime.start(self._implementation, self.database.address, self._log, ready_path=path)
            )
            self._first_answer = self.server.first_answer
            self._verify_connection()
        except BaseException as error:
            self._stack.__exit__(type(error), error, error.__traceback__)
            self._finish(error)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        first = error
        try:
            self._stack.__exit__(kind, error, traceback)
        except BaseException as second:  # noqa: BLE001 - found while it was stopped; recorded, then raised below
            first = error or second
        self._finish(first)
        if first is not None and first is not error and not recorded(first):
            raise first
        return recorded(first)

    def target(self, name: str) -> Target | None:
        """Verify a test type; what to put under load, or None where verification failed."""
        bed, planned = self._run.testbed, self.planned
        test_type, levels = TEST_TYPES[name], planned.test_types[name]
        self._run.progress.cell(name, "verifying")
        verdict = bed.verifier.check(
            self.server,
            test_type,
            self.database.address,
            replicate=planned.process,
            thorough=self.thorough,
            levels=levels,
        )
        verdict = with_results(verdict, self._connection)
        self._run.store.add_verdict(verdict)
        if verdict.outcome is Outcome.FAIL:
            self.fail(f"{name}: {explain(verdict)}")
            return None
        return Target(
            server=self.server,
            test_type=test_type,
            levels=levels,
            verdict=verdict,
            database=self.database,
            jit=planned.jit,
            block=planned.block,
            process=planned.process,
            ledger=self.answered,
        )

    def measure(self, name: str) -> None:
        """Verify, warm and measure a test type on all its levels, and verify again."""
        target = self.target(name)
        if target is None:
            self.server.require_alive()  # one that died in verification is told so
            return
        place = self.audit_place(target)

        def note(stage: str, level: Level | None) -> None:
            if stage == "measure" and level == place.level and not place.behind and name not in self._audited:
                self.audit(target, place.level)
            self._run.progress.cell(name, stage, level)

        try:
            for sample in sweep.sweep(self._run.testbed, target, self._run.budget, note):
                due = sample.level == place.level and place.behind and name not in self._audited
                self.keep(sample, audit_behind=target if due else None)
            self.verify_after_load(target)
        except LoadError as error:
            self.fail(f"{name}: {error}")
        self.server.require_alive()

    def audit_place(self, target: Target) -> AuditPlace:
        """At which level the audit stands, and on which side of its sample; the run's seed draws both.

        All implementations are audited at the same level in the same process of theirs, so that their service times
        compare; a level comes again only when each had its turn.
        """
        name, count = target.test_type.name, len(target.levels)
        turn, place = divmod(self.planned.process, count)
        drawn = random.Random(f"{self._run.seed} audited levels {name} {turn}").sample(range(count), count)
        return AuditPlace(level=target.levels[drawn[place]], behind=self._dice(name).random() < 0.5)

    def _dice(self, name: str) -> random.Random:
        """What the run's seed draws for a test type of this process; nobody else knows it."""
        return random.Random(f"{self._run.seed} {self.planned.implementation} {self.planned.process} {name}")

    def audit(self, target: Target, level: Level, seconds: float | None = None, *, owed: bool = True) -> None:
        """One audited sample, where audits are possible; what it objects to is in the verdict of the test type.

        ``seconds`` is what the samples beside it last, None where the profile says so; ``owed`` that it was planned.
        """
        bed, name = self._run.testbed, target.test_type.name
        if bed.auditor is None:
            return
        self._run.progress.cell(name, "measure", level)
        before = [s for s in self._measured if s.test_type == name]
        audited = self._take_audit(
            target,
            level,
            f"after {len(before)}",
            before[-1].throughput if before else UNKNOWN_RATE,
            bed.profile.duration_seconds if seconds is None else seconds,
            owed=owed,
        )
        alone = self._held_alone(target.test_type, level, audited)
        came_first = all(sample.level != level for sample in before)
        self._audited[name] = _Audit(level=level, load=audited.load, came_first=came_first)
        self._unclaimed[name, level] = audited.load
        self.judge_again(target, (*audited.results, *alone), "in an audited sample")

    def _take_audit(
        self, target: Target, level: Level, which: str, expected: float, sample_seconds: float, *, owed: bool
    ) -> Audited:
        bed, name = self._run.testbed, target.test_type.name
        assert bed.auditor is not None  # noqa: S101 - whoever calls has looked
        seed = self._dice(f"{name} {level.label} {which}").randrange(1 << 31)
        time = self._run.audit_time
        seconds = time.load_seconds(drawn_seconds(sample_seconds, seed), owed=owed, seed=seed)
        for left in reversed(range(1 + JUMPS)):
            began, set_at = bed.clock.monotonic(), time_of_day(bed.clock)
            try:
                audited = bed.auditor(bed, target, level, seed, expected, seconds)
            finally:
                time.took(seconds, bed.clock.monotonic() - began, owed=owed)
            self.answered.load_answered(target.test_type, level, audited.successes, audited.failed)
            # The database dates its rows by the time of day: what somebody sets is no server's fault.
            if not left or abs(time_of_day(bed.clock) - set_at) < JUMP_SECONDS:
                break
            logger.warning("the machine's clock was set under an audit of %s: made again", name)
        return audited

    def _held_alone(self, kind: TestType, level: Level, audited: Audited) -> tuple[CheckResult, ...]:
        """What the database did for one audit, held against what that was answered."""
        found = self.answered.audit_alone(kind, level, audited.successes)
        if found is None:
            return ()
        before, after, due = found
        return self._run.testbed.verifier.load(
            before,
            after,
            answered_reads=due.reads,
            answered_writes=due.writes,
            answered_fortunes=due.fortunes,
        )

    def _judge_cost(self, target: Target) -> None:
        """Whether an audited request cost what others cost."""
        name = target.test_type.name
        audited = self._audited.get(name)
        others = [s for s in self._measured if audited and s.test_type == name and s.level == audited.level]
        known = [other.cpu_per_request for other in others if other.cpu_per_request]
        if audited is None or not audited.seconds or not known:
            return
        if audited.level.concurrency < audit_checks.COST_CONNECTIONS:
            return
        ratios = [audited.seconds / statistics.median(known)]
        # Compilers that are still at work take CPU whenever they like: one look, which warns at most.
        compiling = target.jit and not any(other.steady for other in others)
        if audit_checks.suspicious(ratios[0]) and not compiling:
            ratios += self._look_again(target, audited, others[-1].throughput)
        self.judge_again(target, (audit_checks.cost(name, *ratios),), "in audited samples")

    def _look_again(self, target: Target, audited: "_Audit", expected: float) -> list[float]:
        """The cost of one more audited sample ÷ that of one more beside it, in the other order than the first time."""
        level, samples, audits = audited.level, [], []
        self._run.progress.cell(target.test_type.name, "measure", level)
        for audit_now in (not audited.came_first, audited.came_first):
            if audit_now:
                audits.append(self._take_audit(target, level, "second", expected, LEAST_SECONDS, owed=False).load)
            else:
                samples.append(sweep.take_sample(self._run.testbed, target, level, seconds=LEAST_SECONDS))
        dear, plain = audits[0].cpu_per_request, samples[0].cpu_per_request
        return [dear / plain] if dear and plain else []

    def judge_again(self, target: Target, results: tuple[CheckResult, ...], where: str) -> None:
        """Add results to the verdict of a test type."""
        if not results:
            return
        name = target.test_type.name
        final = with_results(self._verdicts.get(name, target.verdict), results)
        self._verdicts[name] = final
        self._run.store.add_verdict(final)
        failed = tuple(result for result in results if result.outcome is Outcome.FAIL)
        if failed:
            self.fail(f"{name}: {where}: {explain(final.model_copy(update={'results': failed}))}")

    def keep(
        self,
        sample: Sample,
        *,
        audit_behind: Target | None = None,
        seconds: float | None = None,
        owed: bool = True,
    ) -> None:
        """Record a sample, with the audit beside it; one that may not be ranked is a reason.

        ``audit_behind``: the audit of this target comes first, so that its figures stand in the sample's record;
        ``seconds`` is what samples last, None where the profile says so; ``owed`` as in ``audit``.
        """
        self._measured.append(sample)
        try:
            if audit_behind is not None:
                self.audit(audit_behind, sample.level, seconds, owed=owed)
        finally:
            audited = self._unclaimed.pop((sample.test_type, sample.level), None)
            sample = sample.model_copy(update={"audited": audited})
            self._run.store.add_sample(sample)
            self._run.progress.sample(sample)
        if not sample.rankable:
            words = ", ".join(gate.word for gate in sample.gates if gate.outcome is Outcome.FAIL)
            self.reasons.append(f"{sample.test_type} {sample.level.label}: {words}")

    def verify_after_load(self, target: Target) -> None:
        """Whether it still verifies."""
        name = target.test_type.name
        self._run.progress.cell(name, "verifying after the load")
        self._judge_cost(target)
        after = self._run.testbed.verifier.after_load(self.server, target.test_type, self.database.address)
        final = with_results(self._verdicts.get(name, target.verdict), after)
        if after:
            self._run.store.add_verdict(final)
        if target.test_type.counts_statements:
            self.answered.verdicts.append(final)
        if final.outcome is Outcome.FAIL:
            self.fail(f"{name}: after the load: {explain(final)}")

    def fail(self, reason: str) -> None:
        """Something failed; the process goes on."""
        self.reasons.append(reason)
        self._run.progress.problem(f"{self.planned.implementation} {reason}")

    def _verify_connection(self) -> None:
        """HTTP as the RFCs say, for the server as a whole; what is wrong there is wrong for every test type."""
        self._run.progress.cell("http", "verifying")
        verdict = self._run.testbed.verifier.connection(
            self.server, replicate=self.planned.process, thorough=self.thorough
        )
        self._run.store.add_verdict(verdict)
        self._connection = tuple(result for result in verdict.results if result.outcome is Outcome.FAIL)

    def _hold_to_account(
        self, kind: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        """Hold the rows that were answered under load against PostgreSQL's own counters; the server has stopped."""
        if kind is not None:
            return
        bed, answered = self._run.testbed, self.answered
        until = bed.clock.monotonic() + PUBLISH_SECONDS
        while True:
            use = bed.verifier.table_use(self.database.address)
            due = answered.due(use)
            results = bed.verifier.load(
                answered.before,
                use,
                answered_reads=due.reads,
                answered_writes=due.writes,
                answered_fortunes=due.fortunes,
                failed_responses=answered.failed,
            )
            failed = tuple(result for result in results if result.outcome is Outcome.FAIL)
            if not failed or use.sessions == 0 or bed.clock.monotonic() > until:
                break
            bed.clock.sleep(LOOK_SECONDS)  # sessions publish their counters when they end, which takes a moment
        verdict = Verdict(
            implementation=self.planned.implementation,
            test_type="load",
            replicate=self.planned.process,
            thorough=self.thorough,
            outcome=worst(results),
            results=results,
            duration=0.0,
        )
        self._run.store.add_verdict(verdict)
        if failed:
            for known in answered.verdicts:
                self._run.store.add_verdict(with_results(known, failed))
            self.fail(f"load: {explain(verdict)}")

    def _finish(self, error: BaseException | None) -> None:
        """Write its record."""
        status = "failed" if self.reasons else "ok"
        if error is not None and recorded(error):
            status = "failed"
            self.reasons.append(str(error) if isinstance(error, TfbError) else f"PostgreSQL: {str(error).strip()}")
            self._run.progress.problem(self.reasons[-1])
        elif error is not None:
            status = "interrupted"
        self._run.store.add_replicate(
            ReplicateRecord.model_validate(
                {
                    "implementation": self.planned.implementation,
                    "block": self.planned.block,
                    "process": self.planned.process,
                    "started_at": self._began,
                    "first_answer": self._first_answer,
                    "status": status,
                    # A report may be mailed.
                    "reason": "\n".join(self.reasons).replace(f"{self._run.store.folder}/", ""),
                    "log": f"logs/{self.planned.implementation}/{self._log.name}",
                }
            )
        )


def recorded(error: BaseException | None) -> bool:
    """Whether an error is a failed replicate, and the run goes on."""
    return isinstance(error, RECORDED) and not isinstance(error, ENDS_THE_RUN)


def with_results(verdict: Verdict, more: Sequence[CheckResult]) -> Verdict:
    """The verdict with further results; its outcome is the worst of all."""
    results = (*verdict.results, *more)
    return verdict.model_copy(update={"results": results, "outcome": worst(results)})


def explain(verdict: Verdict) -> str:
    """The failed checks of a verdict in one line each."""
    failed = [r for r in verdict.results if r.outcome is Outcome.FAIL]
    return "; ".join(
        f"{r.check} ({r.rule}): {r.message}"
        + (f" expected {r.expected}, got {r.actual}" if r.expected is not None else "")
        for r in failed
    )


def restricted(planned: PlannedReplicate, names: Sequence[str]) -> PlannedReplicate:
    """The replicate with these test types alone."""
    return replace(planned, test_types={name: planned.test_types[name] for name in planned.test_types if name in names})
