"""Checks the validity of trials: a rule may exclude a trial from the ranking or flag it.

Each rule's function, or its entry in ``RULES``, defines the rule's threshold. If the checked value is unknown, the rule
passes.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from harness.experiment.generators import MIN_LAG_SECONDS
from harness.plan.profile import OpenLoopSettings
from harness.plan.testtypes.registry import TEST_TYPES
from harness.records.loads import ClosedLoop, OpenLoop, Scenario
from harness.records.measurements import ClientUsage
from harness.records.trial_record import Trial, ValidityCheck
from harness.records.verification_record import Outcome

DELAYED_ACK_SECONDS = 0.04  # Linux's minimum delayed acknowledgement (TCP_DELACK_MIN = HZ / 25)
# Relative standard deviation of CPU time per request across one-second windows, on the noisiest known machine.
WINDOW_SPREAD = 0.2
THROTTLED_SHARE = 0.01  # maximum fraction of a trial during which the server may be throttled
IDLE_CPUS = 0.005  # an idle server may use at most this many CPUs


@dataclass(frozen=True, kw_only=True)
class ValidityContext:
    """Facts that validity checks need in addition to the trial."""

    open_loop: OpenLoopSettings  # the profile's thresholds for open loops
    server_cpus: int
    # Smallest and largest size of a verified response in bytes, including headers.
    response_bytes: tuple[float, float] | None = None
    may_close: bool = False  # whether the server may close connections after a response
    compared: Trial | None = None  # for a witness trial: the trial that it repeats; otherwise None


@dataclass(frozen=True)
class ValidityFinding:
    """The result of applying a validity rule to a trial."""

    breached: bool
    value: float | None  # the value that was compared with the threshold; None if unknown
    threshold: float
    flag: str = ""
    only_warns: bool = False  # whether a breach adds a flag instead of excluding the trial


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
    """Return the number of connections that the generator opens; wrk rounds down to a multiple of the thread count."""
    threads = max(trial.generator_threads, 1) if trial.generator == "wrk" else 1
    return trial.load.connections - trial.load.connections % threads


# ---- values that rules compare with a limit --------------------------------------------------------------------------


def _errors(trial: Trial) -> float:
    """Return the number of errors, excluding timeouts."""
    return float(trial.errors.total - trial.errors.timeout)


def _timeouts(trial: Trial) -> float:
    """Return the number of requests that timed out. Unfinished requests have a separate rule."""
    return float(max(0, trial.errors.timeout - (trial.unfinished or 0)))


def _wrong_responses(trial: Trial) -> float:
    """Return the number of failed checks on the trial's responses."""
    objections = trial.evidence.objections if trial.evidence else ()
    return float(sum(objection.outcome is Outcome.FAIL for objection in objections))


def _throttled(trial: Trial) -> float | None:
    seconds = trial.server.throttled_seconds
    return None if seconds is None or trial.duration <= 0 else seconds / trial.duration


def _generator_share(trial: Trial) -> float | None:
    """Return the CPU utilisation of the busiest client's threads. If it is near 1, the generator is the bottleneck."""
    used = [(trial.generator_cpu_seconds, trial.duration * trial.generator_threads)]
    if trial.clients:
        used = [(client.cpu_seconds, client.duration * client.threads) for client in trial.clients]
    return max((cpu / seconds for cpu, seconds in used if seconds > 0), default=None)


def _client_wait(trial: Trial) -> float | None:
    """Return the largest fraction of runnable time that a client waited for a CPU. Waiting inflates latency."""
    known = [(c.wait_seconds, c.wait_seconds + c.cpu_seconds) for c in trial.clients if c.wait_seconds is not None]
    return max((wait / total for wait, total in known if total > 0), default=None)


def overlap(clients: Sequence[ClientUsage]) -> float | None:
    """Return a lower bound on the fraction of the load during which all clients were active, or None for one client."""
    if len(clients) < 2:
        return None
    first_end = min(c.begun - c.begun_within + c.duration for c in clients)
    common = first_end - max(c.begun + c.begun_within for c in clients)
    longest = max(c.begun + c.duration for c in clients) - min(c.begun for c in clients)
    return max(0.0, common / longest) if longest > 0 else None


def poisson_bound(mean: float) -> float:
    """Return an upper bound on the 99.9 % quantile of a Poisson count. The bound holds even for small means."""
    return mean + 3.1 * math.sqrt(mean) + 1


# ---- rules that need more than one value -----------------------------------------------------------------------------


def _response_size(trial: Trial, context: ValidityContext) -> ValidityFinding | None:
    """Compare the bytes per response with the verified size, to detect truncated or wrong responses.

    ``value`` is the relative deviation from the nearest verified size. The measured bytes also include up to ``depth``
    unfinished responses per connection.
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
    """Compare the number of established connections with the number of requested connections."""
    if not _is_closed(trial) or context.may_close:
        return None
    requested, established = requested_connections(trial), trial.connections
    breached = established is not None and established < requested
    return ValidityFinding(breached, established, float(requested), "connections")


def _overrun(trial: Trial, _: ValidityContext) -> ValidityFinding | None:
    """Compare a closed loop's duration with the planned duration; ``value`` is the difference in seconds."""
    if not _is_closed(trial):
        return None
    allowed = max(0.5, 0.05 * trial.asked_duration)
    excess = trial.duration - trial.asked_duration
    return ValidityFinding(abs(excess) > allowed, excess, allowed, "overrun" if excess > 0 else "cut short")


def _littles_law(trial: Trial, _: ValidityContext) -> ValidityFinding | None:
    """Compare throughput X times mean latency R with the number N of requests in flight (Little's law, 1961).

    ``value`` is (X R - N) / N. An additional relative deviation of R / duration is tolerated, because requests that
    are unfinished at the end are not counted. Pipelined loads have no latency.
    """
    limit = 0.10
    if not _is_closed(trial) or (isinstance(trial.load, ClosedLoop) and trial.load.close_after):
        return None  # latency does not include the time to open new connections
    if trial.latency is None or trial.duration <= 0 or not trial.requests or requested_connections(trial) == 0:
        return ValidityFinding(False, None, limit)
    in_flight = requested_connections(trial) * trial.load.depth
    deviation = trial.requests / trial.duration * trial.latency.mean / in_flight - 1
    allowed = limit + trial.latency.mean / trial.duration
    return ValidityFinding(abs(deviation) > allowed, deviation, allowed, "Little's law")


# Limits the fraction of the server's runnable time that it spent waiting for a CPU.
_contended = _above(lambda trial: trial.server.wait_share, 0.05, "CPU contention")


def _delayed_ack(trial: Trial, context: ValidityContext) -> ValidityFinding | None:
    """Detect the interaction of Nagle's algorithm with delayed ACK.

    The combination delays each response by 40 ms although the server is idle. ``value`` is throughput /
    (connections * depth / 0.04 s) - 1. A server that waits for a CPU does not count as idle.
    """
    limit = 0.15
    if not _is_closed(trial):
        return None
    if trial.duration <= 0 or context.server_cpus <= 0 or requested_connections(trial) == 0:
        return ValidityFinding(False, None, limit)
    expected = requested_connections(trial) * trial.load.depth / DELAYED_ACK_SECONDS
    deviation = trial.requests / trial.duration / expected - 1
    contended = _contended(trial, context)
    idle = trial.server.cpu_seconds / (trial.duration * context.server_cpus) < 1 / 2
    idle = idle and not (contended and contended.breached)
    return ValidityFinding(abs(deviation) <= limit and idle, deviation, limit, "delayed ACK")


def _saturated(trial: Trial, context: ValidityContext) -> ValidityFinding | None:
    """Detect a server that leaves CPUs idle, for example because of a lock, a small pool or a single accept loop.

    ``value`` is the fraction of the available CPU time during which the server ran or waited for a CPU:
    (used + waited) / (used + waited + idle). CPU time that other programs used does not count as available.
    A throttled server passes. The rule requires at least eight requests in flight per CPU. With fewer requests, CPUs
    are idle while requests and responses are in transit. The rule does not apply to test types that make the server
    wait.
    """
    limit, cpu_seconds, wait = 0.75, trial.server.cpu_seconds, trial.server.wait_share or 0.0
    in_flight = requested_connections(trial) * trial.load.depth
    test_type = TEST_TYPES.get(trial.test_type)
    if not _is_closed(trial) or in_flight < 8 * context.server_cpus or (test_type and test_type.parameter):
        return None
    idle, runnable = trial.server.idle_seconds, cpu_seconds / (1 - min(wait, 0.999))
    if idle is None or runnable + idle <= 0:
        return ValidityFinding(False, None, limit)
    throttled = (_throttled(trial) or 0.0) > THROTTLED_SHARE
    share = runnable / (runnable + idle)
    return ValidityFinding(share < limit and not throttled, share, limit, "not saturated")


def _witness(trial: Trial, context: ValidityContext) -> ValidityFinding | None:
    """Compare the server's CPU time per request between the witness and the profile's load generator.

    ``value`` is the absolute log ratio divided by its standard error. In 6 % of runs with two dozen cells, at least one
    cell exceeds the limit by chance.
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
    """Compare an open loop's responses with the requests that were due. ``value`` is the relative shortfall.

    The rule tolerates a plausible number of unfinished requests, but at most the number of connections plus one. The
    number of unfinished requests is Poisson-distributed, with a mean of throughput times median latency (Little's law).
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
    allowed = limit + min(unfinished, trial.load.connections + 1) / trial.due
    return ValidityFinding(shortfall > allowed, shortfall, allowed, "rate not achieved")


def _generator_lag(trial: Trial, context: ValidityContext) -> ValidityFinding | None:
    """Compare the generator's lag with the latency that it distorts; ``value`` is p99 of lag / p99 of latency.

    With a hundred requests, a single request that is sent late determines the p99. A breach therefore adds only a
    warning if the number of requests sent late is plausible for a Poisson count with a mean of 1 % of the requests.
    The median latency is then still valid.
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
    """Detect clients that did not run at the same time. The rates of such clients cannot be added."""
    if not trial.clients:
        return None
    share, limit = overlap(trial.clients), 0.95
    return ValidityFinding(share is not None and share < limit, share, limit, "clients apart")


RULES: Mapping[str, Rule] = {
    "errors": _above(_errors, 0.0, "errors"),
    "timeouts": _above(_timeouts, 0.0, "timeouts"),
    "connections": _connections,
    "response-size": _response_size,
    # Detects unsolicited responses, which inflate the throughput. Their number is estimated from the number of received
    # bytes.
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
    "contended": _contended,
    "throttled": _above(_throttled, THROTTLED_SHARE, "throttled"),
    "steal": _above(lambda trial: trial.steal_share, 0.02, "steal"),
    "littles-law": _littles_law,
    "delayed-ack": _delayed_ack,
    "saturated": _saturated,
    "idle-servers": _above(lambda trial: trial.idle_cpu_share, IDLE_CPUS, "idle servers busy"),
    "witness": _witness,
}
# A breach of these rules excludes the trial from the ranking. A breach of any other rule adds a flag.
EXCLUDING_RULES = {
    *("errors", "timeouts", "connections", "response-size", "unasked", "overrun", "restarted", "wrong-answers"),
    *("achieved-rate", "unfinished", "generator-lag"),
}
