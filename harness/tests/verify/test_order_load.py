"""After a load of orders, the tables contain exactly the rows that the responses report."""

import json
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from harness.errors import LoadError
from harness.extras.orders import load as order_load
from harness.extras.orders.database import order_tables
from harness.extras.orders.entities import Order, OrderItem, OrdersById
from harness.extras.orders.load import OrderLoad, OrdersSnapshot
from harness.records.verification_record import Outcome
from harness.runtime import DatabaseAddress
from harness.runtime.database import connect
from harness.verify import verification
from harness.verify.checks import LOAD
from harness.verify.checks.after_load import read_server_state
from harness.verify.checks.evidence import Evidence
from harness.verify.checks.statement_counts import NormalisedStatement

PRICES = {1: Decimal("10.00"), 2: Decimal("2.50"), 3: Decimal("0.99"), 4: Decimal("1.00")}
VARIABLES = {"customer": 17, "card": "4000000000000001", "card2": "4000000000000002"} | {
    f"{name}{n}": n for n in range(1, 5) for name in ("item", "quantity")
}


def order(*items: int, card: str = "4000000000000001") -> Order:
    """Return an order that contains each item n in quantity n."""
    lines = {item: OrderItem(quantity=item, price=PRICES[item]) for item in items}
    total = sum((item * PRICES[item] for item in items), Decimal(0))
    return Order(customer=17, card=card, total=total, lines=lines)


def body(number: int, order: Order) -> str:
    items = [{"itemId": i, "quantity": line.quantity, "price": f"{line.price}"} for i, line in order.lines.items()]
    return json.dumps(
        {"id": number, "customerId": 17, "card": order.card, "total": f"{order.total:.2f}", "items": items}
    )


def step(operation: str, status: int | None, text: str = "") -> dict[str, object]:
    return {"operation": operation, "status": status, "body": text}


def arrival(use_case: str, number: int | None, *steps: Mapping[str, object]) -> dict[str, object]:
    """Return an arrival. Its responses are received 10, 20 and 30 ns after the start of the load."""
    timed = [{**one, "received_ns": 10 * place if one["status"] else None} for place, one in enumerate(steps, 1)]
    return {"use_case": use_case, "variables": VARIABLES, "order": number, "steps": timed, "complete": True}


def created(number: int) -> dict[str, object]:
    return step("create order", 201, body(number, order(1, 2)))


SHOP, RESCINDED = "online shop order", "rescinding an order"
CHANGED, UNWANTED = "changing payment information", "order with unwanted items"
NEW_CARD = order(1, 2, card="4000000000000002")
HONEST = (
    arrival(SHOP, 5, created(5), step("read order", 200, body(5, order(1, 2)))),
    arrival(RESCINDED, 6, created(6), step("delete order", 204)),
    arrival(CHANGED, 7, created(7), step("change card", 200, body(7, NEW_CARD))),
    arrival(
        UNWANTED,
        8,
        created(8),
        step("add item", 201, body(8, order(1, 2, 3))),
        step("delete item", 204),
        step("read items", 200, json.dumps(json.loads(body(8, order(1, 3)))["items"])),
        step("read order", 200, body(8, order(1, 3))),
    ),
)
ROWS: OrdersById = {5: order(1, 2), 7: NEW_CARD, 8: order(1, 3)}


def objections(
    tmp_path: Path,
    answers: tuple[dict[str, object], ...],
    rows: OrdersById,
    *snapshots: OrdersSnapshot,
    counts: tuple[NormalisedStatement, ...] | None = None,
) -> set[str]:
    file = tmp_path / "responses.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in answers))
    arrivals = tuple(order_load.read(file))
    load = OrderLoad(
        arrivals=arrivals, prices=PRICES, snapshots=(*snapshots, OrdersSnapshot(orders=rows)), counts=counts
    )
    results = verification.run_checks(Evidence(test_type=LOAD, extension=load))
    assert len(results) == 2 + (counts is not None)
    return {result.check for result in results if result.outcome is Outcome.FAIL}


WRONG = {"load-as-answered"}


OTHERWISE: list[dict[int, Order | None]] = [
    {5: None},
    {5: replace(order(1, 2), total=Decimal("15.01"))},
    {5: replace(order(1, 2), customer=18)},
    {5: order(1)},
    {6: order(1, 2)},
    {7: order(1, 2)},
    {8: order(1, 2, 3)},
    {9: order(1, 2)},
]


def test_wrong_rows_are_named(tmp_path: Path) -> None:
    assert objections(tmp_path, HONEST, ROWS) == set()
    for rows in OTHERWISE:
        changed = {number: found for number, found in {**ROWS, **rows}.items() if found is not None}
        assert objections(tmp_path, HONEST, changed) == WRONG, rows


@pytest.mark.parametrize(
    ("since", "above", "rows", "named"),
    [
        (5, 0, {}, set()),  # the snapshot precedes every response
        # A later request may already have deleted order 6.
        (15, 0, {5: order(1, 2), 7: order(1, 2), 8: order(1, 2)}, set()),
        (15, 0, {5: order(1, 2), 6: order(1, 2), 7: NEW_CARD, 8: order(1, 2, 3)}, set()),
        (15, 0, {5: order(1, 2), 7: order(1, 2), 8: order(1, 3)}, WRONG),  # no request can have had this effect
        (15, 0, {7: order(1, 2), 8: order(1, 2)}, WRONG),
        (15, 5, {7: order(1, 2), 8: order(1, 2)}, set()),  # snapshots omit orders with lower ids
        (25, 0, {5: order(1, 2), 7: order(1, 2), 8: order(1, 2, 3)}, WRONG),
    ],
)
def test_snapshots_contain_earlier_responses(
    tmp_path: Path, since: float, above: int, rows: dict[int, Order], named: set[str]
) -> None:
    assert objections(tmp_path, HONEST, ROWS, OrdersSnapshot(since=since, above=above, orders=rows)) == named


def test_each_order_and_each_price_has_a_statement(tmp_path: Path) -> None:
    def counts(text: str, calls: int, rows: int = 100) -> NormalisedStatement:
        return NormalisedStatement(text=text, calls=calls, rows=rows, pages=rows)

    prices, reads = "SELECT id, price FROM item WHERE id = ANY($1)", "SELECT o.id FROM orders AS o WHERE id = $1"
    insert = 'INSERT INTO public."orders" (card) VALUES ($1) RETURNING id'
    executed = {prices: 5, reads: 3, insert: 4}
    for text, calls in executed.items():
        enough = tuple(counts(other, number) for other, number in executed.items())
        assert objections(tmp_path, HONEST, ROWS, counts=enough) == set()
        fewer = tuple(counts(other, number - (other == text)) for other, number in executed.items())
        assert objections(tmp_path, HONEST, ROWS, counts=fewer) == {"load-statements"}, text
        nothing = tuple(counts(other, number, number - (other == text)) for other, number in executed.items())
        assert objections(tmp_path, HONEST, ROWS, counts=nothing) == {"load-statements"}, calls


@pytest.mark.parametrize("text", [body(5, order(1)), body(6, order(1, 2)), "", "[]", "{"])
def test_bodies_of_other_orders_are_named(tmp_path: Path, text: str) -> None:
    wrong = arrival(SHOP, 5, created(5), step("read order", 200, text))
    assert objections(tmp_path, (wrong,), {5: order(1, 2)}) == {"load-answers-agree"}


def test_orders_are_unique_and_survive_refused_deletes(tmp_path: Path) -> None:
    nameless = arrival(SHOP, None, step("create order", 201, "{}"))
    refused = arrival(RESCINDED, 6, created(6), step("delete order", 409))
    assert objections(tmp_path, (HONEST[0], HONEST[0]), {5: order(1, 2)}) == WRONG
    assert objections(tmp_path, (nameless,), {}) == WRONG
    assert objections(tmp_path, (refused,), {6: order(1, 2)}) == set()
    assert objections(tmp_path, (refused,), {}) == WRONG


@pytest.mark.parametrize("status", [None, 500, 503])
def test_requests_without_response_may_have_been_processed(tmp_path: Path, status: int | None) -> None:
    unknown = arrival(SHOP, None, step("create order", status))
    undeleted = arrival(RESCINDED, 6, created(6), step("delete order", status))
    for rows in ({}, {9: order(1, 2)}, {6: order(1, 2)}, {6: order(1, 2), 9: order(1, 2)}):
        assert objections(tmp_path, (unknown, undeleted), rows) == set()
    twice = {9: order(1, 2), 10: order(1, 2)}
    assert objections(tmp_path, (unknown, undeleted), twice) == WRONG


@pytest.mark.parametrize(
    "line", ["", "{", "[]", '{"use_case":"x","variables":{},"steps":[]}', '{"use_case":"online shop order"}']
)
def test_invalid_records_are_reported_with_their_line(tmp_path: Path, line: str) -> None:
    file = tmp_path / "responses.jsonl"
    file.write_text(json.dumps(HONEST[0]) + "\n" + line + "\n")
    with pytest.raises(LoadError, match=r"line 2 of .* is not in the load generator's format"):
        list(order_load.read(file))


def test_prices_rise_before_each_load_and_are_restored(
    database: DatabaseAddress,
) -> None:
    with connect(database, admin=True) as admin, order_tables(database) as view:
        state, prices = read_server_state(admin, database.user), view.prices()
        with order_load.observe_load(database):
            pass
        assert view.prices() == {item: price + Decimal("0.01") for item, price in prices.items()}
        assert read_server_state(admin, database.user) == state
