"""The delay test: an answer is never early, never far too late, and waiting holds nobody up."""

import re
from collections.abc import Iterator

from harness.verify.checks import Finding, check
from harness.verify.checks.asking import Asking
from harness.verify.checks.evidence import Case, Evidence, Exchange

DELAY = frozenset({"delay"})
MOST_SECONDS = 1.0
EARLY_SECONDS = 0.001  # the resolution of a timer in milliseconds
LATE_SECONDS = 0.25  # the best of several answers: a machine that stalls delays one of them, not each
TIMES = 3
AT_ONCE = 128  # connections that wait at the same time
OVERLAP_MILLISECONDS = 200
OVERLAP_SECONDS = 1.0  # in which they all have their answers; one after the other takes 25.6 s

# The ways of asking for a delay; by ``asked`` the first six mean none.
ODD = (
    Case(name="absent"),
    Case(name="empty", suffix=""),
    Case(name="not a number", suffix="foo"),
    Case(name="a fraction", suffix="1.5"),
    Case(name="negative", suffix="-1"),
    Case(name="zero", suffix="0"),
    Case(name="20 ms", suffix="20"),
    Case(name="the most", suffix="1000"),
    Case(name="twice the most", suffix="2000"),
    Case(name="20 digits", suffix="12345678901234567890"),
)


def gather(asking: Asking, evidence: Evidence) -> None:
    """Ask as the load does; thoroughly also for odd delays, each several times at once, and for many at once."""
    evidence.exchanges = asking.plain().ask([Case(name="plain")] * 3)
    if any(exchange.response is None for exchange in evidence.exchanges):
        return  # no use in waiting for more
    if asking.thorough:
        odd = [case for case in ODD for _ in range(TIMES)]
        evidence.exchanges += asking.client().crowd(odd, len(odd))
        waiting = Case(name="at once", suffix=f"{OVERLAP_MILLISECONDS}")
        evidence.crowd = asking.client().crowd([waiting] * AT_ONCE, AT_ONCE)
    else:
        evidence.crowd = asking.plain().crowd([Case(name="plain")] * 40, 8)


def asked(exchange: Exchange) -> float:
    """The delay that a target asks for, in seconds: an integer of milliseconds, clamped; anything else is none."""
    number = re.search(r"=(-?\d+)\Z", exchange.target)
    return min(max(int(number[1]) / 1000, 0.0), MOST_SECONDS) if number else 0.0


@check("delay.1", DELAY)
def never_early(evidence: Evidence) -> Iterator[Finding]:
    """No answer comes before its time."""
    for exchange in evidence.good:
        took = exchange.received_at - exchange.sent_at
        if took < asked(exchange) - EARLY_SECONDS:
            yield Finding(
                message=f"GET {exchange.target} was answered too early",
                expected=f"after {asked(exchange) * 1000:g} ms",
                actual=f"after {took * 1000:.1f} ms",
            )


@check("delay.2", DELAY, lambda evidence: evidence.thorough and bool(evidence.exchanges))
def delay_clamped(evidence: Evidence) -> Iterator[Finding]:
    """What is no integer is no delay, and none is longer than a second."""
    best: dict[str, tuple[float, Exchange]] = {}
    for exchange in evidence.exchanges:
        if exchange.ok:
            took = exchange.received_at - exchange.sent_at
            if exchange.target not in best or took < best[exchange.target][0]:
                best[exchange.target] = took, exchange
    for took, exchange in best.values():
        if took > asked(exchange) + LATE_SECONDS:
            yield Finding(
                message=f"GET {exchange.target} ({exchange.case.name}) was answered far too late",
                expected=f"after {asked(exchange) * 1000:g} ms",
                actual=f"after {took * 1000:.0f} ms at best",
            )


@check("delay.3", DELAY, lambda evidence: evidence.thorough and len(evidence.crowd) >= AT_ONCE)
def delays_overlap(evidence: Evidence) -> Iterator[Finding]:
    """Many delays at once take little longer than one."""
    span = max(e.received_at for e in evidence.crowd) - min(e.sent_at for e in evidence.crowd)
    if span > OVERLAP_SECONDS:
        yield Finding(
            message=f"{len(evidence.crowd)} delays of {OVERLAP_MILLISECONDS} ms at once hold each other up",
            expected=f"all answered within {OVERLAP_SECONDS:g} s",
            actual=f"{span:.1f} s",
        )


CHECKS = (never_early, delay_clamped, delays_overlap)
