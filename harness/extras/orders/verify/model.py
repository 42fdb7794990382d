"""Orders as JSON has them and as the tables must hold them: what a write makes of them, and in what they differ."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from harness.extras.orders.verify.evidence import Answer, Call, Line, Order, Orders, Prices, Stepped, total
from harness.verify.checks.json_text import JsonError

ORDER_KEYS = frozenset({"id", "customerId", "card", "total", "items"})
SUMMARY_KEYS = ORDER_KEYS - {"items"}
LINE_KEYS = frozenset({"itemId", "quantity", "price"})
MONEY = re.compile(r"(0|[1-9][0-9]*)\.[0-9]{2}")


def document(answer: Answer) -> object:
    """The document of an answer; None where it has none."""
    try:
        return answer.document
    except JsonError:
        return None


def amount(value: object) -> Decimal | None:
    """Money, also where it is a number."""
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,15}(\.[0-9]{1,10})?", value):
        return Decimal(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return round(Decimal(str(value)), 2) if abs(value) < 1e15 else None
    return None


def whole(value: object) -> int | None:
    """An integer; a boolean is none."""
    return value if type(value) is int else None


def line_of(value: object) -> tuple[int, Line] | None:
    """An item of an order with its id."""
    if not isinstance(value, dict):
        return None
    item, quantity, price = whole(value.get("itemId")), whole(value.get("quantity")), amount(value.get("price"))
    return None if item is None or quantity is None or price is None else (item, Line(quantity=quantity, price=price))


def lines_of(value: object) -> Mapping[int, Line] | None:
    """All items of an array; None where one cannot be read or comes twice."""
    if not isinstance(value, list):
        return None
    found = [line for line in map(line_of, value) if line]
    return dict(found) if len(found) == len(value) == len(dict(found)) else None


def order_of(value: object, *, summary: bool = False) -> tuple[int, Order] | None:
    """An order with its id; a summary has no items."""
    if not isinstance(value, dict):
        return None
    number, customer, card = whole(value.get("id")), whole(value.get("customerId")), value.get("card")
    total, lines = amount(value.get("total")), {} if summary else lines_of(value.get("items"))
    if number is None or customer is None or not isinstance(card, str) or total is None or lines is None:
        return None
    return number, Order(customer=customer, card=card, total=total, lines=lines)


def monies(value: object) -> list[object]:
    """Every ``total`` and ``price`` of a document, however deep."""
    if isinstance(value, dict):
        own = [value[key] for key in ("total", "price") if key in value]
        return own + [money for inner in value.values() for money in monies(inner)]
    return [money for inner in value for money in monies(inner)] if isinstance(value, list) else []


def told(order: Order | None) -> str:
    """An order as a message shows it."""
    if order is None:
        return "no order"
    lines = ", ".join(f"{line.quantity} of item {item} at {line.price}" for item, line in sorted(order.lines.items()))
    return f"customer {order.customer}, card {order.card}, total {order.total}: {lines or 'no items'}"


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


def applied(asked: Call | Stepped, order: Order | None, prices: Prices) -> Order | None:
    """The order that a request is about once it is carried out; None where it is gone."""
    if asked.operation == "create order":
        order = Order(customer=asked.customer, card=asked.card, total=Decimal(0), lines={})
    if order is None or asked.operation == "delete order":
        return None
    lines: Mapping[int, Line] = order.lines
    if asked.operation in ("create order", "add item"):
        added = {item: Line(quantity=many, price=prices.get(item, Decimal(0))) for item, many in asked.lines}
        lines = {**lines, **added}
    elif asked.operation == "delete item":
        lines = {item: line for item, line in lines.items() if item != asked.item}
    card = asked.card if asked.operation == "change card" else order.card
    return Order(customer=order.customer, card=card, total=total(lines), lines=lines)


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
    yield from _subject(answer, applied(call, before.get(call.order), prices), subject, state, beside)


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
