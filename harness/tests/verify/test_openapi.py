"""docs/orders.openapi.json is complete and describes all requests that verification sends."""

import json
import re
from functools import reduce
from operator import getitem

import pytest
from pydantic import JsonValue

from harness.extras.orders.calls import OPERATIONS, Calls, expected, refused
from harness.extras.orders.test_type import USE_CASES
from harness.paths import REPOSITORY

TEXT = (REPOSITORY / "docs" / "orders.openapi.json").read_text(encoding="utf-8")
DESCRIPTION = json.loads(TEXT)
METHODS = {"get", "put", "post", "delete"}


def test_every_reference_resolves() -> None:
    found = set(re.findall(r'"\$ref": "([^"]*)"', TEXT))
    assert len(found) > 10
    for reference in found:
        reduce(getitem, reference.removeprefix("#/").split("/"), DESCRIPTION)


def test_verification_sends_exactly_the_described_requests() -> None:
    calls = refused(Calls("/orders"), 1, 2, 3)
    requested = {(*OPERATIONS[call.operation][:2], call.status) for call in calls} | set(OPERATIONS.values())
    described = {
        (method.upper(), path, int(status))
        for path, operations in DESCRIPTION["paths"].items()
        for method in operations.keys() & METHODS
        for status in operations[method]["responses"]
    }
    assert requested == described


def test_the_load_sends_described_requests() -> None:
    steps = {(step.operation, step.method, step.status) for case in USE_CASES for step in case.steps}
    assert steps <= {(operation, method, status) for operation, (method, _, status) in OPERATIONS.items()}


@pytest.mark.parametrize(("operation", "status"), [("create order", 201), ("create order", 400), ("read items", 200)])
def test_expectations_match_the_described_responses(operation: str, status: int) -> None:
    expect = expected(operation, status)
    assert expect.content_type == ("application/json" if status < 400 else "application/problem+json")
    assert expect.schema_validator.is_valid([]) == (operation == "read items")
    order: dict[str, JsonValue] = {"id": 5, "customerId": 1, "card": "4" * 16, "total": "25.00", "items": []}
    assert expect.schema_validator.is_valid(order) == (operation == "create order" and status == 201)
    changes: list[dict[str, JsonValue]] = [{"total": 25.0}, {"total": "25.0"}, {"id": "5"}, {"more": 1}]
    for wrong in changes:
        assert not expect.schema_validator.is_valid(order | wrong)
