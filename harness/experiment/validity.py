"""The validity gates, one table for all kinds of load: whether a trial may be ranked, and which flag stands beside it.

Pure. A threshold stands in its rule, or in its row of ``RULES``. What a trial does not know of itself comes in
``ValidityContext``; what is None anywhere is unknown and passes its gate with no value.
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
CHANCE_SIGMAS = 3.1  # of a Poisson count above its mean: one in a thousand is further
WINDOW_SPREAD = 0.2  # relative standard deviation of CPU per request of one second, on the noisiest machine seen
WAIT_SHARE = 0.05  # of the time that a server could have run: more, and CPUs were contended
IDLE_CPUS = 0.005  # that a server which is up beside the measured one may use


@dataclass(frozen=True, kw_only=True)
class ValidityContext:
    """What a trial is held against beside the profile's thresholds."""

    open_loop: OpenLoopSettings  # of the profile: thresholds of loads at a rate
    server_cpus: int
    response_bytes: tuple[float, float] | None = None  # smallest and largest verified response, headers included
    may_close: bool = False  # connections behind an answer, as a service of one's own
    beside: Trial | None = None  # of a witness: the trial by the run's own generator just before


@dataclass(frozen=True)
class ValidityFinding:
    """A gate before its outcome; ``value`` None: it could not be judged."""

    breached: bool
    value: float | None
    threshold: float
    flag: str = ""
    few: bool = False  # so few that it warns where it would fail


Rule = Callable[[Trial, ValidityContext], ValidityFinding | None]  # None: the gate does not apply to this load


def check_validity(trial: Trial, expected: ValidityContext) -> tuple[ValidityCheck, ...]:
    """One gate of each kind that the load can breach, in a fixed order; those in ``FAILING`` keep it out of ranking."""
    found = ((name, rule(trial, expected)) for name, rule in RULES.items())
    return tuple(_validity_check(name, each) for name, each in found if each is not None)


def _validity_check(name: str, finding: ValidityFinding) -> ValidityCheck:
    outcome, flag = Outcome.PASS, ""
    if finding.breached:
        outcome = Outcome.FAIL if name in FAILING and not finding.few else Outcome.WARN
        flag = finding.flag
    return ValidityCheck(name=name, outcome=outcome, value=finding.value, threshold=finding.threshold, flag=flag)


def _above(
    figure: Callable[[Trial], float | None], limit: float, flag: str, when: Callable[[Trial], object] = lambda _: True
) -> Rule:
    """Breached by a figure of the trial above the limit; of the trials ``when`` it applies to."""

    def rule(trial: Trial, _: ValidityContext) -> ValidityFinding | None:
        if not when(trial):
            return None
        value = figure(trial)
        return ValidityFinding(value is not None and value > limit, value, limit, flag)

    return rule


def _closed(trial: Trial) -> bool:
    return trial.load.kind == "closed"


def _at_rate(trial: Trial) -> bool:
    return isinstance(trial.load, OpenLoop | Scenario) and trial.due is not None


def asked_connections(trial: Trial) -> int:
    """Connections that the generator opens: wrk cuts the load's to a multiple of its threads."""
    threads = max(trial.generator_threads, 1) if trial.generator == "wrk" else 1
    return trial.load.connections - trial.load.connections % threads


# ---- figures of a trial ----------------------------------------------------------------------------------------------


def _errors(trial: Trial) -> float:
    """Errors of any kind; of an open loop what is merely unfinished has a gate of its own."""
    return float(max(0, trial.errors.total - (trial.unfinished or 0)))


def _wrong_answers(trial: Trial) -> float:
    """What the checks objected to in the trial's own answers."""
    objections = trial.evidence.objections if trial.evidence else ()
    return float(sum(objection.outcome is Outcome.FAIL for objection in objections))


def _throttled(trial: Trial) -> float | None:
    seconds = trial.server.throttled_seconds
    return None if seconds is None or trial.duration <= 0 else seconds / trial.duration


def _generator_share(trial: Trial) -> float | None:
    """CPU share of the generator's threads: near 1 it measures itself. Of several clients the busiest counts."""
    used = [(trial.generator_cpu_seconds, trial.duration * trial.generator_threads)]
    if trial.clients:
        used = [(client.cpu_seconds, client.duration * client.threads) for client in trial.clients]
    return max((cpu / seconds for cpu, seconds in used if seconds > 0), default=None)


def _client_wait(trial: Trial) -> float | None:
    """Run-queue wait of the client that waits most: a generator without a CPU sends late, and answers wait for it."""
    known = [(c.wait_seconds, c.wait_seconds + c.cpu_seconds) for c in trial.clients if c.wait_seconds is not None]
    return max((wait / every for wait, every in known if every > 0), default=None)


def overlap(clients: Sequence[ClientUsage]) -> float | None:
    """Share of the time from the first client's beginning to the last one's end in which all loaded; at least that.

    What is not known of a beginning counts against it. None for fewer than two clients.
    """
    if len(clients) < 2:
        return None
    end = min(c.begun - c.begun_within + c.duration for c in clients)
    together = end - max(c.begun + c.begun_within for c in clients)
    longest = max(c.begun + c.duration for c in clients) - min(c.begun for c in clients)
    return max(0.0, together / longest) if longest > 0 else None


# ---- rules of their own ----------------------------------------------------------------------------------------------


def _response_size(trial: Trial, expected: ValidityContext) -> ValidityFinding | None:
    """Bytes an answer against the verified size: an answer cut short or of another kind shows in every single one.

    ``value`` is the deviation from the verified range, relative to its nearer end. What is under way at the end is in
    the bytes and not in the answers, hence the allowance of one pipeline a connection.
    """
    limit = 0.02
    if isinstance(trial.load, Scenario):
        return None
    if expected.response_bytes is None or trial.requests == 0:
        return ValidityFinding(False, None, limit)
    smallest, largest = expected.response_bytes
    size = trial.bytes / trial.requests
    under_way = trial.load.connections * trial.load.depth / trial.requests
    deviation = min(size / smallest - 1, 0.0) or max(size / largest - 1, 0.0)
    allowed = limit + (under_way if deviation > 0 else 0.0)
    return ValidityFinding(abs(deviation) > allowed, deviation, allowed, "response size")


def _connections(trial: Trial, expected: ValidityContext) -> ValidityFinding | None:
    """Fewer established than asked for."""
    if not _closed(trial) or expected.may_close:
        return None
    asked, seen = asked_connections(trial), trial.connections
    return ValidityFinding(seen is not None and seen < asked, seen, float(asked), "connections")


def _overrun(trial: Trial, _: ValidityContext) -> ValidityFinding | None:
    """Seconds beyond (or short of) the asked duration: a stalled or killed generator averages over another time."""
    if not _closed(trial):
        return None
    allowed = max(0.5, 0.05 * trial.asked_duration)
    over = trial.duration - trial.asked_duration
    return ValidityFinding(abs(over) > allowed, over, allowed, "overrun" if over > 0 else "cut short")


def _littles_law(trial: Trial, _: ValidityContext) -> ValidityFinding | None:
    """Requests under way, X R, against the connections N that keep one under way each (Little 1961).

    ``value`` is (X R - N) / N. Requests under way at the end are in no count, hence the allowance of one mean latency
    in the duration. Not of pipelined loads, whose latency is not told.
    """
    limit = 0.10
    if not _closed(trial):
        return None
    if trial.latency is None or trial.duration <= 0 or not trial.requests or asked_connections(trial) == 0:
        return ValidityFinding(False, None, limit)
    deviation = trial.requests / trial.duration * trial.latency.mean / asked_connections(trial) - 1
    allowed = limit + trial.latency.mean / trial.duration
    return ValidityFinding(abs(deviation) > allowed, deviation, allowed, "Little's law")


def _delayed_ack(trial: Trial, expected: ValidityContext) -> ValidityFinding | None:
    """Nagle against delayed ACK: every connection answers once in 40 ms while the server idles.

    ``value`` is throughput / (connections depth / 0.04 s) - 1. A server that waits for a CPU is not idle.
    """
    limit = 0.15
    if not _closed(trial):
        return None
    if trial.duration <= 0 or expected.server_cpus <= 0 or asked_connections(trial) == 0:
        return ValidityFinding(False, None, limit)
    signature = asked_connections(trial) * trial.load.depth / DELAYED_ACK_SECONDS
    deviation = trial.requests / trial.duration / signature - 1
    idle = trial.server.cpu_seconds / (trial.duration * expected.server_cpus) < 1 / 2
    idle = idle and (trial.server.wait_share or 0.0) <= WAIT_SHARE
    return ValidityFinding(abs(deviation) <= limit and idle, deviation, limit, "delayed ACK")


def _witness(trial: Trial, expected: ValidityContext) -> ValidityFinding | None:
    """The other generator's CPU per request against ours just before, in standard deviations of such a difference."""
    beside, limit = expected.beside, 3.0  # of two dozen cells one goes beyond by chance in 6 % of runs
    if beside is None:
        return None
    if not trial.cpu_per_request or not beside.cpu_per_request:
        return ValidityFinding(False, None, limit)
    error = WINDOW_SPREAD * math.sqrt(1 / max(1.0, trial.duration) + 1 / max(1.0, beside.duration))
    sigmas = abs(math.log(trial.cpu_per_request / beside.cpu_per_request)) / error
    return ValidityFinding(sigmas > limit, sigmas, limit, "the two generators disagree")


def _achieved_rate(trial: Trial, expected: ValidityContext) -> ValidityFinding | None:
    """Answers within the load against requests due: ``value`` is the shortfall, relative. Not of scenarios.

    Against those due, not the rate asked for: Poisson arrivals differ from it by chance. What is under way then is
    no shortfall, as far as there are connections for it: by Little's law the median latency leaves ``mean`` requests
    under way on average, in a Poisson distribution.
    """
    limit = expected.open_loop.rate_tolerance
    if not isinstance(trial.load, OpenLoop):
        return None
    if not trial.due or trial.duration <= 0:
        return ValidityFinding(True, None, limit, "no requests")
    short = 1 - trial.requests / trial.due
    under_way = 0.0
    if trial.latency:
        under_way = by_chance(trial.requests / trial.duration * trial.latency.percentiles.get("50", 0.0))
    allowed = limit + min(under_way, trial.load.connections) / trial.due
    return ValidityFinding(short > allowed, short, allowed, "rate not achieved")


def _generator_lag(trial: Trial, expected: ValidityContext) -> ValidityFinding | None:
    """The generator's own lateness is part of the latency: ``value`` is its p99 / latency p99.

    The p99 of a hundred requests is one request. Where more than one in a hundred was sent late, but no more than a
    Poisson count of that mean reaches by chance, the median may still be published: the gate warns.
    """
    rules = expected.open_loop
    if not _at_rate(trial):
        return None
    lag, latency = trial.lag_p99, trial.latency
    if lag is None or latency is None or not latency.percentiles.get("99"):
        return ValidityFinding(False, None, rules.lag_share)
    share = lag / latency.percentiles["99"]
    breached = share > rules.lag_share and lag > MIN_LAG_SECONDS
    few = trial.sent_late is not None and trial.sent_late <= by_chance(0.01 * (trial.due or 0))
    flag = "a few requests sent late" if few else "generator lag"
    return ValidityFinding(breached, share, rules.lag_share, flag, few)


def by_chance(mean: float) -> float:
    """A bound of the 99.9 % quantile of a Poisson count, for small means too."""
    return mean + CHANCE_SIGMAS * math.sqrt(mean) + 1


def _clients_apart(trial: Trial, _: ValidityContext) -> ValidityFinding | None:
    """Clients that did not load at the same time: their rates are of different loads, and do not add up."""
    if not trial.clients:
        return None
    share, limit = overlap(trial.clients), 0.95
    return ValidityFinding(share is not None and share < limit, share, limit, "clients apart")


RULES: Mapping[str, Rule] = {
    "errors": _above(_errors, 0.0, "errors"),
    "connections": _connections,
    "response-size": _response_size,
    # By the bytes on the sockets: who answers twice, or unasked, is counted twice.
    "unasked": _above(lambda trial: trial.responses_per_request, 1.05, "unasked responses", _closed),
    "overrun": _overrun,
    "restarted": _above(lambda trial: float(trial.restarted), 0.0, "restarted"),
    "wrong-answers": _above(_wrong_answers, 0.0, "wrong answers", lambda trial: trial.evidence),
    "achieved-rate": _achieved_rate,
    "unfinished": _above(
        lambda trial: (trial.unfinished or 0) / trial.due if trial.due else None, 0.0, "unfinished requests", _at_rate
    ),
    "generator-lag": _generator_lag,
    "generator-bound": _above(_generator_share, 0.85, "limited by the load generator"),
    "clients-apart": _clients_apart,
    "client-lag": _above(_client_wait, 0.10, "client lags", lambda trial: trial.clients),
    "link": _above(lambda t: t.link_share, 0.90, "limited by the network", lambda t: t.link_share is not None),
    # Run-queue wait of the server, of the time that it could have run.
    "contended": _above(lambda trial: trial.server.wait_share, WAIT_SHARE, "CPU contention"),
    "throttled": _above(_throttled, 0.01, "throttled"),
    "steal": _above(lambda trial: trial.steal_share, 0.02, "steal"),
    "littles-law": _littles_law,
    "delayed-ack": _delayed_ack,
    "idle-servers": _above(lambda trial: trial.idle_cpu_share, IDLE_CPUS, "idle servers busy"),
    "witness": _witness,
}
FAILING = {  # not ranked; of the other gates a flag stands beside the figure
    *("errors", "connections", "response-size", "unasked", "overrun", "restarted", "wrong-answers"),
    *("achieved-rate", "unfinished", "generator-lag"),
}
