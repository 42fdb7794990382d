"""The one loop: carries a design's steps out one after the other. It has the only deadline."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from harness.experiment.steps import (
    Design,
    Done,
    Late,
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
)
from harness.host import interruption
from harness.host.clock import Clock
from harness.records.models import ProcessRecord, Trial

OVERHEAD_SECONDS = 0.8  # of a load beyond its own seconds, until measured
STOP_SECONDS = 4.0  # of a process's last checks and its end, until measured
NEWEST = 0.2  # with which the latest one counts in what is learned


class Bench(Protocol):
    """Carries out a step, and records what it showed."""

    def carry_out(self, step: Step) -> Shown:
        """One step."""


@dataclass
class Recorded:
    """What a run has recorded of processes that it finished: their steps are not carried out again."""

    processes: frozenset[Process] = frozenset()
    trials: dict[tuple[object, ...], Trial] = field(default_factory=dict)
    test_types: dict[Process, set[str]] = field(default_factory=dict)

    @classmethod
    def of(
        cls, processes: Iterable[ProcessRecord], trials: Iterable[Trial], finished: frozenset[tuple[str, int]]
    ) -> "Recorded":
        """Of the processes among ``finished``."""
        own = frozenset(Process(*key) for key in finished)
        found = cls(processes=own & frozenset(Process(p.implementation, p.process) for p in processes))
        for trial in trials:
            process = Process(trial.implementation, trial.process)
            if process in found.processes:
                key = (process, trial.test_type, trial.load, trial.round, trial.purpose)
                found.trials[key] = trial
                found.test_types.setdefault(process, set()).add(trial.test_type)
        return found

    def shown(self, step: Step) -> Shown | None:
        """What a step of a finished process showed; None for any other one."""
        process = of(step)
        if process not in self.processes:
            return None
        match step:
            case Verify():
                return Done(test_types=frozenset(self.test_types.get(process, ())))
            case Measure():
                cell = step.cell
                trial = self.trials.get((process, cell.test_type, cell.load, step.round, step.purpose))
                return Measured(trial=trial) if trial else Late()
            case Warm():
                return Late()
            case _:
                return Done()


def of(step: Step) -> Process | None:
    """The process of a step; None for one that is of none."""
    match step:
        case Warm() | Measure():
            return step.cell.process
        case Rest():
            return None
        case _:
            return step.process


@dataclass
class Deadline:
    """How much of a run's time has passed, and whether a step still fits before its share of it."""

    clock: Clock
    seconds: float | None  # None: no limit
    began: float = field(init=False)
    overhead: float = OVERHEAD_SECONDS
    stop: float = STOP_SECONDS
    up: set[Process] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.began = self.clock.monotonic()

    def passed(self, step: Step) -> bool:
        """Whether a load would end too late: what is up has to be stopped in the same time."""
        if self.seconds is None or not isinstance(step, Warm | Measure) or step.until > 1:
            return False
        end = self.began + step.until * self.seconds - len(self.up) * self.stop
        return self.clock.monotonic() + step.seconds + self.overhead > end

    def begin_at(self, share: float) -> None:
        """So much of the time has been used before."""
        if self.seconds is not None:
            self.began = self.clock.monotonic() - share * self.seconds

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
            case _:
                pass


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
    known = recorded or Recorded()
    deadline = Deadline(clock, seconds)
    live = False
    try:
        step = next(design)
        while True:
            shown = known.shown(step)
            if shown is None:
                if not live:
                    live = True
                    deadline.begin_at(used)
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
