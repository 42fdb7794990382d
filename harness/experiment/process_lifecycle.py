"""The lifecycle of a process: start with a database, verification, stop, and the record of how it ended."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from harness.errors import DatabaseDiedError
from harness.experiment.failure_reporter import FailedCheck, FailureReporter, with_results
from harness.experiment.progress import ProgressTracker
from harness.experiment.run_context import MultiMachineRuntime
from harness.experiment.running_process import RunningProcess
from harness.experiment.steps import Cell, Done, Process, StepResult
from harness.host import interruption
from harness.host.clock import Clock
from harness.plan.plan import Plan
from harness.records.loads import Load
from harness.records.outcome import Outcome
from harness.records.process_record import ProcessRecord
from harness.records.store import RunStore
from harness.runtime import Runtime, SharedDatabase
from harness.runtime.database.refusals import RefusalWatch
from harness.verify.verifier import Verifier


@dataclass(frozen=True, kw_only=True)
class ProcessLifecycle:
    """Starts, verifies and stops processes."""

    plan: Plan
    clock: Clock
    runtime: Runtime
    verifier: Verifier
    database: SharedDatabase
    store: RunStore
    progress: ProgressTracker
    failures: FailureReporter

    def create(self, process: Process) -> RunningProcess:
        """Return the state of a process before the start."""
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
            own = self.database.private_database(
                f"{implementation.name}-{process.number}", empty=implementation.is_service
            )
            running.database = running.stack.enter_context(own)
        else:
            self.database.restore()
            running.database = self.database
        address, path = running.database.address, implementation.ready_path
        running.refusal_watch = RefusalWatch.start(address, self.database.log)
        if not implementation.is_service:
            self.verifier.start_process(address)
        # The stack runs callbacks in reverse order, so it checks the final state after the server has stopped.
        running.stack.push(lambda error_type, *_: None if error_type else self._audit_final_state(running))
        started = self.runtime.start(implementation, address, running.log, ready_path=path)
        running.server = running.stack.enter_context(started)
        running.startup_time = running.server.startup_time
        self.progress.verifying("http")
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
                test_type, thorough = running.implementation.test_types[kind], process.number == 0
                verdict = self.verifier.verify_test_type(
                    running.server, test_type, address, process=process.number, thorough=thorough, loads=loads
                )
                verdict = with_results(verdict, running.http_failures)
                if verdict.outcome is Outcome.FAIL:
                    self.raise_if_infrastructure_lost()
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
        self.raise_if_infrastructure_lost()  # a load may have lost connections without an error
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
        """Stop a process after an error. Ignore further errors, because only the first error matters."""
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
                # reports that are passed on must not contain local paths
                reason="\n".join(running.reasons).replace(f"{self.store.folder}/", ""),
                log=str(running.log.relative_to(self.store.folder)),
                failed_loads=loads_by_type(running.failed_loads),
                unreached=loads_by_type(running.unreached),
            )
        )

    def restore_after(self, running: RunningProcess, test_type: str) -> None:
        """Restore the tables after a test type that writes, because dead rows would slow down later loads."""
        kind = running.implementation.test_types[test_type]
        if kind.writes_database and kind.has_rows:
            running.database.restore()

    def raise_if_infrastructure_lost(self) -> None:
        """Raise an error if the failure is not the fault of a server.

        Raises:
            KeyboardInterrupt: The run is interrupted.
            DatabaseDiedError: PostgreSQL has died.
            MachineLostError: A machine of the run does not respond.
        """
        interruption.raise_if_pending()
        if reason := self.database.crash_reason():
            raise DatabaseDiedError(reason)
        if isinstance(self.runtime, MultiMachineRuntime):
            self.runtime.require_machines()

    def _audit_final_state(self, running: RunningProcess) -> None:
        """Compare responses under load with the database. Differences fail all test types that count statements."""
        results = [r for r in self.verifier.end_process(running.database.address) if r.outcome is not Outcome.PASS]
        failed: list[FailedCheck] = []
        for name in list(running.verdicts):
            kind = running.implementation.test_types[name]
            if kind.counts_statements:  # warnings concern deadlocks, which only test types with writes can cause
                relevant = [r for r in results if r.outcome is Outcome.FAIL or kind.writes_database]
                failed += self.failures.add_results(running, name, relevant)
        self.failures.report_causes(running, failed, "after the process")


def loads_by_type(cells: Iterable[Cell]) -> dict[str, tuple[Load, ...]]:
    """Return the loads of a process's cells by test type, in the order of the cells."""
    loads: dict[str, tuple[Load, ...]] = {}
    for cell in cells:
        loads[cell.test_type] = (*loads.get(cell.test_type, ()), cell.load)
    return loads
