"""Orders as JSON has them and as the tables hold them, what was seen of them, and what a write makes of them."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal, TypeVar

from harness.verify.checks import Applies, Check, Finding, check
from harness.verify.checks.evidence import UNREADABLE, Case, Evidence, Exchange

LOADED_CARD = "4111111111111111"
SEEDED = 1_000  # customers, and items

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """A row of ``order_item``."""

    quantity: int
    price: Decimal  # of one piece, when it was ordered


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """A row of ``orders`` with its items, by the id of the item."""

    customer: int
    card: str
    total: Decimal
    lines: Mapping[int, Line]

    @property
    def sum(self) -> Decimal:
        """What the total must be."""
        return total(self.lines)

    @property
    def quantities(self) -> dict[int, int]:
        """Of each item."""
        return {item: line.quantity for item, line in self.lines.items()}


def total(lines: Mapping[int, Line]) -> Decimal:
    """What items cost together."""
    return sum((line.quantity * line.price for line in lines.values()), Decimal(0))


Orders = Mapping[int, Order]  # all of the table, by id
Prices = Mapping[int, Decimal]  # of the table ``item``, by id


@dataclass(frozen=True, kw_only=True)
class Call(Case):
    """One request, and what it means; ``name`` says what is odd about it."""

    operation: str
    order: int = 0  # that it is about; 0: a new one, or none
    item: int = 0
    customer: int = 0
    card: str = ""
    lines: tuple[tuple[int, int], ...] = ()  # item and quantity that are asked for
    many: int = 0  # orders of a load, or of a list

    @property
    def status(self) -> int:
        """That must come."""
        return self.asked.expect.status if self.asked else 200

    def __str__(self) -> str:
        """The request as a person names it."""
        begin = f"{self.asked.method} {self.asked.target}" if self.asked else self.operation
        return begin + (f" ({self.name})" if self.name else "")


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A call, what came of it, and what the tables held; None where they were not looked at."""

    call: Call
    exchange: Exchange
    prices: Prices = field(default_factory=dict)
    before: Orders | None = None
    after: Orders | None = None  # at once
    settled: Orders | None = None  # a while later, where it was not at once what it should be
    changed: bool = False  # a read: the rows were changed behind the server since it was asked last

    @property
    def status(self) -> int | None:
        """Of the response."""
        return self.exchange.response.status if self.exchange.response else None

    @property
    def good(self) -> bool:
        """Whether the status is the one that must come."""
        return self.status == self.call.status

    @property
    def wrote(self) -> bool:
        """Whether it says that it has changed an order that was there, or made one, and the tables were looked at."""
        writes = self.call.asked is not None and self.call.asked.method != "GET" and self.call.status < 300
        return (
            writes and self.good and self.before is not None and (not self.call.order or self.call.order in self.before)
        )

    @property
    def document(self) -> object:
        """The JSON document; None where there is none."""
        return None if self.exchange.parsed is UNREADABLE else self.exchange.parsed


@dataclass(frozen=True, kw_only=True)
class Held:
    """Writes under way while no transaction could commit: who answered all the same, and what became visible."""

    before: Orders
    early: tuple[Answer, ...] = ()  # came while the commit was held
    seen: tuple[Orders, ...] = ()  # the tables while a part of the commits was let through
    stuck: str | None = None  # why the tables could not be had: a transaction that is left open


@dataclass(frozen=True, kw_only=True)
class Crowd:
    """Many calls at once, on several connections, and the tables around them."""

    answers: tuple[Answer, ...]
    before: Orders
    after: Orders


@dataclass(kw_only=True)
class OrderEvidence:
    """All that was seen of one order service; what was not looked at is empty."""

    answers: list[Answer] = field(default_factory=list)  # one call at a time
    held: list[Held] = field(default_factory=list)
    crowds: list[Crowd] = field(default_factory=list)
    unseen: str | None = None  # why the database could not be looked at


def judging(
    kind: type[T], where: Applies | frozenset[str], rule: str, needs: Callable[[T], bool] = lambda _: True
) -> Callable[[Callable[[T], Iterator[Finding]]], Check]:
    """Make a check of a function of what was seen in the extension (``harness.verify.checks.check``)."""

    def make(function: Callable[[T], Iterator[Finding]]) -> Check:
        def find(evidence: Evidence) -> Iterator[Finding]:
            return function(evidence.extension) if isinstance(evidence.extension, kind) else iter(())

        find.__name__ = getattr(function, "__name__", "")
        return check(rule, where, lambda e: isinstance(e.extension, kind) and needs(e.extension))(find)

    return make


# ---- JSON ------------------------------------------------------------------------------------------------------------


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
    cost, lines = amount(value.get("total")), {} if summary else lines_of(value.get("items"))
    if number is None or customer is None or not isinstance(card, str) or cost is None or lines is None:
        return None
    return number, Order(customer=customer, card=card, total=cost, lines=lines)


def told(order: Order | None) -> str:
    """An order as a message shows it."""
    if order is None:
        return "no order"
    lines = ", ".join(f"{line.quantity} of item {item} at {line.price}" for item, line in sorted(order.lines.items()))
    return f"customer {order.customer}, card {order.card}, total {order.total}: {lines or 'no items'}"


def answered_id(answer: Answer) -> int | None:
    """The id of the order that an answer speaks of: its body's, or else its Location's."""
    value = answer.document
    if isinstance(value, dict) and type(value.get("id")) is int:
        return int(value["id"])
    digits = (answer.exchange.header("location") or "").rpartition("/")[2]
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 20 else None


# ---- what a write makes of the tables --------------------------------------------------------------------------------

Kind = Literal["stored", "once", "total", "price", "deleted", "other", "load"]
Difference = tuple[Kind, Finding]  # one thing in which the tables are not what a write should have made of them


def applied(call: Call, order: Order | None, prices: Prices) -> Order | None:
    """The order that a request is about once it is carried out; None where it is gone."""
    if call.operation == "create order":
        order = Order(customer=call.customer, card=call.card, total=Decimal(0), lines={})
    if order is None or call.operation == "delete order":
        return None
    lines: Mapping[int, Line] = order.lines
    if call.operation in ("create order", "add item"):
        added = {item: Line(quantity=many, price=prices.get(item, Decimal(0))) for item, many in call.lines}
        lines = {**lines, **added}
    elif call.operation == "delete item":
        lines = {item: line for item, line in lines.items() if item != call.item}
    card = call.card if call.operation == "change card" else order.card
    return Order(customer=order.customer, card=card, total=total(lines), lines=lines)


def differences(answer: Answer, state: Orders) -> Iterator[Difference]:
    """In what the tables differ from what an answered write must have made of those of before."""
    call, before = answer.call, answer.before or {}
    new = sorted(state.keys() - before.keys())
    subject: int | None = call.order
    if call.operation == "load orders":
        yield from _loaded(answer, [state[number] for number in new])
    elif call.operation == "create order":
        answered = answered_id(answer)
        subject = answered if answered is not None or not new else new[0]
        if len(new) > 1:
            orders = f"{len(new)} orders: {', '.join(map(str, new))}"
            yield "once", _finding(call, "it is there more than once", "1 new order", orders)
    else:
        for number in new:
            yield "other", _finding(call, f"order {number} came out of nowhere", "no order", told(state[number]))
    for number in before:
        if number != subject and state.get(number) != before[number]:
            message = f"order {number} changed, which nobody asked for"
            yield "other", _finding(call, message, told(before[number]), told(state.get(number)))
    if call.operation != "load orders":
        expected = applied(call, before.get(call.order), answer.prices)
        yield from _subject(call, expected, subject, state, [number for number in new if number != subject])


def _subject(
    call: Call, expected: Order | None, subject: int | None, state: Orders, beside: list[int]
) -> Iterator[Difference]:
    found = None if subject is None else state.get(subject)
    if expected is None:
        if found is not None:
            yield "deleted", _finding(call, f"order {subject} is still there", "no order", told(found))
        return
    if found is None:
        other = f"; order {beside[0]} is, which the answer does not name" if beside else ""
        yield "stored", _finding(call, f"order {subject} is not in the table{other}", told(expected), "no such row")
        return
    if (found.customer, found.card, found.quantities) != (expected.customer, expected.card, expected.quantities):
        yield "stored", _finding(call, f"order {subject} is stored otherwise", told(expected), told(found))
    for item in sorted(expected.lines.keys() & found.lines.keys()):
        if found.lines[item].price != expected.lines[item].price:
            message = f"item {item} of order {subject} has a price that the table item does not hold"
            yield "price", _finding(call, message, f"{expected.lines[item].price}", f"{found.lines[item].price}")
    if found.total != found.sum:
        message = f"order {subject}: the total is not the sum of quantity and price of its items"
        yield "total", _finding(call, message, f"{found.sum}", f"{found.total}")


def loaded(count: int, prices: Prices) -> list[Order]:
    """The orders that a load of so many makes."""
    found = []
    for number in range(count):
        item = 1 + number % SEEDED
        line = Line(quantity=1, price=prices.get(item, Decimal(0)))
        order = Order(customer=1 + number % SEEDED, card=LOADED_CARD, total=line.price, lines={item: line})
        found.append(order)
    return found


def _loaded(answer: Answer, new: list[Order]) -> Iterator[Difference]:
    made, wished = sorted(map(told, new)), sorted(map(told, loaded(answer.call.many, answer.prices)))
    if len(made) != len(wished):
        yield "load", _finding(answer.call, "another number of orders was made", f"{len(wished)}", f"{len(made)}")
    elif made != wished:
        first = next((w, m) for w, m in zip(wished, made, strict=True) if w != m)
        yield "load", _finding(answer.call, "other orders were made", *first)


def _finding(call: Call, message: str, expected: str, actual: str) -> Finding:
    return Finding(f"{call}: {message}", expected=expected, actual=actual)
