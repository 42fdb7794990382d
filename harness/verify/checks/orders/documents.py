"""Orders as JSON has them: read generously, so that what is answered is compared however it is spelt."""

import re
from collections.abc import Mapping
from decimal import Decimal

from harness.verify.checks.json_text import JsonError
from harness.verify.checks.order_evidence import Answer, Line, Order

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
