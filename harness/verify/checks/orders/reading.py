"""What an order service reads is what the tables hold when it is asked, also where others have changed them."""

from collections.abc import Iterator

from harness.verify.checks import Check, Finding, check, shown
from harness.verify.checks.evidence import Evidence
from harness.verify.checks.order_evidence import Order, Read
from harness.verify.checks.orders.answers import ORDER, body
from harness.verify.checks.orders.documents import document, line_of, lines_of, order_of, told, whole


def has_reads(evidence: Evidence) -> bool:
    """Whether reads can be held against the tables."""
    return bool(evidence.orders and evidence.orders.reads)


@check("order.23", ORDER, has_reads)
def reads_are_current(evidence: Evidence) -> Iterator[Finding]:
    """A read answers what was committed before it: nothing is kept between requests."""
    assert evidence.orders is not None  # noqa: S101 - needs
    for read in evidence.orders.reads:
        if read.answer.response is None or not (read.answer.good or read.changed) or _agrees(read):
            continue  # another status than it should be is another check's business
        order = read.held.get(read.answer.call.order)
        listed = read.answer.call.operation == "list orders"
        yield Finding(
            message=f"{read.answer.call}: not what the tables hold"
            + (", which were changed behind the server" if read.changed else ""),
            expected="the newest orders as they are" if listed else told(order),
            actual=f"{read.answer.status}: {body(read.answer)}",
        )


def _agrees(read: Read) -> bool:
    """Whether the answer is that of the rows; what cannot be read at all is another check's business."""
    call, found = read.answer.call, document(read.answer)
    order = read.held.get(call.order)
    if call.operation == "list orders":
        one_by_one = [order_of(one, summary=True) for one in found] if isinstance(found, list) else []
        summaries = {one[0]: one[1] for one in one_by_one if one}
        return all(_head(summaries[n]) == _head(read.held[n]) for n in summaries if n in read.held)
    if read.answer.status == 404:
        return order is None
    if read.answer.status != 200 or order is None:
        return False
    match call.operation:
        case "read items":
            lines = lines_of(found)
            return lines is None or lines == order.lines
        case "read item":
            line = line_of(found)
            return line is None or (line[0] == call.item and order.lines.get(call.item) == line[1])
        case _:
            whole_order = order_of(found)
            return whole_order is None or whole_order == (call.order, order)


def _head(order: Order) -> tuple[object, ...]:
    return order.customer, order.card, order.total


@check("order.24", ORDER, has_reads)
def newest_first(evidence: Evidence) -> Iterator[Finding]:
    """The list holds the newest orders, as many as asked for, the highest id first."""
    assert evidence.orders is not None  # noqa: S101 - needs
    for read in evidence.orders.reads:
        found = document(read.answer)
        if read.answer.call.operation != "list orders" or not read.answer.good or not isinstance(found, list):
            continue
        ids = [whole(one.get("id")) if isinstance(one, dict) else None for one in found]
        expected = sorted(read.held, reverse=True)[: read.answer.call.count]
        if ids != expected:
            yield Finding(
                message=f"{read.answer.call}: other orders than the newest {read.answer.call.count}",
                expected=shown(f"{expected}"),
                actual=shown(f"{ids}"),
            )


CHECKS: tuple[Check, ...] = (reads_are_current, newest_first)
