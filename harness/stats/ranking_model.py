"""Models of rankings and comparisons, as displayed by reports and the dashboard."""

from typing import Annotated, Literal

from pydantic import Field

from harness.records.loads import Load, Scenario
from harness.records.machine_record import NoiseFloor
from harness.records.measurements import LatencyGoal
from harness.records.record import Record
from harness.records.verdicts import Verdict

SCORING_VERSION = 6


Quantity = Literal["cpu", "throughput"]


class Estimate(Record):
    """A quantity of a cell: the median over its processes, with the interval of its typical value."""

    median: float
    low: float | None  # None if the variance between processes is unknown
    high: float | None
    processes: int
    values: tuple[float, ...]  # a value for each process, in the order of process numbers


class Ratio(Record):
    """A ratio with its 95 % interval, such as ``1.12x [1.08, 1.17]``.

    The ratio compares geometric means over common rounds, so it can differ slightly from the ratio of medians.
    """

    value: float
    low: float | None
    high: float | None


class RankInterval(Record):
    """Ranks that the data does not exclude; ``low`` is the best and ``high`` the worst (1-based, inclusive)."""

    low: int
    high: int

    @property
    def label(self) -> str:
        """The interval as text: ``2`` or ``2–3``."""
        return str(self.low) if self.low == self.high else f"{self.low}–{self.high}"


class Standing(Record):
    """Estimate, position and tie group of a row for a quantity. Tie groups are numbered from 1, best first."""

    estimate: Estimate
    position: int  # position in the order of point estimates, 1-based
    rank: RankInterval
    tie_group: int
    to_reference: Ratio | None  # this / baseline
    to_best: Ratio | None  # this / best of the table


class ClosedLoopLatency(Record):
    """Service times of a closed loop at the row's load, in seconds."""

    mean: Annotated[Estimate, Field(alias="mean_seconds")]
    # Only percentiles with enough requests.
    percentiles: Annotated[dict[str, Estimate], Field(alias="percentiles_seconds")]
    maximum: Annotated[float, Field(alias="maximum_seconds")]  # the slowest request in all processes


class Row(Record):
    """An implementation in a table."""

    implementation: str
    load: Load | None = None  # load at which the figures were measured; None if there are no figures
    throughput: Annotated[Standing | None, Field(alias="requests_per_second")] = None
    cpu_per_request: Annotated[Standing | None, Field(alias="cpu_seconds_per_request")] = None
    rss_peak: Annotated[float | None, Field(alias="rss_peak_bytes")] = None  # median over processes
    startup_time: Annotated[float | None, Field(alias="startup_time_seconds")] = None  # median over processes
    errors: int = 0  # sum over all trials of the row
    flags: tuple[str, ...] = ()  # from validity checks, or for example "not warmed up" or "provisional"
    ranked: bool = True
    reason: str = ""  # why the row is not ranked, for example "verification failed" or "missing"
    trials: int = 0
    dropped: int = 0  # number of trials that a validity check excluded
    latency: ClosedLoopLatency | None = None
    # Medians over processes.
    response_time: Annotated[float | None, Field(alias="response_time_seconds")] = None  # None: pipelined
    throughput_per_memory: Annotated[float | None, Field(alias="requests_per_second_per_megabyte")] = None
    threads: float | None = None  # maximum number at the same time


class Table(Record):
    """The ranking of a test type at a load, or at each implementation's best load if ``load`` is None."""

    test_type: str
    load: Load | None
    rows: tuple[Row, ...]  # ranked rows by throughput, best first; then unranked rows


class TestTypeRanking(Record):
    """All tables of a test type."""

    __test__ = False  # prevents pytest from collecting the class

    test_type: str
    headline: Table
    tables: tuple[Table, ...]  # a table for each planned load

    @property
    def is_scenario(self) -> bool:
        """True if the test type was measured under arrivals of use cases."""
        return any(isinstance(table.load, Scenario) for table in (self.headline, *self.tables))


class Score(Record):
    """The geometric mean of ratios to the baseline over the scored test types; higher is better.

    ``throughput`` is the ratio of requests/s to the baseline. ``cpu`` is the ratio of the baseline's CPU per request to
    the implementation's.
    """

    implementation: str
    throughput: Standing | None  # None if a scored test type is missing
    cpu: Standing | None
    ratios: dict[str, float]  # test type -> throughput relative to the baseline
    missing: tuple[str, ...]


class RatePoint(Record):
    """An implementation at a rate: a share of its throughput, or the same rate for all implementations."""

    purpose: Literal["share", "common"]
    share: float | None  # relative to the closed-loop throughput of each process
    rate: Annotated[float, Field(alias="requests_per_second_asked")]  # median over processes
    percentiles: Annotated[dict[str, Estimate], Field(alias="percentiles_seconds")]  # from the intended send time
    # Maximum over all valid loads; it grows with their number.
    maximum: Annotated[float | None, Field(alias="maximum_seconds")]
    flags: tuple[str, ...] = ()


class GoalRow(Record):
    """Capacity of an implementation at the latency goal, and its latency over load."""

    implementation: str
    capacity: Standing | None  # requests/s, or the factor of a scenario
    above: float | None  # lowest rate or factor that missed the goal; median over processes
    closed_loop: Annotated[float | None, Field(alias="closed_loop_requests_per_second")] = None  # median over processes
    ranked: bool = True
    reason: str = ""
    flags: tuple[str, ...] = ()
    points: tuple[RatePoint, ...] = ()  # in order of the rate


class LatencyTable(Record):
    """A test type's ranking by the capacity at a latency goal."""

    test_type: str
    goal: LatencyGoal
    rows: tuple[GoalRow, ...]  # ranked rows with the best first, then unranked rows


class OrderPoint(Record):
    """Response times of an operation of a use case, for an implementation at a factor of the arrivals."""

    factor: float
    use_case: str
    operation: str  # empty for the whole use case, from the due time to the last response
    percentiles: Annotated[dict[str, Estimate], Field(alias="percentiles_seconds")]  # from the due time
    answered: int  # number of responses in all processes
    failed: int


class OrderRow(Row):
    """A row of the order service at a factor. Its requests are arrivals."""

    response: Annotated[Standing | None, Field(alias="response_seconds")]  # median of "create order"
    percentiles: Annotated[dict[str, Estimate], Field(alias="percentiles_seconds")]  # percentiles of "create order"
    # There is no default value, so that readers recompute a ranking.json that uses an older key.
    cpu_per_request: Annotated[Standing | None, Field(alias="cpu_seconds_per_request")]
    database_cpu_per_arrival: Annotated[Estimate | None, Field(alias="database_cpu_seconds_per_arrival")]


class OrderTable(Record):
    """The order service at one factor, by the response time of "create order"."""

    factor: float
    rows: tuple[OrderRow, ...]  # ranked rows with the best first, then unranked rows


class OrderResults(Record):
    """Results of the order service: tables by factor, capacity at the goal, and every operation."""

    tables: tuple[OrderTable, ...]  # in order of the factor
    goal: LatencyGoal | None = None
    # Capacities are factors of the scenario. Ranked rows are first, from best to worst, followed by unranked rows.
    capacities: tuple[GoalRow, ...] = ()
    points: dict[str, tuple[OrderPoint, ...]] = Field(default_factory=dict)  # implementation -> points


class Ranking(Record):
    """The ranking of one run."""

    run_id: str
    scoring_version: int = SCORING_VERSION
    reference: str | None
    confidence: float = 0.95
    leading: Quantity = "throughput"  # metric that leads the summary on this machine
    test_types: dict[str, TestTypeRanking] = Field(default_factory=dict)
    overall: tuple[Score, ...] = ()
    latency: dict[str, LatencyTable] = Field(default_factory=dict)  # test type -> table, for loads at given rates
    orders: OrderResults | None = None  # None for a run without the order service
    noise_floor: NoiseFloor | None = None
    notes: tuple[str, ...] = ()  # "one process of each: ...", ...


class Effect(Record):
    """Ratio and verdict of a metric of a cell, B relative to A."""

    ratio: Ratio | None  # B / A; None if a side has no figure
    verdict: Verdict  # "faster" means less CPU if the metric is CPU per request


class CellComparison(Record):
    """A cell of run B compared with the same cell of run A."""

    implementation: str
    test_type: str
    load: Load
    throughput: Effect
    cpu_per_request: Effect
    reason: str = ""  # why the cell is missing, with the run: "B: verification failed"


class Comparison(Record):
    """Run B compared with run A, cell by cell."""

    run_a: str
    run_b: str
    threshold: float
    interleaved: bool  # A and B were measured in the same rounds
    confidence: float = 0.95
    cells: tuple[CellComparison, ...]
    noise_floor: NoiseFloor | None = None  # the larger noise floor of the two runs
    notes: tuple[str, ...] = ()
