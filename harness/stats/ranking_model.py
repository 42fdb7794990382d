"""Data models of the rankings and comparisons that reports and the dashboard display."""

from typing import Annotated, Literal

from pydantic import Field

from harness.records.loads import Load, Scenario
from harness.records.measurements import LatencyGoal
from harness.records.record import Record
from harness.records.run_info import NoiseFloor
from harness.records.verdicts import Verdict

SCORING_VERSION = 6


Quantity = Literal["cpu", "throughput"]


class Estimate(Record):
    """The median of a metric over processes, with a confidence interval."""

    median: float  # median across processes, in SI units
    low: float | None  # lower end of the interval; None if the variance between processes is unknown
    high: float | None  # upper end of the interval; None if unknown
    processes: int  # number of processes
    values: tuple[float, ...]  # one value per process, in order of process number


class Ratio(Record):
    """A ratio of geometric means over common rounds, with a 95 % interval, for example ``1.12x [1.08, 1.17]``."""

    value: float  # ratio
    low: float | None  # lower end of the interval; None if unknown
    high: float | None  # upper end of the interval; None if unknown


class RankInterval(Record):
    """The ranks that the data does not exclude, from ``low`` (the best) to ``high`` (the worst), 1-based."""

    low: int  # best possible rank
    high: int  # worst possible rank

    @property
    def label(self) -> str:
        """The interval as text: ``2`` or ``2–3``."""
        return str(self.low) if self.low == self.high else f"{self.low}–{self.high}"


class Standing(Record):
    """A row's estimate, rank and tie group. Tie groups are numbered from 1, best first."""

    estimate: Estimate  # median and interval of the row's metric
    position: int  # position in the order of point estimates, 1-based
    rank: RankInterval  # possible ranks
    tie_group: int  # tie group number
    to_reference: Ratio | None  # ratio of this row to the baseline; None if the table lacks the baseline
    to_best: Ratio | None  # ratio of this row to the best row in the table


class ClosedLoopLatency(Record):
    """Latency of a closed loop at the row's load, in seconds."""

    mean: Annotated[Estimate, Field(alias="mean_seconds")]  # mean latency
    # Percentile -> latency. A percentile is omitted if too few requests were slower.
    percentiles: Annotated[dict[str, Estimate], Field(alias="percentiles_seconds")]
    maximum: Annotated[float, Field(alias="maximum_seconds")]  # latency of the slowest request across all processes


class Row(Record):
    """A row of a ranking table, with the results of an implementation."""

    implementation: str  # implementation name
    load: Load | None = None  # load at which the row was measured; None if it was not measured
    throughput: Annotated[Standing | None, Field(alias="requests_per_second")] = None  # successful responses per second
    # Server's CPU time per response.
    cpu_per_request: Annotated[Standing | None, Field(alias="cpu_seconds_per_request")] = None
    # Maximum resident memory (median across processes).
    rss_peak: Annotated[float | None, Field(alias="rss_peak_bytes")] = None
    # Time from start to the first successful response (median across processes).
    startup_time: Annotated[float | None, Field(alias="startup_time_seconds")] = None
    errors: int = 0  # total number of errors in the row's trials
    flags: tuple[str, ...] = ()  # flags of validity checks, and other flags such as "not warmed up" and "provisional"
    ranked: bool = True  # whether the row is ranked
    reason: str = ""  # why the row is not ranked, for example "verification failed" or "missing"
    trials: int = 0  # number of trials, including excluded trials
    dropped: int = 0  # number of trials that validity checks excluded
    checks: int = 0  # number of checks in the most thorough verification; 0 if unknown
    responses_checked: int = 0  # total number of responses checked under load in the test type's trials
    latency: ClosedLoopLatency | None = None  # latency in a closed loop; None if unknown
    # Mean response time (median across processes); None if requests are pipelined.
    response_time: Annotated[float | None, Field(alias="response_time_seconds")] = None
    # Requests per second per megabyte of memory (median across processes).
    throughput_per_memory: Annotated[float | None, Field(alias="requests_per_second_per_megabyte")] = None
    threads: float | None = None  # maximum number of threads (median across processes)
    # CPU per request, divided by the lowest CPU per request of the other implementations tagged `limit`.
    cpu_to_floor: Annotated[float | None, Field(alias="cpu_seconds_per_request_to_floor")] = None


class Table(Record):
    """The ranking of a test type at a load, or at the best load of each implementation if ``load`` is None."""

    test_type: str  # test type name
    load: Load | None  # load of all rows; None if each row is at its best load
    rows: tuple[Row, ...]  # ranked rows by throughput, best first; then unranked rows


class TestTypeRanking(Record):
    """All tables of a test type."""

    __test__ = False  # prevents pytest from collecting the class

    test_type: str  # test type name
    group: str = ""  # group of test types that has a separate score; empty if the test type counts in the overall score
    headline: Table  # table that reports show by default and that the overall score uses
    tables: tuple[Table, ...]  # a table per load

    @property
    def is_scenario(self) -> bool:
        """True if the test type's loads are scenarios, in which customers arrive at given rates."""
        return any(isinstance(table.load, Scenario) for table in (self.headline, *self.tables))


class Score(Record):
    """The geometric mean of ratios to the baseline over the scored test types; higher is better.

    ``throughput`` compares the implementation's requests/s with the baseline's. ``cpu`` divides the baseline's CPU per
    request by the implementation's.
    """

    implementation: str  # implementation name
    throughput: Standing | None  # score by throughput; None if a scored test type is missing
    cpu: Standing | None  # score by CPU per request; None if a scored test type is missing
    ratios: dict[str, float]  # test type -> throughput relative to the baseline
    missing: tuple[str, ...]  # scored test types without a result


class RatePoint(Record):
    """An implementation's latency in an open loop at a given rate."""

    # Whether the rate is a share of each process's throughput ("share") or the same for all implementations ("common").
    purpose: Literal["share", "common"]
    share: float | None  # rate, relative to the closed-loop throughput of each process; None for a common rate
    rate: Annotated[float, Field(alias="requests_per_second_asked")]  # intended rate (median across processes)
    # Percentile -> latency from the intended send time.
    percentiles: Annotated[dict[str, Estimate], Field(alias="percentiles_seconds")]
    # Maximum latency over all valid trials. It tends to grow with the number of trials.
    maximum: Annotated[float | None, Field(alias="maximum_seconds")]
    flags: tuple[str, ...] = ()  # validity check flags


class GoalRow(Record):
    """An implementation's capacity at the latency goal, and the latency at several rates."""

    implementation: str  # implementation name
    capacity: Standing | None  # capacity in requests/s or, for a scenario, as a load factor
    # Lowest rate (or factor) that is above the capacity and missed the goal (median across processes).
    above: float | None
    # Closed-loop throughput (median across processes).
    closed_loop: Annotated[float | None, Field(alias="closed_loop_requests_per_second")] = None
    ranked: bool = True  # whether the row is ranked
    reason: str = ""  # why the row is not ranked
    flags: tuple[str, ...] = ()  # remarks, such as "lower bound" and "provisional"
    points: tuple[RatePoint, ...] = ()  # latency at each rate, in ascending order of the rate


class LatencyTable(Record):
    """A test type's ranking by capacity at a latency goal."""

    test_type: str  # test type name
    goal: LatencyGoal  # latency goal that defines the capacity
    rows: tuple[GoalRow, ...]  # ranked rows, best first, then unranked rows


class ScenarioPoint(Record):
    """An implementation's response times for an operation of a use case, at a load factor."""

    factor: float  # factor by which the base arrival rates are multiplied
    use_case: str  # use case name
    operation: str  # operation name; empty for the whole use case, from its due time to its last response
    # Percentile -> response time, measured from the time when the request was due.
    percentiles: Annotated[dict[str, Estimate], Field(alias="percentiles_seconds")]
    # Number of successful responses (or, for a whole use case, of complete arrivals) across all processes.
    answered: int
    # Number of due requests without a successful response (or, for a whole use case, of incomplete arrivals).
    failed: int


class ScenarioRow(Row):
    """A row in a scenario table. Each arrival counts as a request."""

    # Median response time of the ranked operation, for example "create order".
    response: Annotated[Standing | None, Field(alias="response_seconds")]
    # Percentile -> response time of the ranked operation.
    percentiles: Annotated[dict[str, Estimate], Field(alias="percentiles_seconds")]
    # Server's CPU time per due arrival. The field has no default, so a ranking.json that contains the old field name is
    # invalid, and readers recompute the ranking.
    cpu_per_request: Annotated[Standing | None, Field(alias="cpu_seconds_per_request")]
    # PostgreSQL's CPU time per arrival that was due; None if unknown.
    database_cpu_per_arrival: Annotated[Estimate | None, Field(alias="database_cpu_seconds_per_arrival")]


class ScenarioTable(Record):
    """The ranking of a scenario at a load factor, by the response time of the ranked operation."""

    factor: float  # factor by which the base arrival rates are multiplied
    rows: tuple[ScenarioRow, ...]  # ranked rows, best first, then unranked rows


class ScenarioResults(Record):
    """Results of a scenario: tables by factor, capacities at the latency goal, and response times of all operations."""

    tables: tuple[ScenarioTable, ...]  # tables in ascending order of the factor
    goal: LatencyGoal | None = None  # latency goal of the capacity search; None if there was no search
    # Capacities as load factors: ranked rows, best first, then unranked rows.
    capacities: tuple[GoalRow, ...] = ()
    points: dict[str, tuple[ScenarioPoint, ...]] = Field(default_factory=dict)  # implementation -> points


class Ranking(Record):
    """The ranking of a run, which is the content of ranking.json."""

    run_id: str  # run id
    scoring_version: int = SCORING_VERSION  # version of the ranking method
    reference: str | None  # baseline that ratios and scores refer to
    confidence: float = 0.95  # confidence level of the intervals
    leading: Quantity = "throughput"  # metric by which the summary orders implementations
    test_types: dict[str, TestTypeRanking] = Field(default_factory=dict)  # test type -> ranking
    overall: tuple[Score, ...] = ()  # overall scores, best first
    groups: dict[str, tuple[Score, ...]] = Field(default_factory=dict)  # group of test types -> scores, best first
    latency: dict[str, LatencyTable] = Field(default_factory=dict)  # test type -> latency table of the open loops
    orders: ScenarioResults | None = None  # results of a scenario; None for a run without a scenario
    noise_floor: NoiseFloor | None = None  # noise floor of the machine; None if unknown
    notes: tuple[str, ...] = ()  # sentences about the whole ranking


class Effect(Record):
    """How a cell's metric changed from run A to run B: the ratio and the verdict."""

    ratio: Ratio | None  # B / A; None if A or B has no value
    verdict: Verdict  # for CPU per request, "faster" means that B uses less CPU


class CellComparison(Record):
    """A cell of run B compared with the same cell of run A."""

    implementation: str
    test_type: str
    load: Load
    throughput: Effect
    cpu_per_request: Effect
    reason: str = ""  # why a run has no result for the cell, for example "B: verification failed"
    only_in: Literal["", "A", "B"] = ""  # the run that planned the cell if the other run did not


class Comparison(Record):
    """A comparison of run B with run A, cell by cell."""

    run_a: str
    run_b: str
    threshold: float
    interleaved: bool  # whether A and B were measured in the same rounds
    across: tuple[str, ...] = ()  # conditions in which the runs differ; only runs with equal conditions are comparable
    confidence: float = 0.95
    cells: tuple[CellComparison, ...]
    noise_floor: NoiseFloor | None = None  # the larger noise floor of the two runs
    notes: tuple[str, ...] = ()
