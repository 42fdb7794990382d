"""Audited samples: every request has one answer, and what it cost is what it costs when nobody looks.

An audit is a load like any other (same connections, same bytes, same loop) by a generator that keeps an account of each
request; the bodies of a random share of the answers, all of them for update, go through every other check as well.
"""

import math
import statistics
from collections.abc import Iterator

from harness.records.models import CheckResult, Outcome
from harness.verify.checks import ALL_TYPES, Finding, check
from harness.verify.checks.evidence import Audit, Evidence

# CPU per request of one sample on a shared machine has a standard deviation of 17 % between processes and less within
# one: a server that is half as costly when it is not audited is another server. A compiler that is still at work makes
# whatever comes first the dearer: a difference is looked at again, in the other order, before anybody is blamed for it.
COST_WARNS = 1.4
COST_FAILS = 2.0
# On fewer connections a request costs mostly that server and client wake each other, which depends on whether they
# share a CPU: 22 to 117 us between processes of one server at one connection, 19 to 22 at a hundred (two CPUs).
COST_CONNECTIONS = 8


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
    elif audit.unasked_bytes:
        yield Finding(
            message=f"{audit.unasked_bytes} bytes came that belong to no response",
            expected="the next response begins where the last one ends",
            actual=f"{audit.unasked_bytes} bytes",
        )
    missing = audit.sent - audit.received - audit.unfinished
    if missing > 0 or audit.hung or audit.closed:
        yield Finding(
            message=f"{missing} of {audit.sent} requests were not answered, {audit.hung} connections hung and "
            f"{audit.closed} were closed by the server",
            expected="an answer to every request, on connections that stay open",
            actual=f"{audit.received} answers",
        )
    other = {status: count for status, count in audit.statuses.items() if status != "200"}
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


def suspicious(ratio: float) -> bool:
    """Whether one look at the cost asks for a second one."""
    return ratio > COST_WARNS


def cost(test_type: str, *ratios: float) -> CheckResult:
    """``audited-cost-agrees`` for CPU seconds a request in an audit ÷ those in the samples beside it, one a look.

    The looks are taken in opposite orders, so that their geometric mean is free of what drifts steadily; a difference
    that is not in each of them is none, and one look alone warns at most.
    """
    agreed = math.exp(statistics.fmean(math.log(ratio) for ratio in ratios))
    if len(ratios) == 1:
        agreed = min(agreed, COST_FAILS)
    if not all(suspicious(ratio) for ratio in ratios):
        agreed = min(agreed, COST_WARNS)
    account = Audit(
        sent=0,
        received=0,
        unasked=0,
        unasked_bytes=0,
        unfinished=0,
        hung=0,
        closed=0,
        unsound=0,
        statuses={},
        cost_ratio=agreed,
    )
    return audited_cost_agrees.run(Evidence(test_type=test_type, url="", audit=account))
