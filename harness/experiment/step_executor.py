"""Carries out steps on real servers: starts, verifies, warms, loads and stops processes; records what each showed."""

import random
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

import psycopg

from harness.errors import DatabaseDiedError, LoadError, MachineLostError, ServerDiedError, StoreError, TfbError
from harness.experiment import steps, validity
from harness.experiment.generators import RESPONSES_FILE, LoadGenerator, LoadResult, LoadRun
from harness.experiment.observe import Observation, cpus_used, observe, read_all
from harness.experiment.progress import ProgressTracker
from harness.experiment.steps import Cell, Process, Step, StepResult
from harness.host import interruption, ownership
from harness.host.clock import CLOCK_JUMP_SECONDS, MAX_CLOCK_JUMPS, Clock, wall_clock_offset
from harness.plan.discovery import Implementation
from harness.plan.plan import Plan
from harness.plan.run_settings import Settings, split_cpus
from harness.records.loads import ClosedLoop, Load, Scenario
from harness.records.outcome import Outcome, worst_outcome
from harness.records.process_record import ProcessRecord
from harness.records.run_info import RunInfo
from harness.records.store import RunStore
from harness.records.trial_record import Trial, TrialEvidence
from harness.records.verification_record import CheckResult, VerificationRecord
from harness.report.causes import cause_key, format_result, group_causes
from harness.runtime import Database, Runtime, Server, SharedDatabase
from harness.runtime.crashes import find_errors
from harness.runtime.database import file_size
from harness.runtime.database.refusals import RefusalWatch
from harness.verify.checks.evidence import Sampling
from harness.verify.trial import TrialContext
from harness.verify.verifier import Verifier

RECORDED = (TfbError, psycopg.Error)  # a failed process, after which the run goes on
ENDS_ALL = (StoreError, MachineLostError, DatabaseDiedError)  # no other process would fare better
QUIET_SHARE = 0.05  # of a CPU: a server without a load that uses more is still at work on an earlier one
BUSY_LOOKS = 3  # in a row that find a server busy while it has no load: compilers may be at work at first


@runtime_checkable
class OverMachines(Protocol):
    """A runtime whose servers, database and clients are on machines of their own."""

    def require_machines(self) -> None:
        """Ask every machine now; raises MachineLostError that names the one that does not answer."""

    def survey(self, info: RunInfo) -> RunInfo:
        """run.json with the facts of every machine, the server's first, and of the links between them."""


@dataclass
class Running:
    """A process that is up."""

    process: Process
    implementation: Implementation
    log: Path
    began: float  # epoch seconds
    stack: ExitStack = field(default_factory=ExitStack)
    server: Server = field(init=False)
    database: Database = field(init=False)
    startup_time: float | None = None
    http: tuple[CheckResult, ...] = ()  # what HTTP as a whole failed
    verdicts: dict[str, VerificationRecord] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)  # for which it counts as failed
    failed_loads: dict[Cell, None] = field(default_factory=dict)  # cells that were tried and have no trial yet
    unreached: tuple[Cell, ...] = ()  # planned cells for which the run's time was up
    told: set[object] = field(default_factory=set)  # causes among them
    watch: RefusalWatch | None = None  # of its connections to PostgreSQL
    rates: dict[tuple[str, Load], float] = field(default_factory=dict)  # answers per second, as last seen
    loaded_at: float = 0.0  # when its latest load ended, by the clock
    idle_seconds: float = 0.0  # since the latest look
    idle_cpu_seconds: float = 0.0
    busy_looks: int = 0

    def disturbs(self, cpus: float, seconds: float) -> bool:
        """Whether it keeps using a CPU although it is idle, as it was now for so many seconds."""
        self.idle_seconds += seconds
        self.idle_cpu_seconds += cpus * seconds
        if self.idle_seconds >= 5.0:  # after fewer seconds of idleness it is not judged
            busy = self.idle_cpu_seconds / self.idle_seconds > validity.IDLE_CPUS
            self.idle_seconds = self.idle_cpu_seconds = 0.0
            self.busy_looks = self.busy_looks + 1 if busy else 0
        return self.busy_looks >= BUSY_LOOKS


@dataclass(kw_only=True)
class StepExecutor:
    """Everything that steps are carried out with."""

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
    up: dict[Process, Running] = field(default_factory=dict)
    _loads: int = 0
    _reported: set[object] = field(default_factory=set)  # causes of failures, by implementation
    _latest: dict[Cell, Trial] = field(default_factory=dict)  # the trial before this one

    def __post_init__(self) -> None:
        self.profile, main = self.plan.profile, self.plan.profile.generator
        self.generator = self.generators[main]
        self.witness = self.generators[next(name for name in self.generators if name != main)]
        usable = self.info.machine.cpus_usable
        server, others = split_cpus(self.settings.cpuset_cpus, usable)
        # Of several machines: their files are elsewhere, and by other clocks.
        self.elsewhere = self.runtime if isinstance(self.runtime, OverMachines) else None
        self.server_cpus = len(server or usable)
        clients = [each.machine.cpus_online for each in self.info.machines if "client" in each.role]
        self.generator_cpus = min(clients, default=len(others or usable))

    def execute(self, step: Step) -> StepResult:
        """One step. Raises what ends the run, or what all processes that are up have lost: they stay up."""
        match step:
            case steps.Start(process=process):
                self.up[process] = self._running(process)
                return self._guarded(process, self._start)
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
        """End all at once; a second error changes nothing about the first."""
        while self.up:
            _, running = self.up.popitem()
            with suppress(BaseException):
                self._close(running, error)
                self._record(running, interrupted=True)

    # ---- processes ---------------------------------------------------------------------------------------------------

    def _guarded(self, process: Process, action: Callable[[Running], StepResult]) -> StepResult:
        """A step of one process; an error that is its own ends it, and its record says how."""
        running = self.up[process]
        try:
            return action(running)
        except Exception as raised:
            interruption.raise_if_pending()  # it stops servers and generators, and what they raise then is its doing
            if not isinstance(raised, RECORDED) or isinstance(raised, ENDS_ALL):
                raise
            error = raised
        if isinstance(error, LoadError):
            try:
                running.server.meter.require_alive()
            except ServerDiedError as death:
                error = death
            else:
                self._look_around()
                self._fail(running, str(error))
                return steps.Failed()
        self._close(running, error)
        self._look_around()
        if running.startup_time is None and running.watch:
            for mistake in running.watch.mistakes(running.log):
                self._fail(running, f"{process.implementation} {mistake}")
        self._fail(running, self._described(error))
        self._record(running)
        del self.up[process]
        return steps.Failed(gone=running.startup_time is not None)

    def _described(self, error: Exception) -> str:
        """Return an error as text; an error of PostgreSQL with its address."""
        address = self.database.address
        at = f"PostgreSQL at {address.host}:{address.port}"
        return str(error) if isinstance(error, TfbError) else f"{at}: {str(error).strip()}"

    def _look_around(self) -> None:
        """Raise where the run is interrupted, PostgreSQL has ended or a machine is gone: no server is to blame then."""
        interruption.raise_if_pending()
        if how := self.database.crash_reason():
            raise DatabaseDiedError(how)
        if self.elsewhere:
            self.elsewhere.require_machines()

    def _running(self, process: Process) -> Running:
        name = process.implementation
        return Running(
            process=process,
            implementation=next(each for each in self.plan.implementations if each.name == name),
            log=self.store.log(name, f"p{process.number}"),
            began=self.clock.time(),
        )

    def _start(self, running: Running) -> StepResult:
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
        running.watch = RefusalWatch.of(address, self.database.log)
        if not implementation.is_service:
            self.verifier.start_process(address)
        # Once the server has stopped.
        running.stack.push(lambda kind, *_: None if kind else self._hold_to_account(running))
        running.server = running.stack.enter_context(
            self.runtime.start(implementation, address, running.log, ready_path=path)
        )
        running.startup_time = running.server.startup_time
        self.progress.verifying("http")
        verdict = self.verifier.verify_http(running.server, process=process.number, thorough=process.number == 0)
        if verdict.outcome is Outcome.FAIL:
            self._look_around()
        self.store.add_verdict(verdict)
        running.http = tuple(result for result in verdict.results if result.outcome is Outcome.FAIL)
        return self._verify(running)

    def _verify(self, running: Running) -> StepResult:
        process, address = running.process, running.database.address
        failed: list[tuple[str, CheckResult]] = []
        try:
            for kind, loads in self.plan.candidate(process.implementation).test_types.items():
                self.progress.verifying(kind)
                asked, first = running.implementation.test_types[kind], process.number == 0
                verdict = self.verifier.verify_test_type(
                    running.server, asked, address, process=process.number, thorough=first, loads=loads
                )
                verdict = with_results(verdict, running.http)
                if verdict.outcome is Outcome.FAIL:
                    self._look_around()
                self._judged(running, verdict)
                failed += [(kind, result) for result in verdict.results if result.outcome is Outcome.FAIL]
                if verdict.outcome is Outcome.FAIL:
                    running.server.meter.require_alive()
                self._restore_after(running, kind)
        finally:  # a server that ends has told what it failed before
            self._tell_mistakes(running, failed)
            self._tell(running, failed)
        running.loaded_at = self.clock.monotonic()
        good = (kind for kind, verdict in running.verdicts.items() if verdict.outcome is not Outcome.FAIL)
        return steps.Done(test_types=frozenset(good))

    def _stop(self, running: Running) -> StepResult:
        self._look_around()  # sessions may have been lost under a load of which no server said so
        failed: list[tuple[str, CheckResult]] = []
        for kind, verdict in list(running.verdicts.items()):
            if verdict.outcome is not Outcome.FAIL:
                self.progress.verifying(kind, "verifying after the load")
                asked = running.implementation.test_types[kind]
                found = self.verifier.verify_after_load(running.server, asked, running.database.address)
                failed += self._object(running, kind, found)
        self._tell(running, failed, "after the load")
        running.stack.close()
        self._record(running)
        del self.up[running.process]
        return steps.Done()

    def _close(self, running: Running, error: BaseException) -> None:
        """Stop a process after an error, which counts: what fails on the way does not."""
        with suppress(Exception):
            running.stack.__exit__(type(error), error, error.__traceback__)

    def _record(self, running: Running, *, interrupted: bool = False) -> None:
        self.store.add_process(
            ProcessRecord(
                implementation=running.process.implementation,
                process=running.process.number,
                started_at=running.began,
                startup_time=running.startup_time,
                status="interrupted" if interrupted else "failed" if running.reasons else "ok",
                reason="\n".join(running.reasons).replace(f"{self.store.folder}/", ""),  # a report may be mailed
                log=str(running.log.relative_to(self.store.folder)),
                failed_loads=loads_by_type(running.failed_loads),
                unreached=loads_by_type(running.unreached),
            )
        )

    # ---- verdicts ----------------------------------------------------------------------------------------------------

    def _judged(self, running: Running, verdict: VerificationRecord) -> None:
        running.verdicts[verdict.test_type] = verdict
        self.store.add_verdict(verdict)

    def _object(self, running: Running, kind: str, results: Sequence[CheckResult]) -> list[tuple[str, CheckResult]]:
        """Add results to the verdict of a test type; return those that fail it."""
        if results:
            self._judged(running, with_results(running.verdicts[kind], results))
        return [(kind, result) for result in results if result.outcome is Outcome.FAIL]

    def _tell(
        self, running: Running, failed: Sequence[tuple[str, CheckResult]], when: str = "", quoted: Sequence[str] = ()
    ) -> None:
        """Tell each cause once for all test types that it fails; ``quoted`` are lines of the server's log."""
        said = f"; its log says: {' | '.join(quoted)}" if quoted else ""
        for cause in group_causes(failed):
            same = cause_key(cause.result)
            if same not in running.told:
                running.told.add(same)
                text = (
                    f"{', '.join(cause.test_types)}: {f'{when}: ' if when else ''}{format_result(cause.result)}{said}"
                )
                self._fail(running, text, cause=(cause.test_types, same))

    def _tell_mistakes(self, running: Running, failed: Sequence[tuple[str, CheckResult]]) -> None:
        """Tell which variable of the database a server ignores, where test types that need the database fail."""
        kinds = running.implementation.test_types
        if running.watch and any(kinds[kind].reads_database for kind, _ in failed):
            for mistake in running.watch.mistakes(running.log, expected=True):
                self._fail(running, f"{running.process.implementation} {mistake}")

    def _hold_to_account(self, running: Running) -> None:
        """Hold what was answered under load against the database; what is missing there is every such test type's."""
        found = [r for r in self.verifier.end_process(running.database.address) if r.outcome is not Outcome.PASS]
        failed: list[tuple[str, CheckResult]] = []
        for name in list(running.verdicts):
            kind = running.implementation.test_types[name]
            if kind.counts_statements:  # what warns is deadlocks, which only those have that write
                own = [r for r in found if r.outcome is Outcome.FAIL or kind.writes_database]
                failed += self._object(running, name, own)
        self._tell(running, failed, "after the process")

    def _fail(self, running: Running, reason: str, cause: object = None) -> None:
        """Record why a process failed; report each cause once, however many processes of an implementation show it."""
        running.reasons.append(reason)
        name = running.process.implementation
        if cause is not None and (name, cause) in self._reported:
            return
        self._reported.add((name, cause))
        self.progress.problem(reason if reason.startswith(f"{name}:") else f"{name} {reason}")

    # ---- loads -------------------------------------------------------------------------------------------------------

    def _warm(self, running: Running, step: steps.Warm) -> StepResult:
        cell = step.cell
        self.progress.load(cell, "warm-up")
        with ownership.make_scratch_folder("tfb-load-") as folder:
            seen = self._observe(running, cell, step.seconds, self._main(cell.load), folder)
        self._restore_after(running, cell.test_type)
        result = seen.result
        return steps.WarmUpResult(
            windows=seen.windows,
            seconds=result.duration,
            requests=result.requests,
            worst_latency=result.latency.max if result.latency else None,
        )

    def _main(self, load: Load) -> LoadGenerator:
        """The run's generator, where it can make the load."""
        return self.generator if isinstance(load, ClosedLoop) or self.generator.name == "loadgen" else self.witness

    def _measure(self, running: Running, step: steps.Measure) -> StepResult:
        cell, began = step.cell, self.clock.monotonic()
        log_begin = file_size(running.log)
        generator = self.witness if step.purpose == "witness" else self._main(cell.load)
        self.progress.load(cell, "measure")
        if step.purpose == "measure":
            running.failed_loads[cell] = None
        for tries_left in reversed(range(1 + MAX_CLOCK_JUMPS)):
            set_at = wall_clock_offset(self.clock)
            seen, evidence = self._load(running, cell, step.seconds, generator)
            if abs(wall_clock_offset(self.clock) - set_at) < CLOCK_JUMP_SECONDS:
                break
            what = "measured again" if tries_left else "its figures are taken as they are"
            self.progress.note(f"the machine's clock was set under a load: {what}")
        if seen.result.errors.total:
            self._look_around()
        running.loaded_at = self.clock.monotonic()
        trial = self._trial(running, step, generator, seen, evidence)
        self.store.add_trial(trial)
        running.failed_loads.pop(cell, None)
        self.progress.trial(trial)
        objections = evidence.objections if evidence else ()
        wrong = not trial.rankable or bool(objections) or bool(trial.errors.total)
        quoted = find_errors(running.log, log_begin) if wrong else []
        failed = self._object(running, cell.test_type, objections)
        self._tell(running, failed, f"under load, {cell.load.label}", quoted)
        where = f"{cell.test_type} {cell.load.label}"
        if not trial.rankable and step.purpose == "measure":
            flags = ", ".join(check.flag for check in trial.validity if check.outcome is Outcome.FAIL)
            running.reasons.append(f"{where}: {flags}" + (f"; its log says: {' | '.join(quoted)}" if quoted else ""))
        if quoted and not failed:
            symptoms = [result.message for result in objections] or [
                check.flag for check in trial.validity if check.flag
            ]
            name = running.process.implementation
            self.progress.note(f"{name}: {where}: {'; '.join(symptoms)}; its log says: {' | '.join(quoted)}")
        running.rates[cell.test_type, cell.load] = trial.requests / trial.duration
        busy = {
            other.process
            for other, cpus in zip(self._others(running), seen.idle_cpus, strict=True)
            # Until then compilers and collectors may finish what its load left.
            if cpus is not None and began - other.loaded_at >= 3.0 and other.disturbs(cpus, trial.duration)
        }
        self._restore_after(running, cell.test_type)
        return steps.TrialResult(trial=trial, busy=frozenset(busy))

    def _load(
        self, running: Running, cell: Cell, seconds: float, generator: LoadGenerator
    ) -> tuple[Observation, TrialEvidence | None]:
        """One load with the evidence of its own answers."""
        process, load = cell.process, cell.load.label
        # The seed does not depend on the names of classes.
        key = (self.settings.seed, *process, cell.test_type, load, self._loads)
        dice = random.Random(" ".join(map(str, key)))
        self._loads += 1
        verification = self.verifier.verify_trial(
            TrialContext(
                server=running.server,
                test_type=running.implementation.test_types[cell.test_type],
                load=cell.load,
                database=running.database.address,
                seconds=seconds,
                rate=running.rates.get((cell.test_type, cell.load)),
                seed=dice.randrange(1 << 31),
            )
        )
        with ownership.make_scratch_folder("tfb-load-") as folder:
            with verification:
                # What clients elsewhere write out cannot be read here.
                sampling, seed = None if self.elsewhere else verification.sampling, dice.randrange(1 << 31)
                seen = self._observe(running, cell, seconds, generator, folder, sampling=sampling, seed=seed)
            result, answers = seen.result, folder / RESPONSES_FILE
            failed = result.errors.status
            evidence = verification.judge(
                good=result.account.successes if result.account else result.requests - failed,
                failed=failed,
                counts=result.account,
                answers=answers if answers.is_file() else None,
            )
        return seen, evidence

    def _observe(
        self,
        running: Running,
        cell: Cell,
        seconds: float,
        generator: LoadGenerator,
        folder: Path,
        *,
        sampling: Sampling | None = None,
        seed: int = 1,
    ) -> Observation:
        kind, url = running.implementation.test_types[cell.test_type], running.implementation.urls[cell.test_type]
        load, endpoint, profile = cell.load, running.server.endpoint, self.profile
        scenario = isinstance(load, Scenario)
        run = LoadRun(
            url=endpoint.url("/" if scenario else kind.request_target(url, load)),
            host=endpoint.host,
            accept=kind.accept,
            load=load,
            seconds=seconds,
            threads=self._threads(load),
            seed=seed,
            sampling=sampling,
            use_cases=kind.use_cases,
            requests=kind.requests,
            late_after=(profile.orders if scenario else profile.open_loop).goal.seconds,
            lag_share=profile.open_loop.lag_share,
        )
        sizes = self._sizes(running, cell)
        return observe(
            self.runtime,
            self.clock,
            running.server,
            generator,
            run,
            generator.arguments(run, folder),
            folder if sampling or kind.requests or scenario else None,
            database=running.database,
            response_bytes=statistics.fmean(sizes) if sizes else None,
            others=[other.server.meter for other in self._others(running)],
            tell=self.progress.second,
        )

    def _others(self, running: Running) -> list[Running]:
        """Those that are up beside it, and should be idle."""
        return [other for other in self.up.values() if other is not running]

    def _threads(self, load: Load) -> int:
        return max(1, min(load.connections, self.generator_cpus))

    def _sizes(self, running: Running, cell: Cell) -> tuple[float, float] | None:
        """Fewest and most bytes of one verified response at this load."""
        queries = cell.load.queries
        return running.verdicts[cell.test_type].response_bytes.get("" if queries is None else str(queries))

    def _trial(
        self,
        running: Running,
        step: steps.Measure,
        generator: LoadGenerator,
        seen: Observation,
        evidence: TrialEvidence | None,
    ) -> Trial:
        cell, process, result = step.cell, step.cell.process, seen.result
        throughput, cpu = figures(result, seen.server.cpu_seconds)
        name = f"{process.implementation}/{cell.test_type}/{cell.load.label.replace(' ', '-').replace('/', 'ps')}"
        trial = Trial(
            id=f"{name}/p{process.number}.{step.round}" + ("" if step.purpose == "measure" else f".{step.purpose}"),
            implementation=process.implementation,
            test_type=cell.test_type,
            load=cell.load,
            process=process.number,
            generator=generator.name,
            asked_duration=step.seconds,
            throughput=throughput,
            cpu_per_request=cpu,
            generator_cpu_seconds=result.cpu_seconds,
            generator_threads=self._threads(cell.load),
            evidence=evidence,
            link_share=self._link_share(result),
            **vars(step),  # a record passes over what it has no field for
            **vars(seen),
            **vars(result),
        )
        expected = validity.ValidityContext(
            open_loop=self.profile.open_loop,
            server_cpus=self.server_cpus,
            response_bytes=self._sizes(running, cell),
            may_close=running.implementation.is_service,
            beside=self._latest.get(cell) if step.purpose == "witness" else None,
        )
        trial = trial.model_copy(update={"validity": validity.check_validity(trial, expected)})
        if step.purpose == "measure":
            self._latest = {cell: trial}
        return trial

    def _link_share(self, result: LoadResult) -> float | None:
        """Of what the server's own link carries: of its links to clients, measured one by one, the fastest."""
        own = [link.throughput for link in self.info.links if link.of == self.info.machines[0].name]
        capacity = max(own, default=0.0)
        return result.bytes / result.duration / capacity if capacity > 0 and result.duration > 0 else None

    def _restore_after(self, running: Running, name: str) -> None:
        """Updates leave dead rows behind that would slow whoever comes next, and other numbers than a cache holds."""
        kind = running.implementation.test_types[name]
        if kind.writes_database and kind.has_rows:
            running.database.restore()

    def _rest(self, step: steps.Rest) -> None:
        """Wait until none of the processes uses a CPU any more, at most so long."""
        if not step.quiet:
            self.clock.sleep(step.seconds)
            return
        meters = [self.up[process].server.meter for process in step.quiet if process in self.up]
        until, after = self.clock.monotonic() + step.seconds, read_all(meters)
        while self.clock.monotonic() < until:
            self.clock.sleep(0.25)
            before, after = after, read_all(meters)
            if all((cpus or 0.0) <= QUIET_SHARE for cpus in cpus_used(before, after)):
                return


def figures(result: LoadResult, cpu_seconds: float) -> tuple[float, float | None]:
    """Throughput and server CPU seconds per request; of a scenario both are of arrivals."""
    if result.arrivals is not None:
        due = result.arrivals.due
        return result.arrivals.done / result.duration, cpu_seconds / due if due else None
    # What is answered while the generator waits for the last ones costs CPU, too, and counts for no rate.
    answers = result.account.received if result.account else result.requests
    good = result.requests - result.errors.status if result.in_time is None else result.in_time
    return good / result.duration, cpu_seconds / answers if answers else None


def loads_by_type(cells: Iterable[Cell]) -> dict[str, tuple[Load, ...]]:
    """Return the loads of cells of one process by their test type, in the order of the cells."""
    found: dict[str, tuple[Load, ...]] = {}
    for cell in cells:
        found[cell.test_type] = (*found.get(cell.test_type, ()), cell.load)
    return found


def with_results(verdict: VerificationRecord, more: Sequence[CheckResult]) -> VerificationRecord:
    """The verdict with further results; its outcome is the worst of all."""
    results = (*verdict.results, *more)
    return verdict.model_copy(update={"results": results, "outcome": worst_outcome(r.outcome for r in results)})
