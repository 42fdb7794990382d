"""The delay test: an answer is never early, never far too late, and waiting holds nobody up."""

from collections.abc import Iterator, Sequence

from harness.verify.checks import Finding, check, each
from harness.verify.checks.asking import Asking, Client
from harness.verify.checks.evidence import Evidence, Exchange, QueryVariant, clamped, odd

DELAY = frozenset({"delay"})
EARLY_MILLISECONDS = 1.0  # the resolution of a timer in milliseconds
LATE_SECONDS = 0.25  # the best of several answers: a machine that stalls delays one of them, not each
TIMES = 3  # each
AT_ONCE = 128  # connections that wait at the same time
PROMPT = QueryVariant(name="at once without delay", suffix="0")
WAITING = QueryVariant(name="at once", suffix="200")
IN_TURN_SECONDS = AT_ONCE * 0.2  # of all those that wait, one after the other
# In which those that wait have their answers, beyond what as many that do not wait take: a pool of 20 threads, which
# frameworks have by default, needs 1.4 s.
OVERLAP_SECONDS = 2.0
TRIES = 3  # of what came late: a machine that stalls holds up one of them, not each


def gather(asking: Asking, evidence: Evidence) -> None:
    """Ask as the load does; thoroughly also for odd delays, each several times at once, and for many at once."""
    evidence.exchanges = asking.plain().ask([QueryVariant(name="plain")] * 3)
    if any(exchange.response is None for exchange in evidence.exchanges):
        return  # no use in waiting for more
    if not asking.thorough:
        evidence.crowd = asking.plain().crowd([QueryVariant(name="plain")] * 40, 8)
        return
    # Who waits in turn is slow, not silent: the last of many has its answer after all the others' delays.
    client = asking.client(asking.patience + IN_TURN_SECONDS)
    cases = odd(20, 1000, 2000) * TIMES
    evidence.exchanges += client.crowd(cases, len(cases))
    for _ in range(TRIES - 1):
        if late := [exchange.case for _, exchange in late_at_best(evidence)]:
            evidence.exchanges += client.ask(late)
    evidence.crowd = crowd(client)
    for _ in range(TRIES - 1):
        if held_up(evidence.crowd) > OVERLAP_SECONDS:
            others, evidence.crowd = sorted((evidence.crowd, crowd(client)), key=held_up, reverse=True)
            evidence.exchanges += others


def crowd(client: Client) -> list[Exchange]:
    """Many at once that do not wait, which also warms the server up for so many, and then as many that do."""
    return [exchange for case in (PROMPT, WAITING) for exchange in client.crowd([case] * AT_ONCE, AT_ONCE)]


def span(exchanges: Sequence[Exchange], case: QueryVariant) -> float:
    """Seconds from the first request of a case to the last answer."""
    of_case = [exchange for exchange in exchanges if exchange.case == case]
    return max(e.received_at for e in of_case) - min(e.sent_at for e in of_case)


def held_up(exchanges: Sequence[Exchange]) -> float:
    """How much longer those take that wait than those that do not, in seconds: about one delay, if they overlap.

    What a busy machine costs, both pay.
    """
    return span(exchanges, WAITING) - span(exchanges, PROMPT)


def asked(exchange: Exchange) -> float:
    """The delay that a target asks for, in seconds: an integer of milliseconds, clamped; anything else is none."""
    return clamped(exchange.target, 0, 1000) / 1000


@each("delay.1", DELAY)
def never_early(exchange: Exchange) -> Iterator[Finding]:
    """No answer comes before its time."""
    due, took = asked(exchange) * 1000, (exchange.received_at - exchange.sent_at) * 1000
    if took < due - EARLY_MILLISECONDS:
        yield Finding("answered too early", expected=f"after {due:g} ms", actual=f"after {took:.1f} ms")


def late_at_best(evidence: Evidence) -> Iterator[tuple[float, Exchange]]:
    """Of each target the quickest answer and its time in seconds, where even that one came far too late."""
    best: dict[str, tuple[float, Exchange]] = {}
    for exchange in evidence.exchanges:
        if not exchange.ok or exchange.case in (PROMPT, WAITING):
            continue
        took = exchange.received_at - exchange.sent_at
        if exchange.target not in best or took < best[exchange.target][0]:
            best[exchange.target] = took, exchange
    return ((took, exchange) for took, exchange in best.values() if took > asked(exchange) + LATE_SECONDS)


@check("delay.2", DELAY, lambda evidence: evidence.thorough and bool(evidence.exchanges))
def delay_clamped(evidence: Evidence) -> Iterator[Finding]:
    """What is no integer is no delay, and none is longer than a second."""
    for took, exchange in late_at_best(evidence):
        yield Finding(
            f"GET {exchange.target} ({exchange.case.name}) was answered far too late",
            expected=f"after {asked(exchange) * 1000:g} ms",
            actual=f"after {took * 1000:.0f} ms at best",
        )


@check("delay.3", DELAY, lambda evidence: evidence.thorough and len(evidence.crowd) >= 2 * AT_ONCE)
def delays_overlap(evidence: Evidence) -> Iterator[Finding]:
    """Many delays at once take little longer than one."""
    if held_up(evidence.crowd) > OVERLAP_SECONDS:
        yield Finding(
            f"{AT_ONCE} delays of {WAITING.suffix} ms at once hold each other up",
            expected=f"all answered within {OVERLAP_SECONDS:g} s, beyond what as many without delay take",
            actual=f"{span(evidence.crowd, WAITING):.1f} s, without delay {span(evidence.crowd, PROMPT):.1f} s",
        )
