"""Measurements during a load: request counts, latencies and resource usage."""

from typing import Annotated, Literal

from pydantic import Field

from harness.records.record import EpochSeconds, Int64, Record


class ErrorCounts(Record):
    """Errors by kind, as counted by the load generator. Failed requests do not count as throughput."""

    connect: Int64 = 0  # failed attempts to connect
    read: Int64 = 0  # responses that could not be read
    write: Int64 = 0  # requests that could not be written
    timeout: Int64 = 0  # requests without a response within the timeout
    status: Int64 = 0  # responses with an unexpected status code

    @property
    def total(self) -> int:
        """Total number of errors."""
        return self.connect + self.read + self.write + self.timeout + self.status


# Whether latency is measured from the actual or from the intended send time. See docs/method.md.
LatencyBasis = Literal["closed-loop, service time", "open-loop, intended send time"]


class Latency(Record):
    """A latency distribution in seconds."""

    basis: LatencyBasis  # whether latency is measured from the actual or from the intended send time
    mean: Annotated[float, Field(alias="mean_seconds")]  # mean latency
    stdev: Annotated[float, Field(alias="stdev_seconds")]  # standard deviation
    min: Annotated[float, Field(alias="min_seconds")]  # shortest latency
    max: Annotated[float, Field(alias="max_seconds")]  # longest latency
    # Percentile, "50" to "99.99" -> latency.
    percentiles: Annotated[dict[str, float], Field(alias="percentiles_seconds")]
    # Pairs (latency, number of requests), by ascending latency; empty if the histogram was too large to record.
    histogram: Annotated[tuple[tuple[float, int], ...], Field(alias="histogram_seconds")] = ()


class Window(Record):
    """Measurements taken during about one second of a load."""

    start: Annotated[float, Field(alias="start_seconds")]  # start of the window, from the start of the trial or warm-up
    duration: Annotated[float, Field(alias="duration_seconds")]  # window duration
    # Number of responses, estimated from the sockets' byte counters and the size of a response; None if unknown.
    responses: float | None
    server_cpu: Annotated[float | None, Field(alias="server_cpu_seconds")]  # CPU time of the server's process tree
    wait_share: float | None  # run-queue wait / (run-queue wait + CPU time) of the server's threads, 0 to 1
    rss: Annotated[float | None, Field(alias="rss_bytes")]  # server's resident memory at the end of the window
    connections: Int64 | None  # established connections to the server at the end of the window
    # CPU time of just-in-time compiler threads, included in ``server_cpu_seconds``; None if they are not identified.
    compiler_cpu: Annotated[float | None, Field(alias="compiler_cpu_seconds")] = None


class ServerUsage(Record):
    """Resources that the server's process tree used during a trial."""

    cpu_seconds: float  # CPU time of all processes
    # Maximum resident memory, sampled at the end of each window; None if unknown.
    rss_peak: Annotated[float | None, Field(alias="rss_peak_bytes")]
    wait_share: float | None  # run-queue wait / (run-queue wait + CPU time) of the server's threads, 0 to 1
    throttled_seconds: float | None  # time lost to CPU throttling by the cgroup; None if there is no quota
    pids: tuple[Int64, ...] = ()  # pids of the processes at the end of the trial
    threads_peak: Int64 | None = None  # maximum number of threads, sampled at the end of each window
    # Idle time, summed over the CPUs that the server may use; None in records of earlier versions.
    idle_seconds: float | None = None
    # CPU time of just-in-time compiler threads, included in ``cpu_seconds``; None if they are not identified.
    compiler_cpu_seconds: float | None = None


class ClientUsage(Record):
    """A client machine's share of a load that several machines generate together."""

    client: str  # client machine name
    connections: Int64  # number of connections that the client opened
    threads: Int64  # number of load generator threads
    requests: Int64  # number of responses that the client received
    bytes: Int64  # number of bytes that the client received
    # Duration of the load, measured by the client's load generator.
    duration: Annotated[float, Field(alias="duration_seconds")]
    cpu_seconds: float  # load generator's CPU time
    wait_seconds: float | None = None  # run-queue wait of the load generator's threads; None for wrk
    begun: Annotated[float, Field(alias="begun_seconds")]  # estimated start, in seconds after the first client's start
    # Uncertainty of ``begun_seconds`` in either direction.
    begun_within: Annotated[float, Field(alias="begun_within_seconds")]


class LatencyGoal(Record):
    """The largest acceptable latency at a percentile: ``p99=10ms`` limits the 99th percentile to 0.01 s."""

    percentile: float = Field(default=99.0, gt=0, lt=100)  # percentile of the response times, for example 99
    seconds: float = Field(default=0.010, gt=0)  # maximum response time at the percentile

    @property
    def late_share(self) -> float:
        """Share of requests that may exceed the goal, for example 0.01 for the 99th percentile."""
        return 1 - self.percentile / 100

    @property
    def label(self) -> str:
        """The goal as text, for example ``p99 ≤ 10 ms``."""
        return f"p{self.percentile:g} ≤ {self.seconds * 1e3:g} ms"


class OperationTimes(Record):
    """Results of an operation of a use case in a scenario."""

    use_case: str  # use case name
    operation: str  # operation name
    due: Int64  # requests that were due during the load
    answered: Int64  # responses with the expected status code
    errors: ErrorCounts  # failed requests, by kind of error
    latency: Latency | None  # latency, measured from the due time to the last byte
    service: Latency | None = None  # service time, measured from the actual send time to the last byte


class UseCaseTimes(Record):
    """Results of a use case in a scenario."""

    use_case: str  # use case name
    due: Int64  # arrivals that were due during the load
    done: Int64  # arrivals for which all responses had the expected status
    latency: Latency | None  # time from the arrival to the last response


class Arrivals(Record):
    """Results of the arrivals in a scenario: ``due`` is ``done`` + ``failed`` + ``unfinished``.

    An arrival is a simulated customer who carries out a use case.
    """

    due: Int64  # arrivals that were due during the load
    done: Int64  # arrivals for which all responses had the expected status
    failed: Int64  # arrivals that failed because of an unexpected status or an error
    unfinished: Int64  # arrivals still incomplete when the load generator stopped waiting for responses
    operations: tuple[OperationTimes, ...] = ()  # results of each operation
    use_cases: tuple[UseCaseTimes, ...] = ()  # results of each use case


class LoadCounts(Record):
    """A load generator's report.

    ``requests`` counts responses received during the load. For open loops and scenarios, ``due``, ``answered`` and
    ``unfinished`` count requests that were due during the load, even if the response arrived later.
    """

    duration: Annotated[float, Field(alias="duration_seconds", ge=0, le=1e9)]  # measured duration of the load
    requests: Int64  # number of responses with any status during the load
    bytes: Int64  # bytes received during the load
    errors: ErrorCounts  # errors by kind; timeouts include requests without a response
    latency: Latency | None  # latency of the responses; None for pipelined requests and for wrk
    service: Latency | None = None  # latency from the actual send time; None for a closed loop
    due: Int64 | None = None  # requests that were due during the load; None for a closed loop
    answered: Int64 | None = None  # due requests with a successful response; None for a closed loop
    # Due requests without a response when the load generator stopped waiting; None for a closed loop.
    unfinished: Int64 | None = None
    # Due requests that missed the latency goal, failed or got no response; None for a closed loop.
    late: Int64 | None = None
    # 99th percentile of the delay from a request's due time to its actual send time; None for a closed loop.
    lag_p99: Annotated[float | None, Field(alias="lag_p99_seconds")] = None
    # Requests whose send delay exceeds the limit of the ``generator-lag`` validity check; None for a closed loop.
    sent_late: Int64 | None = None
    arrivals: Arrivals | None = None  # results of the arrivals; None unless the load is a scenario
    # Negotiated TLS parameters -> number of connections; None without TLS. A key joins the TLS version, cipher suite,
    # group, ALPN protocol and kind of handshake (full or resumed).
    tls_sessions: dict[str, Int64] | None = None
    # HTTP/2 settings that the server sent: name -> lowest value on any connection.
    peer_settings: dict[str, Int64] | None = None


class LoadObservations(Record):
    """tfb's observations during a load, in addition to the load generator's counts."""

    started_at: EpochSeconds  # start time of the load, in seconds since 1970
    command: tuple[str, ...] = ()  # load generator's command line, with paths relative to the repository
    server: ServerUsage  # resources that the server used
    database_cpu_seconds: float | None = None  # CPU time of PostgreSQL; None if unknown
    windows: tuple[Window, ...] = ()  # measurements in windows of about one second
    connections: Int64 | None = None  # maximum number of established connections during the load
    steal_share: float | None = None  # share of the machine's CPU time that the hypervisor withheld
    restarted: bool = False  # whether the server's process was replaced during the load
    # Responses per request, estimated from the sockets' byte counters; None if unknown.
    responses_per_request: float | None = None
    # CPU usage, in CPUs, of the busiest server that was not under load; None if unknown or if no such server ran.
    idle_cpu_share: float | None = None
    # Each client machine's share of the load; empty unless several machines generate the load.
    clients: tuple[ClientUsage, ...] = ()
