"""Each answered write is in the tables: as asked, once, in one transaction, before the answer, nothing beside it."""

from collections.abc import Iterator

from harness.extras.orders.verify.answers import body
from harness.extras.orders.verify.evidence import OrderEvidence, Write, of_orders
from harness.extras.orders.verify.model import Kind, differences, document, order_of, told
from harness.records.models import Outcome
from harness.verify.checks import Finding


def _good(seen: OrderEvidence) -> Iterator[Write]:
    return (write for write in seen.writes if write.answer.good)


def _different(seen: OrderEvidence, kind: Kind) -> Iterator[Finding]:
    for write in _good(seen):
        for found in differences(write.answer, write.prices, write.before, write.settled):
            if found.kind == kind:
                yield Finding(found.message, expected=found.expected, actual=found.actual)


@of_orders("order.12")
def tables_seen(seen: OrderEvidence) -> Iterator[Finding]:
    """The database can be looked at."""
    if seen.unseen:
        yield Finding(seen.unseen, outcome=Outcome.WARN)


@of_orders("order.13", lambda seen: bool(seen.writes))
def order_stored(seen: OrderEvidence) -> Iterator[Finding]:
    """The order is there with what was asked for."""
    yield from _different(seen, "stored")


@of_orders("order.14", lambda seen: bool(seen.writes))
def order_once(seen: OrderEvidence) -> Iterator[Finding]:
    """It is there once."""
    yield from _different(seen, "once")


@of_orders("order.15", lambda seen: bool(seen.writes))
def price_of_the_item(seen: OrderEvidence) -> Iterator[Finding]:
    """Its items have the prices that the table ``item`` held when it was made."""
    yield from _different(seen, "price")


@of_orders("order.16", lambda seen: bool(seen.writes))
def total_of_the_items(seen: OrderEvidence) -> Iterator[Finding]:
    """Its total is the sum of its items."""
    yield from _different(seen, "total")


@of_orders("order.17", lambda seen: bool(seen.writes))
def order_deleted(seen: OrderEvidence) -> Iterator[Finding]:
    """A deleted order is gone, with its items."""
    yield from _different(seen, "deleted")


@of_orders("order.18", lambda seen: bool(seen.writes))
def no_other_order_changed(seen: OrderEvidence) -> Iterator[Finding]:
    """Nothing else has changed."""
    yield from _different(seen, "other")


@of_orders("order.19", lambda seen: bool(seen.writes))
def orders_loaded(seen: OrderEvidence) -> Iterator[Finding]:
    """A load of orders is the one that was asked for."""
    yield from _different(seen, "load")
    for write in _good(seen):
        if write.answer.call.operation == "load orders" and document(write.answer) != {
            "created": write.answer.call.count
        }:
            yield Finding(
                f"{write.answer.call}: another number",
                expected=f'{{"created":{write.answer.call.count}}}',
                actual=body(write.answer),
            )


@of_orders("order.20", lambda seen: bool(seen.writes))
def answer_agrees(seen: OrderEvidence) -> Iterator[Finding]:
    """What a write answers is what the tables hold then."""
    for write in _good(seen):
        found = order_of(document(write.answer))
        stored = write.settled.get(found[0]) if found else None
        if found and stored and found[1] != stored:
            yield Finding(
                f"{write.answer.call}: the answer is not the order that is stored",
                expected=told(stored),
                actual=told(found[1]),
            )


@of_orders("order.21", lambda seen: bool(seen.writes))
def committed_before_answered(seen: OrderEvidence) -> Iterator[Finding]:
    """The answer comes after the commit."""
    for write in _good(seen):
        late = next(differences(write.answer, write.prices, write.before, write.after), None)
        if late and next(differences(write.answer, write.prices, write.before, write.settled), None) is None:
            yield Finding(
                f"{late.message}, when the answer comes; a little later it is",
                expected=late.expected,
                actual=late.actual,
            )
    for held in seen.held:
        for answer in held.early:
            yield Finding(
                f"{answer.call}: answered while its transaction could not commit",
                expected="no answer before the commit",
                actual=f"{answer.status}: {body(answer)}",
            )
        if held.stuck:
            yield Finding(held.stuck, expected="no transaction open once all is answered", actual="one is")


@of_orders("order.22", lambda seen: any(h.seen for h in seen.held))
def one_transaction(seen: OrderEvidence) -> Iterator[Finding]:
    """Order, items and total become visible together."""
    for held in seen.held:
        for state in held.seen:
            for number, order in state.items():
                if held.before.get(number) != order and (order.total != order.sum or not order.lines):
                    yield Finding(
                        f"order {number} could be read while only a part of it was written",
                        expected="an order whose total is the sum of its items",
                        actual=told(order),
                    )
