"""The files of the order service's loads, beside samples.jsonl: orders.jsonl and order_capacities.jsonl."""

from dataclasses import dataclass
from pathlib import Path

from pydantic import Field

from harness.records.models import Errors, Gate, Latency, LatencyGoal, Outcome, Record, ServerUse, in_files
from harness.records.rates import lines_of

ORDERS, CAPACITIES = "orders.jsonl", "order_capacities.jsonl"


class OperationTimes(Record):
    """One operation of one use case in one load."""

    use_case: str
    operation: str
    due: int  # requests whose due time came
    answered: int  # with the status that is asked for
    errors: Errors
    latency: Latency | None  # from the due time to the last byte
    service: Latency | None = None  # from the sending to the last byte


class ArrivalTimes(Record):
    """One use case in one load: whole arrivals, from their coming to their last answer."""

    use_case: str
    due: int
    done: int
    latency: Latency | None


class OrderSample(Record):
    """One load of the order service at a factor in one replicate: open loop, Poisson arrivals of five use cases."""

    model_config = in_files(
        duration="duration_seconds",
        lag_p99="lag_p99_seconds",
        lag_max="lag_max_seconds",
        cpu_per_arrival="cpu_seconds_per_arrival",
    )

    id: str
    implementation: str
    block: int
    process: int
    factor: float  # of the arrivals a minute
    started_at: float  # epoch seconds
    command: tuple[str, ...] = ()
    duration: float  # seconds
    due: int  # arrivals
    done: int  # arrivals that went to their end, with good answers all the way
    failed: int  # ended by a bad answer or an error
    unfinished: int  # under way when the generator had waited long enough
    operations: tuple[OperationTimes, ...] = ()
    use_cases: tuple[ArrivalTimes, ...] = ()
    bytes: int = 0
    lag_p99: float | None = None  # seconds that the generator itself was late by
    lag_max: float | None = None
    cpu_per_arrival: float | None = None  # CPU seconds of the server / arrivals due
    database_cpu_seconds: float | None = None
    server: ServerUse | None = None
    generator_cpu_seconds: float = 0.0
    generator_threads: int = 1
    steal_share: float | None = None
    restarted: bool = False
    gates: tuple[Gate, ...] = ()

    @property
    def valid(self) -> bool:
        """True when no gate failed: its response times may be published."""
        return all(gate.outcome is not Outcome.FAIL for gate in self.gates)

    @property
    def database_cpu_per_arrival(self) -> float | None:
        """CPU seconds of PostgreSQL / arrivals due."""
        return self.database_cpu_seconds / self.due if self.database_cpu_seconds is not None and self.due else None

    @property
    def errors(self) -> Errors:
        """Of all operations."""
        return Errors(**{kind: sum(getattr(o.errors, kind) for o in self.operations) for kind in Errors.model_fields})

    @property
    def answered(self) -> int:
        """Good answers of all operations."""
        return sum(operation.answered for operation in self.operations)


class OrderCapacity(Record):
    """The highest factor at which one process met a goal for "create order", between two factors that were tried."""

    implementation: str
    block: int
    process: int = Field(default_factory=lambda data: int(data["block"]))
    goal: LatencyGoal
    factor: float | None  # the highest that met it; None: not one did
    above: float | None  # the lowest beyond it that missed the goal; None: not one did, ``factor`` is a lower bound
    decided: bool  # both are known, and as close as the profile asks
    loads: int  # that the search made or used


@dataclass(frozen=True, kw_only=True)
class OrderRecords:
    """What a run's folder holds of them, as far as it could be read; empty for a run without any."""

    samples: tuple[OrderSample, ...] = ()
    capacities: tuple[OrderCapacity, ...] = ()
    problems: tuple[str, ...] = ()  # one message for each line that could not be read


def read(folder: Path) -> OrderRecords:
    """Both files; a broken line, as a kill leaves it, is a problem and no error."""
    problems: list[str] = []
    return OrderRecords(
        samples=tuple(lines_of(folder / ORDERS, OrderSample, problems)),
        capacities=tuple(lines_of(folder / CAPACITIES, OrderCapacity, problems)),
        problems=tuple(problems),
    )
