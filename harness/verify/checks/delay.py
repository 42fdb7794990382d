"""Checks for the ``delay`` test type: responses arrive in time, and waiting does not block other requests."""

from collections.abc import Iterator, Sequence

from harness.verify.checks import Finding, check, exchange_check
from harness.verify.checks.evidence import Evidence, Exchange, QueryVariant, clamp_parameter, parameter_variants
from harness.verify.checks.verification_client import Client, VerificationTask

DELAY = frozenset({"delay"})
TIMER_RESOLUTION_MILLISECONDS = 1.0
# Tolerance for late responses. It applies to the fastest of several responses, because a stalled machine delays some
# responses but not all.
MAX_LATE_SECONDS = 0.25
CONCURRENT_REQUESTS = 128
NO_DELAY = QueryVariant(name="concurrent, without delay", suffix="0")
WITH_DELAY = QueryVariant(name="at once", suffix="200")
SERIAL_SECONDS = CONCURRENT_REQUESTS * 0.2  # seconds that a server needs if it waits for one request at a time
# Concurrent requests with a delay may take this many seconds longer than the same number without a delay. With a
# pool of 20 threads, the default of some frameworks, they take 1.4 s longer, which is accepted.
MAX_EXTRA_SECONDS = 2.0
TRIES = 3  # total number of attempts, because a stalled machine may delay correct responses


def gather(task: VerificationTask, evidence: Evidence) -> None:
    """Send the load's request. In a thorough verification, also vary the delay and measure whether delays overlap."""
    evidence.exchanges = task.load_client().send_in_order([QueryVariant(name="plain")] * 3)
    if any(exchange.response is None for exchange in evidence.exchanges):
        return
    if not task.thorough:
        evidence.concurrent = task.load_client().send_concurrently([QueryVariant(name="plain")] * 40, 8)
        return
    # A server that handles delays sequentially still responds correctly, so wait long enough for the last response.
    client = task.variant_client(task.timeout + SERIAL_SECONDS)
    cases = parameter_variants(20, 1000, 2000) * 3
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
    """Send concurrent requests without a delay, then as many with a delay. The first group also warms up the server."""
    cases = (NO_DELAY, WITH_DELAY)
    return [
        exchange
        for case in cases
        for exchange in client.send_concurrently([case] * CONCURRENT_REQUESTS, CONCURRENT_REQUESTS)
    ]


def elapsed_seconds(exchanges: Sequence[Exchange], case: QueryVariant) -> float:
    """Return the seconds between the first request and the last response among a variant's exchanges."""
    selected = [exchange for exchange in exchanges if exchange.case == case]
    return max(e.received_at for e in selected) - min(e.sent_at for e in selected)


def extra_seconds(exchanges: Sequence[Exchange]) -> float:
    """Return how many seconds longer the requests with a delay took than those without.

    If delays overlap, the difference is about one delay. A busy machine slows down both groups, so this effect cancels
    out.
    """
    return elapsed_seconds(exchanges, WITH_DELAY) - elapsed_seconds(exchanges, NO_DELAY)


def requested_seconds(exchange: Exchange) -> float:
    """Return the requested delay in seconds, clamped to 0..1. Return 0 if the parameter is not an integer."""
    return clamp_parameter(exchange.target, 0, 1000) / 1000


@exchange_check("delay.1", DELAY)
def never_early(exchange: Exchange) -> Iterator[Finding]:
    """Find responses that arrive before the requested delay has elapsed."""
    due, elapsed_ms = requested_seconds(exchange) * 1000, (exchange.received_at - exchange.sent_at) * 1000
    if elapsed_ms < due - TIMER_RESOLUTION_MILLISECONDS:
        yield Finding(
            "the response was too early. Wait for the requested delay before responding",
            expected=f"after {due:g} ms",
            actual=f"after {elapsed_ms:.1f} ms",
        )


def late_responses(evidence: Evidence) -> Iterator[tuple[float, Exchange]]:
    """Yield (seconds, exchange) for each target's fastest response if even that response was late."""
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
    """Require that delays are limited to one second, and that malformed numbers cause no delay."""
    for elapsed_seconds, exchange in late_responses(evidence):
        yield Finding(
            f"GET {exchange.target} ({exchange.case.name}): the response was much too late. Clamp the delay to "
            "0..1000 ms, and do not wait if the parameter is not an integer",
            expected=f"after {requested_seconds(exchange) * 1000:g} ms",
            actual=f"after {elapsed_seconds * 1000:.0f} ms at best",
        )


@check("delay.3", DELAY, lambda evidence: evidence.thorough and len(evidence.concurrent) >= 2 * CONCURRENT_REQUESTS)
def delays_overlap(evidence: Evidence) -> Iterator[Finding]:
    """Require that the delays of concurrent requests overlap instead of adding up."""
    if extra_seconds(evidence.concurrent) > MAX_EXTRA_SECONDS:
        delayed, undelayed = (elapsed_seconds(evidence.concurrent, case) for case in (WITH_DELAY, NO_DELAY))
        yield Finding(
            f"{CONCURRENT_REQUESTS} concurrent requests with a delay of {WITH_DELAY.suffix} ms block each other. Use a "
            "timer or more threads",
            expected=f"at most {MAX_EXTRA_SECONDS:g} s longer than the same number of requests without delay",
            actual=f"{delayed:.1f} s, compared with {undelayed:.1f} s without delay",
        )
