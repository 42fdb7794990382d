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
    """An estimate of a quantity: the median over processes, with a confidence interval."""

    median: float
    low: float | None  # None if the variance between processes is unknown
    high: float | None
    processes: int
    values: tuple[float, ...]  # one value per process, in order of process number


class Ratio(Record):
    """A ratio of geometric means over common rounds, with its 95 % interval, such as ``1.12x [1.08, 1.17]``."""

    value: float
    low: float | None
    high: float | None


class RankInterval(Record):
    """The ranks that the data does not exclude, from ``low`` (the best) to ``high`` (the worst), 1-based."""

    low: int
    high: int

    @property
    def label(self) -> str:
        """The interval as text: ``2`` or ``2–3``."""
        return str(self.low) if self.low == self.high else f"{self.low}–{self.high}"


class Standing(Record):
    """Estimate, position and tie group of a row. Tie groups are numbered from 1, best first."""

    estimate: Estimate
    position: int  # position in the order of point estimates, 1-based
    rank: RankInterval
    tie_group: int
    to_reference: Ratio | None  # ratio of this row to the baseline
    to_best: Ratio | None  # ratio of this row to the best row of the table


class ClosedLoopLatency(Record):
    """Latency of a closed loop at the row's load, in seconds."""

    mean: Annotated[Estimate, Field(alias="mean_seconds")]
    # Percentiles that too few requests exceeded are omitted.
    percentiles: Annotated[dict[str, Estimate], Field(alias="percentiles_seconds")]
    maximum: Annotated[float, Field(alias="maximum_seconds")]  # the slowest request in all processes


class Row(Record):
    """An implementation in a table."""

    implementation: str
    load: Load | None = None  # load at which the row was measured; None if it was not measured
    throughput: Annotated[Standing | None, Field(alias="requests_per_second")] = None
    cpu_per_request: Annotated[Standing | None, Field(alias="cpu_seconds_per_request")] = None
    rss_peak: Annotated[float | None, Field(alias="rss_peak_bytes")] = None  # median over processes
    startup_time: Annotated[float | None, Field(alias="startup_time_seconds")] = None  # median over processes
    errors: int = 0  # sum over all trials of the row
    flags: tuple[str, ...] = ()  # flags of validity checks, "not warmed up", "provisional", ...
    ranked: bool = True
    reason: str = ""  # why the row is not ranked, for example "verification failed" or "missing"
    trials: int = 0
    dropped: int = 0  # number of trials that validity checks excluded
    checks: int = 0  # number of checks in the most thorough verification; 0 if unknown
    responses_checked: int = 0  # number of checked responses under load, in all trials of the test type
    latency: ClosedLoopLatency | None = None
    # Medians over processes.
    response_time: Annotated[float | None, Field(alias="response_time_seconds")] = None  # None if pipelined
    throughput_per_memory: Annotated[float | None, Field(alias="requests_per_second_per_megabyte")] = None
    threads: float | None = None  # maximum number of threads at the same time
    # CPU per request, divided by the smallest CPU per request of an implementation with the limit tag.
    cpu_to_floor: Annotated[float | None, Field(alias="cpu_seconds_per_request_to_floor")] = None


class Table(Record):
    """The ranking of a test type at a load, or at the best load of each implementation if ``load`` is None."""

    test_type: str
    load: Load | None
    rows: tuple[Row, ...]  # ranked rows by throughput, best first; then unranked rows


class TestTypeRanking(Record):
    """All tables of a test type."""

    __test__ = False  # prevents pytest from collecting the class

    test_type: str
    headline: Table
    tables: tuple[Table, ...]  # one table per load

    @property
    def is_scenario(self) -> bool:
        """True if the test type's loads are scenarios, that is, arrivals of use cases."""
        return any(isinstance(table.load, Scenario) for table in (self.headline, *self.tables))


class Score(Record):
    """The geometric mean of ratios to the baseline over the scored test types; higher is better.

    ``throughput`` compares the implementation's requests/s with the baseline's. ``cpu`` divides the baseline's CPU per
    request by the implementation's.
    """

    implementation: str
    throughput: Standing | None  # None if a scored test type is missing
    cpu: Standing | None
    ratios: dict[str, float]  # test type -> throughput relative to the baseline
    missing: tuple[str, ...]


class RatePoint(Record):
    """An implementation's latency at a share of the throughput, or at a rate common to all implementations."""

    purpose: Literal["share", "common"]
    share: float | None  # relative to the closed-loop throughput of each process
    rate: Annotated[float, Field(alias="requests_per_second_asked")]  # median over processes
    percentiles: Annotated[dict[str, Estimate], Field(alias="percentiles_seconds")]  # from the intended send time
    # Maximum over all valid trials. With more trials, the maximum tends to be larger.
    maximum: Annotated[float | None, Field(alias="maximum_seconds")]
    flags: tuple[str, ...] = ()


class GoalRow(Record):
    """An implementation's capacity at the latency goal, and its latency at several rates."""

    implementation: str
    capacity: Standing | None  # requests/s, or the factor of a scenario
    above: float | None  # lowest rate or factor above the capacity that missed the goal; median over processes
    closed_loop: Annotated[float | None, Field(alias="closed_loop_requests_per_second")] = None  # median over processes
    ranked: bool = True
    reason: str = ""
    flags: tuple[str, ...] = ()
    points: tuple[RatePoint, ...] = ()  # in order of the rate


class LatencyTable(Record):
    """A test type's ranking by the capacity at a latency goal."""

    test_type: str
    goal: LatencyGoal
    rows: tuple[GoalRow, ...]  # ranked rows, best first, then unranked rows


class ScenarioPoint(Record):
    """An implementation's response times for an operation of a use case, at a load factor."""

    factor: float
    use_case: str
    operation: str  # empty for the whole use case, from the due time to the last response
    percentiles: Annotated[dict[str, Estimate], Field(alias="percentiles_seconds")]  # from the due time
    answered: int  # number of responses in all processes
    failed: int


class ScenarioRow(Row):
    """A row in a scenario table. Each arrival counts as a request."""

    response: Annotated[Standing | None, Field(alias="response_seconds")]  # median of the ranked operation
    # Percentiles of the ranked operation.
    percentiles: Annotated[dict[str, Estimate], Field(alias="percentiles_seconds")]
    # The field has no default. A ranking.json with the field's old name is thus invalid, so readers compute it again.
    cpu_per_request: Annotated[Standing | None, Field(alias="cpu_seconds_per_request")]
    database_cpu_per_arrival: Annotated[Estimate | None, Field(alias="database_cpu_seconds_per_arrival")]


class ScenarioTable(Record):
    """The ranking of a scenario at a load factor, by the response time of the ranked operation."""

    factor: float
    rows: tuple[ScenarioRow, ...]  # ranked rows, best first, then unranked rows


class ScenarioResults(Record):
    """Results of a scenario: tables by factor, capacities at the latency goal, and response times of all operations."""

    tables: tuple[ScenarioTable, ...]  # in order of the factor
    goal: LatencyGoal | None = None
    # Capacities as factors of the scenario: ranked rows, best first, then unranked rows.
    capacities: tuple[GoalRow, ...] = ()
    points: dict[str, tuple[ScenarioPoint, ...]] = Field(default_factory=dict)  # implementation -> points


class Ranking(Record):
    """The ranking of a run."""

    run_id: str
    scoring_version: int = SCORING_VERSION
    reference: str | None
    confidence: float = 0.95
    leading: Quantity = "throughput"  # metric by which the summary orders implementations
    test_types: dict[str, TestTypeRanking] = Field(default_factory=dict)
    overall: tuple[Score, ...] = ()
    latency: dict[str, LatencyTable] = Field(default_factory=dict)  # test type -> table, for loads at given rates
    orders: ScenarioResults | None = None  # None for a run without a scenario
    noise_floor: NoiseFloor | None = None
    notes: tuple[str, ...] = ()  # sentences about the whole ranking


class Effect(Record):
    """The ratio of run B to run A for a metric of a cell, and the verdict."""

    ratio: Ratio | None  # B / A; None if A or B has no value
    verdict: Verdict  # for CPU per request, "faster" means that B uses less CPU


class CellComparison(Record):
    """A cell of run B compared with the same cell of run A."""

    implementation: str
    test_type: str
    load: Load
    throughput: Effect
    cpu_per_request: Effect
    reason: str = ""  # why the cell is missing, with the run: "B: verification failed"
    only_in: Literal["", "A", "B"] = ""  # the run that planned the cell, if the other run did not


class Comparison(Record):
    """Run B compared with run A, cell by cell."""

    run_a: str
    run_b: str
    threshold: float
    interleaved: bool  # A and B were measured in the same rounds
    across: tuple[str, ...] = ()  # conditions in which the runs differ; only runs with equal conditions are comparable
    confidence: float = 0.95
    cells: tuple[CellComparison, ...]
    noise_floor: NoiseFloor | None = None  # the larger noise floor of the two runs
    notes: tuple[str, ...] = ()
