"""One fresh process of an implementation on fresh database state: verified, measured, and held to account."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Self

import psycopg

from harness.errors import LoadError, StoreError, TfbError
from harness.measure import sweep
from harness.measure.testbed import Target
from harness.request.plan import PlannedReplicate
from harness.request.testtypes.registry import TEST_TYPES
from harness.results.records import CheckResult, Level, Outcome, ReplicateRecord, Sample, Verdict
from harness.run.running import Run
from harness.servers import Database, Server
from harness.verify.checks.load import DatabaseCounters
from harness.verify.verification import worst

ROW_TYPES = ("db", "query", "update")
PUBLISH_SECONDS = 10.0
LOOK_SECONDS = 0.2

RECORDED = (TfbError, psycopg.Error)


@dataclass
class Answered:
    """Rows that the generator was answered, to be held against what the database did."""

    before: DatabaseCounters
    reads: int = 0
    writes: int = 0
    fortunes: int = 0  # pages
    failed: int = 0  # responses to update with another status than 2xx
    verdicts: list[Verdict] = field(default_factory=list)  # of the test types that the counters speak of

    def add(self, sample: Sample, warmed: Level) -> None:
        """Count a sample, and the warm-up before it at the level that it used."""
        good = sample.requests - sample.errors.status
        if sample.test_type == "fortune":
            self.fortunes += good + (sample.warm_up.requests if sample.warm_up else 0)
        if sample.test_type not in ROW_TYPES:
            return
        rows = good * (sample.level.queries or 1)
        if sample.warm_up:
            rows += sample.warm_up.requests * (warmed.queries or 1)
        self.reads += rows
        if sample.test_type == "update":
            self.writes += rows
            self.failed += sample.errors.status


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
            self.answered = Answered(before=bed.verifier.table_use(self.database.address))
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
        )

    def measure(self, name: str) -> None:
        """Verify, warm and measure a test type on all its levels, and verify again."""
        target = self.target(name)
        if target is None:
            return
        progress = self._run.progress
        try:
            for sample in sweep.sweep(
                self._run.testbed,
                target,
                self._run.budget,
                lambda stage, level: progress.cell(name, stage, level),
            ):
                self.keep(sample, sweep.warm_up_level(target.levels))
            self.verify_after_load(target)
        except LoadError as error:
            self.fail(f"{name}: {error}")
        self.server.require_alive()

    def keep(self, sample: Sample, warmed: Level) -> None:
        """Record a sample; one that may not be ranked is a reason."""
        self._run.store.add_sample(sample)
        self.answered.add(sample, warmed)
        self._run.progress.sample(sample)
        if not sample.rankable:
            words = ", ".join(gate.word for gate in sample.gates if gate.outcome is Outcome.FAIL)
            self.reasons.append(f"{sample.test_type} {sample.level.label}: {words}")

    def verify_after_load(self, target: Target) -> None:
        """Whether it still verifies."""
        name = target.test_type.name
        self._run.progress.cell(name, "verifying after the load")
        after = self._run.testbed.verifier.after_load(self.server, target.test_type, self.database.address)
        final = with_results(target.verdict, after)
        if after:
            self._run.store.add_verdict(final)
        if name in ROW_TYPES:
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
            results = bed.verifier.load(
                answered.before,
                use,
                answered_reads=answered.reads,
                answered_writes=answered.writes,
                answered_fortunes=answered.fortunes,
                failed_responses=answered.failed,
            )
            failed = tuple(result for result in results if result.outcome is Outcome.FAIL)
            if not failed or bed.clock.monotonic() > until:
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
    return isinstance(error, RECORDED) and not isinstance(error, StoreError)


def run(run: Run, planned: PlannedReplicate) -> None:
    """One replicate to its end: every test type on a fresh process."""
    try:
        with Replicate(run, planned) as replicate:
            for name in planned.test_types:
                replicate.measure(name)
    except StoreError:
        raise
    except RECORDED:
        pass  # it did not start; its record says why


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
