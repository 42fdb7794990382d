"""The steps that a design yields, and the results of steps."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from harness.records.loads import Load
from harness.records.measurements import Window
from harness.records.trial_record import Purpose, Trial, WarmUp


class Process(NamedTuple):
    """A fresh start of an implementation, with a fresh database."""

    implementation: str
    number: int  # number from 0


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A test type and a load on a process."""

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
    until: float = 1.0  # same meaning as in ``Measure``


@dataclass(frozen=True, kw_only=True)
class Measure:
    """Put load on a cell and record the trial."""

    cell: Cell
    seconds: float
    round: int = 0
    purpose: Purpose = "measure"
    share: float | None = None  # rate of the load as a share of the closed-loop throughput
    warm_up: WarmUp | None = None  # warm-up of the test type, recorded with the first trial that follows
    steady: bool | None = None  # whether the warm-up reached a steady state
    until: float = 1.0  # share of the run's time within which the load must end; above 1: no limit


@dataclass(frozen=True, kw_only=True)
class Rest:
    """Wait until the processes in ``quiet`` are idle. If ``quiet`` is empty, wait a fixed time."""

    seconds: float  # maximum time, or the fixed time
    quiet: tuple[Process, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Stop:
    """Verify a process once more, stop it, and record how it ended."""

    process: Process
    unreached: tuple[Cell, ...] = ()  # planned cells for which the run had no time


Step: TypeAlias = Start | Warm | Measure | Rest | Stop


@dataclass(frozen=True, kw_only=True)
class Done:
    """The step succeeded."""

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
    busy: frozenset[Process] = frozenset()  # processes that used a CPU although they had no load


@dataclass(frozen=True, kw_only=True)
class Failed:
    """The start or the load failed."""

    gone: bool = False  # whether the process, which had been started, has ended


@dataclass(frozen=True, kw_only=True)
class OutOfTime:
    """There is no time left for the step."""


StepResult: TypeAlias = Done | WarmUpResult | TrialResult | Failed | OutOfTime
Design: TypeAlias = Generator[Step, StepResult, None]
