"""Orders as JSON has them and as the tables hold them, what was seen of them, and what a write makes of them."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, TypeVar, cast

from harness.plan.requests import Expect
from harness.verify.checks import Check, Finding, check
from harness.verify.checks.evidence import Case, Evidence, Exchange

CARD = "4111111111111111"  # of the orders of a load
SEEDED = 1_000  # customers, and items
READS = frozenset({"list orders", "read order", "read items", "read item"})

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
    def asked(self) -> tuple[int, str, dict[int, int]]:
        """What a client says of it: customer, card, and how many of each item."""
        return self.customer, self.card, {item: line.quantity for item, line in self.lines.items()}


def total(lines: Mapping[int, Line]) -> Decimal:
    """What items cost together."""
    return sum((line.quantity * line.price for line in lines.values()), Decimal(0))


Orders = Mapping[int, Order]  # all of the table, by id
Prices = Mapping[int, Decimal]  # of the table ``item``, by id


@dataclass(frozen=True, kw_only=True)
class Call(Case):
    """One request, and what it means; ``name`` says what is odd about it."""

    name: str = ""
    operation: str
    status: int  # that must come
    order: int = 0  # that it is about; 0: a new one, or none
    item: int = 0
    document: Mapping[str, Any] = field(default_factory=dict)  # that is sent
    limit: int = 0  # of a list

    @property
    def lines(self) -> dict[int, int]:
        """Quantities of the items that are asked for."""
        if self.operation == "add item":
            return {self.item: int(self.document["quantity"])}
        return {int(one["itemId"]): int(one["quantity"]) for one in self.document.get("items", ())}

    @property
    def reads(self) -> bool:
        """Whether it changes nothing."""
        return self.operation in READS

    def __str__(self) -> str:
        """The request as a person names it."""
        begin = f"{self.asked.method} {self.asked.target}" if self.asked else self.operation
        return begin + (f" ({self.name})" if self.name else "")


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A call, what came of it, and what the tables held; ``before`` is None where they were not looked at."""

    call: Call
    exchange: Exchange
    prices: Prices = field(default_factory=dict)
    before: Orders | None = None
    after: Orders = field(default_factory=dict)  # at once
    settled: Orders = field(default_factory=dict)  # a while later, where it was not at once what it should be
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
        call = self.call
        says_so = self.good and call.status < 300 and not call.reads
        return says_so and self.before is not None and (not call.order or call.order in self.before)

    @property
    def document(self) -> Any:  # noqa: ANN401 - whatever JSON has
        """The JSON document; None where there is none."""
        return None if isinstance(self.exchange.parsed, ValueError) else self.exchange.parsed

    @property
    def fits(self) -> bool:
        """Whether the document is one of those that the description has come: what is not, another check finds."""
        expect = self.call.asked.expect if self.call.asked else Expect()
        return expect.json_schema is not None and expect.schema_validator.is_valid(self.document)

    @property
    def id(self) -> int | None:
        """Of the order that the body holds."""
        number = self.document.get("id") if isinstance(self.document, dict) else None
        return number if type(number) is int else None

    def differences(self, state: Orders) -> Iterator[Finding]:
        """In what the tables are not what this write must have made of those of before."""
        for found in differences([self], self.before or {}, state, self.prices):
            yield replace(found, message=f"{self.call}: {found.message}")


@dataclass(frozen=True, kw_only=True)
class Crowd:
    """Many calls at once, on several connections, and the tables around them; commits may be held up meanwhile."""

    answers: tuple[Answer, ...]  # those of a connection in their order
    before: Orders
    prices: Prices = field(default_factory=dict)
    after: Orders = field(default_factory=dict)  # once nobody is at work any more
    early: tuple[Answer, ...] = ()  # came while no transaction could commit
    seen: tuple[Orders, ...] = ()  # the tables while a part of the commits was let through
    stuck: str | None = None  # why the tables could not be had: a transaction that is left open


@dataclass(kw_only=True)
class OrderEvidence:
    """All that was seen of one order service; what was not looked at is empty."""

    answers: list[Answer] = field(default_factory=list)  # one call at a time
    crowds: list[Crowd] = field(default_factory=list)
    unseen: str | None = None  # why the database could not be looked at


def judging(
    kind: type[T], test_type: str, rule: str, needs: Callable[[T], bool] = lambda _: True
) -> Callable[[Callable[[T], Iterator[Finding]]], Check]:
    """Make a check of a function of what was seen in the extension (``harness.verify.checks.check``)."""

    def make(function: Callable[[T], Iterator[Finding]]) -> Check:
        def find(evidence: Evidence) -> Iterator[Finding]:
            return function(cast("T", evidence.extension))

        find.__name__ = getattr(function, "__name__", "")
        return check(rule, frozenset({test_type}), lambda e: isinstance(e.extension, kind) and needs(e.extension))(find)

    return make


# ---- answers ---------------------------------------------------------------------------------------------------------


def wanted(call: Call, number: int, order: Order) -> object:
    """The document that a good answer of this order holds; of a list its part."""
    head = {"id": number, "customerId": order.customer, "card": order.card, "total": f"{order.total:.2f}"}
    items = [
        {"itemId": item, "quantity": line.quantity, "price": f"{line.price:.2f}"}
        for item, line in sorted(order.lines.items())
    ]
    one = next((item for item in items if item["itemId"] == call.item), None)
    documents = {"list orders": head, "read items": items, "read item": one}
    return documents.get(call.operation, {**head, "items": items})


def same(found: object, expected: object) -> bool:
    """Whether documents are equal as JSON, in which 2.0 is no integer; names may stand in any order."""
    return json.dumps(found, sort_keys=True) == json.dumps(expected, sort_keys=True)


def told(order: Order | None) -> str:
    """An order as a message shows it."""
    if order is None:
        return "no order"
    lines = ", ".join(f"{line.quantity} of item {item} at {line.price}" for item, line in sorted(order.lines.items()))
    return f"customer {order.customer}, card {order.card}, total {order.total}: {lines or 'no items'}"


# ---- what a write makes of the tables --------------------------------------------------------------------------------


def applied(call: Call, order: Order | None, prices: Prices) -> Order | None:
    """The order that a request is about once it is carried out; None where it is gone."""
    if call.operation == "create order":
        customer = int(call.document["customerId"])
        order = Order(customer=customer, card=call.document["card"], total=Decimal(0), lines={})
    if order is None or call.operation == "delete order":
        return None
    added = {item: Line(quantity=many, price=prices.get(item, Decimal(0))) for item, many in call.lines.items()}
    gone = call.item if call.operation == "delete item" else 0
    lines = {item: line for item, line in {**order.lines, **added}.items() if item != gone}
    card = call.document["card"] if call.operation == "change card" else order.card
    return Order(customer=order.customer, card=card, total=total(lines), lines=lines)


def differences(answers: Iterable[Answer], before: Orders, after: Orders, prices: Prices) -> Iterator[Finding]:
    """In what the tables are not as these answered writes must have left them, one after the other."""
    expected: dict[int, Order | None] = dict(before)
    many = Counter[str]()  # that were made by a load, whose ids nobody is told
    for answer in answers:
        call, number = answer.call, answer.call.order or answer.id
        if not answer.good or call.status >= 400:
            continue
        if call.operation == "load orders":
            many.update(map(told, loaded(call.document["orders"], prices)))
        elif number is not None:
            expected[number] = applied(call, expected.get(number), prices)
    for number in sorted(expected.keys() | after.keys()):
        due, there = expected.get(number), after.get(number)
        if number not in expected and many[told(there)] > 0:
            many[told(there)] -= 1
        elif due != there:
            yield Finding(f"order {number} is not as was answered", expected=told(due), actual=told(there))
    for order, count in (+many).items():
        yield Finding("orders of a load were not made", expected=order, actual=f"{count} fewer")


def loaded(count: int, prices: Prices) -> Iterator[Order]:
    """The orders that a load of so many makes."""
    for number in range(count):
        item = 1 + number % SEEDED
        line = Line(quantity=1, price=prices.get(item, Decimal(0)))
        yield Order(customer=item, card=CARD, total=line.price, lines={item: line})
