"""Carries out steps on real servers: starts, verifies, warms, loads and stops processes; records what each showed."""

import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import TracebackType

import psycopg

from harness.errors import DatabaseDiedError, LoadError, MachineLostError, ServerDiedError, StoreError, TfbError
from harness.experiment import gates
from harness.experiment.generators import ANSWERS, Generator, LoadResult, LoadRun
from harness.experiment.observe import Observation, Target, observe, readings
from harness.experiment.progress import Progress
from harness.experiment.steps import (
    Cell,
    Done,
    Failed,
    Measure,
    Measured,
    Process,
    Rest,
    Shown,
    Start,
    Step,
    Stop,
    Verify,
    Warm,
    Warmed,
)
from harness.host import interruption, ownership
from harness.host.clock import JUMP_SECONDS, JUMPS, Clock, time_of_day
from harness.plan.discovery import Implementation
from harness.plan.orders import plan as arrivals_plan
from harness.plan.plan import Candidate
from harness.plan.profile import Profile
from harness.plan.testtypes import TestType
from harness.records.models import (
    CheckResult,
    Closed,
    Evidence,
    Load,
    Outcome,
    ProcessRecord,
    Scenario,
    Trial,
    Verdict,
    Window,
    worst,
)
from harness.records.store import RunStore
from harness.runtime import Database, Reading, Runtime, Server, SharedDatabase
from harness.verify.checks.evidence import Sampling
from harness.verify.verifier import Verifier

RECORDED = (TfbError, psycopg.Error)  # a failed process, after which the run goes on
ENDS_ALL = (StoreError, MachineLostError, DatabaseDiedError)  # no other process would fare better
QUIET_SHARE = 0.05  # of a CPU: a server without a load that uses more is still at work on an earlier one
BUSY_LOOKS = {False: 1, True: 3}  # in a row that find it busy; a JIT runtime's compilers may be at work at first


@dataclass
class Running:
    """A process that is up."""

    process: Process
    implementation: Implementation
    jit: bool
    log: Path
    began: float  # epoch seconds
    stack: ExitStack = field(default_factory=ExitStack)
    server: Server = field(init=False)
    database: Database = field(init=False)
    startup_time: float | None = None
    http: tuple[CheckResult, ...] = ()  # what HTTP as a whole failed
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)  # for which it counts as failed
    rates: dict[tuple[str, Load], float] = field(default_factory=dict)  # answers per second, as last seen
    loaded_at: float = 0.0  # when its latest load ended, by the clock
    idle_seconds: float = 0.0  # since the latest look
    idle_cpu_seconds: float = 0.0
    busy_looks: int = 0

    def count_idle(self, before: Reading | None, after: Reading | None) -> None:
        """It had nothing to do between these readings."""
        if before is not None and after is not None:
            self.idle_seconds += after.at - before.at
            self.idle_cpu_seconds += after.used_since(before)

    def disturbs(self, limit: float) -> bool:
        """Whether it used more than ``limit`` CPUs while it should have been idle."""
        # After fewer seconds of idleness it is not judged.
        if self.idle_seconds < 5.0:
            return False
        share = self.idle_cpu_seconds / self.idle_seconds
        self.idle_seconds = self.idle_cpu_seconds = 0.0
        self.busy_looks = self.busy_looks + 1 if share > limit else 0
        return self.busy_looks >= BUSY_LOOKS[self.jit]


@dataclass(kw_only=True)
class Bench:
    """Everything that steps are carried out with."""

    profile: Profile
    clock: Clock
    runtime: Runtime
    verifier: Verifier
    database: SharedDatabase
    generator: Generator
    witness: Generator
    store: RunStore
    progress: Progress
    implementations: Mapping[str, Implementation]
    candidates: Mapping[str, Candidate]
    seed: int
    server_cpus: int
    generator_cpus: int
    links: Mapping[str, float] = field(default_factory=dict)  # bytes a second from the server to each client elsewhere
    writes_answers: bool = True  # whether the generator's files can be read here, by the clock of this machine
    look_around: Callable[[], None] = lambda: None  # raises MachineLostError where a machine of the run is gone
    up: dict[Process, Running] = field(default_factory=dict)
    lost: set[tuple[str, int]] = field(default_factory=set)  # processes that PostgreSQL's or a machine's end took
    _trials: int = 0

    def carry_out(self, step: Step) -> Shown:
        """One step. Raises what ends the run, or what all processes that are up have lost."""
        match step:
            case Start():
                return self._start(step.process)
            case Verify():
                return self._guarded(step.process, self._verify)
            case Warm():
                return self._guarded(step.cell.process, lambda running: self._warm(running, step))
            case Measure():
                return self._guarded(step.cell.process, lambda running: self._measure(running, step))
            case Rest():
                self._rest(step)
                return Done()
            case Stop():
                return self._stop(step.process)

    def abandon(self, error: BaseException) -> None:
        """End all at once; a second error changes nothing about the first."""
        while self.up:
            _, running = self.up.popitem()
            try:
                self._end(running, error)
            except BaseException:  # noqa: BLE001, S112 - the first one is raised by whoever called
                continue

    def tell(self, window: Window) -> None:
        """Each second of a load while it is on."""
        self.progress.second(window)

    # ---- processes ---------------------------------------------------------------------------------------------------

    def _start(self, process: Process) -> Shown:
        name = process.implementation
        implementation = self.implementations[name]
        log = self.store.log(name, f"p{process.number}")
        jit = self.candidates[name].jit
        running = Running(process=process, implementation=implementation, jit=jit, log=log, began=self.clock.time())
        self.progress.process(name, process.number)
        try:
            if self.database.divisible:
                running.database = running.stack.enter_context(self.database.own(f"{name}-{process.number}"))
            else:
                self.database.restore()
                running.database = self.database
            address, path = running.database.address, implementation.ready_path
            self.verifier.begin(address)
            running.stack.push(partial(self._hold_to_account, running))  # once the server has stopped
            running.server = running.stack.enter_context(
                self.runtime.start(implementation, address, log, ready_path=path)
            )
            running.startup_time = running.server.startup_time
            self.progress.verifying("http")
            verdict = self.verifier.connection(running.server, process=process.number, thorough=process.number == 0)
            if verdict.outcome is Outcome.FAIL:
                self._look_around()
            self.store.add_verdict(verdict)
            running.http = tuple(result for result in verdict.results if result.outcome is Outcome.FAIL)
        except BaseException as raised:  # noqa: BLE001 - recorded, then raised again where it is not the process's own
            error = cause(raised)
            self._end(running, error)
            return self._after(process, error)
        running.loaded_at = self.clock.monotonic()
        self.up[process] = running
        return Done()

    def _verify(self, running: Running) -> Shown:
        types = running.implementation.test_types
        for kind, loads in self.candidates[running.process.implementation].test_types.items():
            self.progress.verifying(kind)
            verdict = self.verifier.check(
                running.server,
                types[kind],
                running.database.address,
                process=running.process.number,
                thorough=running.process.number == 0,
                loads=loads,
            )
            verdict = with_results(verdict, running.http)
            if verdict.outcome is Outcome.FAIL:
                self._look_around()
            self._judged(running, verdict)
            if verdict.outcome is Outcome.FAIL:
                self._fail(running, f"{kind}: {explain(verdict)}")
                running.server.require_alive()
        running.loaded_at = self.clock.monotonic()
        good = (kind for kind, verdict in running.verdicts.items() if verdict.outcome is not Outcome.FAIL)
        return Done(test_types=frozenset(good))

    def _stop(self, process: Process) -> Shown:
        running = self.up[process]

        def check(running: Running) -> Shown:
            self._look_around()  # sessions may have been lost under a load of which no server said so
            for kind, verdict in list(running.verdicts.items()):
                if verdict.outcome is Outcome.FAIL:
                    continue
                self.progress.verifying(kind, "verifying after the load")
                asked = running.implementation.test_types[kind]
                found = self.verifier.after_load(running.server, asked, running.database.address)
                self._object(running, kind, found, "after the load")
            return Done()

        shown = self._guarded(process, check)
        if not isinstance(shown, Failed):
            del self.up[process]
            self._end(running, None)
        return Done()

    def _guarded(self, process: Process, carry_out: Callable[[Running], Shown]) -> Shown:
        """A step on a process that is up; an error that is its own ends it, and its record says how."""
        running = self.up[process]
        try:
            return carry_out(running)
        except BaseException as raised:  # noqa: BLE001 - recorded, then raised again where it is not the process's own
            error = cause(raised)
        if not isinstance(error, LoadError):
            return self._bury(running, error)
        try:
            running.server.require_alive()
        except ServerDiedError as death:
            return self._bury(running, death)
        self._look_around()
        self._fail(running, str(error))
        return Failed(reason=str(error))

    def _bury(self, running: Running, error: BaseException) -> Shown:
        del self.up[running.process]
        self._end(running, error)
        return self._after(running.process, error)

    def _after(self, process: Process, error: BaseException) -> Shown:
        """What follows from an error that has ended a process."""
        key = (process.implementation, process.number)
        if isinstance(error, DatabaseDiedError | MachineLostError):
            self.lost.add(key)
        if not isinstance(error, RECORDED) or isinstance(error, ENDS_ALL):
            raise error
        try:
            self._look_around()
        except (DatabaseDiedError, MachineLostError):
            self.lost.add(key)
            raise
        return Failed(reason=str(error), gone=True)

    def _look_around(self) -> None:
        """Raise where the run is interrupted, PostgreSQL has ended or a machine is gone: no server is to blame then."""
        interruption.check()
        if how := self.database.crash_reason():
            raise DatabaseDiedError(how)
        self.look_around()

    def _end(self, running: Running, error: BaseException | None) -> None:
        """Stop the process and write its record."""
        first = error
        try:
            running.stack.__exit__(type(error) if error else None, error, error.__traceback__ if error else None)
        except BaseException as second:  # noqa: BLE001 - found while it was stopped; recorded, then raised below
            first = error or second
        status = "failed" if running.reasons else "ok"
        if isinstance(first, RECORDED) and not isinstance(first, StoreError):
            status = "failed"
            self._fail(running, str(first) if isinstance(first, TfbError) else f"PostgreSQL: {str(first).strip()}")
        elif first is not None:
            status = "interrupted"
        record = {
            "implementation": running.process.implementation,
            "process": running.process.number,
            "started_at": running.began,
            "startup_time": running.startup_time,
            "status": status,
            # A report may be mailed.
            "reason": "\n".join(running.reasons).replace(f"{self.store.folder}/", ""),
            "log": str(running.log.relative_to(self.store.folder)),
        }
        self.store.add_process(ProcessRecord.model_validate(record))
        if first is not None and first is not error:
            self._after(running.process, first)

    # ---- verdicts ----------------------------------------------------------------------------------------------------

    def _judged(self, running: Running, verdict: Verdict) -> None:
        running.verdicts[verdict.test_type] = verdict
        self.store.add_verdict(verdict)

    def _object(self, running: Running, kind: str, results: Sequence[CheckResult], when: str) -> None:
        """Add results to the verdict of a test type."""
        if not results:
            return
        self._judged(running, with_results(running.verdicts[kind], results))
        if failed := [result for result in results if result.outcome is Outcome.FAIL]:
            self._fail(running, f"{kind}: {when}: {'; '.join(map(sentence, failed))}")

    def _hold_to_account(
        self,
        running: Running,
        kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        """Hold what was answered under load against the database; what is missing there is every such test type's."""
        if kind is not None:
            return
        failed = tuple(r for r in self.verifier.end(running.database.address) if r.outcome is Outcome.FAIL)
        types = running.implementation.test_types
        for name in [name for name in running.verdicts if types[name].counts_statements]:
            self._object(running, name, failed, "after the process")

    def _fail(self, running: Running, reason: str) -> None:
        """Something failed; the process goes on."""
        running.reasons.append(reason)
        name = running.process.implementation
        self.progress.problem(reason if reason.startswith(f"{name}:") else f"{name} {reason}")

    # ---- loads -------------------------------------------------------------------------------------------------------

    def _warm(self, running: Running, step: Warm) -> Shown:
        cell = step.cell
        load = cell.load
        if step.connections and isinstance(load, Closed):
            load = load.model_copy(update={"connections": step.connections})
        self.progress.load(cell, "warm-up")
        with ownership.scratch("tfb-load-") as folder:
            generator = self._main(load)
            warm = replace(cell, load=load)
            seen = self._observe(running, warm, step.seconds, generator, folder, None, warm_up=True)
        self._restore_after(running, cell.test_type)
        return Warmed(
            windows=seen.windows,
            seconds=seen.result.duration,
            requests=seen.result.requests,
            worst_latency=seen.result.latency.max if seen.result.latency else None,
        )

    def _main(self, load: Load) -> Generator:
        """The run's generator, where it can make the load."""
        return self.generator if isinstance(load, Closed) or self.generator.name == "loadgen" else self.witness

    def _measure(self, running: Running, step: Measure) -> Shown:
        cell = step.cell
        kind = running.implementation.test_types[cell.test_type]
        generator = self.witness if step.purpose == "witness" else self._main(cell.load)
        self.progress.load(cell, "measure")
        others = [other for other in self.up.values() if other is not running]
        began, before = self.clock.monotonic(), readings([other.server.meter for other in others])
        for _ in range(1 + JUMPS):
            set_at = time_of_day(self.clock)
            seen, evidence = self._load(running, cell, kind, step.seconds, generator)
            if abs(time_of_day(self.clock) - set_at) < JUMP_SECONDS:
                break
            self.progress.note("the machine's clock was set under a load: measured again")
        if seen.result.errors.total:
            self._look_around()
        running.loaded_at = self.clock.monotonic()
        trial = self._trial(running, step, generator, seen, evidence)
        self.store.add_trial(trial)
        self.progress.trial(trial)
        objections = evidence.objections if evidence else ()
        self._object(running, cell.test_type, objections, f"under load, {cell.load.label}")
        if not trial.rankable and step.purpose == "measure":
            flags = ", ".join(gate.word for gate in trial.gates if gate.outcome is Outcome.FAIL)
            running.reasons.append(f"{cell.test_type} {cell.load.label}: {flags}")
        running.rates[cell.test_type, cell.load] = trial.requests / trial.duration
        busy = self._busy(others, began, before)
        self._restore_after(running, cell.test_type)
        return Measured(trial=trial, busy=busy)

    def _load(
        self, running: Running, cell: Cell, kind: TestType, seconds: float, generator: Generator
    ) -> tuple[Observation, Evidence | None]:
        """One load with the evidence of its own answers."""
        dice = random.Random(f"{self.seed} {cell} {self._trials}")
        self._trials += 1
        known = running.rates.get((cell.test_type, cell.load))
        looking = self.verifier.trial(
            running.server,
            kind,
            cell.load,
            running.database.address,
            seconds=seconds,
            rate=known,
            seed=dice.randrange(1 << 31),
        )
        with ownership.scratch("tfb-load-") as folder:
            with looking:
                sampling = looking.sampling if self.writes_answers else None
                seen = self._observe(running, cell, seconds, generator, folder, sampling, seed=dice.randrange(1 << 31))
            result, answers = seen.result, folder / ANSWERS
            failed = result.errors.status
            evidence = looking.judge(
                good=result.account.successes if result.account else result.requests - failed,
                failed=failed,
                account=result.account,
                answers=answers if answers.is_file() else None,
            )
        return seen, evidence

    def _observe(
        self,
        running: Running,
        cell: Cell,
        seconds: float,
        generator: Generator,
        folder: Path,
        sampling: Sampling | None,
        *,
        seed: int = 1,
        warm_up: bool = False,
    ) -> Observation:
        kind = running.implementation.test_types[cell.test_type]
        load, endpoint = cell.load, running.server.endpoint
        rules = self.profile.open_loop
        url = running.implementation.urls[cell.test_type]
        path = "/" if isinstance(load, Scenario) else kind.path(url, load)
        goal = self.profile.orders.goal if isinstance(load, Scenario) else rules.goal
        run = LoadRun(
            url=endpoint.url(path),
            host=endpoint.host,
            accept=kind.accept,
            load=load,
            seconds=seconds,
            threads=max(1, min(load.connections, self.generator_cpus)),
            seed=seed,
            sampling=sampling,
            requests=kind.requests,
            plan=arrivals_plan(load.factor) if isinstance(load, Scenario) else None,
            late_after=goal.seconds,
            lag_share=rules.lag_share,
            least_lag=gates.LEAST_LAG_SECONDS,
            warm_up=warm_up,
        )
        sizes = self._sizes(running, cell)
        others = [other.server.meter for other in self.up.values() if other is not running]
        target = Target(
            server=running.server,
            database=running.database,
            response_bytes=statistics.fmean(sizes) if sizes else None,
            others=others,
        )
        return observe(self, target, run, generator, folder)

    def _sizes(self, running: Running, cell: Cell) -> tuple[float, float] | None:
        """Fewest and most bytes of one verified response at this load."""
        queries = cell.load.queries
        return running.verdicts[cell.test_type].response_bytes.get("" if queries is None else str(queries))

    def _trial(
        self, running: Running, step: Measure, generator: Generator, seen: Observation, evidence: Evidence | None
    ) -> Trial:
        cell, result = step.cell, seen.result
        process, load = cell.process, cell.load
        name = f"{process.implementation}/{cell.test_type}/{load.label.replace(' ', '-').replace('/', 'ps')}"
        at_rate = not isinstance(load, Closed)
        throughput, cpu = figures(result, seen.server.cpu_seconds)
        threads = max(1, min(load.connections, self.generator_cpus))
        trial = Trial(
            id=f"{name}/p{process.number}.{step.round}" + ("" if step.purpose == "measure" else f".{step.purpose}"),
            implementation=process.implementation,
            test_type=cell.test_type,
            load=load,
            process=process.number,
            round=step.round,
            purpose=step.purpose,
            share=step.share,
            generator=generator.name,
            started_at=seen.started_at,
            command=seen.command,
            duration=result.duration,
            asked_duration=step.seconds,
            requests=result.requests,
            bytes=result.bytes,
            errors=result.errors,
            throughput=throughput,
            cpu_per_request=cpu,
            latency=result.latency,
            service=result.service,
            due=result.due if at_rate else None,
            answered=result.answered if at_rate else None,
            unfinished=result.unfinished if at_rate else None,
            late=result.late if at_rate else None,
            lag_p99=result.lag_p99,
            sent_late=result.sent_late,
            arrivals=result.arrivals,
            server=seen.server,
            generator_cpu_seconds=result.cpu_seconds,
            generator_threads=threads,
            database_cpu_seconds=seen.database_cpu_seconds,
            windows=seen.windows,
            warm_up=step.warm_up,
            steady=step.steady,
            evidence=evidence,
            connections=seen.connections,
            steal_share=seen.steal_share,
            restarted=seen.restarted,
            responses_per_request=seen.responses_per_request,
            idle_cpu_share=seen.idle_cpu_share,
            clients=seen.clients,
            link_share=self._link_share(result),
        )
        expected = gates.Expected(
            open_loop=self.profile.open_loop,
            server_cpus=self.server_cpus,
            response_bytes=self._sizes(running, cell),
            beside=self._latest.get(cell) if step.purpose == "witness" else None,
        )
        trial = trial.model_copy(update={"gates": gates.judge(trial, expected)})
        if step.purpose == "measure":
            self._latest = {cell: trial}
        return trial

    _latest: dict[Cell, Trial] = field(default_factory=dict)  # the trial before this one

    def _link_share(self, result: LoadResult) -> float | None:
        capacity = sum(self.links.values())
        return result.bytes / result.duration / capacity if capacity > 0 and result.duration > 0 else None

    def _busy(self, others: Sequence[Running], began: float, before: Sequence[Reading | None]) -> frozenset[Process]:
        """Those that should have been idle while another was loaded, and keep using a CPU."""
        after = readings([other.server.meter for other in others])
        for other, earlier, later in zip(others, before, after, strict=True):
            # After its own load compilers and collectors may still finish what it left.
            if began - other.loaded_at >= 3.0:
                other.count_idle(earlier, later)
        return frozenset(other.process for other in others if other.disturbs(gates.IDLE_CPUS))

    def _restore_after(self, running: Running, name: str) -> None:
        """Updates leave dead rows behind that would slow whoever comes next on these tables."""
        kind = running.implementation.test_types[name]
        if kind.writes_database and kind.has_rows:
            running.database.restore()

    def _rest(self, step: Rest) -> None:
        """Wait until none of the processes uses a CPU any more, at most so long."""
        meters = [self.up[process].server.meter for process in step.quiet if process in self.up]
        if not step.quiet:
            self.clock.sleep(step.seconds)
            return
        until = self.clock.monotonic() + step.seconds
        before = readings(meters)
        while self.clock.monotonic() < until:
            self.clock.sleep(0.25)
            after = readings(meters)
            shares = [
                later.used_since(earlier) / (later.at - earlier.at)
                for earlier, later in zip(before, after, strict=True)
                if earlier and later and later.at > earlier.at
            ]
            if max(shares, default=0.0) <= QUIET_SHARE:
                return
            before = after


def cause(error: BaseException) -> BaseException:
    """Why something failed: an interruption stops servers and generators, and what they raise then is its doing."""
    try:
        interruption.check()
    except KeyboardInterrupt as asked:
        return asked
    return error


def figures(result: LoadResult, cpu_seconds: float) -> tuple[float, float | None]:
    """Throughput and server CPU seconds per request; of a scenario both are of arrivals."""
    if result.arrivals is not None:
        due = result.arrivals.due
        return result.arrivals.done / result.duration, cpu_seconds / due if due else None
    good = result.requests - result.errors.status
    return good / result.duration, cpu_seconds / result.requests if result.requests else None


def with_results(verdict: Verdict, more: Sequence[CheckResult]) -> Verdict:
    """The verdict with further results; its outcome is the worst of all."""
    results = (*verdict.results, *more)
    return verdict.model_copy(update={"results": results, "outcome": worst(r.outcome for r in results)})


def explain(verdict: Verdict) -> str:
    """The failed checks of a verdict in one line."""
    return "; ".join(sentence(result) for result in verdict.results if result.outcome is Outcome.FAIL)


def sentence(result: CheckResult) -> str:
    """A failed check in words."""
    expected = f" expected {result.expected}, got {result.actual}" if result.expected is not None else ""
    return f"{result.check} ({result.rule}): {result.message}{expected}"
