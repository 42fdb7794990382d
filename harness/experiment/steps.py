"""The steps that a design asks for, what it is told that each showed, and the one loop that carries them out."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from harness.host import interruption
from harness.host.clock import Clock
from harness.records import store
from harness.records.models import Load, Purpose, RunRecords, Trial, WarmUp, Window

OVERHEAD_SECONDS = 0.8  # of a load beyond its own seconds, until measured
STOP_SECONDS = 4.0  # of a process's last checks and its end, until measured
NEWEST = 0.2  # with which the latest one counts in what is learned


@dataclass(frozen=True, order=True)
class Process:
    """One fresh start of an implementation on fresh database state."""

    implementation: str
    number: int  # from 0


@dataclass(frozen=True, kw_only=True)
class Cell:
    """What a load is put on: a test type of one process, at a load."""

    process: Process
    test_type: str
    load: Load


@dataclass(frozen=True, kw_only=True)
class Start:
    """Start a process beside those that are up, and verify it; test types that fail are not loaded."""

    process: Process


@dataclass(frozen=True, kw_only=True)
class Warm:
    """Load a cell for so many seconds to bring it up to speed; no trial is recorded."""

    cell: Cell
    seconds: float
    until: float = 1.0  # as of ``Measure``


@dataclass(frozen=True, kw_only=True)
class Measure:
    """Load a cell for so many seconds and record the trial."""

    cell: Cell
    seconds: float
    round: int = 0
    purpose: Purpose = "measure"
    share: float | None = None  # of the closed-loop throughput, where the load's rate comes from one
    warm_up: WarmUp | None = None  # of this test type, recorded with its first trial
    steady: bool | None = None  # whether that ended in a steady state
    until: float = 1.0  # share of the run's time after which it is not begun any more; beyond 1: whatever the time


@dataclass(frozen=True, kw_only=True)
class Rest:
    """Wait until these processes use no CPU any more, at most so long; for none of them, just so long."""

    seconds: float
    quiet: tuple[Process, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Stop:
    """Verify a process once more, end it, and record how it went."""

    process: Process


Step: TypeAlias = Start | Warm | Measure | Rest | Stop


@dataclass(frozen=True, kw_only=True)
class Done:
    """A step was carried out; ``test_types`` are those of the process that may be loaded."""

    test_types: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class Warmed:
    """What a warm-up load showed."""

    windows: Sequence[Window]
    seconds: float
    requests: int = 0
    worst_latency: float | None = None


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A trial, as it was recorded; ``busy`` are processes that keep using a CPU while others are loaded."""

    trial: Trial
    busy: frozenset[Process] = frozenset()


@dataclass(frozen=True, kw_only=True)
class Failed:
    """The step showed nothing: it never came up, or a load alone failed. ``gone``: the process ended with it."""

    gone: bool = False


@dataclass(frozen=True, kw_only=True)
class Late:
    """There is no time for this step any more."""


Shown: TypeAlias = Done | Warmed | Measured | Failed | Late
Design: TypeAlias = Generator[Step, Shown, None]


# ---- the loop --------------------------------------------------------------------------------------------------------


class Bench(Protocol):
    """Carries out a step, and records what it showed."""

    def carry_out(self, step: Step) -> Shown:
        """One step."""


class Recorded:
    """What a run has recorded of processes that it finished: their steps are not carried out again."""

    def __init__(self, records: RunRecords) -> None:
        self.processes = frozenset(Process(*key) for key in store.finished(records))
        self._trials = {
            (Process(t.implementation, t.process), t.test_type, t.load, t.round, t.purpose): t for t in records.trials
        }

    def shown(self, step: Step) -> Shown | None:
        """What a step of a finished process showed; None for any other one."""
        if isinstance(step, Rest):
            return None
        process = step.cell.process if isinstance(step, Warm | Measure) else step.process
        if process not in self.processes:
            return None
        match step:
            case Start():
                return Done(test_types=frozenset(kind for own, kind, *_ in self._trials if own == process))
            case Measure(cell=cell):
                trial = self._trials.get((process, cell.test_type, cell.load, step.round, step.purpose))
                return Measured(trial=trial) if trial else Late()
            case Warm():
                return Late()
            case _:
                return Done()


@dataclass
class Deadline:
    """How much of a run's time has passed, and whether a step still fits before its share of it."""

    clock: Clock
    seconds: float | None  # None: no limit
    began: float
    overhead: float = OVERHEAD_SECONDS
    stop: float = STOP_SECONDS
    up: set[Process] = field(default_factory=set)

    def passed(self, step: Step) -> bool:
        """Whether a load would end too late: what is up has to be stopped in the same time."""
        if self.seconds is None or not isinstance(step, Warm | Measure) or step.until > 1:
            return False
        end = self.began + step.until * self.seconds - len(self.up) * self.stop
        return self.clock.monotonic() + step.seconds + self.overhead > end

    def learn(self, step: Step, took: float) -> None:
        """What a step took."""
        match step:
            case Start():
                self.up.add(step.process)
            case Stop():
                self.up.discard(step.process)
                self.stop += NEWEST * (took - self.stop)
            case Measure():
                self.overhead += NEWEST * (max(0.0, took - step.seconds) - self.overhead)


def carry_out(
    design: Design,
    bench: Bench,
    clock: Clock,
    seconds: float | None,
    *,
    recorded: Recorded | None = None,
    used: float = 0.0,
) -> None:
    """All steps of a design within so many seconds; None: without a limit.

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
                    shown = Late()
                else:
                    began = clock.monotonic()
                    shown = bench.carry_out(step)
                    deadline.learn(step, clock.monotonic() - began)
                interruption.check()
            step = design.send(shown)
    except StopIteration:
        return
