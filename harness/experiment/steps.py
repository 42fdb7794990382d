"""The steps that a design yields, and the results that it receives for them."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from harness.records.loads import Load
from harness.records.measurements import Window
from harness.records.trial_record import Purpose, Trial, WarmUp


class Process(NamedTuple):
    """A fresh start of an implementation, with a fresh database."""

    implementation: str
    number: int  # counted from 0 for each implementation


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A process, and the test type and load to measure on it."""

    process: Process
    test_type: str
    load: Load


@dataclass(frozen=True, kw_only=True)
class Start:
    """A step that starts and verifies a process, while other processes keep running."""

    process: Process


@dataclass(frozen=True, kw_only=True)
class Warm:
    """A step that puts load on a cell without recording a trial."""

    cell: Cell
    seconds: float
    until: float | None = 1.0  # same meaning as ``Measure.until``


@dataclass(frozen=True, kw_only=True)
class Measure:
    """A step that puts load on a cell and records the trial."""

    cell: Cell
    seconds: float
    round: int = 0
    purpose: Purpose = "measure"
    share: float | None = None  # the load's rate, as a fraction of the process's closed-loop throughput
    warm_up: WarmUp | None = None  # the warm-up, if this is the first trial after it; otherwise None
    steady: bool | None = None  # whether the warm-up reached a steady state
    until: float | None = 1.0  # deadline for the load's end, as a fraction of the run's time limit; None for none


@dataclass(frozen=True, kw_only=True)
class Rest:
    """A step that waits for ``seconds``. It ends early when all processes in ``quiet``, if any, are idle."""

    seconds: float
    quiet: tuple[Process, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ReadTime:
    """A step that reads how much of the run's time has passed."""


@dataclass(frozen=True, kw_only=True)
class Stop:
    """A step that verifies a process once more, stops it, and records how it ended."""

    process: Process
    unreached: tuple[Cell, ...] = ()  # planned cells that the run had no time to measure


Step: TypeAlias = Start | Warm | Measure | Rest | Stop | ReadTime


@dataclass(frozen=True, kw_only=True)
class Done:
    """Result of a step that succeeded."""

    test_types: frozenset[str] = frozenset()  # after a start: the test types that passed verification


@dataclass(frozen=True, kw_only=True)
class WarmUpResult:
    """Result of a warm-up load."""

    windows: Sequence[Window]
    seconds: float
    requests: int = 0
    worst_latency: float | None = None  # in seconds


@dataclass(frozen=True, kw_only=True)
class TrialResult:
    """Result of a measured load."""

    trial: Trial
    busy: frozenset[Process] = frozenset()  # processes that used CPU time although they were not under load


@dataclass(frozen=True, kw_only=True)
class Failed:
    """Result of a start or a load that failed."""

    server_exited: bool = False  # True if the process started and has since exited


@dataclass(frozen=True, kw_only=True)
class PassedTime:
    """The fraction of the run's time that has passed, or 0 if the run has no time limit."""

    share: float


@dataclass(frozen=True, kw_only=True)
class OutOfTime:
    """Result of a step that was skipped because the run has no time left for it."""


StepResult: TypeAlias = Done | WarmUpResult | TrialResult | Failed | OutOfTime | PassedTime
Design: TypeAlias = Generator[Step, StepResult, None]
