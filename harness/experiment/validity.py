"""Validity checks: rules that exclude a trial from the ranking, or flag it.

A threshold is defined in its rule, or in the entry of ``RULES``. If a value is unknown, the rule passes.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from harness.experiment.generators import MIN_LAG_SECONDS
from harness.plan.profile import OpenLoopSettings
from harness.records.loads import OpenLoop, Scenario
from harness.records.measurements import ClientUsage
from harness.records.outcome import Outcome
from harness.records.trial_record import Trial, ValidityCheck

DELAYED_ACK_SECONDS = 0.04  # Linux's minimum delayed acknowledgement (TCP_DELACK_MIN = HZ / 25)
POISSON_SIGMAS = 3.1  # a Poisson count exceeds its mean by this many standard deviations with a probability of 0.001
# Relative standard deviation of the CPU time per request between one-second windows, on the noisiest machine.
WINDOW_SPREAD = 0.2
MAX_WAIT_SHARE = 0.05  # maximum run-queue wait as a share of the time in which the server was runnable
IDLE_CPUS = 0.005  # maximum number of CPUs that a server without a load may use


@dataclass(frozen=True, kw_only=True)
class ValidityContext:
    """Facts about a run that validity checks need in addition to the trial."""

    open_loop: OpenLoopSettings  # the profile's thresholds for open loops
    server_cpus: int
    # Sizes of the smallest and the largest verified response, including headers.
    response_bytes: tuple[float, float] | None = None
    may_close: bool = False  # whether the server may close connections after a response
    compared: Trial | None = None  # if the trial is a witness: the preceding trial, with the other generator


@dataclass(frozen=True)
class ValidityFinding:
    """The result of a rule; ``value`` is None if it is unknown."""

    breached: bool
    value: float | None
    threshold: float
    flag: str = ""
    only_warns: bool = False  # whether a breach results in a warning instead of excluding the trial


Rule = Callable[[Trial, ValidityContext], ValidityFinding | None]  # returns None if the rule does not apply to the load


def check_validity(trial: Trial, context: ValidityContext) -> tuple[ValidityCheck, ...]:
    """Return the validity checks that apply to a trial, in the order of ``RULES``."""
    findings = ((name, rule(trial, context)) for name, rule in RULES.items())
    return tuple(_make_check(name, finding) for name, finding in findings if finding is not None)


def _make_check(name: str, finding: ValidityFinding) -> ValidityCheck:
    outcome, flag = Outcome.PASS, ""
    if finding.breached:
        outcome = Outcome.FAIL if name in EXCLUDING_RULES and not finding.only_warns else Outcome.WARN
        flag = finding.flag
    return ValidityCheck(name=name, outcome=outcome, value=finding.value, threshold=finding.threshold, flag=flag)


def _above(
    figure: Callable[[Trial], float | None],
    limit: float,
    flag: str,
    applies: Callable[[Trial], object] = lambda _: True,
) -> Rule:
    """Return a rule that is breached if a value of the trial exceeds a limit."""

    def rule(trial: Trial, _: ValidityContext) -> ValidityFinding | None:
        if not applies(trial):
            return None
        value = figure(trial)
        return ValidityFinding(value is not None and value > limit, value, limit, flag)

    return rule


def _is_closed(trial: Trial) -> bool:
    return trial.load.kind == "closed"


def _has_rate(trial: Trial) -> bool:
    return isinstance(trial.load, OpenLoop | Scenario) and trial.due is not None


def requested_connections(trial: Trial) -> int:
    """Return the number of connections that the generator opens; wrk rounds down to a multiple of its threads."""
    threads = max(trial.generator_threads, 1) if trial.generator == "wrk" else 1
    return trial.load.connections - trial.load.connections % threads


# ---- figures of a trial ----------------------------------------------------------------------------------------------


def _errors(trial: Trial) -> float:
    """Return the number of errors of all kinds. Unfinished requests of an open loop have a separate rule."""
    return float(max(0, trial.errors.total - (trial.unfinished or 0)))


def _wrong_responses(trial: Trial) -> float:
    """Return the number of failed checks on the trial's responses."""
    objections = trial.evidence.objections if trial.evidence else ()
    return float(sum(objection.outcome is Outcome.FAIL for objection in objections))


def _throttled(trial: Trial) -> float | None:
    seconds = trial.server.throttled_seconds
    return None if seconds is None or trial.duration <= 0 else seconds / trial.duration


def _generator_share(trial: Trial) -> float | None:
    """Return the CPU share of the busiest client's threads. Near 1, the generator is the bottleneck."""
    used = [(trial.generator_cpu_seconds, trial.duration * trial.generator_threads)]
    if trial.clients:
        used = [(client.cpu_seconds, client.duration * client.threads) for client in trial.clients]
    return max((cpu / seconds for cpu, seconds in used if seconds > 0), default=None)


def _client_wait(trial: Trial) -> float | None:
    """Return the highest run-queue wait share of any client. A client that waits for a CPU sends and receives late."""
    known = [(c.wait_seconds, c.wait_seconds + c.cpu_seconds) for c in trial.clients if c.wait_seconds is not None]
    return max((wait / total for wait, total in known if total > 0), default=None)


def overlap(clients: Sequence[ClientUsage]) -> float | None:
    """Return the share of the load during which all clients were active, or None for fewer than two clients.

    The share is a lower bound, because each start is only known to lie within an interval.
    """
    if len(clients) < 2:
        return None
    first_end = min(c.begun - c.begun_within + c.duration for c in clients)
    common = first_end - max(c.begun + c.begun_within for c in clients)
    longest = max(c.begun + c.duration for c in clients) - min(c.begun for c in clients)
    return max(0.0, common / longest) if longest > 0 else None


def poisson_bound(mean: float) -> float:
    """Return an upper bound for the 99.9 % quantile of a Poisson count. It is valid even for small means."""
    return mean + POISSON_SIGMAS * math.sqrt(mean) + 1


# ---- rules -----------------------------------------------------------------------------------------------------------


def _response_size(trial: Trial, context: ValidityContext) -> ValidityFinding | None:
    """Compare the bytes per response with the verified size. Truncated or different responses deviate from it.

    ``value`` is the relative deviation from the nearer end of the verified range. The bytes include unfinished
    responses, so a difference of a pipeline per connection is tolerated.
    """
    limit = 0.02
    if isinstance(trial.load, Scenario):
        return None
    if context.response_bytes is None or trial.requests == 0:
        return ValidityFinding(False, None, limit)
    smallest, largest = context.response_bytes
    size = trial.bytes / trial.requests
    unfinished = trial.load.connections * trial.load.depth / trial.requests
    deviation = min(size / smallest - 1, 0.0) or max(size / largest - 1, 0.0)
    allowed = limit + (unfinished if deviation > 0 else 0.0)
    return ValidityFinding(abs(deviation) > allowed, deviation, allowed, "response size")


def _connections(trial: Trial, context: ValidityContext) -> ValidityFinding | None:
    """Compare the established connections with the requested connections."""
    if not _is_closed(trial) or context.may_close:
        return None
    requested, established = requested_connections(trial), trial.connections
    breached = established is not None and established < requested
    return ValidityFinding(breached, established, float(requested), "connections")


def _overrun(trial: Trial, _: ValidityContext) -> ValidityFinding | None:
    """Compare the duration with the plan. A stalled or killed generator averages over a different period.

    ``value`` is the difference in seconds.
    """
    if not _is_closed(trial):
        return None
    allowed = max(0.5, 0.05 * trial.asked_duration)
    excess = trial.duration - trial.asked_duration
    return ValidityFinding(abs(excess) > allowed, excess, allowed, "overrun" if excess > 0 else "cut short")


def _littles_law(trial: Trial, _: ValidityContext) -> ValidityFinding | None:
    """Compare throughput X times mean latency R with the number of connections N (Little's law, 1961).

    Each connection sends one request at a time. ``value`` is (X R - N) / N. Requests that are unfinished at the end are
    not counted, so a deviation of a mean latency is tolerated. Pipelined loads have no latency.
    """
    limit = 0.10
    if not _is_closed(trial):
        return None
    if trial.latency is None or trial.duration <= 0 or not trial.requests or requested_connections(trial) == 0:
        return ValidityFinding(False, None, limit)
    deviation = trial.requests / trial.duration * trial.latency.mean / requested_connections(trial) - 1
    allowed = limit + trial.latency.mean / trial.duration
    return ValidityFinding(abs(deviation) > allowed, deviation, allowed, "Little's law")


def _delayed_ack(trial: Trial, context: ValidityContext) -> ValidityFinding | None:
    """Detect Nagle's algorithm with delayed ACK: every 40 ms, each connection gets a response from an idle server.

    ``value`` is throughput / (connections * depth / 0.04 s) - 1. A server that waits for a CPU does not count as idle.
    """
    limit = 0.15
    if not _is_closed(trial):
        return None
    if trial.duration <= 0 or context.server_cpus <= 0 or requested_connections(trial) == 0:
        return ValidityFinding(False, None, limit)
    expected = requested_connections(trial) * trial.load.depth / DELAYED_ACK_SECONDS
    deviation = trial.requests / trial.duration / expected - 1
    idle = trial.server.cpu_seconds / (trial.duration * context.server_cpus) < 1 / 2
    idle = idle and (trial.server.wait_share or 0.0) <= MAX_WAIT_SHARE
    return ValidityFinding(abs(deviation) <= limit and idle, deviation, limit, "delayed ACK")


def _witness(trial: Trial, context: ValidityContext) -> ValidityFinding | None:
    """Compare the CPU time per request of both generators; ``value`` is in standard deviations of the difference.

    With two dozen cells, a cell exceeds the limit by chance in 6 % of runs.
    """
    compared, limit = context.compared, 3.0
    if compared is None:
        return None
    if not trial.cpu_per_request or not compared.cpu_per_request:
        return ValidityFinding(False, None, limit)
    error = WINDOW_SPREAD * math.sqrt(1 / max(1.0, trial.duration) + 1 / max(1.0, compared.duration))
    sigmas = abs(math.log(trial.cpu_per_request / compared.cpu_per_request)) / error
    return ValidityFinding(sigmas > limit, sigmas, limit, "the two generators disagree")


def _achieved_rate(trial: Trial, context: ValidityContext) -> ValidityFinding | None:
    """Compare the responses during an open loop with the due requests; ``value`` is the relative shortfall.

    The number of due requests varies by chance, because arrivals are a Poisson process. Unfinished requests are
    tolerated as long as connections are available for them. By Little's law, their mean number is throughput times
    median latency, and the number has a Poisson distribution.
    """
    limit = context.open_loop.rate_tolerance
    if not isinstance(trial.load, OpenLoop):
        return None
    if not trial.due or trial.duration <= 0:
        return ValidityFinding(True, None, limit, "no requests")
    shortfall = 1 - trial.requests / trial.due
    unfinished = 0.0
    if trial.latency:
        unfinished = poisson_bound(trial.requests / trial.duration * trial.latency.percentiles.get("50", 0.0))
    allowed = limit + min(unfinished, trial.load.connections) / trial.due
    return ValidityFinding(shortfall > allowed, shortfall, allowed, "rate not achieved")


def _generator_lag(trial: Trial, context: ValidityContext) -> ValidityFinding | None:
    """Compare the generator's lag with the latency that it distorts; ``value`` is p99 of lag / p99 of latency.

    With a hundred requests, a single late request determines the p99. If the number of late requests is plausible for a
    Poisson count with a mean of 1 %, the median is still valid, and a breach only warns.
    """
    thresholds = context.open_loop
    if not _has_rate(trial):
        return None
    lag, latency = trial.lag_p99, trial.latency
    if lag is None or latency is None or not latency.percentiles.get("99"):
        return ValidityFinding(False, None, thresholds.lag_share)
    share = lag / latency.percentiles["99"]
    breached = share > thresholds.lag_share and lag > MIN_LAG_SECONDS
    few = trial.sent_late is not None and trial.sent_late <= poisson_bound(0.01 * (trial.due or 0))
    flag = "a few requests sent late" if few else "generator lag"
    return ValidityFinding(breached, share, thresholds.lag_share, flag, few)


def _clients_apart(trial: Trial, _: ValidityContext) -> ValidityFinding | None:
    """Detect clients whose loads did not coincide. Their rates cannot be added."""
    if not trial.clients:
        return None
    share, limit = overlap(trial.clients), 0.95
    return ValidityFinding(share is not None and share < limit, share, limit, "clients apart")


RULES: Mapping[str, Rule] = {
    "errors": _above(_errors, 0.0, "errors"),
    "connections": _connections,
    "response-size": _response_size,
    # The value is estimated from the bytes on the sockets. Additional responses would inflate the throughput.
    "unasked": _above(lambda trial: trial.responses_per_request, 1.05, "unasked responses", _is_closed),
    "overrun": _overrun,
    "restarted": _above(lambda trial: float(trial.restarted), 0.0, "restarted"),
    "wrong-answers": _above(_wrong_responses, 0.0, "wrong answers", lambda trial: trial.evidence),
    "achieved-rate": _achieved_rate,
    "unfinished": _above(
        lambda trial: (trial.unfinished or 0) / trial.due if trial.due else None, 0.0, "unfinished requests", _has_rate
    ),
    "generator-lag": _generator_lag,
    "generator-bound": _above(_generator_share, 0.85, "limited by the load generator"),
    "clients-apart": _clients_apart,
    "client-lag": _above(_client_wait, 0.10, "client lags", lambda trial: trial.clients),
    "link": _above(lambda t: t.link_share, 0.90, "limited by the network", lambda t: t.link_share is not None),
    "contended": _above(lambda trial: trial.server.wait_share, MAX_WAIT_SHARE, "CPU contention"),
    "throttled": _above(_throttled, 0.01, "throttled"),
    "steal": _above(lambda trial: trial.steal_share, 0.02, "steal"),
    "littles-law": _littles_law,
    "delayed-ack": _delayed_ack,
    "idle-servers": _above(lambda trial: trial.idle_cpu_share, IDLE_CPUS, "idle servers busy"),
    "witness": _witness,
}
# A breach of these rules excludes the trial from the ranking. A breach of any other rule adds a flag.
EXCLUDING_RULES = {
    *("errors", "connections", "response-size", "unasked", "overrun", "restarted", "wrong-answers"),
    *("achieved-rate", "unfinished", "generator-lag"),
}
