"""Whether the latency of a load at a given rate may be published. Pure; docs/method.md has why."""

from harness.request.profile import GateThresholds, LatencyRules
from harness.results.records import Gate, Outcome, RateSample

CHANCE_SIGMAS = 3.1  # of a Poisson count above its mean: one in a thousand is further
FAILING = frozenset({"errors", "achieved-rate", "unfinished", "generator-lag", "restarted", "response-size"})


def judge(
    sample: RateSample,
    rules: LatencyRules,
    thresholds: GateThresholds,
    response_bytes: tuple[float, float] | None = None,
) -> tuple[Gate, ...]:
    """One gate of each kind, in a fixed order; those in ``FAILING`` keep the percentiles out."""
    errors = sample.errors.total - sample.unfinished  # those stand by themselves
    return (
        _gate("errors", errors > 0, float(errors), 0.0, "errors"),
        _achieved(sample, rules),
        _unfinished(sample, rules),
        _lag(sample, rules),
        _gate("restarted", sample.restarted, float(sample.restarted), 0.0, "restarted"),
        _size(sample, thresholds, response_bytes),
        _share("contended", sample.server.wait_share if sample.server else None, thresholds.wait_share, "contended"),
        _share("steal", sample.steal_share, thresholds.steal_share, "steal"),
    )


def saturated(sample: RateSample) -> bool:
    """Whether the server did not keep up: what it missed is its own, and decides against the rate."""
    return any(g.outcome is Outcome.FAIL and g.name in {"errors", "achieved-rate", "unfinished"} for g in sample.gates)


def measured_the_generator(sample: RateSample) -> bool:
    """Whether the load says nothing of the server, because the generator was late itself."""
    return any(gate.name == "generator-lag" and gate.outcome is Outcome.FAIL for gate in sample.gates)


def _gate(name: str, breached: bool | None, value: float | None, threshold: float | None, word: str) -> Gate:
    if not breached:
        return Gate(name=name, outcome=Outcome.PASS, value=value, threshold=threshold)
    outcome = Outcome.FAIL if name in FAILING else Outcome.WARN
    return Gate(name=name, outcome=outcome, value=value, threshold=threshold, word=word)


def _share(name: str, value: float | None, limit: float, word: str) -> Gate:
    return _gate(name, value is not None and value > limit, value, limit, word)


def _achieved(sample: RateSample, rules: LatencyRules) -> Gate:
    """Responses within the load against requests due in it; ``value`` is the shortfall, relative.

    Against those due, not the rate asked for: Poisson arrivals differ from it by chance. What is under way at the end
    is no shortfall, as far as there are connections for it: what waits for one is a backlog. By Little's law the median
    latency leaves ``mean`` requests under way on average, in a Poisson distribution; of a load of twenty requests, one
    is 5 %.
    """
    if sample.due <= 0 or sample.duration <= 0:
        return _gate("achieved-rate", True, None, rules.rate_tolerance, "no requests")
    short = 1 - sample.achieved_rate * sample.duration / sample.due
    under_way = 0.0
    if sample.latency:
        mean = sample.achieved_rate * sample.latency.percentiles.get("50", 0.0)
        under_way = mean + CHANCE_SIGMAS * mean**0.5 + 1  # bounds the 99.9 % quantile, for small means too
    allowed = rules.rate_tolerance + min(under_way, sample.level.concurrency) / sample.due
    return _gate("achieved-rate", short > allowed, short, allowed, "rate not achieved")


def _unfinished(sample: RateSample, rules: LatencyRules) -> Gate:
    share = sample.unfinished / sample.due if sample.due else None
    return _share("unfinished", share, rules.unfinished_share, "unfinished requests")


def _lag(sample: RateSample, rules: LatencyRules) -> Gate:
    """The generator's own lateness is part of the latency: ``value`` is its p99 / latency p99."""
    lag, latency = sample.lag_p99, sample.latency
    if lag is None or latency is None or not latency.percentiles.get("99"):
        return _gate("generator-lag", False, None, rules.lag_share, "")
    share = lag / latency.percentiles["99"]
    breached = share > rules.lag_share and lag > rules.least_lag_seconds
    return _gate("generator-lag", breached, share, rules.lag_share, "generator lag")


def _size(sample: RateSample, thresholds: GateThresholds, expected: tuple[float, float] | None) -> Gate:
    """Bytes a response against the verified size, as in the closed loop."""
    limit, received = thresholds.response_size_tolerance, sample.achieved_rate * sample.duration
    if expected is None or received <= 0:
        return _gate("response-size", False, None, limit, "")
    size, (smallest, largest) = sample.bytes / received, expected
    under_way = sample.level.concurrency / received
    deviation = min(size / smallest - 1, 0.0) or max(size / largest - 1, 0.0)
    allowed = limit + (under_way if deviation > 0 else 0.0)
    return _gate("response-size", abs(deviation) > allowed, deviation, allowed, "response size")
