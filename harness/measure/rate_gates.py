"""Whether the latency of a load at a given rate may be published. Pure; docs/method.md has why."""

import math
from collections.abc import Callable, Iterable

from harness.plan.profile import GateThresholds, LatencyRules
from harness.records.models import Gate, Latency, Outcome, RateSample

FEW_LATE = "a few requests sent late"
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
    """Whether what the load says of the server may be the generator's own lateness: a search counts no miss by it."""
    return was_late(sample.gates)


def was_late(gates: Iterable[Gate]) -> bool:
    """Whether the generator was late, by chance or not."""
    return any(gate.name == "generator-lag" and gate.outcome is not Outcome.PASS for gate in gates)


def sent_late(count: Callable[[float], int] | None, latency: Latency | None, rules: LatencyRules) -> int | None:
    """Requests sent later than the gate of the generator's lag allows; None where it is not known."""
    if count is None or latency is None or not latency.percentiles.get("99"):
        return None
    return count(max(rules.lag_share * latency.percentiles["99"], rules.least_lag_seconds))


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
        under_way = by_chance(sample.achieved_rate * sample.latency.percentiles.get("50", 0.0))
    allowed = rules.rate_tolerance + min(under_way, sample.level.concurrency) / sample.due
    return _gate("achieved-rate", short > allowed, short, allowed, "rate not achieved")


def _unfinished(sample: RateSample, rules: LatencyRules) -> Gate:
    share = sample.unfinished / sample.due if sample.due else None
    return _share("unfinished", share, rules.unfinished_share, "unfinished requests")


def _lag(sample: RateSample, rules: LatencyRules) -> Gate:
    """The generator's own lateness is part of the latency: ``value`` is its p99 / latency p99.

    The p99 of a hundred requests is one request. Where more than one in a hundred was sent late, but no more than a
    Poisson count of that mean reaches by chance, the median may still be published: the gate warns.
    """
    lag, latency = sample.lag_p99, sample.latency
    if lag is None or latency is None or not latency.percentiles.get("99"):
        return _gate("generator-lag", False, None, rules.lag_share, "")
    share = lag / latency.percentiles["99"]
    breached = share > rules.lag_share and lag > rules.least_lag_seconds
    found = _gate("generator-lag", breached, share, rules.lag_share, "generator lag")
    few = sample.sent_late is not None and sample.sent_late <= by_chance(0.01 * sample.due)
    return found.model_copy(update={"outcome": Outcome.WARN, "word": FEW_LATE}) if breached and few else found


def by_chance(mean: float) -> float:
    """A bound of the 99.9 % quantile of a Poisson count, for small means too."""
    return mean + CHANCE_SIGMAS * math.sqrt(mean) + 1


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
