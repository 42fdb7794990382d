"""The use cases of the order service: how often each arrives, and the dependent requests that an arrival makes.

Rates and numbers of requests follow the talk "Investigating the performance of reactive libraries in a Quarkus
microservice"; docs/load-generator.md says how the load is made. A ``$name`` in a path or body is a variable: drawn
for the arrival (``$customer``, ``$card``, ``$item1``, ``$quantity1`` and so on), or captured from an earlier answer.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

CREATE = "create order"  # the operation that all use cases begin with, by which implementations are ranked

Body: TypeAlias = "Mapping[str, Body] | list[Body] | str | int"


@dataclass(frozen=True, kw_only=True)
class RequestStep:
    """One request of an arrival, due when the answer before it is complete."""

    operation: str
    method: Literal["GET", "POST", "PUT", "DELETE"]
    path: str
    body: Mapping[str, Body] | None = None  # sent as JSON; a string that is one integer variable becomes an integer
    status: int  # of a good answer: any other ends the arrival
    capture: Mapping[str, str] = field(default_factory=dict)  # variable: JSON pointer into the answer

    @property
    def planned(self) -> dict[str, object]:
        """As the generator reads it; what it has not is absent."""
        return {"name" if key == "operation" else key: value for key, value in vars(self).items() if value}


@dataclass(frozen=True, kw_only=True)
class UseCase:
    """What one kind of customer does."""

    name: str
    arrivals_per_minute: float  # at factor 1
    steps: tuple[RequestStep, ...]


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
        # What is taken out was there from the start: the total is another than the first one's.
        steps=(_create(2), _add(3), _DELETE_ITEM, _READ_ITEMS, _READ),
    ),
)


def plan(factor: float) -> dict[str, object]:
    """The generator's plan.json at a factor; its rates are arrivals/s."""
    return {
        "use_cases": [
            {
                "name": case.name,
                "rate": case.arrivals_per_minute * factor / 60,
                "steps": [step.planned for step in case.steps],
            }
            for case in USE_CASES
        ]
    }
