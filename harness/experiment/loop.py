"""The loop that executes the steps of a design. It alone ends a run at a deadline or an interruption."""

from collections.abc import Callable
from dataclasses import dataclass, field

from harness.experiment.steps import (
    Design,
    Done,
    Failed,
    Measure,
    OutOfTime,
    Process,
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

OVERHEAD_SECONDS = 0.8  # seconds that a load takes beyond its planned length
STOP_SECONDS = 4.0  # seconds for the final checks and the stop of a process


class RecordedProcesses:
    """Recorded results of finished processes, whose steps are not executed again."""

    def __init__(self, records: RunRecords) -> None:
        self.processes = store.finished_processes(records)
        self._trials = {
            ((t.implementation, t.process), t.test_type, t.load, t.round, t.purpose): t for t in records.trials
        }

    def result(self, step: Step) -> StepResult | None:
        """Return the recorded result of a finished process's step, or None if the process is not finished."""
        if isinstance(step, Rest):
            return None
        process = step.cell.process if isinstance(step, Warm | Measure) else step.process
        if process not in self.processes:
            return None
        match step:
            case Start():
                measured = frozenset(kind for of, kind, *_ in self._trials if of == process)
                return Done(test_types=measured) if measured else Failed(gone=True)
            case Measure(cell=cell):
                trial = self._trials.get((process, cell.test_type, cell.load, step.round, step.purpose))
                return TrialResult(trial=trial) if trial else OutOfTime()
            case Warm():
                return OutOfTime()
            case _:
                return Done()


@dataclass
class Deadline:
    """The end of a run's time, minus the time for stopping all running processes."""

    clock: Clock
    seconds: float | None  # None: no limit
    began: float
    up: set[Process] = field(default_factory=set)

    def passed(self, step: Step) -> bool:
        """Return whether a load would end too late for stopping all running processes in time."""
        if self.seconds is None or not isinstance(step, Warm | Measure) or step.until > 1:
            return False
        end = self.began + step.until * self.seconds - len(self.up) * STOP_SECONDS
        return self.clock.monotonic() + step.seconds + OVERHEAD_SECONDS > end

    def note(self, step: Step, result: StepResult) -> None:
        """Update the running processes after a step."""
        match step:
            case Start(process=process) if isinstance(result, Done):
                self.up.add(process)
            case Warm(cell=cell) | Measure(cell=cell) if isinstance(result, Failed) and result.gone:
                self.up.discard(cell.process)
            case Stop(process=process):
                self.up.discard(process)


@dataclass(kw_only=True)
class MeasuringClock(Clock):
    """A clock that stops while a start or a stop takes longer than planned.

    Without it, a slow start of an implementation would reduce the measuring time of all other implementations.
    """

    clock: Clock
    execute_step: Callable[[Step], StepResult]
    planned: Callable[[Step], float]  # planned seconds of a step; infinite for steps that may not extend the run
    report_delay: Callable[[Step, float], None]  # called with a step and the seconds by which it exceeded the plan
    delay: float = 0.0  # total seconds by which steps exceeded the plan

    def monotonic(self) -> float:
        """Return monotonic seconds without the delays."""
        return self.clock.monotonic() - self.delay

    def time(self) -> float:
        """Return the seconds since the epoch."""
        return self.clock.time()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        self.clock.sleep(seconds)

    def execute(self, step: Step) -> StepResult:
        """Execute a step. Stop the clock for the time that exceeds the plan."""
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
    used: float = 0.0,
) -> None:
    """Execute all steps of a design.

    An interruption is raised only between two steps, when all results have been recorded.

    Args:
        design: The design.
        execute: Executes a step, and records the result.
        clock: The clock of the run's time.
        seconds: The run's time, or None without a limit. It begins at the first step without a recorded result.
        recorded: Results that replace the execution of steps.
        used: Share of the run's time that earlier parts of the run have used.
    """
    deadline: Deadline | None = None
    try:
        step = next(design)
        while True:
            result = recorded.result(step) if recorded else None
            if result is None:
                if deadline is None:
                    deadline = Deadline(clock, seconds, began=clock.monotonic() - used * (seconds or 0.0))
                if deadline.passed(step):
                    result = OutOfTime()
                else:
                    result = execute(step)
                    deadline.note(step, result)
                interruption.raise_if_pending()
            step = design.send(result)
    except StopIteration:
        return
