"""Models orders as JSON documents and table rows, and computes how writes must change the tables."""

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
SEEDED_ROWS = 1_000  # number of customers in the seed data; also the number of items
READ_OPERATIONS = frozenset({"list orders", "read order", "read items", "read item"})

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class OrderItem:
    """A row of ``order_item``."""

    quantity: int
    price: Decimal  # unit price when the item was ordered


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """An order: a row of ``orders``, and the rows of the ordered items by item id."""

    customer: int
    card: str
    total: Decimal
    lines: Mapping[int, OrderItem]

    @property
    def asked(self) -> tuple[int, str, dict[int, int]]:
        """Return the values that the client sent: customer, card, and the quantity of each item."""
        return self.customer, self.card, {item: line.quantity for item, line in self.lines.items()}


def total(lines: Mapping[int, OrderItem]) -> Decimal:
    """Return the sum of quantity times price over all items."""
    return sum((line.quantity * line.price for line in lines.values()), Decimal(0))


OrdersById = Mapping[int, Order]  # id -> order
Prices = Mapping[int, Decimal]  # item id -> price in the table ``item``


@dataclass(frozen=True, kw_only=True)
class Call(QueryVariant):
    """A request with the operation, ids and expected status. ``name`` describes the case, such as a bad value."""

    name: str = ""
    operation: str
    status: int  # expected status code
    order: int = 0  # order id; 0 if the order is new or the path has no id
    item: int = 0
    document: Mapping[str, Any] = field(default_factory=dict)  # the request body
    limit: int = 0  # maximum length of the requested list; 0 for the default

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
    """A call with the response, and the tables before and after the call.

    ``before`` is None if the tables were not read before the call.
    """

    call: Call
    exchange: Exchange
    prices: Prices = field(default_factory=dict)
    before: OrdersById | None = None
    after: OrdersById = field(default_factory=dict)  # tables immediately after the response
    # The tables shortly afterwards if ``after`` was not as expected, otherwise the same as ``after``.
    settled: OrdersById = field(default_factory=dict)
    changed: bool = False  # whether the call reads rows that tfb has changed in the database

    @property
    def status(self) -> int | None:
        """Return the status of the response, or None if there is no response."""
        return self.exchange.response.status if self.exchange.response else None

    @property
    def good(self) -> bool:
        """Return whether the response has the expected status."""
        return self.status == self.call.status

    @property
    def wrote(self) -> bool:
        """Return whether the call is a successful write that can be checked.

        It can be checked if tfb read the tables before the call and, if the path contains an order id, the order
        existed.
        """
        call = self.call
        says_so = self.good and call.status < 300 and not call.reads
        return says_so and self.before is not None and (not call.order or call.order in self.before)

    @property
    def document(self) -> Any:  # noqa: ANN401 - any JSON value
        """Return the response's JSON document, or None if there is no valid JSON body."""
        return None if isinstance(self.exchange.document, ValueError) else self.exchange.document

    @property
    def fits(self) -> bool:
        """Return whether the document matches the JSON schema in the API description."""
        expect = self.call.declared.expect if self.call.declared else Expect()
        return expect.json_schema is not None and expect.schema_validator.is_valid(self.document)

    @property
    def id(self) -> int | None:
        """Return the order id in the response body, or None if it has no id."""
        number = self.document.get("id") if isinstance(self.document, dict) else None
        return number if type(number) is int else None

    def differences(self, state: OrdersById) -> Iterator[Finding]:
        """Yield the differences between ``state`` and the tables that this call should produce."""
        for finding in differences([self], self.before or {}, state, self.prices):
            yield replace(finding, message=f"{self.call}: {finding.message}")


@dataclass(frozen=True, kw_only=True)
class Crowd:
    """Concurrent calls on several connections, with the tables before and after the calls."""

    observed_calls: tuple[ObservedCall, ...]  # calls on the same connection are in the order sent
    before: OrdersById
    prices: Prices = field(default_factory=dict)
    after: OrdersById = field(default_factory=dict)  # tables when the server is idle again
    early_calls: tuple[ObservedCall, ...] = ()  # calls that succeeded before any transaction could commit
    # Snapshots of the tables, taken each time that tfb has unblocked commits to a table (``ORDERS``, ``ITEMS``).
    visible_states: tuple[OrdersById, ...] = ()
    deadlock: str | None = None  # error message if an open transaction blocked the tables


@dataclass(kw_only=True)
class OrderEvidence:
    """Evidence about an order service. A list is empty if tfb did not send the corresponding calls."""

    observed_calls: list[ObservedCall] = field(default_factory=list)  # sequential calls
    crowds: list[Crowd] = field(default_factory=list)
    unseen: str | None = None  # why the tables could not be read


def judging(
    kind: type[T],
    test_type: str,
    rule: str,
    needs: Callable[[T], bool] = lambda _: True,
    *,
    stricter: bool = False,
) -> Callable[[Callable[[T], Iterator[Finding]]], Check]:
    """Return a decorator that turns a function of ``Evidence.extension`` into a check.

    The check applies only if the extension is a ``kind`` for which ``needs`` returns True. ``stricter`` marks a rule
    that TechEmpower lacks.
    """

    def make(function: Callable[[T], Iterator[Finding]]) -> Check:
        def find(evidence: Evidence) -> Iterator[Finding]:
            return function(cast("T", evidence.extension))

        find.__name__ = getattr(function, "__name__", "")
        return check(
            rule,
            frozenset({test_type}),
            lambda e: isinstance(e.extension, kind) and needs(e.extension),
            stricter=stricter,
        )(find)

    return make


# ---- Expected response bodies ----------------------------------------------------------------------------------------


def expected_document(call: Call, number: int, order: Order) -> object:
    """Return the JSON document that a successful response must contain; for "list orders", this order's list entry."""
    order_document = {"id": number, "customerId": order.customer, "card": order.card, "total": f"{order.total:.2f}"}
    items = [
        {"itemId": item, "quantity": line.quantity, "price": f"{line.price:.2f}"}
        for item, line in sorted(order.lines.items())
    ]
    item_document = next((item for item in items if item["itemId"] == call.item), None)
    documents = {"list orders": order_document, "read items": items, "read item": item_document}
    return documents.get(call.operation, {**order_document, "items": items})


def equal_json(actual: object, expected: object) -> bool:
    """Return whether two documents are equal as JSON. The order of members does not matter, and 2.0 differs from 2."""
    return json.dumps(actual, sort_keys=True) == json.dumps(expected, sort_keys=True)


def format_order(order: Order | None) -> str:
    """Format an order for a message."""
    if order is None:
        return "no order"
    lines = ", ".join(f"{line.quantity} of item {item} at {line.price}" for item, line in sorted(order.lines.items()))
    return f"customer {order.customer}, card {order.card}, total {order.total}: {lines or 'no items'}"


# ---- Expected table rows after writes --------------------------------------------------------------------------------


def applied(call: Call, order: Order | None, prices: Prices) -> Order | None:
    """Return an order's state after a successful call, or None if the order no longer exists."""
    if call.operation == "create order":
        customer = int(call.document["customerId"])
        order = Order(customer=customer, card=call.document["card"], total=Decimal(0), lines={})
    if order is None or call.operation == "delete order":
        return None
    added = {
        item: OrderItem(quantity=quantity, price=prices.get(item, Decimal(0))) for item, quantity in call.lines.items()
    }
    deleted_item = call.item if call.operation == "delete item" else 0
    lines = {item: line for item, line in {**order.lines, **added}.items() if item != deleted_item}
    card = call.document["card"] if call.operation == "change card" else order.card
    return Order(customer=order.customer, card=card, total=total(lines), lines=lines)


def differences(
    observed_calls: Iterable[ObservedCall], before: OrdersById, after: OrdersById, prices: Prices
) -> Iterator[Finding]:
    """Apply the writes to ``before`` in sequence, and yield the differences between the result and ``after``."""
    expected: dict[int, Order | None] = dict(before)
    unidentified = Counter[str]()  # orders created by "load orders", whose response contains no ids
    for observed in observed_calls:
        call, number = observed.call, observed.call.order or observed.id
        if not observed.good or call.status >= 400:
            continue
        if call.operation == "load orders":
            unidentified.update(map(format_order, loaded(call.document["orders"], prices)))
        elif number is not None:
            expected[number] = applied(call, expected.get(number), prices)
    for number in sorted(expected.keys() | after.keys()):
        expected_order, actual_order = expected.get(number), after.get(number)
        if number not in expected and unidentified[format_order(actual_order)] > 0:
            unidentified[format_order(actual_order)] -= 1
        elif expected_order != actual_order:
            yield Finding(
                f"order {number} contradicts the responses",
                expected=format_order(expected_order),
                actual=format_order(actual_order),
            )
    for order, count in (+unidentified).items():
        yield Finding('"load orders" did not create all orders', expected=order, actual=f"{count} missing")


def loaded(count: int, prices: Prices) -> Iterator[Order]:
    """Yield the orders that "load orders" must create for the given count."""
    for number in range(count):
        item = 1 + number % SEEDED_ROWS
        line = OrderItem(quantity=1, price=prices.get(item, Decimal(0)))
        yield Order(customer=item, card=CARD, total=line.price, lines={item: line})
