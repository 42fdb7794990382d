"""A group of processes that run at the same time: a design starts, warms, measures and stops them through the group."""

from collections import defaultdict
from collections.abc import Generator, Sequence, Set
from dataclasses import dataclass, field

from harness.experiment.steps import (
    Cell,
    Design,
    Done,
    Failed,
    Measure,
    OutOfTime,
    Process,
    Start,
    Step,
    StepResult,
    Stop,
    TrialResult,
)
from harness.experiment.warm_up import WarmUpTracker, warm_up_all
from harness.plan.plan import Candidate, Plan, headline_load
from harness.records.trial_record import Purpose, Trial

# After this number of failed loads of a test type, a process gets no more loads of that test type.
MAX_FAILED_LOADS = 2
WARM_UP_SHARE = 0.4  # maximum share of the group's time that warm-up may take
NO_DEADLINE = 2.0  # value of ``until`` for a load without a time limit


@dataclass
class ActiveGroup:
    """Processes that run at the same time, with their cells and trials."""

    plan: Plan
    number: int  # process number, the same for all implementations of the group
    begin: float  # share of the run's time at which the group starts
    until: float  # share of the run's time at which the group ends
    seed: int
    members: dict[Process, Candidate] = field(default_factory=dict)
    test_types: dict[Process, set[str]] = field(default_factory=dict)  # test types that may be loaded
    warm_ups: dict[tuple[Process, str], WarmUpTracker] = field(default_factory=dict)  # key: process and test type
    late: set[Process] = field(default_factory=set)  # processes that have no time left
    busy: set[Process] = field(default_factory=set)  # processes that use CPU time although they have no load
    trials: list[Trial] = field(default_factory=list)
    failures: dict[tuple[Process, str], int] = field(default_factory=lambda: defaultdict(int))
    # Key: process and test type of warm-ups that are recorded with a trial.
    _recorded_warm_ups: set[tuple[Process, str]] = field(default_factory=set)
    _tried: set[Cell] = field(default_factory=set)
    _skipped: dict[Cell, Purpose] = field(default_factory=dict)  # cells that were skipped for lack of time, in order

    def start(self, group: Sequence[Candidate]) -> Generator[Step, StepResult, set[str]]:
        """Start and verify candidates in sequence; return the names of the candidates that failed to start."""
        failed: set[str] = set()
        for candidate in group:
            process = Process(candidate.implementation, self.number)
            result = yield Start(process=process)
            if isinstance(result, Done):
                self.members[process] = candidate
                self.test_types[process] = set(result.test_types)
            elif result == Failed():
                failed.add(candidate.implementation)
        return failed

    def warm(self, kinds: Set[str] | None = None) -> Design:
        """Warm up all members for all test types, or only for the test types in ``kinds``."""
        selected = (cell for cell in self.cells() if kinds is None or cell.test_type in kinds)
        cells = {cell: self.members[cell.process].jit for cell in selected}
        until = self.begin + WARM_UP_SHARE * (self.until - self.begin)
        seed = f"{self.seed} warm {self.number}"
        trackers, gone = yield from warm_up_all(cells, self.plan.profile, until=until, seed=seed)
        for process in gone:
            self.remove(process)
        self.warm_ups = {(tracker.cell.process, tracker.cell.test_type): tracker for tracker in trackers}

    def cells(self, *, every_load: bool = False) -> list[Cell]:
        """Return the cells that can be loaded: with every load, or with the headline load of each test type."""
        return [
            Cell(process=process, test_type=kind, load=load)
            for process, candidate in self.members.items()
            if process not in self.late
            for kind, loads in candidate.test_types.items()
            if kind in self.test_types[process]
            for load in (loads if every_load else (headline_load(loads),))
        ]

    def is_headline(self, cell: Cell) -> bool:
        """Return whether the load of a cell is the headline load of the test type."""
        return cell.load == headline_load(self.members[cell.process].test_types[cell.test_type])

    def common_test_types(self, group: Sequence[Candidate]) -> set[str]:
        """Return the test types that can be loaded on every process of a group."""
        usable = [self.test_types.get(Process(each.implementation, self.number), set()) for each in group]
        return set[str].intersection(*usable)

    def measure(
        self,
        cell: Cell,
        seconds: float,
        number: int,
        *,
        purpose: Purpose = "measure",
        share: float | None = None,
        must: bool = False,
    ) -> Generator[Step, StepResult, Trial | None]:
        """Measure a cell. Return the trial, or None if the measurement fails or the time is over.

        Args:
            cell: The cell.
            seconds: Length of the trial.
            number: Number of the round.
            purpose: Purpose of the trial.
            share: Rate of the load as a share of the closed-loop throughput.
            must: Measure even if the run's time is over.
        """
        process, kind = cell.process, cell.test_type
        if kind not in self.test_types.get(process, ()):
            return None
        if process in self.late and not must:
            self._skipped.setdefault(cell, purpose)  # keep the purpose of the cell itself, which precedes its witness
            return None
        tracker = self.warm_ups.get((process, kind))
        first = (process, kind) not in self._recorded_warm_ups
        result = yield Measure(
            cell=cell,
            seconds=seconds,
            round=number,
            purpose=purpose,
            share=share,
            warm_up=tracker.result if tracker and first else None,
            steady=tracker.steady if tracker else None,
            until=NO_DEADLINE if must else self.until,
        )
        if isinstance(result, OutOfTime):
            self._skipped.setdefault(cell, purpose)
        else:
            self._tried.add(cell)
        return self._note(cell, result)

    def _note(self, cell: Cell, result: StepResult) -> Trial | None:
        """Update the group after a measurement, and return the trial."""
        process, kind = cell.process, cell.test_type
        match result:
            case TrialResult():
                self._recorded_warm_ups.add((process, kind))
                self.trials.append(result.trial)
                self.busy |= result.busy
                return result.trial
            case OutOfTime():
                self.late.add(process)
            case Failed(gone=True):
                self.remove(process)
            case Failed():
                self.failures[process, kind] += 1
                if self.failures[process, kind] >= MAX_FAILED_LOADS:
                    self.test_types[process].discard(kind)
            case _:
                raise TypeError(f"a measurement cannot result in {result}")
        return None

    def remove(self, process: Process) -> None:
        """Remove a process that has ended from the group."""
        del self.members[process], self.test_types[process]

    def stop_step(self, process: Process) -> Stop:
        """Return the step that stops a process. It lists planned cells and rates for which there was no time."""
        planned = self.plan.candidate(process.implementation).test_types
        untried = {cell: purpose for cell, purpose in self._skipped.items() if cell not in self._tried}
        unreached = (
            cell
            for cell, purpose in untried.items()
            if purpose in ("share", "common") or (purpose == "measure" and cell.load in planned[cell.test_type])
        )
        return Stop(process=process, unreached=tuple(cell for cell in unreached if cell.process == process))

    def stop_busy(self) -> Design:
        """Stop the busy processes, unless only one process remains."""
        for process in sorted(self.busy & set(self.members)):
            if len(self.members) > 1:
                self.remove(process)
                yield self.stop_step(process)

    def stop_all(self) -> Design:
        """Stop all members."""
        for process in list(self.members):
            yield self.stop_step(process)
