"""The model of orders: JSON documents and table rows, evidence of verification, and the effects of writes."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, TypeVar, cast

from harness.plan.requests import Expect
from harness.verify.checks import Check, Finding, check
from harness.verify.checks.evidence import Evidence, Exchange, QueryVariant

CARD = "4111111111111111"  # card number of the orders that a load creates
SEEDED_ROWS = 1_000  # number of seeded customers, and of seeded items
READ_OPERATIONS = frozenset({"list orders", "read order", "read items", "read item"})

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class OrderItem:
    """A row of ``order_item``."""

    quantity: int
    price: Decimal  # price per piece when the item was ordered


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """A row of ``orders`` with the items of the order by item id."""

    customer: int
    card: str
    total: Decimal
    lines: Mapping[int, OrderItem]

    @property
    def asked(self) -> tuple[int, str, dict[int, int]]:
        """Return the client's part of the order: customer, card, and the quantity of each item."""
        return self.customer, self.card, {item: line.quantity for item, line in self.lines.items()}


def total(lines: Mapping[int, OrderItem]) -> Decimal:
    """Return the sum of quantity times price over all items."""
    return sum((line.quantity * line.price for line in lines.values()), Decimal(0))


OrdersById = Mapping[int, Order]  # id -> order
Prices = Mapping[int, Decimal]  # item id -> price in the table ``item``


@dataclass(frozen=True, kw_only=True)
class Call(QueryVariant):
    """A request and its meaning. ``name`` describes a special property such as an invalid value."""

    name: str = ""
    operation: str
    status: int  # expected status
    order: int = 0  # order id; 0 for a new order, or for no order
    item: int = 0
    document: Mapping[str, Any] = field(default_factory=dict)  # the request body
    limit: int = 0  # limit of the requested list

    @property
    def lines(self) -> dict[int, int]:
        """Return the quantities of the requested items by item id."""
        if self.operation == "add item":
            return {self.item: int(self.document["quantity"])}
        return {int(one["itemId"]): int(one["quantity"]) for one in self.document.get("items", ())}

    @property
    def reads(self) -> bool:
        """Return whether the operation is read-only."""
        return self.operation in READ_OPERATIONS

    def __str__(self) -> str:
        """Return the request as text for messages: method, target and name."""
        begin = f"{self.declared.method} {self.declared.target}" if self.declared else self.operation
        return begin + (f" ({self.name})" if self.name else "")


@dataclass(frozen=True, kw_only=True)
class ObservedCall:
    """A call with its response, and the tables before and after it; ``before`` is None if the tables were not read."""

    call: Call
    exchange: Exchange
    prices: Prices = field(default_factory=dict)
    before: OrdersById | None = None
    after: OrdersById = field(default_factory=dict)  # tables immediately after the response
    # Tables a little later, if ``after`` was unexpected; otherwise the same as ``after``.
    settled: OrdersById = field(default_factory=dict)
    changed: bool = False  # whether the call reads rows that tfb has changed in the database

    @property
    def status(self) -> int | None:
        """Return the status of the response, or None without a response."""
        return self.exchange.response.status if self.exchange.response else None

    @property
    def good(self) -> bool:
        """Return whether the response has the expected status."""
        return self.status == self.call.status

    @property
    def wrote(self) -> bool:
        """Return whether the response confirms that an order was created or changed.

        Return False if the tables were not read.
        """
        call = self.call
        says_so = self.good and call.status < 300 and not call.reads
        return says_so and self.before is not None and (not call.order or call.order in self.before)

    @property
    def document(self) -> Any:  # noqa: ANN401 - any JSON value
        """Return the JSON document of the response, or None without a valid document."""
        return None if isinstance(self.exchange.document, ValueError) else self.exchange.document

    @property
    def fits(self) -> bool:
        """Return whether the document matches the API description. A separate check reports mismatches."""
        expect = self.call.declared.expect if self.call.declared else Expect()
        return expect.json_schema is not None and expect.schema_validator.is_valid(self.document)

    @property
    def id(self) -> int | None:
        """Return the order id in the response body, or None without an id."""
        number = self.document.get("id") if isinstance(self.document, dict) else None
        return number if type(number) is int else None

    def differences(self, state: OrdersById) -> Iterator[Finding]:
        """Yield the differences between ``state`` and the tables that this write should produce."""
        for found in differences([self], self.before or {}, state, self.prices):
            yield replace(found, message=f"{self.call}: {found.message}")


@dataclass(frozen=True, kw_only=True)
class Crowd:
    """Concurrent calls on several connections with the tables around them. Commits may have been held back."""

    observed_calls: tuple[ObservedCall, ...]  # in order on each connection
    before: OrdersById
    prices: Prices = field(default_factory=dict)
    after: OrdersById = field(default_factory=dict)  # tables when the server is idle again
    early: tuple[ObservedCall, ...] = ()  # responses received while no transaction could commit
    seen: tuple[OrdersById, ...] = ()  # tables after each part of the commits was released
    stuck: str | None = None  # reason why the tables remained locked: an open transaction


@dataclass(kw_only=True)
class OrderEvidence:
    """The evidence about an order service. Parts that were not examined are empty."""

    observed_calls: list[ObservedCall] = field(default_factory=list)  # calls that were sent one after the other
    crowds: list[Crowd] = field(default_factory=list)
    unseen: str | None = None  # reason why the tables were unreadable


def judging(
    kind: type[T], test_type: str, rule: str, needs: Callable[[T], bool] = lambda _: True
) -> Callable[[Callable[[T], Iterator[Finding]]], Check]:
    """Return a decorator that turns a function of ``Evidence.extension`` into a check.

    Args:
        kind: Type of the extension.
        test_type: Test type of the check.
        rule: Name of the rule in docs/requirements.md.
        needs: Condition of the extension for the check to apply.
    """

    def make(function: Callable[[T], Iterator[Finding]]) -> Check:
        def find(evidence: Evidence) -> Iterator[Finding]:
            return function(cast("T", evidence.extension))

        find.__name__ = getattr(function, "__name__", "")
        return check(rule, frozenset({test_type}), lambda e: isinstance(e.extension, kind) and needs(e.extension))(find)

    return make


# ---- responses -------------------------------------------------------------------------------------------------------


def wanted(call: Call, number: int, order: Order) -> object:
    """Return the expected document in a successful response about an order; for a list, the entry of the order."""
    head = {"id": number, "customerId": order.customer, "card": order.card, "total": f"{order.total:.2f}"}
    items = [
        {"itemId": item, "quantity": line.quantity, "price": f"{line.price:.2f}"}
        for item, line in sorted(order.lines.items())
    ]
    one = next((item for item in items if item["itemId"] == call.item), None)
    documents = {"list orders": head, "read items": items, "read item": one}
    return documents.get(call.operation, {**head, "items": items})


def same(found: object, expected: object) -> bool:
    """Return whether two documents are equal as JSON. The order of members does not matter, and 2.0 differs from 2."""
    return json.dumps(found, sort_keys=True) == json.dumps(expected, sort_keys=True)


def told(order: Order | None) -> str:
    """Format an order for a message."""
    if order is None:
        return "no order"
    lines = ", ".join(f"{line.quantity} of item {item} at {line.price}" for item, line in sorted(order.lines.items()))
    return f"customer {order.customer}, card {order.card}, total {order.total}: {lines or 'no items'}"


# ---- effects of writes on the tables ---------------------------------------------------------------------------------


def applied(call: Call, order: Order | None, prices: Prices) -> Order | None:
    """Return an order after a request has been carried out, or None if the order no longer exists."""
    if call.operation == "create order":
        customer = int(call.document["customerId"])
        order = Order(customer=customer, card=call.document["card"], total=Decimal(0), lines={})
    if order is None or call.operation == "delete order":
        return None
    added = {item: OrderItem(quantity=many, price=prices.get(item, Decimal(0))) for item, many in call.lines.items()}
    gone = call.item if call.operation == "delete item" else 0
    lines = {item: line for item, line in {**order.lines, **added}.items() if item != gone}
    card = call.document["card"] if call.operation == "change card" else order.card
    return Order(customer=order.customer, card=card, total=total(lines), lines=lines)


def differences(
    observed_calls: Iterable[ObservedCall], before: OrdersById, after: OrdersById, prices: Prices
) -> Iterator[Finding]:
    """Yield the differences between ``after`` and the tables that result from applying the writes in sequence."""
    expected: dict[int, Order | None] = dict(before)
    many = Counter[str]()  # orders created by "load orders", whose response contains no ids
    for observed in observed_calls:
        call, number = observed.call, observed.call.order or observed.id
        if not observed.good or call.status >= 400:
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
            yield Finding(f"order {number} contradicts the responses", expected=told(due), actual=told(there))
    for order, count in (+many).items():
        yield Finding("orders of a load were not created", expected=order, actual=f"{count} missing")


def loaded(count: int, prices: Prices) -> Iterator[Order]:
    """Yield the orders that "load orders" creates for a given count."""
    for number in range(count):
        item = 1 + number % SEEDED_ROWS
        line = OrderItem(quantity=1, price=prices.get(item, Decimal(0)))
        yield Order(customer=item, card=CARD, total=line.price, lines={item: line})
