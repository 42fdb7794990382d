"""Tests for the order service's rules: the expected effects of writes, and messages about differences."""

import json
from dataclasses import replace
from decimal import Decimal

import pytest

from harness.extras.orders.calls import Calls, refused
from harness.extras.orders.entities import (
    Call,
    ObservedCall,
    Order,
    OrderEvidence,
    OrderItem,
    OrdersById,
    Prices,
    expected_document,
    loaded,
)
from harness.records.verification_record import Outcome
from harness.tests.verify.subjects import exchange
from harness.verify.checks.evidence import Evidence
from harness.verify.verification import run_checks

CALLS = Calls("/orders")
PRICES = {3: Decimal("12.50"), 4: Decimal("1.00")}
CARD = "4111111111111111"


def order(total: str, card: str = CARD, **lines: tuple[int, str]) -> Order:
    found = {int(item[1:]): OrderItem(quantity=many, price=Decimal(price)) for item, (many, price) in lines.items()}
    return Order(customer=1, card=card, total=Decimal(total), lines=found)


def answer(call: Call, before: OrdersById, prices: Prices = PRICES) -> ObservedCall:
    """Return an observed call for order 5 with a successful response."""
    return ObservedCall(
        call=call, exchange=exchange('{"id": 5}', call, status=call.status), prices=prices, before=before
    )


OTHER = order("1.00", i4=(1, "1.00"))
ASKED = order("25.00", i3=(2, "12.50"))
CREATE = CALLS.create([(3, 2)])
CHANGE = CALLS.call("change card", 5, body={"card": "4" * 12})


@pytest.mark.parametrize(
    ("call", "before", "after", "named"),
    [
        (CREATE, {}, {5: ASKED}, []),
        (CREATE, {}, {6: ASKED}, ["5", "6"]),
        (CREATE, {}, {5: order("25.00", card="4", i3=(2, "12.50"))}, ["5"]),
        (CREATE, {1: OTHER}, {5: ASKED}, ["1"]),
        (CHANGE, {5: ASKED}, {5: ASKED}, ["5"]),
        (CALLS.call("delete order", 5), {1: OTHER, 5: ASKED}, {5: ASKED}, ["1", "5"]),
        (CALLS.add(5, 4, 3), {5: ASKED}, {5: order("28.00", i3=(2, "12.50"), i4=(3, "1.00"))}, []),
        (CALLS.add(5, 4, 3), {5: ASKED}, {5: order("25.00", i3=(2, "12.50"), i4=(3, "1.00"))}, ["5"]),
        (CALLS.add(5, 4, 3), {5: ASKED}, {5: order("27.00", i3=(2, "12.00"), i4=(3, "1.00"))}, ["5"]),
        (CALLS.call("delete item", 5, 3), {5: ASKED}, {5: order("0.00")}, []),
        (CALLS.call("delete order", 5, status=404), {5: ASKED}, {}, ["5"]),
    ],
)
def test_differences_are_named(call: Call, before: OrdersById, after: OrdersById, named: list[str]) -> None:
    messages = [finding.message for finding in answer(call, before).differences(after)]
    assert [message.removeprefix(f"{call}: order ").split()[0] for message in messages] == named


def test_a_change_must_return_its_own_order() -> None:
    found = exchange(json.dumps(expected_document(CHANGE, 6, OTHER)), CHANGE)
    one = ObservedCall(
        call=CHANGE, exchange=found, before={5: ASKED}, settled={5: replace(ASKED, card="4" * 12), 6: OTHER}
    )
    seen = Evidence(test_type="order", extension=OrderEvidence(observed_calls=[one]))
    assert [each.outcome for each in run_checks(seen) if each.check == "answer-agrees"] == [Outcome.FAIL]


@pytest.mark.parametrize(("quantity", "outcome"), [("2", Outcome.PASS), ("2.0", Outcome.FAIL)])
def test_an_integer_has_no_fraction(quantity: str, outcome: Outcome) -> None:
    call = CALLS.call("read order", 5)
    body = json.dumps(expected_document(call, 5, ASKED)).replace('"quantity": 2', f'"quantity": {quantity}')
    one = ObservedCall(call=call, exchange=exchange(body, call), before={5: ASKED})
    seen = Evidence(test_type="order", extension=OrderEvidence(observed_calls=[one]))
    assert [each.outcome for each in run_checks(seen) if each.check == "reads-are-current"] == [outcome]


def test_a_load_cycles_through_customers_and_items() -> None:
    prices = dict.fromkeys(range(1, 1001), Decimal("2.00"))
    first, second, *_, last = loaded(1000, prices)
    assert (first.customer, tuple(first.lines)) == (1, (1,))
    assert (second.customer, tuple(second.lines), second.total) == (2, (2,), Decimal("2.00"))
    assert (last.customer, tuple(last.lines)) == (1000, (1000,))
    rows = dict(enumerate(reversed([*loaded(3, prices)])))
    call = CALLS.call("load orders", body={"orders": 3})
    assert list(answer(call, {}, prices).differences(rows)) == []
    assert len(list(answer(call, {}, prices).differences({0: rows[0]}))) == 2
    assert [found.message for found in answer(call, {}, prices).differences({**rows, 9: OTHER})] == [
        f"{call}: order 9 contradicts the responses"
    ]


def test_documents_sort_items_by_id() -> None:
    two = order("28.00", i4=(3, "1.00"), i3=(2, "12.50"))
    items = [{"itemId": 3, "quantity": 2, "price": "12.50"}, {"itemId": 4, "quantity": 3, "price": "1.00"}]
    assert expected_document(CREATE, 5, two) == {
        "id": 5,
        "customerId": 1,
        "card": CARD,
        "total": "28.00",
        "items": items,
    }
    assert expected_document(CALLS.call("read items", 5), 5, two) == items
    assert expected_document(CALLS.call("read item", 5, 4), 5, two) == items[1]


def test_each_class_of_bad_requests_is_sent_once() -> None:
    calls = list(refused(CALLS, 5, 3, 500))
    assert {call.status for call in calls} == {400, 404, 409}
    assert (
        len({(c.declared.method, c.declared.target, c.declared.body) for c in calls if c.declared}) == len(calls) > 120
    )
