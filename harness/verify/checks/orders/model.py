"""What a write of the order service must make of the tables, and in what they differ from it. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from harness.verify.checks.order_evidence import Answer, Call, Line, Order, Orders, Prices
from harness.verify.checks.orders.documents import document, order_of, told

Kind = Literal["stored", "once", "total", "price", "deleted", "other", "load"]
LOADED_CARD = "4111111111111111"
SEEDED = 1_000  # customers, and items


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One thing in which the tables are not what a write should have made of them."""

    kind: Kind
    message: str
    expected: str
    actual: str


def answered_id(answer: Answer) -> int | None:
    """The id of the order that an answer speaks of: its body's, or else its Location's."""
    found = order_of(document(answer))
    if found:
        return found[0]
    value = document(answer)
    if isinstance(value, dict) and type(value.get("id")) is int:
        return int(value["id"])
    digits = ((answer.response.get("location") if answer.response else None) or "").rpartition("/")[2]
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 20 else None


def wanted(call: Call, before: Orders, prices: Prices) -> Order | None:
    """The order that a call is about as it must be afterwards; None where it must be gone."""
    zero = Decimal(0)
    if call.operation == "create order":
        old = Order(customer=call.customer, card=call.card, total=zero, lines={})
    else:
        old = before[call.order]
    lines: Mapping[int, Line] = old.lines
    if call.operation in ("create order", "add item"):
        added = {item: Line(quantity=quantity, price=prices.get(item, zero)) for item, quantity in call.lines}
        lines = {**lines, **added}
    elif call.operation == "delete item":
        lines = {item: line for item, line in lines.items() if item != call.item}
    elif call.operation == "delete order":
        return None
    card = call.card if call.operation == "change card" else old.card
    new = Order(customer=old.customer, card=card, total=zero, lines=lines)
    return Order(customer=new.customer, card=new.card, total=new.sum, lines=lines)


def differences(answer: Answer, prices: Prices, before: Orders, state: Orders) -> Iterator[Difference]:
    """In what the tables differ from what an answered write must have made of them."""
    call = answer.call
    if call.operation == "load orders":
        yield from _loaded(call, prices, before, state)
        return
    new = sorted(state.keys() - before.keys())
    if call.operation == "create order":
        subject = _created(answered_id(answer), new)
        beside = [number for number in new if number != subject]
        if len(new) > 1:
            orders = f"{len(new)} orders: {', '.join(map(str, new))}"
            yield _difference("once", call, "it is there more than once", "1 new order", orders)
    else:
        subject, beside = call.order, new
        for number in new:
            yield _difference("other", call, f"order {number} came out of nowhere", "no order", told(state[number]))
    for number in before:
        if number != subject and state.get(number) != before[number]:
            message = f"order {number} changed, which nobody asked for"
            yield _difference("other", call, message, told(before[number]), told(state.get(number)))
    yield from _subject(answer, wanted(call, before, prices), subject, state, beside)


def _created(answered: int | None, new: list[int]) -> int | None:
    """Which of the new orders the answer speaks of."""
    if answered in new or not new:
        return answered
    return None if answered is not None else new[0]


def _subject(
    answer: Answer, expected: Order | None, subject: int | None, state: Orders, beside: list[int]
) -> Iterator[Difference]:
    call = answer.call
    found = state.get(subject) if subject is not None else None
    if expected is None:
        if found is not None:
            yield _difference("deleted", call, f"order {subject} is still there", "no order", told(found))
        return
    if found is None:
        other = f"; order {beside[0]} is, which the answer does not name" if beside else ""
        message = f"order {answered_id(answer) or subject} is not in the table{other}"
        yield _difference("stored", call, message, told(expected), "no such row")
        return
    asked = {item: line.quantity for item, line in expected.lines.items()}
    stored = {item: line.quantity for item, line in found.lines.items()}
    if (found.customer, found.card, stored) != (expected.customer, expected.card, asked):
        yield _difference("stored", call, f"order {subject} is stored otherwise", told(expected), told(found))
    for item in sorted(asked.keys() & stored.keys()):
        if found.lines[item].price != expected.lines[item].price:
            message = f"item {item} of order {subject} has a price that the table item does not hold"
            yield _difference("price", call, message, f"{expected.lines[item].price}", f"{found.lines[item].price}")
    if found.total != found.sum:
        message = f"order {subject}: the total is not the sum of quantity and price of its items"
        yield _difference("total", call, message, f"{found.sum}", f"{found.total}")


def loaded(count: int, prices: Prices) -> list[Order]:
    """The orders that a load of so many makes."""
    found = []
    for number in range(count):
        item = 1 + number % SEEDED
        line = Line(quantity=1, price=prices.get(item, Decimal(0)))
        order = Order(customer=1 + number % SEEDED, card=LOADED_CARD, total=line.price, lines={item: line})
        found.append(order)
    return found


def _loaded(call: Call, prices: Prices, before: Orders, state: Orders) -> Iterator[Difference]:
    made = sorted(map(told, (state[number] for number in state.keys() - before.keys())))
    wished = sorted(map(told, loaded(call.count, prices)))
    if len(made) != len(wished):
        yield _difference("load", call, "another number of orders was made", f"{len(wished)}", f"{len(made)}")
    elif made != wished:
        first = next((w, m) for w, m in zip(wished, made, strict=True) if w != m)
        yield _difference("load", call, "other orders were made", *first)
    for number in before:
        if state.get(number) != before[number]:
            message = f"order {number} changed, which nobody asked for"
            yield _difference("other", call, message, told(before[number]), told(state.get(number)))


def _difference(kind: Kind, call: Call, message: str, expected: str, actual: str) -> Difference:
    return Difference(kind=kind, message=f"{call}: {message}", expected=expected, actual=actual)
