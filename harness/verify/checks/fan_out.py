"""Checks for the ``fan-out`` test type: the server makes the requested upstream calls and returns the sum."""

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
    """Send the load's request while the upstream service counts calls. A thorough verification also sends variants."""
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
    """Wait until the server makes no more upstream calls for disconnected clients, or until a time limit."""
    before = upstream.stats().calls
    for _ in range(MAX_POLLS):
        sleep(IDLE_SECONDS)
        now = upstream.stats().calls
        if now == before:
            return
        before = now


def parse_calls_and_sum(exchange: Exchange) -> tuple[int, int] | None:
    """Return ``calls`` and ``sum`` if the response has exactly these keys with integer values, otherwise None."""
    document = exchange.document
    if not isinstance(document, dict) or document.keys() != {"calls", "sum"}:
        return None
    calls, total = document["calls"], document["sum"]
    return (calls, total) if type(calls) is int and type(total) is int else None


@exchange_check("fan-out.1", FAN_OUT)
def calls_and_sum(exchange: Exchange) -> Iterator[Finding]:
    """Require an object with the integers ``calls`` and ``sum``."""
    # The ``json-valid`` check reports invalid documents.
    if not isinstance(exchange.document, ValueError) and parse_calls_and_sum(exchange) is None:
        yield Finding(
            "the body is not the JSON object that the fan-out test expects. Return both keys with integer values",
            expected='{"calls":…,"sum":…}',
            actual=excerpt(exchange.body),
        )


@exchange_check("fan-out.2", FAN_OUT)
def calls_clamped(exchange: Exchange) -> Iterator[Finding]:
    """Require the requested number of calls, clamped to 1..100, or one call if the parameter is not an integer."""
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
    """Require that the upstream service received as many calls as the responses report, and returned the same sum."""
    parsed, upstream = [parse_calls_and_sum(exchange) for exchange in evidence.all_exchanges], evidence.upstream
    reported = [pair for pair in parsed if pair]
    if upstream is None or len(reported) < len(parsed):
        return  # the ``calls-and-sum`` check reports responses without these numbers
    delay = upstream.delay_seconds * 1000 - TIMER_RESOLUTION_MILLISECONDS
    for elapsed_ms in sorted((e.received_at - e.sent_at) * 1000 for e in evidence.ok_exchanges)[:1]:
        if elapsed_ms < delay:
            yield Finding(
                "a response took less time than the upstream's delay. Wait for the upstream's responses",
                expected=f"at least {delay:g} ms",
                actual=f"{elapsed_ms:.1f} ms",
            )
    calls, total = sum(calls for calls, _ in reported), sum(total for _, total in reported)
    expected, is_wrong = f"{calls} calls with the sum {total}", (calls, total) != (upstream.calls, upstream.sum)
    # All requests of a load ask for the same number of calls, which any sampled response reports.
    if not evidence.complete and evidence.request_counts and reported:
        calls = evidence.request_counts.successes * reported[0][0]
        expected, is_wrong = f"at least {calls} calls", upstream.calls < calls
    if is_wrong:
        yield Finding(
            "the upstream did not receive the calls that the responses report. Make new calls for each request",
            expected,
            f"{upstream.calls} calls with the sum {upstream.sum}",
        )
