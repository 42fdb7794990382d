"""The test type ``order``, which measures a REST service for orders.

The load consists of use cases, such as creating and reading an order. Each start of a use case is an arrival. The
arrival rates and the number of requests are those of the talk "Investigating the performance of reactive libraries in a
Quarkus microservice".
"""

from harness.plan.scenarios import Body, RequestStep, UseCase
from harness.plan.testtypes import TestType

CREATE = "create order"  # first operation of every use case; its response time determines the ranking


def _create(items: int) -> RequestStep:
    lines: list[Body] = [{"itemId": f"$item{n}", "quantity": f"$quantity{n}"} for n in range(1, items + 1)]
    return RequestStep(
        operation=CREATE,
        method="POST",
        path="/orders",
        body={"customerId": "$customer", "card": "$card", "items": lines},
        status=201,
        capture={"order": "/id"},
    )


def _add(n: int) -> RequestStep:
    return RequestStep(
        operation="add item",
        method="POST",
        path=f"/orders/$order/items/$item{n}",
        body={"quantity": f"$quantity{n}"},
        status=201,
    )


_READ = RequestStep(operation="read order", method="GET", path="/orders/$order", status=200)
_DELETE = RequestStep(operation="delete order", method="DELETE", path="/orders/$order", status=204)
_CHANGE_CARD = RequestStep(
    operation="change card", method="PUT", path="/orders/$order", body={"card": "$card2"}, status=200
)
_READ_ITEMS = RequestStep(operation="read items", method="GET", path="/orders/$order/items", status=200)
_DELETE_ITEM = RequestStep(operation="delete item", method="DELETE", path="/orders/$order/items/$item2", status=204)

USE_CASES: tuple[UseCase, ...] = (
    UseCase(name="online shop order", arrivals_per_minute=300, steps=(_create(2), _READ)),
    UseCase(name="rescinding an order", arrivals_per_minute=50, steps=(_create(2), _DELETE)),
    UseCase(name="changing payment information", arrivals_per_minute=50, steps=(_create(2), _CHANGE_CARD)),
    UseCase(name="order with multiple items", arrivals_per_minute=25, steps=(_create(1), _add(2), _add(3), _add(4))),
    UseCase(
        name="order with unwanted items",
        arrivals_per_minute=20,
        # Delete an item of the original order, so that the total changes.
        steps=(_create(2), _add(3), _DELETE_ITEM, _READ_ITEMS, _READ),
    ),
)

ORDER = TestType(
    name="order",
    title="Order service",
    response_shape="documents",
    sweep="arrivals",
    reads_database=True,
    writes_database=True,
    techempower=False,
    use_cases=USE_CASES,
    ranked_operation=CREATE,
    footnote=(
        "open loop with Poisson arrivals; ×1 means 445 arrivals (1,000 requests) per minute in five use cases; "
        "response times are measured from the due time; µs CPU/arrival and µs database are the CPU time of the server "
        "and of PostgreSQL per arrival"
    ),
)
