"""What the ranking says: pure data, rendered by report/ and the dashboard."""

from typing import Literal

from pydantic import Field

from harness.records.models import LatencyBasis, LatencyGoal, Load, NoiseFloor, Record, in_files

SCORING_VERSION = 3


class Estimate(Record):
    """A quantity of a cell: the median over replicates with its 95 % interval."""

    median: float
    low: float | None  # None with fewer than two replicates
    high: float | None
    replicates: int
    values: tuple[float, ...]  # one per replicate, in block order
    blocks: tuple[int, ...] = ()  # of these values


class Ratio(Record):
    """An effect size with its 95 % interval (read as ``1.12x [1.08, 1.17]``).

    It is the geometric mean of the replicates' ratios, which can differ slightly from the ratio of the two medians. The
    simultaneous interval excludes 1 just where the table's ranks take the two for different (but for the noise floor).
    """

    value: float
    low: float | None
    high: float | None
    simultaneous_low: float | None = None
    simultaneous_high: float | None = None


class LogMean(Record):
    """What ratios of a row are made of, so that any of them can be recomputed: on natural logarithms.

    With two rows of a table whose basis is not "paired": exp(difference of ``mean`` ± quantile x scale x root of the
    sum of ``squared_error``); quantile and scale from ``freedom`` as ``rank.contrasts.approximation`` says.
    """

    mean: float
    squared_error: float | None
    freedom: float | None


class Processes(Record):
    """The two components of variance of a row measured in turns, as standard deviations of logarithms."""

    processes: int
    windows: int
    within: float | None  # of a window
    between: float | None  # of a process; None where there is one only
    text: str  # what its interval holds for, where that is less than the implementation


class Interval(Record):
    """Bounds in the metric's unit."""

    low: float
    high: float


class RankInterval(Record):
    """Ranks that the data does not exclude: ``low`` is the best, ``high`` the worst (1-based, inclusive)."""

    low: int
    high: int

    @property
    def label(self) -> str:
        """``2`` or ``2–3``."""
        return str(self.low) if self.low == self.high else f"{self.low}–{self.high}"


class Standing(Record):
    """One metric of one row: its estimate, place and tie group. ``tie_group`` numbers start at 1, best first."""

    estimate: Estimate
    position: int  # order of the point estimates, 1-based
    rank: RankInterval
    tie_group: int
    to_reference: Ratio | None  # this / reference implementation
    to_best: Ratio | None  # this / best of the table
    log_mean: LogMean | None = None
    comparison: Interval | None = None  # to draw beside ranks: rows that are tied overlap, disjoint ones are decided
    components: Processes | None = None  # where it was measured in turns


class ClosedLoopLatency(Record):
    """What requests took in a closed loop at the row's level, in seconds; ``basis`` is the same in all of a table."""

    model_config = in_files(mean="mean_seconds", percentiles="percentiles_seconds", maximum="maximum_seconds")

    basis: LatencyBasis
    mean: Estimate
    percentiles: dict[str, Estimate]  # "50", "90", "99", as far as enough requests were slower
    maximum: float  # the slowest request of all processes


class Row(Record):
    """One implementation in one table."""

    model_config = in_files(
        throughput="requests_per_second",
        cpu_per_request="cpu_seconds_per_request",
        rss_peak="rss_peak_bytes",
        first_answer="first_answer_seconds",
        response_time="response_time_seconds",
        throughput_per_memory="requests_per_second_per_megabyte",
    )

    implementation: str
    level: Load | None  # the level that the row's figures come from; None when it has none
    throughput: Standing | None
    cpu_per_request: Standing | None
    rss_peak: float | None  # bytes, median over replicates
    first_answer: float | None  # seconds, median over replicates
    errors: int  # over all its samples of this table, ranked or not
    words: tuple[str, ...] = ()  # gate words and "not steady", "provisional", ...
    ranked: bool = True
    reason: str = ""  # why it is not ranked: "verification failed", "missing", "contended in every attempt" ...
    samples: int = 0
    dropped: int = 0  # samples that a gate kept out
    latency: ClosedLoopLatency | None = None
    # Medians over replicates; by intervals and ranks: ./tfb report --metric.
    response_time: float | None = None  # seconds, mean of the closed loop; None where requests were pipelined
    throughput_per_memory: float | None = None  # requests/s per megabyte of the peak
    threads: float | None = None  # most seen at once


class Comparability(Record):
    """How the rows of a table are compared in one metric."""

    basis: Literal["moderated", "paired", "welch"]
    prior_freedom: float | None  # of the moderated variances; None where they are not, or when infinite: all the same
    pair_level: float  # p-value at which Holm's correction stopped: 1 - this is the simultaneous confidence of a pair
    text: str  # a sentence that says so


class Table(Record):
    """One ranking: a test type at a level, or at each implementation's best level (``level`` None)."""

    test_type: str
    level: Load | None
    rows: tuple[Row, ...]  # ranked rows by throughput, best first; then the unranked ones
    comparisons: int  # pairs that Holm's correction covers
    throughput_comparability: Comparability | None = None
    cpu_comparability: Comparability | None = None


class TestTypeRanking(Record):
    """All tables of a test type: the headline one first."""

    __test__ = False  # not a test class, whatever pytest thinks of its name

    test_type: str
    headline: Table
    levels: tuple[Table, ...]


class Score(Record):
    """Overall score: geometric mean of throughput ratios to the reference over the scored test types."""

    implementation: str
    score: float | None  # None when a scored test type is missing
    low: float | None
    high: float | None
    cpu_score: float | None  # geometric mean of reference CPU per request / own CPU per request
    ratios: dict[str, float]  # test type -> throughput ratio to the reference
    missing: tuple[str, ...]
    rank: RankInterval | None


class RatePoint(Record):
    """One implementation at one rate: a share of its own capacity, or the same rate for all."""

    model_config = in_files(
        rate="requests_per_second_asked",
        achieved_rate="requests_per_second_achieved",
        percentiles="percentiles_seconds",
        maximum="maximum_seconds",
        lag_p99="lag_p99_seconds",
    )

    purpose: Literal["share", "common"]
    share: float | None  # of the closed-loop throughput of each process
    rate: float  # requests/s asked for, median over replicates
    achieved_rate: float  # median over replicates
    percentiles: dict[str, Estimate]  # "99" -> seconds from the intended send time; only those with enough requests
    maximum: float | None  # seconds, the slowest request of all valid loads; it grows with their number
    lag_p99: float | None  # seconds that the generator was late by, median over replicates
    replicates: int  # whose load passed its gates
    dropped: int
    words: tuple[str, ...] = ()


class GoalRow(Record):
    """One implementation's capacity at the latency goal, and its latency over load."""

    model_config = in_files(
        capacity="capacity_requests_per_second",
        closed_loop="closed_loop_requests_per_second",
        above="missed_at_requests_per_second",
    )

    implementation: str
    capacity: Standing | None  # requests/s
    closed_loop: float | None  # requests/s, median over replicates
    above: float | None  # requests/s, median of the lowest rates that missed the goal
    ranked: bool = True
    reason: str = ""
    words: tuple[str, ...] = ()
    points: tuple[RatePoint, ...] = ()  # by rate


class LatencyTable(Record):
    """A test type's ranking by the capacity at a latency goal."""

    test_type: str
    goal: LatencyGoal
    rows: tuple[GoalRow, ...]  # ranked rows first, best first
    comparability: Comparability | None = None


class MachineLatency(Record):
    """What the machine itself takes: a load on a server that does nothing."""

    model_config = in_files(rate="requests_per_second", percentiles="percentiles_seconds", lag_p99="lag_p99_seconds")

    rate: float  # requests/s
    percentiles: dict[str, float]  # seconds from the intended send time
    lag_p99: float | None


class OrderPoint(Record):
    """What one implementation's customers waited for one operation of one use case, at one factor of the arrivals."""

    model_config = in_files(percentiles="percentiles_seconds")

    factor: float
    use_case: str
    operation: str  # empty: the whole arrival, from its coming to its last answer
    percentiles: dict[str, Estimate]  # "99" -> seconds from the due time; only those with enough requests
    answered: int  # of all replicates
    failed: int
    replicates: int


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
    words: tuple[str, ...] = ()


class OrderTable(Record):
    """The order service at one factor, by the response time of "create order"."""

    factor: float
    rows: tuple[OrderRow, ...]  # ranked rows first, best first


class OrderCapacityRow(Record):
    """The highest factor at which one implementation's "create order" met the goal."""

    implementation: str
    capacity: Standing | None  # factor of the arrivals
    above: float | None  # median of the lowest factors that missed it
    ranked: bool = True
    reason: str = ""
    words: tuple[str, ...] = ()


class Orders(Record):
    """The order service: its tables by factor, the capacity at a goal, and every operation of every use case."""

    tables: tuple[OrderTable, ...]  # by factor
    goal: LatencyGoal | None = None
    capacities: tuple[OrderCapacityRow, ...] = ()  # ranked rows first, best first
    points: dict[str, tuple[OrderPoint, ...]] = Field(default_factory=dict)  # by implementation


class Ranking(Record):
    """The ranking of one run."""

    run_id: str
    scoring_version: int = SCORING_VERSION
    reference: str | None
    confidence: float = 0.95
    test_types: dict[str, TestTypeRanking] = Field(default_factory=dict)
    overall: tuple[Score, ...] = ()
    latency: dict[str, LatencyTable] = Field(default_factory=dict)  # by test type; of a run with loads at given rates
    machine_latency: MachineLatency | None = None
    orders: Orders | None = None  # of a run with the order service
    noise_floor: NoiseFloor | None = None
    notes: tuple[str, ...] = ()  # "several implementations tied at the generator's ceiling", ...


class Effect(Record):
    """One metric of one cell, B relative to A."""

    ratio: Ratio | None  # b / a; None where one of them is missing
    p_value: float | None  # of no difference, before Holm's correction
    verdict: Literal["faster", "slower", "tie", "missing"]  # for CPU per request, "faster" is less CPU
    regression: bool  # slower, and by more than --fail-over


class CellComparison(Record):
    """One cell of run B against the same cell of run A."""

    implementation: str
    test_type: str
    level: Load
    throughput: Effect
    cpu_per_request: Effect
    reason: str = ""  # why it is missing, with the run's letter: "B: verification failed"


class Comparison(Record):
    """Run B against run A, cell by cell."""

    run_a: str
    run_b: str
    fail_over: float
    paired: bool  # blocks of A and B were interleaved, and compared within blocks
    confidence: float = 0.95
    cells: tuple[CellComparison, ...]
    noise_floor: NoiseFloor | None = None  # the larger one of the two runs
    notes: tuple[str, ...] = ()

    @property
    def regressions(self) -> tuple[CellComparison, ...]:
        """Cells that became worse by more than ``fail_over``."""
        return tuple(cell for cell in self.cells if cell.throughput.regression or cell.cpu_per_request.regression)
