"""The one loop that carries a design's steps out, with the only deadline and the only delivery of an interruption."""

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

OVERHEAD_SECONDS = 0.8  # of a load beyond its own seconds
STOP_SECONDS = 4.0  # of a process's last checks and its end


class RecordedProcesses:
    """What a run has recorded of processes that it finished: their steps are not carried out again."""

    def __init__(self, records: RunRecords) -> None:
        self.processes = store.finished_processes(records)
        self._trials = {
            ((t.implementation, t.process), t.test_type, t.load, t.round, t.purpose): t for t in records.trials
        }

    def shown(self, step: Step) -> StepResult | None:
        """What a step of a finished process showed; None for any other one."""
        if isinstance(step, Rest):
            return None
        process = step.cell.process if isinstance(step, Warm | Measure) else step.process
        if process not in self.processes:
            return None
        match step:
            case Start():
                measured = frozenset(kind for own, kind, *_ in self._trials if own == process)
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
    """How much of a run's time has passed, and whether a step still fits before its share of it."""

    clock: Clock
    seconds: float | None  # None: no limit
    began: float
    up: set[Process] = field(default_factory=set)

    def passed(self, step: Step) -> bool:
        """Whether a load would end too late: what is up has to be stopped in the same time."""
        if self.seconds is None or not isinstance(step, Warm | Measure) or step.until > 1:
            return False
        end = self.began + step.until * self.seconds - len(self.up) * STOP_SECONDS
        return self.clock.monotonic() + step.seconds + OVERHEAD_SECONDS > end

    def note(self, step: Step, shown: StepResult) -> None:
        """Who is up after a step."""
        match step:
            case Start(process=process) if isinstance(shown, Done):
                self.up.add(process)
            case Warm(cell=cell) | Measure(cell=cell) if isinstance(shown, Failed) and shown.gone:
                self.up.discard(cell.process)
            case Stop(process=process):
                self.up.discard(process)


@dataclass(kw_only=True)
class MeasuringClock(Clock):
    """The clock of a run's time. It stands still while a start or a stop takes longer than planned.

    Otherwise a slow start of one implementation would take measuring time from all others.
    """

    clock: Clock
    show: Callable[[Step], StepResult]
    planned: Callable[[Step], float]  # seconds; infinite for steps that may not extend the run
    tell: Callable[[Step, float], None]  # called with the seconds beyond the plan
    beyond: float = 0.0  # seconds beyond the plan so far

    def monotonic(self) -> float:
        """Return the seconds that count."""
        return self.clock.monotonic() - self.beyond

    def time(self) -> float:
        """Return the time of day."""
        return self.clock.time()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        self.clock.sleep(seconds)

    def execute(self, step: Step) -> StepResult:
        """Carry out a step, and stop the clock for what it takes beyond its plan."""
        began = self.clock.monotonic()
        shown = self.show(step)
        beyond = self.clock.monotonic() - began - self.planned(step)
        if beyond > 0:
            self.beyond += beyond
            self.tell(step, beyond)
        return shown


def run_design(
    design: Design,
    show: Callable[[Step], StepResult],
    clock: Clock,
    seconds: float | None,
    *,
    recorded: RecordedProcesses | None = None,
    used: float = 0.0,
) -> None:
    """All steps of a design within so many seconds; None: without a limit. ``show`` does one, and records it.

    ``recorded``: steps that are answered from it; with the first other one the time begins, of which the share ``used``
    has passed. An interruption is raised between steps, when everything is recorded.
    """
    deadline: Deadline | None = None
    try:
        step = next(design)
        while True:
            shown = recorded.shown(step) if recorded else None
            if shown is None:
                if deadline is None:
                    deadline = Deadline(clock, seconds, began=clock.monotonic() - used * (seconds or 0.0))
                if deadline.passed(step):
                    shown = OutOfTime()
                else:
                    shown = show(step)
                    deadline.note(step, shown)
                interruption.raise_if_pending()
            step = design.send(shown)
    except StopIteration:
        return
