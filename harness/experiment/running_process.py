"""The state of a process that is running."""

from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from harness.experiment.steps import Cell, Process
from harness.experiment.validity import IDLE_CPUS
from harness.plan.discovery import Implementation
from harness.records.loads import Load
from harness.records.verification_record import CheckResult, VerificationRecord
from harness.runtime import Database, Server
from harness.runtime.database.refusals import RefusalWatch

MIN_IDLE_SECONDS = 5.0  # minimum idle time before a busy check
# Number of consecutive busy checks after which a server counts as disturbing; at first, compilers may be active.
MAX_BUSY_CHECKS = 3


@dataclass
class RunningProcess:
    """A process from its start to its stop."""

    process: Process
    implementation: Implementation
    log: Path
    started_at: float  # epoch seconds of the start
    stack: ExitStack = field(default_factory=ExitStack)
    server: Server = field(init=False)
    database: Database = field(init=False)
    startup_time: float | None = None
    http_failures: tuple[CheckResult, ...] = ()  # failed checks of HTTP, which affect every test type
    verdicts: dict[str, VerificationRecord] = field(default_factory=dict)  # verdict by test type
    reasons: list[str] = field(default_factory=list)  # reasons why the process counts as failed
    # Cells whose measurement was attempted and yielded no trial.
    failed_loads: dict[Cell, None] = field(default_factory=dict)
    unreached: tuple[Cell, ...] = ()  # planned cells for which the run had no time
    reported_causes: set[object] = field(default_factory=set)
    refusal_watch: RefusalWatch | None = None  # monitors refused connections to PostgreSQL
    # Responses per second in the latest load, by test type and load.
    rates: dict[tuple[str, Load], float] = field(default_factory=dict)
    loaded_at: float = 0.0  # monotonic seconds at the end of the latest load
    idle_seconds: float = 0.0  # idle time since the latest busy check
    idle_cpu_seconds: float = 0.0
    busy_checks: int = 0  # number of consecutive checks that found the process busy

    def disturbs(self, cpus: float, seconds: float) -> bool:
        """Add idle time. Return whether the process keeps using a CPU although it has no load.

        Args:
            cpus: CPUs that the process used.
            seconds: Length of the idle time.
        """
        self.idle_seconds += seconds
        self.idle_cpu_seconds += cpus * seconds
        if self.idle_seconds >= MIN_IDLE_SECONDS:
            busy = self.idle_cpu_seconds / self.idle_seconds > IDLE_CPUS
            self.idle_seconds = self.idle_cpu_seconds = 0.0
            self.busy_checks = self.busy_checks + 1 if busy else 0
        return self.busy_checks >= MAX_BUSY_CHECKS

    def response_bytes(self, cell: Cell) -> tuple[float, float] | None:
        """Return the smallest and the largest size of a verified response under a cell's load, in bytes."""
        queries = cell.load.queries
        return self.verdicts[cell.test_type].response_bytes.get("" if queries is None else str(queries))
