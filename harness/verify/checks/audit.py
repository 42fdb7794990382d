"""Every request of a load has one answer, by the generator's account."""

from collections.abc import Iterator

from harness.verify.checks import ALL_TYPES, Finding, check
from harness.verify.checks.evidence import Evidence


@check("load.11", ALL_TYPES, lambda evidence: evidence.account is not None)
def one_answer_a_request(evidence: Evidence) -> Iterator[Finding]:
    """No answer is missing, none came unasked, no connection hung or was closed by the server."""
    account = evidence.account
    assert account is not None  # noqa: S101 - needs
    if account.unasked:
        yield Finding(
            message=f"{account.unasked} responses came that nobody had asked for",
            expected=f"{account.sent} responses to {account.sent} requests",
            actual=f"{account.received + account.unasked}",
        )
    elif account.unasked_bytes:
        yield Finding(
            message=f"{account.unasked_bytes} bytes came that belong to no response",
            expected="the next response begins where the last one ends",
            actual=f"{account.unasked_bytes} bytes",
        )
    missing = account.sent - account.received - account.unfinished
    if missing > 0 or account.hung or account.closed:
        yield Finding(
            message=f"{missing} of {account.sent} requests were not answered, {account.hung} connections hung and "
            f"{account.closed} were closed by the server",
            expected="an answer to every request, on connections that stay open",
            actual=f"{account.received} answers",
        )
    other = {status: count for status, count in account.statuses.items() if status != "200"}
    if other:
        words = ", ".join(f"{count} × {status}" for status, count in sorted(other.items()))
        yield Finding(message="answers under load have other statuses than 200", expected="200", actual=words)
    if account.unsound:
        yield Finding(
            message=f"{account.unsound} answers under load are not framed as HTTP asks, or have another body",
            expected="whole answers with the right body",
            actual=f"{account.unsound} of {account.received}",
        )


CHECKS = (one_answer_a_request,)
