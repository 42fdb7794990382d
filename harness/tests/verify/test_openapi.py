"""docs/orders.openapi.json is a whole description, and of the service that verification asks."""

import json
import re
from collections.abc import Iterator

from harness.extras.orders.verify.answers import SHAPES
from harness.extras.orders.verify.calls import Calls, refused
from harness.extras.orders.verify.model import LINE_KEYS, MONEY, ORDER_KEYS, SUMMARY_KEYS
from harness.paths import REPOSITORY
from harness.plan.orders import USE_CASES

DESCRIPTION = json.loads((REPOSITORY / "docs" / "orders.openapi.json").read_text(encoding="utf-8"))
METHODS = {"get", "put", "post", "delete"}


def references(part: object) -> Iterator[str]:
    if isinstance(part, dict):
        if isinstance(part.get("$ref"), str):
            yield part["$ref"]
        for inner in part.values():
            yield from references(inner)
    elif isinstance(part, list):
        for inner in part:
            yield from references(inner)


def template(path: str) -> str:
    """The path of the description that a request's belongs to."""
    return re.sub(
        r"(/orders)/(?!dataload)[^/]+", r"\1/{id}", re.sub(r"/items/.+", "/items/{itemId}", path.partition("?")[0])
    )


def test_every_reference_leads_somewhere() -> None:
    found = set(references(DESCRIPTION))
    assert len(found) > 10
    for reference in found:
        part = DESCRIPTION
        for name in reference.removeprefix("#/").split("/"):
            part = part[name]


def test_every_call_of_verification_and_of_the_load_is_described_with_its_status() -> None:
    calls = Calls("/orders")
    regular = [
        *(calls.create([(1, 1)]), calls.read(1), calls.items(1), calls.item(1, 1), calls.change(1, "4")),
        *(calls.delete(1), calls.add(1, 1, 1), calls.take_out(1, 1), calls.newest(5), calls.load(1)),
    ]
    asked = {(c.method, template(c.path), c.status) for c in (*regular, *refused("/orders", 1, 2, 3))}
    asked |= {(step.method, template(step.path), step.status) for case in USE_CASES for step in case.steps}
    described = {
        (method.upper(), path, int(status))
        for path, operations in DESCRIPTION["paths"].items()
        for method in operations.keys() & METHODS
        for status in operations[method]["responses"]
    }
    assert asked == described


def test_its_schemas_are_what_the_checks_ask_for() -> None:
    schemas = DESCRIPTION["components"]["schemas"]
    for name, keys in (("Order", ORDER_KEYS), ("Summary", SUMMARY_KEYS), ("Item", LINE_KEYS)):
        assert set(schemas[name]["required"]) == schemas[name]["properties"].keys() == keys
        assert schemas[name]["additionalProperties"] is False
    assert schemas["Money"]["pattern"] == f"^{MONEY.pattern}$"
    assert len(SHAPES) == 8
