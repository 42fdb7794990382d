"""Audited samples: every request has one answer, and what it cost is what it costs when nobody looks.

An audit is a load like any other (same connections, same bytes, same loop) by a generator that keeps an account of each
request; the bodies of a random share of the answers, all of them for update, go through every other check as well.
"""

from collections.abc import Iterator

from harness.results.records import Outcome
from harness.verify.checks import ALL_TYPES, Finding, check
from harness.verify.checks.evidence import Evidence

# CPU per request of one sample on a shared machine has a standard deviation of 17 % between processes and less within
# one: a server that is half as costly when it is not audited is another server.
COST_WARNS = 1.4
COST_FAILS = 2.0


@check("load.11", ALL_TYPES, lambda evidence: evidence.audit is not None)
def one_answer_a_request(evidence: Evidence) -> Iterator[Finding]:
    """No answer is missing, none came unasked, no connection hung or was closed by the server."""
    audit = evidence.audit
    assert audit is not None  # noqa: S101 - needs
    if audit.unasked:
        yield Finding(
            message=f"{audit.unasked} responses came that nobody had asked for",
            expected=f"{audit.sent} responses to {audit.sent} requests",
            actual=f"{audit.received + audit.unasked}",
        )
    missing = audit.sent - audit.received - audit.unfinished
    if missing > 0 or audit.hung or audit.closed:
        yield Finding(
            message=f"{missing} of {audit.sent} requests were not answered, {audit.hung} connections hung and "
            f"{audit.closed} were closed by the server",
            expected="an answer to every request, on connections that stay open",
            actual=f"{audit.received} answers",
        )
    other = {status: count for status, count in audit.statuses.items() if not status.startswith("2")}
    if other:
        words = ", ".join(f"{count} × {status}" for status, count in sorted(other.items()))
        yield Finding(message="answers under load have other statuses than 200", expected="200", actual=words)
    if audit.unsound:
        yield Finding(
            message=f"{audit.unsound} answers under load are not framed as HTTP asks, or have another body",
            expected="whole answers with the right body",
            actual=f"{audit.unsound} of {audit.received}",
        )


@check("load.12", ALL_TYPES, lambda evidence: evidence.audit is not None and evidence.audit.cost_ratio is not None)
def audited_cost_agrees(evidence: Evidence) -> Iterator[Finding]:
    """CPU per request is the same whether the sample was audited or not."""
    ratio = evidence.audit.cost_ratio if evidence.audit else None
    if ratio is not None and ratio > COST_WARNS:
        yield Finding(
            message=f"a request costs the server {ratio:.2f} times as much CPU in an audited sample as in the others",
            expected="the same work for every request",
            actual=f"{ratio:.2f}",
            outcome=Outcome.FAIL if ratio > COST_FAILS else Outcome.WARN,
        )


CHECKS = (one_answer_a_request, audited_cost_agrees)
