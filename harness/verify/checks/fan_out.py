"""The fan-out test: the upstream is called as often as was asked for, for each request, and its answers add up."""

import time
from collections.abc import Callable, Iterator

from harness.runtime import Upstream
from harness.verify.checks import Finding, check, each, shown
from harness.verify.checks.asking import Asking
from harness.verify.checks.delay import EARLY_MILLISECONDS
from harness.verify.checks.evidence import Evidence, Exchange, QueryVariant, clamped, odd

FAN_OUT = frozenset({"fan-out"})
MOST = 100
REST_SECONDS, LOOKS = 0.1, 50


def gather(asking: Asking, evidence: Evidence) -> None:
    """Ask as the load does and, thoroughly, in odd ways; the upstream counts what that makes the server ask it."""
    upstream = asking.server.upstream
    if upstream:
        at_rest(upstream)
        upstream.reset()
    plain = QueryVariant(name="plain")
    evidence.exchanges = asking.plain().ask([plain] * 3)
    if any(exchange.response is None for exchange in evidence.exchanges):
        return
    if asking.thorough:
        evidence.exchanges += asking.client().ask(odd(1, 2, MOST, MOST + 1))
    evidence.crowd = asking.plain().crowd([plain] * (40 if asking.thorough else 16), 8)
    if upstream:
        evidence.upstream = upstream.stats()


def at_rest(upstream: Upstream, sleep: Callable[[float], None] = time.sleep) -> None:
    """Wait until nobody calls any more, for a while at most.

    A load leaves requests behind whose client is gone: a server that makes its calls one by one goes on with them.
    """
    before = upstream.stats().calls
    for _ in range(LOOKS):
        sleep(REST_SECONDS)
        now = upstream.stats().calls
        if now == before:
            return
        before = now


def answered(exchange: Exchange) -> tuple[int, int] | None:
    """``calls`` and ``sum`` of an answer with exactly these keys and integers, else None."""
    document = exchange.parsed
    if not isinstance(document, dict) or document.keys() != {"calls", "sum"}:
        return None
    calls, total = document["calls"], document["sum"]
    return (calls, total) if type(calls) is int and type(total) is int else None


@each("fan-out.1", FAN_OUT)
def calls_and_sum(exchange: Exchange) -> Iterator[Finding]:
    """The answer is an object with the integers ``calls`` and ``sum``."""
    if not isinstance(exchange.parsed, ValueError) and answered(exchange) is None:  # else json-valid says so
        yield Finding("not the object of the fan-out test", expected='{"calls":…,"sum":…}', actual=shown(exchange.body))


@each("fan-out.2", FAN_OUT)
def calls_clamped(exchange: Exchange) -> Iterator[Finding]:
    """As many calls as were asked for; outside 1..100 the nearest bound, and one where there is no number."""
    answer, due = answered(exchange), clamped(exchange.target, 1, MOST) or 1
    if answer is not None and answer[0] != due:
        yield Finding(f"({exchange.case.name}) wrong number of calls", expected=f"{due}", actual=f"{answer[0]}")


@check("fan-out.3", FAN_OUT, lambda evidence: evidence.upstream is not None)
def upstream_called(evidence: Evidence) -> Iterator[Finding]:
    """Every call that an answer speaks of was made for it, none twice, and the sums are those of what was answered."""
    told, made = [answered(exchange) for exchange in evidence.all], evidence.upstream
    known = [answer for answer in told if answer]
    if made is None or len(known) < len(told):
        return  # one of them does not tell: the check that it fails says so
    due = made.delay_seconds * 1000 - EARLY_MILLISECONDS
    for took in sorted((e.received_at - e.sent_at) * 1000 for e in evidence.good)[:1]:
        if took < due:
            yield Finding("answered before any call can have been", expected=f"{due:g} ms", actual=f"{took:.1f} ms")
    calls, total = sum(calls for calls, _ in known), sum(total for _, total in known)
    expected, wrong = f"{calls} calls, and {total} in all", (calls, total) != (made.calls, made.sum)
    if not evidence.whole and evidence.account and known:  # a share of a load's answers, each of as many calls
        calls = evidence.account.successes * known[0][0]
        expected, wrong = f"{calls} calls at least", made.calls < calls
    if wrong:
        actual = f"{made.calls} calls, and {made.sum} in all"
        yield Finding("the upstream was not called as the answers say", expected, actual)
