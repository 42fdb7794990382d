"""Each answered write is in the tables: as asked, once, in one transaction, before the answer, nothing beside it."""

from collections.abc import Iterator

from harness.records.models import Outcome
from harness.verify.checks import Check, Finding, check
from harness.verify.checks.evidence import Evidence
from harness.verify.checks.order_evidence import Write
from harness.verify.checks.orders.answers import ORDER, body, has_orders
from harness.verify.checks.orders.documents import document, order_of, told
from harness.verify.checks.orders.model import Kind, differences


def has_writes(evidence: Evidence) -> bool:
    """Whether the tables were looked at around writes."""
    return bool(evidence.orders and evidence.orders.writes)


def _good(evidence: Evidence) -> Iterator[Write]:
    assert evidence.orders is not None  # noqa: S101 - needs
    return (write for write in evidence.orders.writes if write.answer.good)


def _different(evidence: Evidence, kind: Kind) -> Iterator[Finding]:
    for write in _good(evidence):
        for found in differences(write.answer, write.prices, write.before, write.settled):
            if found.kind == kind:
                yield Finding(message=found.message, expected=found.expected, actual=found.actual)


@check("order.12", ORDER, has_orders)
def tables_seen(evidence: Evidence) -> Iterator[Finding]:
    """The database can be looked at."""
    assert evidence.orders is not None  # noqa: S101 - needs
    if evidence.orders.unseen:
        yield Finding(message=evidence.orders.unseen, outcome=Outcome.WARN)


@check("order.13", ORDER, has_writes)
def order_stored(evidence: Evidence) -> Iterator[Finding]:
    """The order is there with what was asked for."""
    yield from _different(evidence, "stored")


@check("order.14", ORDER, has_writes)
def order_once(evidence: Evidence) -> Iterator[Finding]:
    """It is there once."""
    yield from _different(evidence, "once")


@check("order.15", ORDER, has_writes)
def price_of_the_item(evidence: Evidence) -> Iterator[Finding]:
    """Its items have the prices that the table ``item`` held when it was made."""
    yield from _different(evidence, "price")


@check("order.16", ORDER, has_writes)
def total_of_the_items(evidence: Evidence) -> Iterator[Finding]:
    """Its total is the sum of its items."""
    yield from _different(evidence, "total")


@check("order.17", ORDER, has_writes)
def order_deleted(evidence: Evidence) -> Iterator[Finding]:
    """A deleted order is gone, with its items."""
    yield from _different(evidence, "deleted")


@check("order.18", ORDER, has_writes)
def no_other_order_changed(evidence: Evidence) -> Iterator[Finding]:
    """Nothing else has changed."""
    yield from _different(evidence, "other")


@check("order.19", ORDER, has_writes)
def orders_loaded(evidence: Evidence) -> Iterator[Finding]:
    """A load of orders is the one that was asked for."""
    yield from _different(evidence, "load")
    for write in _good(evidence):
        if write.answer.call.operation == "load orders" and document(write.answer) != {
            "created": write.answer.call.count
        }:
            yield Finding(
                message=f"{write.answer.call}: another number",
                expected=f'{{"created":{write.answer.call.count}}}',
                actual=body(write.answer),
            )


@check("order.20", ORDER, has_writes)
def answer_agrees(evidence: Evidence) -> Iterator[Finding]:
    """What a write answers is what the tables hold then."""
    for write in _good(evidence):
        found = order_of(document(write.answer))
        stored = write.settled.get(found[0]) if found else None
        if found and stored and found[1] != stored:
            yield Finding(
                message=f"{write.answer.call}: the answer is not the order that is stored",
                expected=told(stored),
                actual=told(found[1]),
            )


@check("order.21", ORDER, has_writes)
def committed_before_answered(evidence: Evidence) -> Iterator[Finding]:
    """The answer comes after the commit."""
    assert evidence.orders is not None  # noqa: S101 - needs
    for write in _good(evidence):
        late = next(differences(write.answer, write.prices, write.before, write.after), None)
        if late and next(differences(write.answer, write.prices, write.before, write.settled), None) is None:
            yield Finding(
                message=f"{late.message}, when the answer comes; a little later it is",
                expected=late.expected,
                actual=late.actual,
            )
    for held in evidence.orders.held:
        for answer in held.early:
            yield Finding(
                message=f"{answer.call}: answered while its transaction could not commit",
                expected="no answer before the commit",
                actual=f"{answer.status}: {body(answer)}",
            )
        if held.stuck:
            yield Finding(message=held.stuck, expected="no transaction open once all is answered", actual="one is")


@check("order.22", ORDER, lambda evidence: bool(evidence.orders and any(h.seen for h in evidence.orders.held)))
def one_transaction(evidence: Evidence) -> Iterator[Finding]:
    """Order, items and total become visible together."""
    assert evidence.orders is not None  # noqa: S101 - needs
    for held in evidence.orders.held:
        for state in held.seen:
            for number, order in state.items():
                if held.before.get(number) != order and (order.total != order.sum or not order.lines):
                    yield Finding(
                        message=f"order {number} could be read while only a part of it was written",
                        expected="an order whose total is the sum of its items",
                        actual=told(order),
                    )


CHECKS: tuple[Check, ...] = (
    tables_seen,
    order_stored,
    order_once,
    price_of_the_item,
    total_of_the_items,
    order_deleted,
    no_other_order_changed,
    orders_loaded,
    answer_agrees,
    committed_before_answered,
    one_transaction,
)
