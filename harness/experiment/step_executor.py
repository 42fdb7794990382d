"""Executes the steps of a design on real servers and records the results."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import psycopg

from harness.errors import DatabaseDiedError, LoadError, MachineLostError, ServerDiedError, StoreError, TfbError
from harness.experiment import steps
from harness.experiment.generators import LoadGenerator
from harness.experiment.load_executor import LoadExecutor
from harness.experiment.observe import Observation, cpus_used, read_all
from harness.experiment.process_lifecycle import FailureReporter, ProcessLifecycle, RunningProcess
from harness.experiment.progress import ProgressTracker
from harness.experiment.steps import Process, Step, StepResult
from harness.experiment.trial_builder import TrialBuilder
from harness.host import interruption
from harness.host.clock import Clock
from harness.plan.plan import Plan
from harness.plan.run_settings import Settings, split_cpus
from harness.records.run_info import RunInfo
from harness.records.store import RunStore
from harness.records.trial_record import Trial
from harness.records.verification_record import CheckResult, Outcome
from harness.runtime import Runtime, SharedDatabase
from harness.runtime.crashes import find_errors
from harness.runtime.database import file_size
from harness.verify.verifier import Verifier

PROCESS_ERRORS = (TfbError, psycopg.Error)  # errors that end only the affected process; the run continues
# Errors that end the run, because they would also affect all other processes.
RUN_ERRORS = (StoreError, MachineLostError, DatabaseDiedError)
QUIET_CPUS = 0.05  # a server that uses more CPUs than this is still busy with the previous load
MIN_QUIET_SECONDS = 3.0  # compilers and garbage collectors may stay active for this long after a load


@dataclass(kw_only=True)
class StepExecutor:
    """An executor that records the result of each step before it begins the next step."""

    settings: Settings
    plan: Plan
    info: RunInfo
    clock: Clock
    runtime: Runtime
    verifier: Verifier
    database: SharedDatabase
    generators: Mapping[str, LoadGenerator]
    store: RunStore
    progress: ProgressTracker
    up: dict[Process, RunningProcess] = field(default_factory=dict)

    def __post_init__(self) -> None:
        usable = self.info.machine.cpus_usable
        server_cpus, other_cpus = split_cpus(self.settings.cpuset_cpus, usable)
        clients = [each.machine.cpus_online for each in self.info.machines if "client" in each.role]
        self._failures = FailureReporter(store=self.store, progress=self.progress)
        self._lifecycle = ProcessLifecycle(
            plan=self.plan,
            clock=self.clock,
            runtime=self.runtime,
            verifier=self.verifier,
            database=self.database,
            store=self.store,
            progress=self.progress,
            failures=self._failures,
        )
        self._loads = LoadExecutor(
            seed=self.settings.seed,
            profile=self.plan.profile,
            clock=self.clock,
            runtime=self.runtime,
            verifier=self.verifier,
            generators=self.generators,
            generator_cpus=min(clients, default=len(other_cpus or usable)),
            running=self.up,
            progress=self.progress,
        )
        self._trials = TrialBuilder(info=self.info, profile=self.plan.profile, server_cpus=len(server_cpus or usable))

    def execute(self, step: Step) -> StepResult:
        """Execute a step. Raises StoreError, DatabaseDiedError or MachineLostError, which affect all processes."""
        match step:
            case steps.Start(process=process):
                self.up[process] = self._lifecycle.create(process)
                return self._guarded(process, self._lifecycle.start)
            case steps.Warm():
                return self._guarded(step.cell.process, lambda running: self._warm(running, step))
            case steps.Measure():
                return self._guarded(step.cell.process, lambda running: self._measure(running, step))
            case steps.Stop():
                self.up[step.process].unreached = step.unreached
                return self._guarded(step.process, self._stop)
            case steps.Rest():
                self._rest(step)
        return steps.Done()

    def abandon(self, error: BaseException) -> None:
        """Stop all processes after an error. Ignore further errors while stopping."""
        while self.up:
            _, running = self.up.popitem()
            with suppress(BaseException):
                self._lifecycle.close(running, error)
                self._lifecycle.record(running, interrupted=True)

    def _guarded(self, process: Process, action: Callable[[RunningProcess], StepResult]) -> StepResult:
        """Perform an action on a process and record any error. End the process after any error except a failed load."""
        running = self.up[process]
        try:
            return action(running)
        except Exception as raised:
            # Ctrl-C also stops servers and generators. Do not report the resulting failures as errors.
            interruption.raise_if_pending()
            if not isinstance(raised, PROCESS_ERRORS) or isinstance(raised, RUN_ERRORS):
                raise
            error = raised
        if isinstance(error, LoadError):
            try:
                running.server.program.require_alive()
            except ServerDiedError as death:
                error = death
            else:
                self._lifecycle.raise_if_infrastructure_lost()
                self._failures.fail(running, str(error))
                return steps.Failed()
        self._lifecycle.close(running, error)
        self._lifecycle.raise_if_infrastructure_lost()
        if running.startup_time is None and running.refusal_watch:
            for mistake in running.refusal_watch.find_mistakes(running.log):
                self._failures.fail(running, f"{process.implementation} {mistake}")
        if isinstance(error, ServerDiedError):
            running.exit_reason = str(error).partition("\n")[0]
        self._failures.fail(running, self._describe_error(error))
        self._lifecycle.record(running)
        del self.up[process]
        return steps.Failed(server_exited=running.startup_time is not None)

    def _describe_error(self, error: Exception) -> str:
        """Return an error's message. If PostgreSQL reported the error, include PostgreSQL's address."""
        address = self.database.address
        source = f"PostgreSQL at {address.host}:{address.port}"
        return str(error) if isinstance(error, TfbError) else f"{source}: {str(error).strip()}"

    def _stop(self, running: RunningProcess) -> StepResult:
        result = self._lifecycle.stop(running)
        del self.up[running.process]
        return result

    def _warm(self, running: RunningProcess, step: steps.Warm) -> StepResult:
        observation = self._loads.warm(running, step)
        self._lifecycle.restore_after(running, step.cell.test_type)
        result, windows = observation.result, observation.windows
        if all(window.responses is None for window in windows):  # TLS and short connections cannot be metered
            rate = result.requests / result.duration
            windows = tuple(each.model_copy(update={"responses": round(rate * each.duration, 1)}) for each in windows)
        return steps.WarmUpResult(
            windows=windows,
            seconds=result.duration,
            requests=result.requests,
            worst_latency=result.latency.max if result.latency else None,
        )

    def _measure(self, running: RunningProcess, step: steps.Measure) -> StepResult:
        cell, started_at = step.cell, self.clock.monotonic()
        log_begin = file_size(running.log)
        if step.purpose == "measure":
            running.failed_loads[cell] = None
        measured_load = self._loads.measure(running, step)
        if measured_load.observation.result.errors.total:
            self._lifecycle.raise_if_infrastructure_lost()
        running.loaded_at = self.clock.monotonic()
        trial = self._trials.build(running, step, measured_load)
        self.store.add_trial(trial)
        running.failed_loads.pop(cell, None)
        self.progress.trial(trial)
        self._report_objections(running, step, trial, log_begin)
        running.rates[cell.test_type, cell.load] = trial.requests / trial.duration
        busy = self._find_busy(running, measured_load.observation, started_at, trial.duration)
        self._lifecycle.restore_after(running, cell.test_type)
        return steps.TrialResult(trial=trial, busy=busy)

    def _report_objections(self, running: RunningProcess, step: steps.Measure, trial: Trial, log_begin: int) -> None:
        """Report wrong responses and failed validity checks. Quote errors from the log after byte ``log_begin``."""
        cell = step.cell
        objections: tuple[CheckResult, ...] = trial.evidence.objections if trial.evidence else ()
        faulty = not trial.rankable or bool(objections) or bool(trial.errors.total)
        quoted = find_errors(running.log, log_begin) if faulty else []
        log = f"; server log: {' | '.join(quoted)}" if quoted else ""
        failed = self._failures.add_results(running, cell.test_type, objections)
        self._failures.report_causes(running, failed, f"under load, {cell.load.label}", quoted)
        cell_text = f"{cell.test_type} {cell.load.label}"
        if not trial.rankable and step.purpose == "measure":
            flags = ", ".join(check.flag for check in trial.validity if check.outcome is Outcome.FAIL)
            running.reasons.append(f"{cell_text}: {flags}{log}")
        if quoted and not failed:
            symptoms = [result.message for result in objections] or [each.flag for each in trial.validity if each.flag]
            self.progress.note(f"{running.process.implementation}: {cell_text}: {'; '.join(symptoms)}{log}")

    def _find_busy(
        self, running: RunningProcess, observation: Observation, started_at: float, duration: float
    ) -> frozenset[Process]:
        """Return the processes that keep using CPU time although they are not under load.

        ``running`` is the process under load. The load began at ``started_at``, in monotonic seconds.
        """
        idle = zip(self._loads.idle_processes(running), observation.idle_cpus, strict=True)
        return frozenset(
            other.process
            for other, cpus in idle
            if cpus is not None and started_at - other.loaded_at >= MIN_QUIET_SECONDS and other.disturbs(cpus, duration)
        )

    def _rest(self, step: steps.Rest) -> None:
        """Wait until the processes in ``step.quiet`` are idle, but for at most ``step.seconds``."""
        if not step.quiet:
            self.clock.sleep(step.seconds)
            return
        meters = [self.up[process].server.program for process in step.quiet if process in self.up]
        until, after = self.clock.monotonic() + step.seconds, read_all(meters)
        while self.clock.monotonic() < until:
            self.clock.sleep(0.25)
            before, after = after, read_all(meters)
            if all((cpus or 0.0) <= QUIET_CPUS for cpus in cpus_used(before, after)):
                return
