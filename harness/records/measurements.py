"""Measurements of one load: requests, latencies, resource usage."""

from typing import Annotated, Literal

from pydantic import Field

from harness.records.record import EpochSeconds, Int64, Record

MAX_LOAD_SECONDS = 1e9  # of a load; a larger number in a file was never measured


class ErrorCounts(Record):
    """Errors by kind, as the generator counts them; none of them is throughput."""

    connect: Int64 = 0
    read: Int64 = 0
    write: Int64 = 0
    timeout: Int64 = 0
    status: Int64 = 0

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
    connections: Int64 | None  # established connections at the window's end


class ServerUsage(Record):
    """What the server's process tree used during a sample."""

    cpu_seconds: float
    rss_peak: Annotated[float | None, Field(alias="rss_peak_bytes")]
    wait_share: float | None  # run-queue wait / (wait + run), 0..1
    throttled_seconds: float | None  # cgroup CPU throttling; None where there is no cgroup of its own
    pids: tuple[Int64, ...] = ()
    threads_peak: Int64 | None = None  # most threads seen at once, at the ends of windows


class ClientUsage(Record):
    """One client's part of a load that several made together."""

    client: str
    connections: Int64
    threads: Int64
    requests: Int64
    bytes: Int64
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
    due: Int64  # requests whose due time came
    answered: Int64  # with the status that is asked for
    errors: ErrorCounts
    latency: Latency | None  # from the due time to the last byte
    service: Latency | None = None  # from the sending to the last byte


class UseCaseTimes(Record):
    """One use case in one scenario load: whole arrivals, from their coming to their last answer."""

    use_case: str
    due: Int64
    done: Int64
    latency: Latency | None


class Arrivals(Record):
    """What became of the arrivals of a scenario load: ``due`` is ``done`` + ``failed`` + ``unfinished``."""

    due: Int64
    done: Int64  # with good answers all the way
    failed: Int64  # ended by a bad answer or an error
    unfinished: Int64  # under way when the generator had waited long enough
    operations: tuple[OperationTimes, ...] = ()
    use_cases: tuple[UseCaseTimes, ...] = ()


class LoadCounts(Record):
    """What a load generator counts of a load.

    For a closed loop ``requests`` are answers that came while it was on. For an open loop and a scenario ``due``,
    ``answered`` and ``unfinished`` count requests whose intended send time came, those answered after its end included.
    """

    # As the generator measured it.
    duration: Annotated[float, Field(alias="duration_seconds", ge=0, le=MAX_LOAD_SECONDS)]
    requests: Int64  # completed responses of any status, within the duration
    bytes: Int64
    errors: ErrorCounts  # timeouts are those of requests that were never answered, too
    latency: Latency | None  # closed: service time; else from the intended send time; None if pipelined, or by wrk
    service: Latency | None = None  # open and scenario: from the actual send
    due: Int64 | None = None
    answered: Int64 | None = None
    unfinished: Int64 | None = None
    late: Int64 | None = None  # of those due: answered later than the profile's latency goal, badly, or never
    lag_p99: Annotated[float | None, Field(alias="lag_p99_seconds")] = None  # that the generator was late by
    sent_late: Int64 | None = None  # requests that it sent later than the validity check of its lag allows
    arrivals: Arrivals | None = None  # of a scenario


class LoadObservations(Record):
    """What was seen of a load beside what its generator counted."""

    started_at: EpochSeconds  # epoch seconds
    command: tuple[str, ...] = ()  # the generator's command line; paths of the repository are relative to its root
    server: ServerUsage
    database_cpu_seconds: float | None = None
    windows: tuple[Window, ...] = ()
    connections: Int64 | None = None  # most established ones seen while the load was on
    steal_share: float | None = None  # of the machine's CPU time, stolen by its hypervisor
    restarted: bool = False  # the server was another process afterwards
    responses_per_request: float | None = None  # by the bytes on the sockets; None where they cannot be seen
    idle_cpu_share: float | None = None  # CPUs that servers used which were up and not under load
    clients: tuple[ClientUsage, ...] = ()  # of a load from several machines
