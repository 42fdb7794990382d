"""What an order service must refuse, with a problem and without a trace: bad orders, unknown ones, an item twice."""

from collections.abc import Iterator

from harness.verify.checks import Check, Finding, check
from harness.verify.checks.evidence import Evidence
from harness.verify.checks.http import parse_media_type
from harness.verify.checks.order_evidence import Answer
from harness.verify.checks.orders.answers import ORDER, body, has_orders
from harness.verify.checks.orders.documents import document, told


def _refused(evidence: Evidence, status: int) -> Iterator[Finding]:
    """Those that had to be refused with this status, and were not."""
    assert evidence.orders is not None  # noqa: S101 - needs
    for answer in evidence.orders.answers:
        if answer.call.status == status and answer.response is not None and not answer.good:
            yield Finding(
                message=f"{answer.call}: status {answer.status}",
                expected=f"{status}",
                actual=f"{answer.status}: {body(answer)}",
            )


@check("order.7", ORDER, has_orders)
def bad_orders_refused(evidence: Evidence) -> Iterator[Finding]:
    """What is no order, or speaks of what there is not, is 400."""
    yield from _refused(evidence, 400)


@check("order.8", ORDER, has_orders)
def unknown_orders(evidence: Evidence) -> Iterator[Finding]:
    """An order or an item of it that there is not is 404."""
    yield from _refused(evidence, 404)


@check("order.9", ORDER, has_orders)
def item_already_there(evidence: Evidence) -> Iterator[Finding]:
    """An item that is in the order is not added again: 409."""
    yield from _refused(evidence, 409)


def _refusals(evidence: Evidence) -> Iterator[Answer]:
    assert evidence.orders is not None  # noqa: S101 - needs
    return (a for a in evidence.orders.answers if a.call.status >= 400 and (a.status or 0) >= 400)


@check("order.10", ORDER, has_orders)
def problem_details(evidence: Evidence) -> Iterator[Finding]:
    """A refusal is a problem of RFC 9457, with its own status."""
    for answer in _refusals(evidence):
        value = (answer.response.get("content-type") if answer.response else None) or ""
        found = document(answer)
        if parse_media_type(value)[0] != "application/problem+json":
            yield Finding(
                message=f"{answer.call}: the problem's Content-Type",
                expected="application/problem+json",
                actual=value or "none",
            )
        elif (
            not isinstance(found, dict)
            or found.get("status") != answer.status
            or not all(isinstance(found.get(key), str) for key in ("title", "detail", "type"))
        ):
            yield Finding(
                message=f"{answer.call}: not a problem of RFC 9457",
                expected=f'{{"type","title","status":{answer.status},"detail"}}',
                actual=body(answer),
            )


@check("order.11", ORDER, lambda evidence: bool(evidence.orders and evidence.orders.refusals))
def refused_changes_nothing(evidence: Evidence) -> Iterator[Finding]:
    """What is refused leaves the tables as they were."""
    assert evidence.orders is not None  # noqa: S101 - needs
    for refusal in evidence.orders.refusals:
        if (refusal.answer.status or 0) < 400 or refusal.before == refusal.after:
            continue
        numbers = refusal.before.keys() | refusal.after.keys()
        number = next(n for n in sorted(numbers) if refusal.before.get(n) != refusal.after.get(n))
        yield Finding(
            message=f"{refusal.answer.call}: was refused, and changed order {number} all the same",
            expected=told(refusal.before.get(number)),
            actual=told(refusal.after.get(number)),
        )


CHECKS: tuple[Check, ...] = (
    bad_orders_refused,
    unknown_orders,
    item_already_there,
    problem_details,
    refused_changes_nothing,
)
