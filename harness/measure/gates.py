"""The validity gates: whether a sample may be ranked, and which word stands beside it. Pure; docs/method.md has why.

What a sample does not know of itself comes in ``Expected``; None anywhere is unknown and passes its gate with no value.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.plan.profile import GateName, GateThresholds
from harness.records.models import ClientUse, Gate, Outcome, Sample

DELAYED_ACK_SECONDS = 0.04  # Linux's minimum delayed acknowledgement (TCP_DELACK_MIN = HZ / 25)
SAME_COUNT = 0.01  # latency samples within this of the requests: the mean is of real requests


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What a sample is held against beside the profile's thresholds."""

    response_bytes: tuple[float, float] | None  # smallest and largest verified response, headers included
    server_cpus: int


def asked_connections(sample: Sample) -> int:
    """Connections that the generator opens: the level's, cut to a multiple of its threads."""
    return sample.level.concurrency - sample.level.concurrency % max(sample.generator_threads, 1)


@dataclass(frozen=True)
class _Finding:
    """A gate before its outcome: ``breached`` None means that it could not be judged."""

    name: GateName
    breached: bool | None
    value: float | None
    threshold: float | None
    word: str


def judge(sample: Sample, expected: Expected, thresholds: GateThresholds) -> tuple[Gate, ...]:
    """One gate of each kind that the load can breach, in a fixed order.

    Those in ``thresholds.failing`` keep the sample out of the ranking.
    """
    errors = sample.errors.total
    throttled = sample.server.throttled_seconds
    findings = (
        _Finding("errors", errors > 0, float(errors), 0.0, "errors"),
        _connections(sample),
        _response_size(sample, expected, thresholds),
        _unasked(sample, thresholds),
        _overrun(sample, thresholds),
        _Finding("restarted", sample.restarted, float(sample.restarted), 0.0, "restarted"),
        _generator(sample, thresholds),
        *_elsewhere(sample, thresholds),
        _share("contended", sample.server.wait_share, thresholds.wait_share, "contended"),
        _share("throttled", _per_second(throttled, sample), thresholds.throttled_share, "throttled"),
        _share("steal", sample.steal_share, thresholds.steal_share, "steal"),
        _littles_law(sample, thresholds),
        _delayed_ack(sample, expected, thresholds),
        _share("idle-servers", sample.idle_cpu_share, thresholds.idle_cpu_share, "idle servers busy"),
        _probe(sample),
    )
    failing: set[str] = {"probe", *thresholds.failing, *(["contended"] if thresholds.wait_share_fails else [])}
    return tuple(_gate(finding, failing) for finding in findings)


def _gate(finding: _Finding, failing: set[str]) -> Gate:
    if not finding.breached:
        return Gate(name=finding.name, outcome=Outcome.PASS, value=finding.value, threshold=finding.threshold)
    outcome = Outcome.FAIL if finding.name in failing else Outcome.WARN
    return Gate(name=finding.name, outcome=outcome, value=finding.value, threshold=finding.threshold, word=finding.word)


def _share(name: GateName, value: float | None, limit: float, word: str) -> _Finding:
    return _Finding(name, None if value is None else value > limit, value, limit, word)


def _per_second(seconds: float | None, sample: Sample) -> float | None:
    return None if seconds is None or sample.duration <= 0 else seconds / sample.duration


def _connections(sample: Sample) -> _Finding:
    """Fewer established than asked for: wrk never retries a failed socket(), yet prints a rate and exits 0."""
    asked = asked_connections(sample)
    seen = sample.connections
    return _Finding(
        "connections",
        None if seen is None else seen < asked,
        None if seen is None else float(seen),
        float(asked),
        "connections",
    )


def _response_size(sample: Sample, expected: Expected, thresholds: GateThresholds) -> _Finding:
    """Bytes a request against the verified size: wrk checks no body, so a short or other answer shows only here.

    ``value`` is the deviation from the verified range, relative to its nearer end. Responses under way at the end are
    in the bytes and not in the requests, hence the allowance of one pipeline a connection.
    """
    limit = thresholds.response_size_tolerance
    if expected.response_bytes is None or sample.requests == 0:
        return _Finding("response-size", None, None, limit, "")
    smallest, largest = expected.response_bytes
    size = sample.bytes / sample.requests
    under_way = sample.level.concurrency * sample.level.pipeline / sample.requests
    if size < smallest:
        deviation, allowed = size / smallest - 1, limit
    elif size > largest:
        deviation, allowed = size / largest - 1, limit + under_way
    else:
        deviation, allowed = 0.0, limit
    return _Finding("response-size", abs(deviation) > allowed, deviation, allowed, "response size")


def _unasked(sample: Sample, thresholds: GateThresholds) -> _Finding:
    """Responses for each request: a server that answers twice, or unasked, is counted twice by wrk.

    Bytes that the sockets sent, by the size of a request, against bytes received, by the size of a response. Requests
    under way are not answered yet, so that an honest server is at or below 1; the allowance is for sizes that vary.
    """
    ratio, limit = sample.responses_per_request, 1 + thresholds.unasked_tolerance
    return _Finding("unasked", None if ratio is None else ratio > limit, ratio, limit, "unasked responses")


def _overrun(sample: Sample, thresholds: GateThresholds) -> _Finding:
    """Seconds beyond (or short of) the asked duration: a stalled or killed generator averages over another time."""
    allowed = max(thresholds.overrun_seconds, thresholds.overrun_share * sample.asked_duration)
    over = sample.duration - sample.asked_duration
    return _Finding("overrun", abs(over) > allowed, over, allowed, "overrun" if over > 0 else "cut short")


def _generator(sample: Sample, thresholds: GateThresholds) -> _Finding:
    """CPU share of the generator's threads: near 1 it measures itself, and its figure is a lower bound.

    Of several clients the busiest counts: one that is at its limit holds its connections back.
    """
    seconds = sample.duration * sample.generator_threads
    busy = sample.generator_cpu_seconds / seconds if seconds > 0 and not sample.clients else None
    each = [c.cpu_seconds / (c.duration * c.threads) for c in sample.clients if c.duration > 0 and c.threads > 0]
    return _share("generator-bound", max(each, default=busy), thresholds.generator_busy, "generator-bound")


def overlap(clients: Sequence[ClientUse]) -> float | None:
    """Share of the time from the first client's beginning to the last one's end in which all loaded; at least that.

    What is not known of a beginning counts against it. None for fewer than two clients.
    """
    if len(clients) < 2:
        return None
    together = min(c.begun - c.begun_within + c.duration for c in clients) - max(
        c.begun + c.begun_within for c in clients
    )
    longest = max(c.begun + c.duration for c in clients) - min(c.begun for c in clients)
    return max(0.0, together / longest) if longest > 0 else None


def _elsewhere(sample: Sample, thresholds: GateThresholds) -> tuple[_Finding, ...]:
    """Gates that only a load from other machines has."""
    clients = (_clients_apart(sample, thresholds), _client_lag(sample, thresholds)) if sample.clients else ()
    link = (_share("link", sample.link_share, thresholds.link_share, "link full"),)
    return (*clients, *(link if sample.link_share is not None else ()))


def _clients_apart(sample: Sample, thresholds: GateThresholds) -> _Finding:
    """Clients that did not load at the same time: their rates are of different loads, and do not add up."""
    share, limit = overlap(sample.clients), thresholds.clients_overlap
    return _Finding("clients-apart", None if share is None else share < limit, share, limit, "clients apart")


def _client_lag(sample: Sample, thresholds: GateThresholds) -> _Finding:
    """Run-queue wait of the client that waits most: a generator without a CPU sends late, and answers wait for it."""
    known = [(c.wait_seconds, c.wait_seconds + c.cpu_seconds) for c in sample.clients if c.wait_seconds is not None]
    share = max((wait / every for wait, every in known if every > 0), default=None)
    return _share("client-lag", share, thresholds.client_wait_share, "client lags")


def _littles_law(sample: Sample, thresholds: GateThresholds) -> _Finding:
    """Requests in flight, X · R, against the connections N that keep one in flight each (Little 1961).

    ``value`` is (X · R - N) / N. Judged only where the mean is of real requests: not pipelined, and as many latency
    samples as requests, which is when wrk's correction added none. Above N there would be more requests in flight than
    connections, which cannot be: the figures contradict each other. Below N the connections sat idle between answer and
    next request, waiting for the generator. Requests under way at the end are in no count, hence the allowance of one
    mean latency in the duration.
    """
    limit = thresholds.little_tolerance
    latency = sample.latency
    mean = latency.mean if latency else None
    count = sum(number for _, number in latency.histogram) if latency else None
    real = (
        mean is not None
        and count is not None
        and sample.requests > 0
        and sample.level.pipeline == 1
        and abs(count - sample.requests) <= SAME_COUNT * sample.requests
    )
    if mean is None or not real or sample.duration <= 0 or asked_connections(sample) == 0:
        return _Finding("littles-law", None, None, limit, "")
    in_flight = sample.requests / sample.duration * mean
    deviation = in_flight / asked_connections(sample) - 1
    allowed = limit + mean / sample.duration
    return _Finding("littles-law", abs(deviation) > allowed, deviation, allowed, "Little's law")


def _delayed_ack(sample: Sample, expected: Expected, thresholds: GateThresholds) -> _Finding:
    """Nagle against delayed ACK: every connection answers once in 40 ms while the server idles.

    A server that waits for a CPU is not idle, however little it got of one.
    ``value`` is throughput / (connections · pipeline / 0.04 s) - 1.
    """
    limit = thresholds.delayed_ack_tolerance
    if sample.duration <= 0 or expected.server_cpus <= 0 or asked_connections(sample) == 0:
        return _Finding("delayed-ack", None, None, limit, "")
    signature = asked_connections(sample) * sample.level.pipeline / DELAYED_ACK_SECONDS
    deviation = sample.requests / sample.duration / signature - 1
    idle = sample.server.cpu_seconds / (sample.duration * expected.server_cpus) < thresholds.delayed_ack_idle
    idle = idle and (sample.server.wait_share is None or sample.server.wait_share <= thresholds.wait_share)
    return _Finding("delayed-ack", abs(deviation) <= limit and idle, deviation, limit, "delayed ACK")


def _probe(sample: Sample) -> _Finding:
    """What the probe saw while the load was on: answers that verification refuses."""
    bad = sum(failure.outcome is Outcome.FAIL for failure in sample.probe_failures)
    return _Finding("probe", bad > 0, float(bad), 0.0, "wrong answers")
