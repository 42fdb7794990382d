"""Executes a design's steps until the design ends, the deadline passes, or the run is interrupted."""

from collections.abc import Callable
from dataclasses import dataclass, field

from harness.experiment.steps import (
    Design,
    Done,
    Failed,
    Measure,
    OutOfTime,
    PassedTime,
    Process,
    ReadTime,
    Rest,
    Start,
    Step,
    StepResult,
    Stop,
    TrialResult,
    Warm,
)
from harness.host import interruption
from harness.host.clock import Clock
from harness.records import store
from harness.records.run_records import RunRecords

OVERHEAD_SECONDS = 0.8  # time that a load takes beyond the planned duration, for example to start the generator
STOP_SECONDS = 4.0  # time to perform a process's final checks and to stop it


class RecordedProcesses:
    """The recorded results of finished processes. A resumed run does not repeat these processes' steps."""

    def __init__(self, records: RunRecords) -> None:
        self.processes = store.finished_processes(records)
        self._trials = {
            ((t.implementation, t.process), t.test_type, t.load, t.round, t.purpose): t for t in records.trials
        }

    def result(self, step: Step) -> StepResult | None:
        """Return a step's recorded result, or None if the step must be executed."""
        if isinstance(step, Rest | ReadTime):
            return None
        process = step.cell.process if isinstance(step, Warm | Measure) else step.process
        if process not in self.processes:
            return None
        match step:
            case Start():
                measured = frozenset(kind for each, kind, *_ in self._trials if each == process)
                return Done(test_types=measured) if measured else Failed(server_exited=True)
            case Measure(cell=cell):
                trial = self._trials.get((process, cell.test_type, cell.load, step.round, step.purpose))
                return TrialResult(trial=trial) if trial else OutOfTime()
            case Warm():
                return OutOfTime()
            case _:
                return Done()


@dataclass
class Deadline:
    """The run's deadline for loads. It leaves enough time to stop all running processes."""

    clock: Clock
    seconds: float | None  # time limit of the run; None for no limit
    started_at: float  # monotonic seconds
    up: set[Process] = field(default_factory=set)  # running processes

    def passed(self, step: Step) -> bool:
        """Return whether a load would end too late to stop all running processes in time."""
        if self.seconds is None or not isinstance(step, Warm | Measure) or step.until is None:
            return False
        end = self.started_at + step.until * self.seconds - len(self.up) * STOP_SECONDS
        return self.clock.monotonic() + step.seconds + OVERHEAD_SECONDS > end

    def share(self) -> float:
        """Return the fraction of the run's time that has passed, or 0 without a time limit."""
        return (self.clock.monotonic() - self.started_at) / self.seconds if self.seconds else 0.0

    def note(self, step: Step, result: StepResult) -> None:
        """Update the set of running processes after a step."""
        match step:
            case Start(process=process) if isinstance(result, Done):
                self.up.add(process)
            case Warm(cell=cell) | Measure(cell=cell) if isinstance(result, Failed) and result.server_exited:
                self.up.discard(cell.process)
            case Stop(process=process):
                self.up.discard(process)


@dataclass(kw_only=True)
class MeasuringClock(Clock):
    """A clock that stops during delays.

    A delay is the time by which starting or stopping an implementation overruns its planned duration.

    With an ordinary clock, an implementation that starts slowly would reduce the measurement time of the other
    implementations.
    """

    clock: Clock
    execute_step: Callable[[Step], StepResult]
    planned: Callable[[Step], float]  # planned seconds of a step; infinity: never stop the clock for this step
    report_delay: Callable[[Step, float], None]  # called with a step and the seconds by which it exceeded the plan
    delay: float = 0.0  # total seconds by which steps exceeded the plan

    def monotonic(self) -> float:
        """Return monotonic seconds, excluding delays."""
        return self.clock.monotonic() - self.delay

    def time(self) -> float:
        """Return the time in seconds since the epoch."""
        return self.clock.time()

    def sleep(self, seconds: float) -> None:
        """Wait for the given number of seconds."""
        self.clock.sleep(seconds)

    def execute(self, step: Step) -> StepResult:
        """Execute a step. If it takes longer than planned, stop the clock for the difference."""
        began = self.clock.monotonic()
        result = self.execute_step(step)
        delay = self.clock.monotonic() - began - self.planned(step)
        if delay > 0:
            self.delay += delay
            self.report_delay(step, delay)
        return result


def run_design(
    design: Design,
    execute: Callable[[Step], StepResult],
    clock: Clock,
    seconds: float | None,
    *,
    recorded: RecordedProcesses | None = None,
    used_share: float = 0.0,
) -> None:
    """Execute all steps of a design. Interruptions are raised only between steps, so no result is lost.

    ``seconds`` is the run's time limit. It counts from the first step without a recorded result. In a resumed run,
    the finished processes have already used the fraction ``used_share`` of the limit.
    """
    deadline: Deadline | None = None
    try:
        step = next(design)
        while True:
            if isinstance(step, ReadTime):
                step = design.send(PassedTime(share=deadline.share() if deadline else 0.0))
                continue
            result = recorded.result(step) if recorded else None
            if result is None:
                if deadline is None:
                    deadline = Deadline(clock, seconds, started_at=clock.monotonic() - used_share * (seconds or 0.0))
                if deadline.passed(step):
                    result = OutOfTime()
                else:
                    result = execute(step)
                    deadline.note(step, result)
                interruption.raise_if_pending()
            step = design.send(result)
    except StopIteration:
        return
