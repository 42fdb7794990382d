"""The test type delay: responses are neither early nor much too late, and waiting does not block other requests."""

from collections.abc import Iterator, Sequence

from harness.verify.checks import Finding, check, exchange_check
from harness.verify.checks.evidence import Evidence, Exchange, QueryVariant, clamp_parameter, parameter_variants
from harness.verify.checks.verification_client import Client, VerificationTask

DELAY = frozenset({"delay"})
TIMER_RESOLUTION_MILLISECONDS = 1.0
# Permitted lateness of the fastest of several responses. A stalled machine delays some responses, but not all of them.
MAX_LATE_SECONDS = 0.25
REQUESTS_EACH = 3
CONCURRENT_REQUESTS = 128
NO_DELAY = QueryVariant(name="at once without delay", suffix="0")
WITH_DELAY = QueryVariant(name="at once", suffix="200")
SERIAL_SECONDS = CONCURRENT_REQUESTS * 0.2  # time that a server needs if it handles the delays sequentially
# Permitted difference between the times of concurrent requests with a delay and without a delay. A pool of 20 threads,
# the default of some frameworks, needs 1.4 s.
MAX_EXTRA_SECONDS = 2.0
TRIES = 3  # number of tries for late responses, because a stalled machine delays some tries, but not all


def gather(task: VerificationTask, evidence: Evidence) -> None:
    """Send the request of the load. In a thorough verification, also vary the delay and send many requests at once."""
    evidence.exchanges = task.load_client().send_in_order([QueryVariant(name="plain")] * 3)
    if any(exchange.response is None for exchange in evidence.exchanges):
        return
    if not task.thorough:
        evidence.concurrent = task.load_client().send_concurrently([QueryVariant(name="plain")] * 40, 8)
        return
    # A server that handles delays sequentially is slow but correct, so wait for the last response.
    client = task.variant_client(task.timeout + SERIAL_SECONDS)
    cases = parameter_variants(20, 1000, 2000) * REQUESTS_EACH
    evidence.exchanges += client.send_concurrently(cases, len(cases))
    for _ in range(TRIES - 1):
        if late := [exchange.case for _, exchange in late_responses(evidence)]:
            evidence.exchanges += client.send_in_order(late)
    evidence.concurrent = send_concurrent_delays(client)
    for _ in range(TRIES - 1):
        if extra_seconds(evidence.concurrent) > MAX_EXTRA_SECONDS:
            tries = (evidence.concurrent, send_concurrent_delays(client))
            slower, evidence.concurrent = sorted(tries, key=extra_seconds, reverse=True)
            evidence.exchanges += slower


def send_concurrent_delays(client: Client) -> list[Exchange]:
    """Send many requests without a delay, which also warms up the server, then as many requests with a delay."""
    cases = (NO_DELAY, WITH_DELAY)
    return [
        exchange
        for case in cases
        for exchange in client.send_concurrently([case] * CONCURRENT_REQUESTS, CONCURRENT_REQUESTS)
    ]


def elapsed_seconds(exchanges: Sequence[Exchange], case: QueryVariant) -> float:
    """Return the seconds from the first request of a variant to the last response."""
    selected = [exchange for exchange in exchanges if exchange.case == case]
    return max(e.received_at for e in selected) - min(e.sent_at for e in selected)


def extra_seconds(exchanges: Sequence[Exchange]) -> float:
    """Return the extra seconds of requests with a delay, compared with requests without a delay.

    If the delays overlap, the result is about a single delay. The difference excludes the cost of a busy machine.
    """
    return elapsed_seconds(exchanges, WITH_DELAY) - elapsed_seconds(exchanges, NO_DELAY)


def requested_seconds(exchange: Exchange) -> float:
    """Return the requested delay in seconds within the limits, or 0 if it is not an integer of milliseconds."""
    return clamp_parameter(exchange.target, 0, 1000) / 1000


@exchange_check("delay.1", DELAY)
def never_early(exchange: Exchange) -> Iterator[Finding]:
    """Find responses that precede the end of the requested delay."""
    due, took = requested_seconds(exchange) * 1000, (exchange.received_at - exchange.sent_at) * 1000
    if took < due - TIMER_RESOLUTION_MILLISECONDS:
        yield Finding(
            "the response was too early. Wait for the requested delay before responding",
            expected=f"after {due:g} ms",
            actual=f"after {took:.1f} ms",
        )


def late_responses(evidence: Evidence) -> Iterator[tuple[float, Exchange]]:
    """Yield the fastest exchange of each target with its duration in seconds, if even this exchange was late."""
    fastest: dict[str, tuple[float, Exchange]] = {}
    for exchange in evidence.exchanges:
        if not exchange.ok or exchange.case in (NO_DELAY, WITH_DELAY):
            continue
        took = exchange.received_at - exchange.sent_at
        if exchange.target not in fastest or took < fastest[exchange.target][0]:
            fastest[exchange.target] = took, exchange
    return (
        (took, exchange) for took, exchange in fastest.values() if took > requested_seconds(exchange) + MAX_LATE_SECONDS
    )


@check("delay.2", DELAY, lambda evidence: evidence.thorough and bool(evidence.exchanges))
def delay_clamped(evidence: Evidence) -> Iterator[Finding]:
    """Require no delay for malformed numbers, and a delay of at most a second."""
    for took, exchange in late_responses(evidence):
        yield Finding(
            f"GET {exchange.target} ({exchange.case.name}): the response was much too late. Clamp the delay to "
            "0..1000 ms, and use 0 if it is not an integer",
            expected=f"after {requested_seconds(exchange) * 1000:g} ms",
            actual=f"after {took * 1000:.0f} ms at best",
        )


@check("delay.3", DELAY, lambda evidence: evidence.thorough and len(evidence.concurrent) >= 2 * CONCURRENT_REQUESTS)
def delays_overlap(evidence: Evidence) -> Iterator[Finding]:
    """Require that many concurrent delays take little longer than a single delay."""
    if extra_seconds(evidence.concurrent) > MAX_EXTRA_SECONDS:
        delayed, undelayed = (elapsed_seconds(evidence.concurrent, case) for case in (WITH_DELAY, NO_DELAY))
        yield Finding(
            f"{CONCURRENT_REQUESTS} concurrent delays of {WITH_DELAY.suffix} ms block each other. Use a timer, or "
            "use more threads",
            expected=f"all responses within {MAX_EXTRA_SECONDS:g} s of those without delay",
            actual=f"{delayed:.1f} s, without delay {undelayed:.1f} s",
        )
