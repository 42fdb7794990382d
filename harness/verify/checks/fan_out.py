"""The fan-out test: the upstream is called as often as was asked for, for each request, and its answers add up."""

import re
import time
from collections.abc import Callable, Iterator

from harness.records.models import Outcome
from harness.runtime import Upstream
from harness.verify.checks import Finding, check, shown
from harness.verify.checks.asking import Asking
from harness.verify.checks.evidence import Case, Evidence, Exchange
from harness.verify.checks.json_text import JsonError

FAN_OUT = frozenset({"fan-out"})
FEWEST, MOST = 1, 100
CONNECTIONS = 8
REST_SECONDS, LOOKS = 0.1, 50

# The ways of asking for a number of calls.
ODD = (
    Case(name="absent"),
    Case(name="empty", suffix=""),
    Case(name="not a number", suffix="foo"),
    Case(name="a fraction", suffix="1.5"),
    Case(name="negative", suffix="-1"),
    Case(name="zero", suffix="0"),
    Case(name="one", suffix="1"),
    Case(name="two", suffix="2"),
    Case(name="the most", suffix="100"),
    Case(name="one too many", suffix="101"),
    Case(name="20 digits", suffix="12345678901234567890"),
)


def gather(asking: Asking, evidence: Evidence) -> None:
    """Ask as the load does and, thoroughly, in odd ways; the upstream counts what that makes the server ask it."""
    upstream = asking.upstream
    if upstream:
        at_rest(upstream)
        upstream.reset()
    plain = Case(name="plain")
    evidence.exchanges = asking.plain().ask([plain] * 3)
    if any(exchange.response is None for exchange in evidence.exchanges):
        return
    if asking.thorough:
        evidence.exchanges += asking.client().ask(ODD)
    evidence.crowd = asking.plain().crowd([plain] * (40 if asking.thorough else 16), CONNECTIONS)
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


def asked(exchange: Exchange) -> int:
    """The calls that a target asks for: an integer, clamped to 1..100; anything else is one."""
    number = re.search(r"=(-?\d+)\Z", exchange.target)
    return min(max(int(number[1]), FEWEST), MOST) if number else FEWEST


def answered(exchange: Exchange) -> tuple[int, int] | None:
    """``calls`` and ``sum`` of an answer with exactly these keys and integers, else None."""
    try:
        document = exchange.document
    except JsonError:
        return None
    if not isinstance(document, dict) or document.keys() != {"calls", "sum"}:
        return None
    calls, total = document["calls"], document["sum"]
    return (calls, total) if type(calls) is int and type(total) is int else None


@check("fan-out.1", FAN_OUT)
def calls_and_sum(evidence: Evidence) -> Iterator[Finding]:
    """The answer is an object with the integers ``calls`` and ``sum``."""
    for exchange in evidence.good:
        try:
            _ = exchange.document
        except JsonError:
            continue  # the checks json-valid and keys-once say so
        if answered(exchange) is None:
            yield Finding(
                f"GET {exchange.target}: not the object of the fan-out test",
                expected='{"calls":…,"sum":…}',
                actual=shown(exchange.response.body if exchange.response else b""),
            )


@check("fan-out.2", FAN_OUT)
def calls_clamped(evidence: Evidence) -> Iterator[Finding]:
    """As many calls as were asked for; outside 1..100 the nearest bound, and one where there is no number."""
    for exchange in evidence.good:
        answer = answered(exchange)
        if answer is not None and answer[0] != asked(exchange):
            yield Finding(
                f"GET {exchange.target} ({exchange.case.name}): wrong number of calls",
                expected=f"{asked(exchange)}",
                actual=f"{answer[0]}",
            )


@check("fan-out.3", FAN_OUT, lambda evidence: bool(evidence.crowd) and not evidence.under_load)
def upstream_counted(evidence: Evidence) -> Iterator[Finding]:
    """The calls can be counted at all."""
    if evidence.upstream is None:
        yield Finding("calls were not counted: there is no upstream of the harness's own", outcome=Outcome.WARN)


@check("fan-out.4", FAN_OUT, lambda evidence: evidence.upstream is not None)
def upstream_called(evidence: Evidence) -> Iterator[Finding]:
    """Every call that an answer speaks of was made for it: none is spared, and none made twice."""
    assert evidence.upstream is not None  # noqa: S101 - needs
    if any(answered(exchange) is None for exchange in evidence.all):
        return  # what other answers asked for is unknown; the check that they fail says so
    wanted = sum(answer[0] for exchange in evidence.all if (answer := answered(exchange)))
    if evidence.upstream.calls != wanted:
        yield Finding(
            "the upstream was not called as often as the answers say",
            expected=f"{wanted} calls",
            actual=f"{evidence.upstream.calls} calls",
        )


@check("fan-out.5", FAN_OUT, lambda evidence: evidence.upstream is not None)
def sum_of_the_upstream(evidence: Evidence) -> Iterator[Finding]:
    """The sums are those of the numbers that the upstream answered."""
    assert evidence.upstream is not None  # noqa: S101 - needs
    answers = [answered(exchange) for exchange in evidence.all]
    calls = sum(answer[0] for answer in answers if answer)
    total = sum(answer[1] for answer in answers if answer)
    if None not in answers and calls == evidence.upstream.calls and total != evidence.upstream.sum:
        yield Finding(
            "the sums are not those of what the upstream answered",
            expected=f"{evidence.upstream.sum} in all",
            actual=f"{total}",
        )
