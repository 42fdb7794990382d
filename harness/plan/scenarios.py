"""Use cases of a scenario: customers' arrival rates, and the sequence of requests that each customer sends.

docs/load-generator.md describes scenario loads. A ``$name`` in a path or body is a variable. The value is drawn at
random for each customer (``$customer``, ``$card``, ``$item1``, ``$quantity1``) or captured from an earlier response.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Body: TypeAlias = "Mapping[str, Body] | list[Body] | str | int"


@dataclass(frozen=True, kw_only=True)
class RequestStep:
    """A request of a use case. It is due when the customer arrives or the response to the previous step is complete."""

    operation: str
    method: Literal["GET", "POST", "PUT", "DELETE"]
    path: str
    # Sent as JSON. A string that consists only of a variable becomes an integer if the variable's value is an integer.
    body: Mapping[str, Body] | None = None
    status: int  # expected status; after any other status, the customer sends no further requests
    capture: Mapping[str, str] = field(default_factory=dict)  # variable -> JSON pointer into the response

    @property
    def planned(self) -> dict[str, object]:
        """The step in the format of the load generator's plan.json. Empty members are omitted."""
        return {"name" if key == "operation" else key: value for key, value in vars(self).items() if value}


@dataclass(frozen=True, kw_only=True)
class UseCase:
    """A sequence of requests, and the arrival rate of the customers who send them."""

    name: str
    arrivals_per_minute: float  # arrival rate at load factor 1
    steps: tuple[RequestStep, ...]


def plan(use_cases: Sequence[UseCase], factor: float) -> dict[str, object]:
    """Return the content of the load generator's plan.json for a load factor. Rates are in arrivals/s."""
    return {
        "use_cases": [
            {
                "name": case.name,
                "rate": case.arrivals_per_minute * factor / 60,
                "steps": [step.planned for step in case.steps],
            }
            for case in use_cases
        ]
    }
