"""Use cases of a scenario: how often each arrives, and the dependent requests that an arrival makes.

docs/load-generator.md describes the load. A ``$name`` in a path or body is a variable. It is drawn for the arrival
(``$customer``, ``$card``, ``$item1``, ``$quantity1`` and so on) or captured from an earlier response.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Body: TypeAlias = "Mapping[str, Body] | list[Body] | str | int"


@dataclass(frozen=True, kw_only=True)
class RequestStep:
    """One request of an arrival, due when the previous response is complete."""

    operation: str
    method: Literal["GET", "POST", "PUT", "DELETE"]
    path: str
    body: Mapping[str, Body] | None = None  # sent as JSON; a string that is one integer variable becomes an integer
    status: int  # of a good response; any other status ends the arrival
    capture: Mapping[str, str] = field(default_factory=dict)  # variable -> JSON pointer into the response

    @property
    def planned(self) -> dict[str, object]:
        """The step in the load generator's plan, without empty members."""
        return {"name" if key == "operation" else key: value for key, value in vars(self).items() if value}


@dataclass(frozen=True, kw_only=True)
class UseCase:
    """The requests of one kind of customer."""

    name: str
    arrivals_per_minute: float  # at factor 1
    steps: tuple[RequestStep, ...]


def plan(use_cases: Sequence[UseCase], factor: float) -> dict[str, object]:
    """Return the load generator's plan.json at a factor; rates are arrivals/s."""
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
