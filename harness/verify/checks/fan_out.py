"""The test type fan-out: the server calls the upstream service as often as requested, and returns the sum."""

import time
from collections.abc import Callable, Iterator

from harness.runtime import Upstream
from harness.verify.checks import Finding, check, excerpt, exchange_check
from harness.verify.checks.delay import TIMER_RESOLUTION_MILLISECONDS
from harness.verify.checks.evidence import Evidence, Exchange, QueryVariant, clamp_parameter, parameter_variants
from harness.verify.checks.verification_client import VerificationTask

FAN_OUT = frozenset({"fan-out"})
MAX_CALLS = 100
IDLE_SECONDS, MAX_POLLS = 0.1, 50


def gather(task: VerificationTask, evidence: Evidence) -> None:
    """Send the load's request, and variants in a thorough verification, while the upstream service counts calls."""
    upstream = task.server.upstream
    if upstream:
        wait_until_idle(upstream)
        upstream.reset()
    plain = QueryVariant(name="plain")
    evidence.exchanges = task.load_client().send_in_order([plain] * 3)
    if any(exchange.response is None for exchange in evidence.exchanges):
        return
    if task.thorough:
        variants = parameter_variants(1, 2, MAX_CALLS, MAX_CALLS + 1)
        evidence.exchanges += task.variant_client().send_in_order(variants)
    evidence.concurrent = task.load_client().send_concurrently([plain] * (40 if task.thorough else 16), 8)
    if upstream:
        evidence.upstream = upstream.stats()


def wait_until_idle(upstream: Upstream, sleep: Callable[[float], None] = time.sleep) -> None:
    """Wait, with a time limit, until the upstream service receives no further calls.

    A server with sequential calls continues to process requests of disconnected clients.
    """
    before = upstream.stats().calls
    for _ in range(MAX_POLLS):
        sleep(IDLE_SECONDS)
        now = upstream.stats().calls
        if now == before:
            return
        before = now


def parse_calls_and_sum(exchange: Exchange) -> tuple[int, int] | None:
    """Return ``calls`` and ``sum`` of a response that has exactly these keys with integer values, else None."""
    document = exchange.document
    if not isinstance(document, dict) or document.keys() != {"calls", "sum"}:
        return None
    calls, total = document["calls"], document["sum"]
    return (calls, total) if type(calls) is int and type(total) is int else None


@exchange_check("fan-out.1", FAN_OUT)
def calls_and_sum(exchange: Exchange) -> Iterator[Finding]:
    """Require an object with the integers ``calls`` and ``sum``."""
    # The check json-valid reports invalid documents.
    if not isinstance(exchange.document, ValueError) and parse_calls_and_sum(exchange) is None:
        yield Finding(
            "the body is not the object of the fan-out test. Return both keys with integers",
            expected='{"calls":…,"sum":…}',
            actual=excerpt(exchange.body),
        )


@exchange_check("fan-out.2", FAN_OUT)
def calls_clamped(exchange: Exchange) -> Iterator[Finding]:
    """Require the requested number of calls, limited to 1..100. Without a valid number, require a single call."""
    reported, expected = parse_calls_and_sum(exchange), clamp_parameter(exchange.target, 1, MAX_CALLS) or 1
    if reported is not None and reported[0] != expected:
        yield Finding(
            f"({exchange.case.name}) wrong number of calls. Clamp the number to 1..{MAX_CALLS}, and use 1 if it is not "
            "an integer",
            expected=f"{expected}",
            actual=f"{reported[0]}",
        )


@check("fan-out.3", FAN_OUT, lambda evidence: evidence.upstream is not None)
def upstream_called(evidence: Evidence) -> Iterator[Finding]:
    """Require that the upstream service received exactly the calls that the responses report, and that sums agree."""
    parsed, upstream = [parse_calls_and_sum(exchange) for exchange in evidence.all_exchanges], evidence.upstream
    reported = [pair for pair in parsed if pair]
    if upstream is None or len(reported) < len(parsed):
        return  # calls-and-sum reports a response without these numbers
    delay = upstream.delay_seconds * 1000 - TIMER_RESOLUTION_MILLISECONDS
    for took in sorted((e.received_at - e.sent_at) * 1000 for e in evidence.ok_exchanges)[:1]:
        if took < delay:
            yield Finding(
                "a response was earlier than the upstream's delay. Wait for the upstream's responses",
                expected=f"{delay:g} ms",
                actual=f"{took:.1f} ms",
            )
    calls, total = sum(calls for calls, _ in reported), sum(total for _, total in reported)
    expected, wrong = f"{calls} calls with the sum {total}", (calls, total) != (upstream.calls, upstream.sum)
    if not evidence.complete and evidence.request_counts and reported:  # a sample in which all requests are equal
        calls = evidence.request_counts.successes * reported[0][0]
        expected, wrong = f"at least {calls} calls", upstream.calls < calls
    if wrong:
        yield Finding(
            "the upstream did not receive the calls that the responses report. Make every call for the current request",
            expected,
            f"{upstream.calls} calls with the sum {upstream.sum}",
        )
