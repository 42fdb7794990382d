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

MIN_IDLE_SECONDS = 5.0  # idle time for a busy check
MAX_BUSY_CHECKS = 3  # consecutive busy checks after which a server disturbs; compilers may be at work at first


@dataclass
class RunningProcess:
    """A process between start and stop."""

    process: Process
    implementation: Implementation
    log: Path
    started_at: float  # epoch seconds
    stack: ExitStack = field(default_factory=ExitStack)
    server: Server = field(init=False)
    database: Database = field(init=False)
    startup_time: float | None = None
    http_failures: tuple[CheckResult, ...] = ()  # failed checks of HTTP, which apply to every test type
    verdicts: dict[str, VerificationRecord] = field(default_factory=dict)  # by test type
    reasons: list[str] = field(default_factory=list)  # why the process counts as failed
    failed_loads: dict[Cell, None] = field(default_factory=dict)  # cells without a trial after an attempt
    unreached: tuple[Cell, ...] = ()  # planned cells that the run's time did not reach
    reported_causes: set[object] = field(default_factory=set)
    refusal_watch: RefusalWatch | None = None  # watches the connections to PostgreSQL
    rates: dict[tuple[str, Load], float] = field(default_factory=dict)  # latest responses per second
    loaded_at: float = 0.0  # monotonic seconds at the end of the latest load
    idle_seconds: float = 0.0  # since the latest busy check
    idle_cpu_seconds: float = 0.0
    busy_checks: int = 0  # consecutive

    def disturbs(self, cpus: float, seconds: float) -> bool:
        """Add idle time, and return whether the process keeps using a CPU while it has no load.

        Args:
            cpus: CPUs that the process has used.
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
        """Return the smallest and largest size of a verified response at a cell's load, in bytes."""
        queries = cell.load.queries
        return self.verdicts[cell.test_type].response_bytes.get("" if queries is None else str(queries))
