"""Starts, verifies and stops processes, records their verdicts, and reports the causes of failures."""

from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from harness.errors import DatabaseDiedError
from harness.experiment.progress import ProgressTracker
from harness.experiment.run_context import MultiMachineRuntime
from harness.experiment.steps import Cell, Done, Process, StepResult
from harness.experiment.validity import IDLE_CPUS
from harness.experiment.verifying import quote_log
from harness.host import interruption
from harness.host.clock import Clock
from harness.plan.implementation import Implementation
from harness.plan.plan import Plan
from harness.records.loads import Load
from harness.records.run_records import ProcessRecord
from harness.records.store import RunStore
from harness.records.verification_record import WHOLE_SERVER, CheckResult, Outcome, VerificationRecord, worst_outcome
from harness.report.verification_results import cause_key, format_result, group_causes
from harness.runtime import Database, Runtime, Server, SharedDatabase
from harness.runtime.crashes import find_errors
from harness.runtime.database.refusals import RefusalWatch
from harness.verify.verifier import Verifier


@dataclass
class RunningProcess:
    """A process that tfb starts or has started, with the verdicts, failures and counters so far."""

    process: Process
    implementation: Implementation
    log: Path
    started_at: float  # epoch seconds of the start
    stack: ExitStack = field(default_factory=ExitStack)
    server: Server = field(init=False)
    database: Database = field(init=False)
    startup_time: float | None = None
    http_failures: tuple[CheckResult, ...] = ()  # failed HTTP checks, which affect every test type
    verdicts: dict[str, VerificationRecord] = field(default_factory=dict)  # verdict by test type
    reasons: list[str] = field(default_factory=list)  # why the process failed; empty if it did not fail
    exit_reason: str = ""  # how the server exited, if unexpectedly; otherwise empty
    failed_loads: dict[Cell, None] = field(default_factory=dict)  # cells with an attempted measurement but no trial
    unreached: tuple[Cell, ...] = ()  # planned cells that the run had no time to measure
    reported_causes: set[object] = field(default_factory=set)
    refusal_watch: RefusalWatch | None = None  # records the connections that PostgreSQL refuses
    # (test type, load) -> responses per second in the latest trial.
    rates: dict[tuple[str, Load], float] = field(default_factory=dict)
    loaded_at: float = 0.0  # monotonic seconds at the end of the latest load
    idle_seconds: float = 0.0  # time without a load since the latest busy check
    idle_cpu_seconds: float = 0.0  # CPU time of the process during ``idle_seconds``
    busy_checks: int = 0  # number of consecutive checks that found the process busy

    def disturbs(self, cpus: float, seconds: float) -> bool:
        """Record CPU use without a load. Return whether it was too high in each of the latest three checks.

        ``cpus`` is the mean number of CPUs that the process used during ``seconds``. A check covers at least 5 s.
        """
        self.idle_seconds += seconds
        self.idle_cpu_seconds += cpus * seconds
        if self.idle_seconds >= 5.0:
            busy = self.idle_cpu_seconds / self.idle_seconds > IDLE_CPUS
            self.idle_seconds = self.idle_cpu_seconds = 0.0
            self.busy_checks = self.busy_checks + 1 if busy else 0
        return self.busy_checks >= 3  # tolerate two busy checks, because compilers may still be active

    def response_bytes(self, cell: Cell) -> tuple[float, float] | None:
        """Return a cell's smallest and largest verified response sizes in bytes, or None if unknown."""
        queries = cell.load.queries
        return self.verdicts[cell.test_type].response_bytes.get("" if queries is None else str(queries))


FailedCheck: TypeAlias = tuple[str, CheckResult]  # (test type, result with the outcome FAIL)


@dataclass(kw_only=True)
class FailureReporter:
    """A recorder of processes' verdicts and failures. It reports each cause of failure only once."""

    store: RunStore
    progress: ProgressTracker
    _reported: set[object] = field(default_factory=set)  # (implementation, cause) pairs

    def add_verdict(self, running: RunningProcess, verdict: VerificationRecord) -> None:
        """Record the verdict on a test type, replacing an earlier verdict on the same test type."""
        running.verdicts[verdict.test_type] = verdict
        self.store.add_verdict(verdict)

    def add_results(self, running: RunningProcess, test_type: str, results: Sequence[CheckResult]) -> list[FailedCheck]:
        """Add results to the verdict on a test type and return the failed results."""
        if results:
            self.add_verdict(running, with_results(running.verdicts[test_type], results))
        return [(test_type, result) for result in results if result.outcome is Outcome.FAIL]

    def report_causes(
        self, running: RunningProcess, failed: Sequence[FailedCheck], moment: str = "", quoted: Sequence[str] = ()
    ) -> None:
        """Report each cause of failed checks once, with all affected test types.

        ``moment`` describes when the checks ran. ``quoted`` contains lines of the server's log for the report.
        """
        log = f"; server log: {' | '.join(quoted)}" if quoted else ""
        for cause in group_causes(failed):
            identity = cause_key(cause.result)
            if identity not in running.reported_causes:
                running.reported_causes.add(identity)
                text = f"{', '.join(cause.test_types)}: {f'{moment}: ' if moment else ''}"
                text += f"{format_result(cause.result)}{log}"
                self.fail(running, text, cause=(cause.test_types, identity))

    def report_ignored_variables(self, running: RunningProcess, failed: Sequence[FailedCheck]) -> None:
        """If a test type that reads the database failed, report the database settings that the server ignores."""
        kinds = running.implementation.test_types
        if running.refusal_watch and any(kinds[kind].reads_database for kind, _ in failed):
            for mistake in running.refusal_watch.find_mistakes(running.log, expected=True):
                self.fail(running, f"{running.process.implementation} {mistake}")

    def fail(self, running: RunningProcess, reason: str, cause: object = None) -> None:
        """Record why a process failed. Report each cause only once per implementation."""
        running.reasons.append(reason)
        name = running.process.implementation
        if cause is not None and (name, cause) in self._reported:
            return
        self._reported.add((name, cause))
        self.progress.problem(reason if reason.startswith(f"{name}:") else f"{name} {reason}")


def with_results(verdict: VerificationRecord, results: Sequence[CheckResult]) -> VerificationRecord:
    """Add results to a verdict, and set the verdict's outcome to the worst outcome of all results."""
    combined = (*verdict.results, *results)
    outcome = worst_outcome(result.outcome for result in combined)
    return verdict.model_copy(update={"results": combined, "outcome": outcome})


@dataclass(frozen=True, kw_only=True)
class ProcessLifecycle:
    """The operations that start, verify and stop processes."""

    plan: Plan
    clock: Clock
    runtime: Runtime
    verifier: Verifier
    database: SharedDatabase
    store: RunStore
    progress: ProgressTracker
    failures: FailureReporter

    def create(self, process: Process) -> RunningProcess:
        """Create the state of a process that has not been started yet."""
        name = process.implementation
        return RunningProcess(
            process=process,
            implementation=next(each for each in self.plan.implementations if each.name == name),
            log=self.store.log(name, f"p{process.number}"),
            started_at=self.clock.time(),
        )

    def start(self, running: RunningProcess) -> StepResult:
        """Start and verify a process. The result names the test types that may be measured."""
        process, implementation = running.process, running.implementation
        self.progress.process(implementation.name, process.number)
        if self.database.supports_copies:
            private = self.database.private_database(
                f"{implementation.name}-{process.number}", empty=implementation.is_service
            )
            running.database = running.stack.enter_context(private)
        else:
            self.database.restore()
            running.database = self.database
        address, path = running.database.address, implementation.ready_path
        running.refusal_watch = RefusalWatch.start(address, self.database.log)
        if not implementation.is_service:
            self.verifier.start_process(address)
        # The stack runs callbacks in reverse order, so this check runs after the server has stopped.
        running.stack.push(lambda error_type, *_: None if error_type else self._check_final_state(running))
        started = self.runtime.start(implementation, address, running.log, ready_path=path)
        running.server = running.stack.enter_context(started)
        if implementation.is_service:
            running.implementation = running.server.implementation  # a copy whose requests contain the login token
        running.startup_time = running.server.startup_time
        self.progress.verifying(WHOLE_SERVER)
        verdict = self.verifier.verify_http(running.server, process=process.number, thorough=process.number == 0)
        if verdict.outcome is Outcome.FAIL:
            self.raise_if_infrastructure_lost()
        self.store.add_verdict(verdict)
        running.http_failures = tuple(result for result in verdict.results if result.outcome is Outcome.FAIL)
        return self._verify(running)

    def _verify(self, running: RunningProcess) -> StepResult:
        """Verify all test types of a process. Report failed checks even if the server dies."""
        process, address = running.process, running.database.address
        failed: list[FailedCheck] = []
        try:
            for kind, loads in self.plan.candidate(process.implementation).test_types.items():
                self.progress.verifying(kind)
                log_begin = running.log.stat().st_size if running.log.exists() else 0
                test_type, thorough = running.implementation.test_types[kind], process.number == 0
                verdict = self.verifier.verify_test_type(
                    running.server, test_type, address, process=process.number, thorough=thorough, loads=loads
                )
                verdict = with_results(verdict, running.http_failures)
                if verdict.outcome is Outcome.FAIL:
                    self.raise_if_infrastructure_lost()
                    verdict = quote_log(next(iter(find_errors(running.log, log_begin)), None), verdict)
                self.failures.add_verdict(running, verdict)
                failed += [(kind, result) for result in verdict.results if result.outcome is Outcome.FAIL]
                if verdict.outcome is Outcome.FAIL:
                    running.server.program.require_alive()
                self.restore_after(running, kind)
        finally:
            self.failures.report_ignored_variables(running, failed)
            self.failures.report_causes(running, failed)
        running.loaded_at = self.clock.monotonic()
        verified = (kind for kind, verdict in running.verdicts.items() if verdict.outcome is not Outcome.FAIL)
        return Done(test_types=frozenset(verified))

    def stop(self, running: RunningProcess) -> StepResult:
        """Verify a process once more, stop it, and record how it ended."""
        # Check here, too, because a generator does not always notice that a machine or the database was lost.
        self.raise_if_infrastructure_lost()
        failed: list[FailedCheck] = []
        for kind, verdict in list(running.verdicts.items()):
            if verdict.outcome is not Outcome.FAIL:
                self.progress.verifying(kind, "verifying after the load")
                test_type = running.implementation.test_types[kind]
                results = self.verifier.verify_after_load(running.server, test_type, running.database.address)
                failed += self.failures.add_results(running, kind, results)
        self.failures.report_causes(running, failed, "after the load")
        running.stack.close()
        self.record(running)
        return Done()

    def close(self, running: RunningProcess, error: BaseException) -> None:
        """Stop a process after an error. Ignore errors while stopping, because only the first error matters."""
        with suppress(Exception):
            running.stack.__exit__(type(error), error, error.__traceback__)

    def record(self, running: RunningProcess, *, interrupted: bool = False) -> None:
        """Record how a process ended."""
        self.store.add_process(
            ProcessRecord(
                implementation=running.process.implementation,
                process=running.process.number,
                started_at=running.started_at,
                startup_time=running.startup_time,
                status="interrupted" if interrupted else "failed" if running.reasons else "ok",
                # Omit the local path from the reasons, because reports may be published.
                reason="\n".join(running.reasons).replace(f"{self.store.folder}/", ""),
                exit_reason=running.exit_reason.replace(f"{self.store.folder}/", ""),
                log=str(running.log.relative_to(self.store.folder)),
                failed_loads=loads_by_type(running.failed_loads),
                unreached=loads_by_type(running.unreached),
            )
        )

    def restore_after(self, running: RunningProcess, test_type: str) -> None:
        """Restore the tables after a test type that writes, because dead tuples would slow later loads down."""
        kind = running.implementation.test_types[test_type]
        if kind.writes_database and kind.has_rows:
            running.database.restore()

    def raise_if_infrastructure_lost(self) -> None:
        """Raise an error if an interruption, a dead database or a lost machine may explain a process's failure.

        Raises KeyboardInterrupt, DatabaseDiedError or MachineLostError.
        """
        interruption.raise_if_pending()
        if reason := self.database.crash_reason():
            raise DatabaseDiedError(reason)
        if isinstance(self.runtime, MultiMachineRuntime):
            self.runtime.require_machines()

    def _check_final_state(self, running: RunningProcess) -> None:
        """Check that the database matches the responses under load. If it does not, fail the affected test types."""
        results = [r for r in self.verifier.end_process(running.database.address) if r.outcome is not Outcome.PASS]
        failed: list[FailedCheck] = []
        for name in list(running.verdicts):
            kind = running.implementation.test_types[name]
            if kind.counts_statements:  # the warnings concern deadlocks, which only writes can cause
                relevant = [r for r in results if r.outcome is Outcome.FAIL or kind.writes_database]
                failed += self.failures.add_results(running, name, relevant)
        self.failures.report_causes(running, failed, "after the process")


def loads_by_type(cells: Iterable[Cell]) -> dict[str, tuple[Load, ...]]:
    """Group cells' loads by test type, in the order of the cells."""
    loads: dict[str, tuple[Load, ...]] = {}
    for cell in cells:
        loads[cell.test_type] = (*loads.get(cell.test_type, ()), cell.load)
    return loads
