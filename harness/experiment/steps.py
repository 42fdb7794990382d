"""The steps that a design requests, and their results."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from harness.records.loads import Load
from harness.records.measurements import Window
from harness.records.trial_record import Purpose, Trial, WarmUp


class Process(NamedTuple):
    """A fresh start of an implementation with a fresh database."""

    implementation: str
    number: int  # from 0


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A test type of a process, and a load."""

    process: Process
    test_type: str
    load: Load


@dataclass(frozen=True, kw_only=True)
class Start:
    """Start and verify a process while other processes keep running."""

    process: Process


@dataclass(frozen=True, kw_only=True)
class Warm:
    """Put load on a cell without recording a trial."""

    cell: Cell
    seconds: float
    until: float = 1.0  # see ``Measure``


@dataclass(frozen=True, kw_only=True)
class Measure:
    """Put load on a cell and record the trial."""

    cell: Cell
    seconds: float
    round: int = 0
    purpose: Purpose = "measure"
    share: float | None = None  # the load's rate as a share of the closed-loop throughput
    warm_up: WarmUp | None = None  # warm-up of the test type, recorded with the first trial after it
    steady: bool | None = None  # whether the warm-up reached a steady state
    until: float = 1.0  # share of the run's time in which the load must end; above 1: no limit


@dataclass(frozen=True, kw_only=True)
class Rest:
    """Wait until processes are idle, or wait a fixed time if ``quiet`` is empty."""

    seconds: float  # maximum, or the fixed time
    quiet: tuple[Process, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Stop:
    """Verify a process once more, stop it, and record how it ended."""

    process: Process
    unreached: tuple[Cell, ...] = ()  # planned cells that the run's time did not reach


Step: TypeAlias = Start | Warm | Measure | Rest | Stop


@dataclass(frozen=True, kw_only=True)
class Done:
    """The step succeeded."""

    test_types: frozenset[str] = frozenset()  # after a start: test types that passed verification


@dataclass(frozen=True, kw_only=True)
class WarmUpResult:
    """Result of a warm-up load."""

    windows: Sequence[Window]
    seconds: float
    requests: int = 0
    worst_latency: float | None = None  # seconds


@dataclass(frozen=True, kw_only=True)
class TrialResult:
    """Result of a measured load."""

    trial: Trial
    busy: frozenset[Process] = frozenset()  # processes that used a CPU although they had no load


@dataclass(frozen=True, kw_only=True)
class Failed:
    """The start or the load failed."""

    gone: bool = False  # whether a started process has ended


@dataclass(frozen=True, kw_only=True)
class OutOfTime:
    """The run has no time for the step."""


StepResult: TypeAlias = Done | WarmUpResult | TrialResult | Failed | OutOfTime
Design: TypeAlias = Generator[Step, StepResult, None]
