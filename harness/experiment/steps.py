"""The vocabulary of a design: the steps that it asks for, and what it is told that each step showed."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from harness.records.loads import Load
from harness.records.measurements import Window
from harness.records.trial_record import Purpose, Trial, WarmUp


class Process(NamedTuple):
    """One fresh start of an implementation on fresh database state; as the records' keys."""

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
    unreached: tuple[Cell, ...] = ()  # planned cells that were not tried because the run's time was up


Step: TypeAlias = Start | Warm | Measure | Rest | Stop


@dataclass(frozen=True, kw_only=True)
class Done:
    """A step was carried out; ``test_types`` are those of the process that may be loaded."""

    test_types: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class WarmUpResult:
    """What a warm-up load showed."""

    windows: Sequence[Window]
    seconds: float
    requests: int = 0
    worst_latency: float | None = None


@dataclass(frozen=True, kw_only=True)
class TrialResult:
    """A trial, as it was recorded; ``busy`` are processes that keep using a CPU while others are loaded."""

    trial: Trial
    busy: frozenset[Process] = frozenset()


@dataclass(frozen=True, kw_only=True)
class Failed:
    """The step showed nothing: it never came up, or a load alone failed. ``gone``: the process ended with it."""

    gone: bool = False


@dataclass(frozen=True, kw_only=True)
class OutOfTime:
    """There is no time for this step any more."""


StepResult: TypeAlias = Done | WarmUpResult | TrialResult | Failed | OutOfTime
Design: TypeAlias = Generator[Step, StepResult, None]
