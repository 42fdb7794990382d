"""The records of a run: what is written to results/<run-id>/ and read by rank, report and dashboard.

All numbers are SI floats (seconds, bytes, requests per second). An unknown is ``None``, never 0 or -1. Keys that a
model does not know are ignored; a run of another schema is refused.

In files a figure is called with its unit, its alias; the page's documents call it as the field here is called.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from harness.redaction import redacted_json

SCHEMA_VERSION = 3
LONGEST_SECONDS = 1e9  # of a load; a larger number in a file was never measured
# JSON has integers of any length, and Python cannot divide those of more than 308 digits.
Integer = Annotated[int, Field(ge=-(2**63), lt=2**63)]
Moment = Annotated[float, Field(ge=-1e11, le=1e11)]  # epoch seconds; a calendar knows no later ones


class Record(BaseModel):
    """Base of all records: frozen, unknown keys ignored, every number finite."""

    # Built when used. JSON has no infinity and no NaN: one in a record would be written as null.
    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True, validate_by_name=True, allow_inf_nan=False)

    def recorded(self, indent: int | None = None) -> str:
        """Return the JSON that stands in files and that commands print, without declared secrets."""
        return redacted_json(self.model_dump_json(indent=indent, by_alias=True))


class Outcome(StrEnum):
    """How a check or a gate came out."""

    PASS = "pass"  # noqa: S105 - an outcome, not a password
    WARN = "warn"
    FAIL = "fail"


def worst(outcomes: Iterable[Outcome]) -> Outcome:
    """Fail over warn over pass; a pass when there are none."""
    found = set(outcomes)
    return next((outcome for outcome in (Outcome.FAIL, Outcome.WARN) if outcome in found), Outcome.PASS)


class Closed(Record):
    """A closed loop: each connection keeps ``depth`` requests under way and sends the next when one is answered."""

    kind: Literal["closed"] = "closed"
    connections: Integer
    queries: Integer | None = None  # rows that each request asks for; None where the test type has no such count
    depth: Integer = 1  # requests under way on each connection; above 1 they are pipelined

    @property
    def label(self) -> str:
        """The load in a word: ``c64``, ``c64 q20``, ``c256 p16``."""
        return _label(self)


class Open(Record):
    """An open loop: Poisson arrivals at a rate, whatever the server does; latency from the intended send time."""

    kind: Literal["open"] = "open"
    rate: float = Field(gt=0)  # requests per second
    connections: Integer  # that the requests go over
    queries: Integer | None = None
    depth: Literal[1] = 1

    @property
    def label(self) -> str:
        """The load in a word: ``1000/s c64``."""
        return f"{self.rate:.0f}/s {_label(self)}"


class Scenario(Record):
    """Poisson arrivals of use cases, each a sequence of dependent requests, at ``factor`` times their base rates."""

    kind: Literal["scenario"] = "scenario"
    factor: float = Field(gt=0)
    connections: Integer  # at most
    queries: None = None
    depth: Literal[1] = 1

    @property
    def label(self) -> str:
        """The load in a word: ``x8``."""
        return f"x{self.factor:g}"


Load = Annotated[Closed | Open | Scenario, Field(discriminator="kind")]


def _label(load: Closed | Open) -> str:
    parts = [f"c{load.connections}"]
    if load.queries is not None:
        parts.append(f"q{load.queries}")
    if load.depth > 1:
        parts.append(f"p{load.depth}")
    return " ".join(parts)


# ---- verification ----------------------------------------------------------------------------------------------------


class CheckResult(Record):
    """One check of one response or state: what was expected, what came, and the rule that it enforces."""

    check: str  # kebab-case name of the check, unique within the registry
    rule: str  # paragraph of docs/requirements.md, e.g. "query.3"
    outcome: Outcome
    message: str = ""  # one sentence; empty on a pass
    expected: str | None = None
    actual: str | None = None
    waived: bool = False  # a warning that would be a failure under this project's own rules


class VerificationRecord(Record):
    """All check results of one implementation x test type in one process; the last one written counts."""

    implementation: str
    test_type: str
    process: Integer
    thorough: bool  # True in the first process; later ones check briefly
    outcome: Outcome
    results: tuple[CheckResult, ...]
    duration: Annotated[float, Field(alias="duration_seconds")]
    # Size of one response on the wire, headers included: the range that verified responses showed, at the level's query
    # count; bytes / requests of a sample is held against it. Keys: str(queries) or "" where the test has none.
    response_bytes: dict[str, tuple[float, float]] = Field(default_factory=dict)


# ---- measurement -----------------------------------------------------------------------------------------------------


class Errors(Record):
    """Errors by kind, as the generator counts them; none of them is throughput."""

    connect: Integer = 0
    read: Integer = 0
    write: Integer = 0
    timeout: Integer = 0
    status: Integer = 0

    @property
    def total(self) -> int:
        """All errors together."""
        return self.connect + self.read + self.write + self.timeout + self.status


# What a latency is measured from and to, and by whose account (docs/method.md).
LatencyBasis = Literal["closed-loop, service time", "open-loop, intended send time"]


class Latency(Record):
    """A latency distribution in seconds, with what kind of latency it is."""

    basis: LatencyBasis
    mean: Annotated[float, Field(alias="mean_seconds")]
    stdev: Annotated[float, Field(alias="stdev_seconds")]
    min: Annotated[float, Field(alias="min_seconds")]
    max: Annotated[float, Field(alias="max_seconds")]
    percentiles: Annotated[dict[str, float], Field(alias="percentiles_seconds")]  # "50" to "99.99"
    # (seconds, count), ascending; empty when it was too large to dump
    histogram: Annotated[tuple[tuple[float, int], ...], Field(alias="histogram_seconds")] = ()


class Window(Record):
    """About one second of a load: offsets from the start of the sample."""

    start: Annotated[float, Field(alias="start_seconds")]
    duration: Annotated[float, Field(alias="duration_seconds")]
    responses: float | None  # from the sockets' byte counters / the verified response size; None where unreadable
    server_cpu: Annotated[float | None, Field(alias="server_cpu_seconds")]  # of the server's process tree
    wait_share: float | None  # run-queue wait / (run-queue wait + on-CPU) of the server's threads, 0..1
    rss: Annotated[float | None, Field(alias="rss_bytes")]  # resident, at the window's end
    connections: Integer | None  # established connections at the window's end


class ServerUse(Record):
    """What the server's process tree used during a sample."""

    cpu_seconds: float
    rss_peak: Annotated[float | None, Field(alias="rss_peak_bytes")]
    wait_share: float | None  # run-queue wait / (wait + run), 0..1
    throttled_seconds: float | None  # cgroup CPU throttling; None where there is no cgroup of its own
    pids: tuple[Integer, ...] = ()
    threads_peak: Integer | None = None  # most threads seen at once, at the ends of windows


class Gate(Record):
    """One validity gate of a sample: ``fail`` keeps the sample out of the ranking, ``warn`` is a word in the table."""

    name: str  # "errors", "connections", "response-size", "overrun", "restarted", "generator-bound", "contended", ...
    outcome: Outcome
    value: float | None  # what was seen
    threshold: float | None  # what config/ allows
    word: str = ""  # the word shown in the table, empty on a pass


class WarmUp(Record):
    """What the warm-up of one test type showed."""

    duration: Annotated[float, Field(alias="duration_seconds")]
    requests: Integer
    steady: bool | None  # None: a fixed-time warm-up that does not decide
    seconds_to_steady: float | None
    worst_latency: Annotated[float | None, Field(alias="worst_latency_seconds")]  # while cold; None when pipelined
    windows: tuple[Window, ...] = ()


class ClientUse(Record):
    """One client's part of a load that several made together."""

    client: str
    connections: Integer
    threads: Integer
    requests: Integer
    bytes: Integer
    duration: Annotated[float, Field(alias="duration_seconds")]  # as its generator measured it
    cpu_seconds: float
    wait_seconds: float | None = None  # that its generator's threads were ready and had no CPU; wrk does not tell
    begun: Annotated[float, Field(alias="begun_seconds")]  # after the first client's word; the middle of what is known
    begun_within: Annotated[float, Field(alias="begun_within_seconds")]  # seconds on either side of that


class LatencyGoal(Record):
    """A latency that a share of the requests must not exceed: ``percentile`` 99 and 0.01 s is ``p99=10ms``."""

    percentile: float = Field(default=99.0, gt=0, lt=100)
    seconds: float = Field(default=0.010, gt=0)

    @property
    def late_share(self) -> float:
        """Share of the requests that may be slower: 0.01 for the 99th percentile."""
        return 1 - self.percentile / 100

    @property
    def label(self) -> str:
        """``p99 ≤ 10 ms``."""
        return f"p{self.percentile:g} ≤ {self.seconds * 1e3:g} ms"


class OperationTimes(Record):
    """One operation of one use case in one scenario load."""

    use_case: str
    operation: str
    due: Integer  # requests whose due time came
    answered: Integer  # with the status that is asked for
    errors: Errors
    latency: Latency | None  # from the due time to the last byte
    service: Latency | None = None  # from the sending to the last byte


class UseCaseTimes(Record):
    """One use case in one scenario load: whole arrivals, from their coming to their last answer."""

    use_case: str
    due: Integer
    done: Integer
    latency: Latency | None


class Arrivals(Record):
    """What became of the arrivals of a scenario load: ``due`` is ``done`` + ``failed`` + ``unfinished``."""

    due: Integer
    done: Integer  # with good answers all the way
    failed: Integer  # ended by a bad answer or an error
    unfinished: Integer  # under way when the generator had waited long enough
    operations: tuple[OperationTimes, ...] = ()
    use_cases: tuple[UseCaseTimes, ...] = ()


class TrialEvidence(Record):
    """What was looked at of the trial's own answers."""

    answers: Integer  # written out and judged
    of: Integer  # answers in all
    objections: tuple[CheckResult, ...] = ()  # of the checks, those that did not pass


Purpose = Literal["measure", "witness", "share", "common", "search"]
# measure: stands for its cell. witness: by the other generator, compared and not ranked. share, common: an open loop at
# a share of the process's own closed-loop throughput, or at a rate that all are given. search: for the capacity.


class Counts(Record):
    """What a load generator counts of a load.

    For a closed loop ``requests`` are answers that came while it was on. For an open loop and a scenario ``due``,
    ``answered`` and ``unfinished`` count requests whose intended send time came, those answered after its end included.
    """

    # As the generator measured it.
    duration: Annotated[float, Field(alias="duration_seconds", ge=0, le=LONGEST_SECONDS)]
    requests: Integer  # completed responses of any status, within the duration
    bytes: Integer
    errors: Errors  # timeouts are those of requests that were never answered, too
    latency: Latency | None  # closed: service time; else from the intended send time; None if pipelined, or by wrk
    service: Latency | None = None  # open and scenario: from the actual send
    due: Integer | None = None
    answered: Integer | None = None
    unfinished: Integer | None = None
    late: Integer | None = None  # of those due: answered later than the profile's latency goal, badly, or never
    lag_p99: Annotated[float | None, Field(alias="lag_p99_seconds")] = None  # that the generator was late by
    sent_late: Integer | None = None  # requests that it sent later than the gate of its lag allows
    arrivals: Arrivals | None = None  # of a scenario


class LoadObservations(Record):
    """What was seen of a load beside what its generator counted."""

    started_at: Moment  # epoch seconds
    command: tuple[str, ...] = ()  # the generator's command line; paths of the repository are relative to its root
    server: ServerUse
    database_cpu_seconds: float | None = None
    windows: tuple[Window, ...] = ()
    connections: Integer | None = None  # most established ones seen while the load was on
    steal_share: float | None = None  # of the machine's CPU time, stolen by its hypervisor
    restarted: bool = False  # the server was another process afterwards
    responses_per_request: float | None = None  # by the bytes on the sockets; None where they cannot be seen
    idle_cpu_share: float | None = None  # CPUs that servers used which were up and not under load
    clients: tuple[ClientUse, ...] = ()  # of a load from several machines


class Trial(Counts, LoadObservations):
    """What one load on one cell (implementation x test type x load) of one process showed: a line of trials.jsonl."""

    id: str
    implementation: str
    test_type: str
    load: Load
    process: Integer  # which fresh process of the implementation, from 0
    round: Integer = 0  # which visit of the cell in this process; all cells are visited once a round
    purpose: Purpose = "measure"
    share: float | None = None  # of the closed-loop throughput of the same process; None but for purpose "share"
    generator: str = "loadgen"  # or "wrk"
    asked_duration: Annotated[float, Field(alias="asked_duration_seconds")]
    throughput: Annotated[float, Field(alias="requests_per_second")]  # only 2xx; of a scenario whole arrivals
    cpu_per_request: Annotated[float | None, Field(alias="cpu_seconds_per_request")]  # of a scenario per arrival due
    generator_cpu_seconds: float
    generator_threads: Integer
    warm_up: WarmUp | None = None  # of this test type in this process; carried by the first trial after it
    steady: bool | None = None  # did the warm-up before it reach a steady state
    evidence: TrialEvidence | None = None  # None: by a generator that writes no answers out
    gates: tuple[Gate, ...] = ()
    link_share: float | None = None  # of the throughput that the links between clients and server showed before the run

    @property
    def rankable(self) -> bool:
        """True when no gate failed."""
        return all(gate.outcome is not Outcome.FAIL for gate in self.gates)

    def without_series(self) -> tuple[Self, int]:
        """Return the trial without windows and its own histograms, and the number of values that these have."""
        windows = (*self.windows, *(self.warm_up.windows if self.warm_up else ()))
        steps = sum(len(times.histogram) for times in (self.latency, self.service) if times)
        if not windows and not steps:
            return self, 0
        warm_up = self.warm_up and self.warm_up.model_copy(update={"windows": ()})
        shorter = self.without_histograms().model_copy(update={"windows": (), "warm_up": warm_up})
        return shorter, len(windows) * (len(Window.model_fields) + 1) + steps * 3

    def without_histograms(self) -> Self:
        """Return the trial without what its percentiles tell in fewer bytes."""
        shorter = {
            name: times.model_copy(update={"histogram": ()})
            for name in ("latency", "service")
            if (times := getattr(self, name)) and times.histogram
        }
        return self.model_copy(update=shorter)


class ProcessRecord(Record):
    """One fresh start of an implementation: a line of processes.jsonl."""

    implementation: str
    process: Integer
    started_at: Moment
    startup_time: Annotated[float | None, Field(alias="startup_time_seconds")]  # to the first good answer
    status: Literal["ok", "failed", "interrupted"]
    reason: str = ""
    log: str | None = None  # path relative to the run's folder
    trials: Integer = 0  # that it has written to trials.jsonl
    # Planned loads without a trial, by test type: loads that failed, and loads for which the run's time was up.
    failed_loads: dict[str, tuple[Load, ...]] = Field(default_factory=dict)
    unreached: dict[str, tuple[Load, ...]] = Field(default_factory=dict)


class Build(Record):
    """How an implementation was built."""

    status: Literal["ok", "failed", "skipped"]
    reason: str = ""
    duration: Annotated[float | None, Field(alias="duration_seconds")] = None
    log: str | None = None  # path relative to the run's folder
    commands: tuple[str, ...] = ()
    tools: dict[str, str] = Field(default_factory=dict)  # "java": "25.0.3 (/path)", as used
    image: str | None = None
    image_digest: str | None = None
    image_bytes: Integer | None = None
    stand_ins: tuple[str, ...] = ()  # base images that Debian with the toolchain stood in for


class ImplementationInfo(Record):
    """What benchmark_config.json says of an implementation, with how it was built."""

    name: str
    framework: str
    project: str = ""  # the framework that its file is of, whatever the entry calls its own
    language: str
    folder: str  # relative to the repository, e.g. frameworks/Java/resteasy
    display_name: str
    approach: str = ""
    classification: str = ""
    platform: str = ""
    webserver: str = ""
    database: str = ""
    orm: str = ""
    os: str = ""
    database_os: str = ""
    flavor: str = ""
    notes: str = ""
    versus: str = ""
    tags: tuple[str, ...] = ()
    maintainers: tuple[str, ...] = ()
    test_types: tuple[str, ...] = ()
    digest: str = ""  # of what benchmark_config.json says of it: a run is resumed only with the same
    rules: str = "tfb"  # by which it is verified: tfb or techempower
    allowed: tuple[str, ...] = ()  # privileges that it ran with beyond a container's usual ones
    build: Build | None = None


class Machine(Record):
    """Facts of the machine, and its grade: what would disturb a measurement."""

    hostname: str
    os: str
    kernel: str
    cpu_model: str
    cpus_online: Integer
    cpus_usable: tuple[Integer, ...]
    memory_bytes: Integer
    governor: str | None = None
    turbo: bool | None = None
    smt: bool | None = None
    virtualised: str | None = None
    nofile_soft: Integer | None = None
    nofile_hard: Integer | None = None
    load_average: float | None = None
    pressure_cpu: Annotated[float | None, Field(alias="pressure_cpu_percent")] = None  # PSI "some avg10", per cent
    steal_share: float | None = None
    cpu_quota: float | None = None  # CPUs that the container's quota allows
    grade: str = ""  # "A" quiet and fixed-clock .. "D" shared and busy
    concerns: tuple[str, ...] = ()


class NoiseFloor(Record):
    """The A/A difference of this machine and profile (``compare --copy``): no smaller one is called a difference."""

    implementation: str
    profile: str
    measured_at: Moment
    pairs: Integer
    throughput: Annotated[float, Field(alias="throughput_relative")]  # relative, e.g. 0.03
    cpu_per_request: Annotated[float, Field(alias="cpu_per_request_relative")]


class MachineSet(Record):
    """A set of machines (server, database, clients) that processes of a merged run were measured on."""

    name: str
    machine: Machine  # of the server
    runs: tuple[str, ...] = ()  # ids of its runs
    processes: tuple[Integer, ...] = ()  # of the merged run


class RoleMachine(Record):
    """A machine of a run on several, with what it does there."""

    role: str  # "server", "database", "client 1", ...
    name: str
    address: str  # that the other machines use
    engine: str  # version
    machine: Machine


class MachineLink(Record):
    """Between two roles' machines, measured by TCP before the run."""

    of: str
    to: str
    round_trip: Annotated[float, Field(alias="round_trip_seconds")]  # seconds, median
    throughput: Annotated[float, Field(alias="bytes_per_second")]  # bytes a second, towards ``to``


# complete: every cell was measured. incomplete: nothing failed, but time was up before some cells were tried.
# failed: something else kept cells from being measured. interrupted: --resume continues the run.
RunStatus = Literal["running", "complete", "incomplete", "failed", "interrupted"]


class RunInfo(Record):
    """run.json: what was asked, where, with what, and how it ended."""

    schema_version: Integer = Field(default=SCHEMA_VERSION, ge=SCHEMA_VERSION, le=SCHEMA_VERSION)
    run_id: str
    name: str
    environment: str
    status: RunStatus
    started_at: Moment
    completed_at: Moment | None = None
    command: tuple[str, ...]
    profile: str
    runtime: str
    design: str = "interleaved"  # in which order and how often cells are measured: docs/method.md
    generator: str = "loadgen"
    seed: Integer
    settings: dict[str, object]  # every resolved setting, for the record
    reference: str | None = None  # implementation that the overall score is relative to
    machine: Machine
    tools: dict[str, str]  # wrk, postgres, docker, python, harness revision ...
    revision: str | None = None  # git commit
    dirty: bool | None = None
    implementations: tuple[ImplementationInfo, ...]
    loads: dict[str, tuple[Load, ...]]  # test type -> planned loads
    # Implementation -> test type -> loads, of a run that measures some cells alone; empty: all of them.
    cells: dict[str, dict[str, tuple[Load, ...]]] = Field(default_factory=dict)
    processes_expected: Integer  # of each implementation
    processes_maximum: Integer
    noise_floor: NoiseFloor | None = None
    problems: tuple[str, ...] = ()
    sets: tuple[MachineSet, ...] = ()  # of a run of several deployments
    left_out: tuple[str, ...] = ()  # sentences: what an example that ships lacks
    machines: tuple[RoleMachine, ...] = ()  # of a run on several; ``machine`` is the server's
    links: tuple[MachineLink, ...] = ()  # between them


# ---- reading, and while a run goes on --------------------------------------------------------------------------------


class Problem(Record):
    """Something of a run that cannot be read: the file, and what is wrong with it."""

    file: str  # relative to the run's folder
    message: str


class Progress(Record):
    """progress.json: where a run in progress stands. Seconds; unknown is None."""

    status: str = "running"
    stage: str = "starting"
    process: Integer = 0  # of the implementation, counted from 1; 0 before the first
    round: Integer = 0  # of the latest trial, likewise
    implementation: str = ""
    test_type: str = ""
    level: str = ""
    elapsed: Annotated[float, Field(alias="elapsed_seconds")] = 0.0
    remaining: Annotated[float | None, Field(alias="remaining_seconds")] = None
    windows: tuple[Window, ...] = ()  # of the load that is on


@dataclass(frozen=True, kw_only=True)
class RunRecords:
    """Everything that a run's folder holds, as far as it could be read."""

    info: RunInfo
    trials: Sequence[Trial] = ()
    processes: Sequence[ProcessRecord] = ()
    verdicts: Sequence[VerificationRecord] = ()
    problems: tuple[str, ...] = ()  # one message for each file, key or line that could not be read
