"""Manages a group of concurrent processes: yields the steps that start, warm up, measure and stop them."""

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

WARM_UP_SHARE = 0.4  # maximum fraction of the group's time for warm-up


@dataclass
class ActiveGroup:
    """A group of processes that run concurrently, and the state of their measurements."""

    plan: Plan
    number: int  # process number, shared by all implementations of the group
    begin: float  # when the group starts, as a fraction of the run's time
    until: float  # when the group ends, as a fraction of the run's time
    seed: int
    members: dict[Process, Candidate] = field(default_factory=dict)
    test_types: dict[Process, set[str]] = field(default_factory=dict)  # process -> test types that are still measurable
    warm_ups: dict[tuple[Process, str], WarmUpTracker] = field(default_factory=dict)  # by process and test type
    late_processes: set[Process] = field(default_factory=set)  # processes for which time has run out
    busy: set[Process] = field(default_factory=set)  # processes that use CPU time while idle
    trials: list[Trial] = field(default_factory=list)
    failures: dict[tuple[Process, str], int] = field(default_factory=lambda: defaultdict(int))
    # (process, test type) pairs whose warm-up a trial has recorded. Only the first trial after a warm-up records it.
    _recorded_warm_ups: set[tuple[Process, str]] = field(default_factory=set)
    _tried: set[Cell] = field(default_factory=set)
    # Cell that was skipped because time ran out -> purpose of the first skipped trial.
    _skipped: dict[Cell, Purpose] = field(default_factory=dict)

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

    @property
    def rounds(self) -> int:
        """Return the number of rounds in which an open loop was measured."""
        return len({trial.round for trial in self.trials if trial.load.kind == "open"})

    def forgive(self, cell: Cell) -> bool:
        """Discard failures of the cell's test type. Return True if there were any and the process is still running."""
        return self.failures.pop((cell.process, cell.test_type), 0) > 0 and cell.process in self.members

    def warm(self, kinds: Set[str] | None = None) -> Design:
        """Warm up all members for all test types, or only for the test types in ``kinds``."""
        selected = (cell for cell in self.cells() if kinds is None or cell.test_type in kinds)
        cells = {cell: self.members[cell.process].jit for cell in selected}
        until = self.begin + WARM_UP_SHARE * (self.until - self.begin)
        seed = f"{self.seed} warm {self.number}"
        trackers, ended = yield from warm_up_all(cells, self.plan.profile, until=until, seed=seed)
        for process in ended:
            self.remove(process)
        self.warm_ups = {(tracker.cell.process, tracker.cell.test_type): tracker for tracker in trackers}

    def cells(self, *, every_load: bool = False) -> list[Cell]:
        """Return the cells that can still be measured. Include only headline loads unless ``every_load`` is set."""
        return [
            Cell(process=process, test_type=kind, load=load)
            for process, candidate in self.members.items()
            if process not in self.late_processes
            for kind, loads in candidate.test_types.items()
            if kind in self.test_types[process]
            for load in (loads if every_load else (headline_load(loads),))
        ]

    def is_headline(self, cell: Cell) -> bool:
        """Return whether a cell's load is the headline load of the cell's test type."""
        return cell.load == headline_load(self.members[cell.process].test_types[cell.test_type])

    def common_test_types(self, group: Sequence[Candidate]) -> set[str]:
        """Return the test types that can be measured on every process of a group."""
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
        ignore_deadline: bool = False,
    ) -> Generator[Step, StepResult, Trial | None]:
        """Measure a cell and return the trial, or None if this is not possible, the load fails or time runs out.

        ``share`` is the load's rate as a fraction of the process's closed-loop throughput. If ``ignore_deadline`` is
        set, measure even if the group's time is up.
        """
        process, kind = cell.process, cell.test_type
        if kind not in self.test_types.get(process, ()):
            return None
        if process in self.late_processes and not ignore_deadline:
            self._skipped.setdefault(cell, purpose)  # a skipped witness keeps the skipped trial's purpose
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
            until=None if ignore_deadline else self.until,
        )
        if isinstance(result, OutOfTime):
            self._skipped.setdefault(cell, purpose)
        else:
            self._tried.add(cell)
        return self._note(cell, result)

    def _note(self, cell: Cell, result: StepResult) -> Trial | None:
        """Update the group's state after a measurement. Return the trial, or None if the measurement failed."""
        process, kind = cell.process, cell.test_type
        match result:
            case TrialResult():
                self._recorded_warm_ups.add((process, kind))
                self.trials.append(result.trial)
                self.busy |= result.busy
                return result.trial
            case OutOfTime():
                self.late_processes.add(process)
            case Failed(server_exited=True):
                self.remove(process)
            case Failed():
                self.failures[process, kind] += 1
                if self.failures[process, kind] >= 2:  # after two failures, stop measuring the test type
                    self.test_types[process].discard(kind)
            case _:
                raise TypeError(f"unexpected measurement result: {result}")
        return None

    def remove(self, process: Process) -> None:
        """Remove a process from the group, because it has exited or will be stopped."""
        del self.members[process], self.test_types[process]

    def stop_step(self, process: Process) -> Stop:
        """Return a step that stops a process and lists the planned cells that there was no time to measure."""
        planned = self.plan.candidate(process.implementation).test_types
        unreached = (
            cell
            for cell, purpose in self._skipped.items()
            if cell.process == process
            and cell not in self._tried
            and (purpose in ("share", "common") or (purpose == "measure" and cell.load in planned[cell.test_type]))
        )
        return Stop(process=process, unreached=tuple(unreached))

    def stop_busy(self) -> Design:
        """Stop processes that use CPU time while idle, but keep at least one process."""
        for process in sorted(self.busy & set(self.members)):
            if len(self.members) > 1:
                self.remove(process)
                yield self.stop_step(process)

    def stop_all(self) -> Design:
        """Stop all members."""
        for process in list(self.members):
            yield self.stop_step(process)
