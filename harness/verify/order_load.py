"""Judges a load of arrivals: reads the generator's answers, then the tables once, and runs the checks over both.

Cost is linear in the answers and the rows, and all of it comes after the load.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from harness.errors import LoadError
from harness.records.models import CheckResult
from harness.runtime import DatabaseAddress
from harness.verify import verification
from harness.verify.checks import LOAD
from harness.verify.checks.evidence import Evidence
from harness.verify.checks.order_evidence import Arrival, OrderLoad, Orders, Stepped
from harness.verify.order_tables import order_tables

VARIABLE = re.compile(r"\$([A-Za-z_]\w*)")


class PlannedStep(Protocol):
    """A step of a use case, as ``harness.plan.orders`` has it."""

    @property
    def operation(self) -> str:
        """Its name."""

    @property
    def path(self) -> str:
        """With variables."""

    @property
    def body(self) -> object:
        """With variables; None where nothing is sent."""

    @property
    def status(self) -> int:
        """Of a good answer."""


class PlannedCase(Protocol):
    """A use case."""

    @property
    def name(self) -> str:
        """As the generator writes it."""

    @property
    def steps(self) -> Sequence[PlannedStep]:
        """In order."""


def empty(database: DatabaseAddress) -> None:
    """Take all orders out of the tables, so that they grow alike in every load."""
    with order_tables(database) as view:
        view.empty()


def judge(arrivals: tuple[Arrival, ...], database: DatabaseAddress, before: Orders) -> tuple[CheckResult, ...]:
    """Whether the tables hold what the load was answered; ``before`` is what they held before it."""
    with order_tables(database) as view:
        view.settle()
        load = OrderLoad(arrivals=arrivals, prices=view.prices(), before=before, after=view.orders())
    return judge_rows(load)


def judge_rows(load: OrderLoad) -> tuple[CheckResult, ...]:
    """The checks alone. Pure."""
    return verification.judge(Evidence(test_type=LOAD, url="", order_load=load))


def read(answers: Path, use_cases: Sequence[PlannedCase]) -> Iterator[Arrival]:
    """The arrivals of the generator's file (``--answers``), a line each; raises LoadError for one of another form."""
    known = {case.name: case.steps for case in use_cases}
    with answers.open(encoding="utf-8", errors="surrogateescape") as lines:
        for number, line in enumerate(lines, 1):
            try:
                yield _arrival(json.loads(line), known)
            except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
                raise LoadError(
                    f"{answers}, line {number}: not an arrival as the generator writes it: {error!r}"
                ) from error


def _arrival(document: Mapping[str, object], known: Mapping[str, Sequence[PlannedStep]]) -> Arrival:
    name, variables, steps = document["use_case"], document["variables"], document["steps"]
    if not isinstance(variables, dict) or not isinstance(steps, list) or not isinstance(name, str):
        raise TypeError("use_case, variables and steps are a string, an object and an array")
    values = {str(key).lstrip("$"): value for key, value in variables.items()}
    order = document.get("order")
    return Arrival(
        use_case=name,
        order=order if type(order) is int else None,
        steps=tuple(_step(step, planned, values) for step, planned in zip(steps, known[name], strict=False)),
    )


def _step(came: Mapping[str, object], planned: PlannedStep, values: Mapping[str, object]) -> Stepped:
    """A step with the arrival's variables in their places."""
    if came["operation"] != planned.operation:
        raise ValueError(f"{came['operation']!r} where the use case has {planned.operation!r}")
    body = filled(planned.body, values)
    asked = body if isinstance(body, dict) else {}
    item = int(f"{filled(planned.path.rpartition('/')[2], values)}") if "/items/" in planned.path else 0
    quantity = asked.get("quantity")
    lines = [(one["itemId"], one["quantity"]) for one in asked.get("items", ())]
    status = came.get("status")
    return Stepped(
        operation=planned.operation,
        wanted=planned.status,
        status=status if type(status) is int and status else None,
        body=str(came.get("body") or ""),
        item=item,
        customer=int(asked.get("customerId", 0)),
        card=str(asked.get("card", "")),
        lines=tuple((int(one), int(many)) for one, many in (lines or ([(item, quantity)] if quantity else []))),
    )


def filled(template: object, values: Mapping[str, object]) -> object:
    """A template of a use case with its variables in their places."""
    if isinstance(template, Mapping):
        return {key: filled(value, values) for key, value in template.items()}
    if isinstance(template, list | tuple):
        return [filled(value, values) for value in template]
    if isinstance(template, str):
        if whole := VARIABLE.fullmatch(template):
            return values[whole[1]]
        return VARIABLE.sub(lambda found: f"{values[found[1]]}", template)
    return template
