"""The validity gates: whether a sample may be ranked, and which word stands beside it. Pure; docs/method.md has why."""

from dataclasses import dataclass

from harness.request.profile import GateName, GateThresholds
from harness.results.records import Gate, Level, Outcome

DELAYED_ACK_SECONDS = 0.04  # Linux's minimum delayed acknowledgement (TCP_DELACK_MIN = HZ / 25)
SAME_COUNT = 0.01  # latency samples within this of the requests: the mean is of real requests


@dataclass(frozen=True, kw_only=True)
class SampleFacts:
    """What the gates of one sample are judged by; None is unknown and passes its gate with no value."""

    level: Level
    errors: int
    requests: int
    bytes: int
    asked_duration: float
    duration: float
    response_bytes: tuple[float, float] | None  # smallest and largest verified response, headers included
    connections: int | None  # most established connections seen while the load was on
    latency_mean: float | None  # seconds
    latency_samples: int | None  # sum of the histogram's counts; wrk's correction adds samples that never were
    generator_cpu_seconds: float
    generator_threads: int
    server_cpu_seconds: float
    server_cpus: int
    wait_share: float | None
    throttled_seconds: float | None
    steal_share: float | None
    restarted: bool

    @property
    def asked_connections(self) -> int:
        """Connections that wrk opens: the level's, cut to a multiple of its threads."""
        return self.level.concurrency - self.level.concurrency % max(self.generator_threads, 1)


@dataclass(frozen=True)
class _Finding:
    """A gate before its outcome: ``breached`` None means that it could not be judged."""

    name: GateName
    breached: bool | None
    value: float | None
    threshold: float | None
    word: str


def judge(facts: SampleFacts, thresholds: GateThresholds) -> tuple[Gate, ...]:
    """One gate of each kind, in a fixed order; those in ``thresholds.failing`` keep the sample out of the ranking."""
    findings = (
        _Finding("errors", facts.errors > 0, float(facts.errors), 0.0, "errors"),
        _connections(facts),
        _response_size(facts, thresholds),
        _overrun(facts, thresholds),
        _Finding("restarted", facts.restarted, float(facts.restarted), 0.0, "restarted"),
        _generator(facts, thresholds),
        _share("contended", facts.wait_share, thresholds.wait_share, "contended"),
        _share("throttled", _per_second(facts.throttled_seconds, facts), thresholds.throttled_share, "throttled"),
        _share("steal", facts.steal_share, thresholds.steal_share, "steal"),
        _littles_law(facts, thresholds),
        _delayed_ack(facts, thresholds),
    )
    failing: set[str] = {*thresholds.failing, *(["contended"] if thresholds.wait_share_fails else [])}
    return tuple(_gate(finding, failing) for finding in findings)


def _gate(finding: _Finding, failing: set[str]) -> Gate:
    if not finding.breached:
        return Gate(name=finding.name, outcome=Outcome.PASS, value=finding.value, threshold=finding.threshold)
    outcome = Outcome.FAIL if finding.name in failing else Outcome.WARN
    return Gate(name=finding.name, outcome=outcome, value=finding.value, threshold=finding.threshold, word=finding.word)


def _share(name: GateName, value: float | None, limit: float, word: str) -> _Finding:
    return _Finding(name, None if value is None else value > limit, value, limit, word)


def _per_second(seconds: float | None, facts: SampleFacts) -> float | None:
    return None if seconds is None or facts.duration <= 0 else seconds / facts.duration


def _connections(facts: SampleFacts) -> _Finding:
    """Fewer established than asked for: wrk never retries a failed socket(), yet prints a rate and exits 0."""
    asked = facts.asked_connections
    seen = facts.connections
    return _Finding(
        "connections",
        None if seen is None else seen < asked,
        None if seen is None else float(seen),
        float(asked),
        "connections",
    )


def _response_size(facts: SampleFacts, thresholds: GateThresholds) -> _Finding:
    """Bytes a request against the verified size: wrk checks no body, so a short or other answer shows only here.

    ``value`` is the deviation from the verified range, relative to its nearer end. Responses under way at the end are
    in the bytes and not in the requests, hence the allowance of one pipeline a connection.
    """
    limit = thresholds.response_size_tolerance
    if facts.response_bytes is None or facts.requests == 0:
        return _Finding("response-size", None, None, limit, "")
    smallest, largest = facts.response_bytes
    size = facts.bytes / facts.requests
    under_way = facts.level.concurrency * facts.level.pipeline / facts.requests
    if size < smallest:
        deviation, allowed = size / smallest - 1, limit
    elif size > largest:
        deviation, allowed = size / largest - 1, limit + under_way
    else:
        deviation, allowed = 0.0, limit
    return _Finding("response-size", abs(deviation) > allowed, deviation, allowed, "response size")


def _overrun(facts: SampleFacts, thresholds: GateThresholds) -> _Finding:
    """Seconds beyond (or short of) the asked duration: a stalled or killed generator averages over another time."""
    allowed = max(thresholds.overrun_seconds, thresholds.overrun_share * facts.asked_duration)
    over = facts.duration - facts.asked_duration
    return _Finding("overrun", abs(over) > allowed, over, allowed, "overrun" if over > 0 else "cut short")


def _generator(facts: SampleFacts, thresholds: GateThresholds) -> _Finding:
    """CPU share of the generator's threads: near 1 it measures itself, and its figure is a lower bound."""
    seconds = facts.duration * facts.generator_threads
    busy = facts.generator_cpu_seconds / seconds if seconds > 0 else None
    return _share("generator-bound", busy, thresholds.generator_busy, "generator-bound")


def _littles_law(facts: SampleFacts, thresholds: GateThresholds) -> _Finding:
    """Requests in flight, X · R, against the connections N that keep one in flight each (Little 1961).

    ``value`` is (X · R - N) / N. Judged only where the mean is of real requests: not pipelined, and as many latency
    samples as requests, which is when wrk's correction added none. Above N there would be more requests in flight than
    connections, which cannot be: the figures contradict each other. Below N the connections sat idle between answer and
    next request, waiting for the generator. Requests under way at the end are in no count, hence the allowance of one
    mean latency in the duration.
    """
    limit = thresholds.little_tolerance
    mean, count = facts.latency_mean, facts.latency_samples
    real = (
        mean is not None
        and count is not None
        and facts.requests > 0
        and facts.level.pipeline == 1
        and abs(count - facts.requests) <= SAME_COUNT * facts.requests
    )
    if mean is None or not real or facts.duration <= 0 or facts.asked_connections == 0:
        return _Finding("littles-law", None, None, limit, "")
    in_flight = facts.requests / facts.duration * mean
    deviation = in_flight / facts.asked_connections - 1
    allowed = limit + mean / facts.duration
    return _Finding("littles-law", abs(deviation) > allowed, deviation, allowed, "Little's law")


def _delayed_ack(facts: SampleFacts, thresholds: GateThresholds) -> _Finding:
    """Nagle against delayed ACK: every connection answers once in 40 ms while the server idles.

    A server that waits for a CPU is not idle, however little it got of one.
    ``value`` is throughput / (connections · pipeline / 0.04 s) - 1.
    """
    limit = thresholds.delayed_ack_tolerance
    if facts.duration <= 0 or facts.server_cpus <= 0 or facts.asked_connections == 0:
        return _Finding("delayed-ack", None, None, limit, "")
    signature = facts.asked_connections * facts.level.pipeline / DELAYED_ACK_SECONDS
    deviation = facts.requests / facts.duration / signature - 1
    idle = facts.server_cpu_seconds / (facts.duration * facts.server_cpus) < thresholds.delayed_ack_idle
    idle = idle and (facts.wait_share is None or facts.wait_share <= thresholds.wait_share)
    return _Finding("delayed-ack", abs(deviation) <= limit and idle, deviation, limit, "delayed ACK")
