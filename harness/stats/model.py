"""What the ranking says: pure data, rendered by report/ and the dashboard."""

from typing import Literal

from pydantic import Field

from harness.records.models import LatencyGoal, Load, NoiseFloor, Record, in_files

SCORING_VERSION = 4


Quantity = Literal["cpu", "throughput"]


class Estimate(Record):
    """A quantity of a cell: the median over its processes with an interval of its typical value."""

    median: float
    low: float | None  # None where nothing says how much processes differ
    high: float | None
    processes: int
    values: tuple[float, ...]  # one per process, in the order of their numbers


class Ratio(Record):
    """An effect size with its 95 % interval (read as ``1.12x [1.08, 1.17]``).

    It is of geometric means over the rounds that both stand in, which can differ slightly from the ratio of medians.
    """

    value: float
    low: float | None
    high: float | None


class RankInterval(Record):
    """Ranks that the data does not exclude: ``low`` is the best, ``high`` the worst (1-based, inclusive)."""

    low: int
    high: int

    @property
    def label(self) -> str:
        """``2`` or ``2–3``."""
        return str(self.low) if self.low == self.high else f"{self.low}–{self.high}"


class Standing(Record):
    """One quantity of one row: its estimate, place and tie group. ``tie_group`` numbers start at 1, best first."""

    estimate: Estimate
    position: int  # order of the point estimates, 1-based
    rank: RankInterval
    tie_group: int
    to_reference: Ratio | None  # this / reference implementation
    to_best: Ratio | None  # this / best of the table


class ClosedLoopLatency(Record):
    """Service times of a closed loop at the row's load, in seconds."""

    model_config = in_files(mean="mean_seconds", percentiles="percentiles_seconds", maximum="maximum_seconds")

    mean: Estimate
    percentiles: dict[str, Estimate]  # "50", "90", "99", as far as enough requests were slower
    maximum: float  # the slowest request of all processes


class Row(Record):
    """One implementation in one table."""

    model_config = in_files(
        throughput="requests_per_second",
        cpu_per_request="cpu_seconds_per_request",
        rss_peak="rss_peak_bytes",
        startup_time="startup_time_seconds",
        response_time="response_time_seconds",
        throughput_per_memory="requests_per_second_per_megabyte",
    )

    implementation: str
    load: Load | None  # that the row's figures come from; None when it has none
    throughput: Standing | None
    cpu_per_request: Standing | None
    rss_peak: float | None  # bytes, median over processes
    startup_time: float | None  # seconds, median over processes
    errors: int  # over all its trials of this table, ranked or not
    flags: tuple[str, ...] = ()  # of gates, and "not warmed up", "provisional", ...
    ranked: bool = True
    reason: str = ""  # why it is not ranked: "verification failed", "missing", "kept out by its gates: ..."
    trials: int = 0
    dropped: int = 0  # trials that a gate kept out
    latency: ClosedLoopLatency | None = None
    # Medians over processes; by intervals and ranks: ./tfb report --metric.
    response_time: float | None = None  # seconds, mean of the closed loop; None where requests were pipelined
    throughput_per_memory: float | None = None  # requests/s per megabyte of the peak
    threads: float | None = None  # most seen at once


class Table(Record):
    """One ranking: a test type at a load, or at each implementation's best load (``load`` None)."""

    test_type: str
    load: Load | None
    rows: tuple[Row, ...]  # ranked rows by throughput, best first; then the unranked ones


class TestTypeRanking(Record):
    """All tables of a test type: the headline one first."""

    __test__ = False  # not a test class, whatever pytest thinks of its name

    test_type: str
    headline: Table
    tables: tuple[Table, ...]  # of single loads, as planned


class Score(Record):
    """Overall score: geometric mean of ratios to the reference over the scored test types; more is better.

    ``throughput`` counts requests/s over the reference's, ``cpu`` the reference's CPU per request over its own.
    """

    implementation: str
    throughput: Standing | None  # None when a scored test type is missing
    cpu: Standing | None
    ratios: dict[str, float]  # test type -> throughput ratio to the reference
    missing: tuple[str, ...]


class RatePoint(Record):
    """One implementation at one rate: a share of its own capacity, or the same rate for all."""

    model_config = in_files(
        rate="requests_per_second_asked",
        percentiles="percentiles_seconds",
        maximum="maximum_seconds",
        lag_p99="lag_p99_seconds",
    )

    purpose: Literal["share", "common"]
    share: float | None  # of the closed-loop throughput of each process
    rate: float  # requests/s asked for, median over processes
    percentiles: dict[str, Estimate]  # "99" -> seconds from the intended send time; only those with enough requests
    maximum: float | None  # seconds, the slowest request of all valid loads; it grows with their number
    lag_p99: float | None  # seconds that the generator was late by, median over processes
    processes: int  # whose load passed its gates
    dropped: int
    flags: tuple[str, ...] = ()


class GoalRow(Record):
    """One implementation's capacity at the latency goal, and its latency over load."""

    model_config = in_files(closed_loop="closed_loop_requests_per_second")

    implementation: str
    capacity: Standing | None  # requests/s, or the factor of the arrivals
    above: float | None  # median of the lowest rates, or factors, that missed the goal
    closed_loop: float | None = None  # requests/s, median over processes
    ranked: bool = True
    reason: str = ""
    flags: tuple[str, ...] = ()
    points: tuple[RatePoint, ...] = ()  # by rate


class LatencyTable(Record):
    """A test type's ranking by the capacity at a latency goal."""

    test_type: str
    goal: LatencyGoal
    rows: tuple[GoalRow, ...]  # ranked rows first, best first


class OrderPoint(Record):
    """What one implementation's customers waited for one operation of one use case, at one factor of the arrivals."""

    model_config = in_files(percentiles="percentiles_seconds")

    factor: float
    use_case: str
    operation: str  # empty: the whole arrival, from its coming to its last answer
    percentiles: dict[str, Estimate]  # "99" -> seconds from the due time; only those with enough requests
    answered: int  # of all processes
    failed: int
    processes: int


class OrderRow(Record):
    """One implementation of the order service at one factor."""

    model_config = in_files(
        response="response_seconds",
        percentiles="percentiles_seconds",
        cpu_per_arrival="cpu_seconds_per_arrival",
        database_cpu_per_arrival="database_cpu_seconds_per_arrival",
        rss_peak="rss_peak_bytes",
    )

    implementation: str
    response: Standing | None  # seconds, the median of "create order" from the due time; less is better
    percentiles: dict[str, Estimate]  # of the same
    cpu_per_arrival: Standing | None  # CPU seconds of the server
    database_cpu_per_arrival: Estimate | None  # CPU seconds of PostgreSQL
    rss_peak: float | None  # bytes
    ranked: bool = True
    reason: str = ""
    flags: tuple[str, ...] = ()


class OrderTable(Record):
    """The order service at one factor, by the response time of "create order"."""

    factor: float
    rows: tuple[OrderRow, ...]  # ranked rows first, best first


class Orders(Record):
    """The order service: its tables by factor, the capacity at a goal, and every operation of every use case."""

    tables: tuple[OrderTable, ...]  # by factor
    goal: LatencyGoal | None = None
    capacities: tuple[GoalRow, ...] = ()  # in factors of the arrivals; ranked rows first, best first
    points: dict[str, tuple[OrderPoint, ...]] = Field(default_factory=dict)  # by implementation


class Ranking(Record):
    """The ranking of one run."""

    run_id: str
    scoring_version: int = SCORING_VERSION
    reference: str | None
    confidence: float = 0.95
    leading: Quantity = "throughput"  # which of the two figures leads the answer on this machine
    test_types: dict[str, TestTypeRanking] = Field(default_factory=dict)
    overall: tuple[Score, ...] = ()
    latency: dict[str, LatencyTable] = Field(default_factory=dict)  # by test type; of a run with loads at given rates
    orders: Orders | None = None  # of a run with the order service
    noise_floor: NoiseFloor | None = None
    notes: tuple[str, ...] = ()  # "several implementations tied at the generator's ceiling", ...


class Effect(Record):
    """One metric of one cell, B relative to A."""

    ratio: Ratio | None  # b / a; None where one of them is missing
    verdict: Literal["faster", "slower", "tie", "missing"]  # for CPU per request, "faster" is less CPU


class CellComparison(Record):
    """One cell of run B against the same cell of run A."""

    implementation: str
    test_type: str
    load: Load
    throughput: Effect
    cpu_per_request: Effect
    reason: str = ""  # why it is missing, with the run's letter: "B: verification failed"


class Comparison(Record):
    """Run B against run A, cell by cell."""

    run_a: str
    run_b: str
    fail_over: float
    interleaved: bool  # processes and rounds of A and B stood beside each other, and are compared within these
    confidence: float = 0.95
    cells: tuple[CellComparison, ...]
    noise_floor: NoiseFloor | None = None  # the larger one of the two runs
    notes: tuple[str, ...] = ()


class MetricRow(Record):
    """One implementation by any one metric: its standing, or the reason why it has none."""

    implementation: str
    standing: Standing | None = None
    reason: str = ""


class MetricTable(Record):
    """One table, best first; ``test_type`` and ``load`` are None where the metric is of a process as a whole."""

    test_type: str | None
    load: Load | None
    rows: tuple[MetricRow, ...]


class MetricRanking(Record):
    """A run ranked by one metric."""

    run_id: str
    metric: str
    title: str
    unit: str
    confidence: float
    tables: tuple[MetricTable, ...]
