"""Use cases of a scenario: their arrival rates, and the dependent requests of each arrival.

docs/load-generator.md describes this kind of load. A ``$name`` in a path or body is a variable. Variables are either
drawn at random for the arrival (``$customer``, ``$card``, ``$item1``, ``$quantity1``) or captured from an earlier
response.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Body: TypeAlias = "Mapping[str, Body] | list[Body] | str | int"


@dataclass(frozen=True, kw_only=True)
class RequestStep:
    """A request of an arrival. The request is due when the previous response is complete."""

    operation: str
    method: Literal["GET", "POST", "PUT", "DELETE"]
    path: str
    # Sent as JSON; a string that consists of an integer variable becomes an integer.
    body: Mapping[str, Body] | None = None
    status: int  # expected status; any other status ends the arrival
    capture: Mapping[str, str] = field(default_factory=dict)  # variable -> JSON pointer into the response

    @property
    def planned(self) -> dict[str, object]:
        """The step as a member of the load generator's plan. Empty members are omitted."""
        return {"name" if key == "operation" else key: value for key, value in vars(self).items() if value}


@dataclass(frozen=True, kw_only=True)
class UseCase:
    """The requests that customers of the same kind make."""

    name: str
    arrivals_per_minute: float  # at factor 1
    steps: tuple[RequestStep, ...]


def plan(use_cases: Sequence[UseCase], factor: float) -> dict[str, object]:
    """Return the content of the load generator's plan.json at a load factor. Rates are in arrivals/s."""
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
