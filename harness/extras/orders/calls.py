"""Valid and invalid calls to an order service. docs/orders.openapi.json defines the expected responses."""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from harness.extras.orders.entities import CARD, SEEDED_ROWS, Call
from harness.paths import REPOSITORY
from harness.plan.requests import Expect, PreparedRequest
from harness.verify.checks import excerpt

PROBLEM = "application/problem+json"
OPERATIONS: Mapping[str, tuple[str, str, int]] = {  # operation -> (method, path, status of a successful call)
    "create order": ("POST", "/orders", 201),
    "list orders": ("GET", "/orders", 200),
    "load orders": ("POST", "/orders/dataload", 201),
    "read order": ("GET", "/orders/{id}", 200),
    "change card": ("PUT", "/orders/{id}", 200),
    "delete order": ("DELETE", "/orders/{id}", 204),
    "read items": ("GET", "/orders/{id}/items", 200),
    "read item": ("GET", "/orders/{id}/items/{itemId}", 200),
    "add item": ("POST", "/orders/{id}/items/{itemId}", 201),
    "delete item": ("DELETE", "/orders/{id}/items/{itemId}", 204),
}


@cache
def expected(operation: str, status: int) -> Expect:
    """Return the response that docs/orders.openapi.json defines for an operation and a status code."""
    description = json.loads((REPOSITORY / "docs" / "orders.openapi.json").read_text(encoding="utf-8"))
    method, path, _ = OPERATIONS[operation]
    response = description["paths"][path][method.lower()]["responses"][f"{status}"]
    if name := response.get("$ref", "").rpartition("/")[2]:
        response = description["components"]["responses"][name]
    fields: dict[str, object] = {"status": status, "json": {"status": status} if status >= 400 else None}
    for media_type, content in response.get("content", {}).items():
        schema = {**content["schema"], "components": description["components"]}
        fields |= {"content_type": media_type, "json_schema": schema}
    return Expect.model_validate(fields)


class Calls:
    """A factory for valid and invalid calls to the order service at a base URL."""

    def __init__(self, base: str) -> None:
        self._base = base

    def call(self, operation: str, *ids: int | str, body: object = None, case: str = "", status: int = 0) -> Call:
        """Return a call to an operation in ``OPERATIONS``.

        ``ids`` are the order id and the item id in the path, or the limit for "list orders". Pass an invalid id as a
        string. ``body`` is serialised as JSON unless it is bytes. ``status`` is the expected status code; 0 means the
        operation's success status.
        """
        limit = ids[0] if operation == "list orders" and ids else 0
        order, item, *_ = (*(() if limit else ids), 0, 0)
        method, path, success_status = OPERATIONS[operation]
        expect = expected(operation, status or success_status)
        document = body if isinstance(body, dict) else {}
        if operation == "load orders" and not status:
            expect = expect.model_copy(update={"subset": {"created": document["orders"]}})
        headers = [("Accept", f"application/json, {PROBLEM}")]
        if body is not None:
            headers.append(("Content-Type", "application/json"))
            body = body if isinstance(body, bytes) else json.dumps(body, separators=(",", ":")).encode()
        request = PreparedRequest(
            request=operation,
            method=method,
            target=self._base
            + path.removeprefix("/orders").format(id=order, itemId=item)
            + (f"?limit={limit}" if limit else ""),
            headers=tuple(headers),
            body=body or b"",
            expect=expect,
        )
        number, of_item = (value if isinstance(value, int) else 0 for value in (order, item))
        return Call(
            name=case,
            declared=request,
            operation=operation,
            status=expect.status,
            order=number,
            item=of_item,
            document=document,
            limit=limit if isinstance(limit, int) else 0,
        )

    def create(
        self,
        lines: Sequence[tuple[int, int]],
        *,
        customer: int = 1,
        card: str = CARD,
        extra_members: Mapping[str, object] | None = None,
        of_items: Mapping[str, object] | None = None,
    ) -> Call:
        """Return a call that creates an order.

        ``extra_members`` are added to the order, and ``of_items`` to each item. The server must ignore these members.
        """
        items = [{"itemId": item, "quantity": quantity, **(of_items or {})} for item, quantity in lines]
        body = {"customerId": customer, "card": card, "items": items, **(extra_members or {})}
        return self.call("create order", body=body)

    def add(self, order: int, item: int, quantity: int) -> Call:
        """Return a call that adds an item to an order."""
        return self.call("add item", order, item, body={"quantity": quantity})


CallValues = tuple[object, ...]
InvalidBodies = Iterator[tuple[str, object]]  # (defect, body)

MAX_ID = 2**63 - 1  # largest valid order id
LINE = {"itemId": 3, "quantity": 2}
INVALID_OBJECTS = (b"", b'{"customerId":1,', b"[]", b'"order"', b"null", b'{"card":"\xff\xfe"}')
# Invalid customer ids and item ids.
INVALID_IDS: CallValues = ("1", 1.5, None, True, 0, -1, SEEDED_ROWS + 1, 2**31, 10**30)
INVALID_QUANTITIES: CallValues = (0, -1, 101, "2", 1.5, None, True, 2**32 + 2)
NON_DIGITS = ("4" * 15 + "x", "4111 1111 1111 1111", "", "\uff14" * 16, f"{CARD}\n")
INVALID_CARDS: CallValues = ("4" * 11, "4" * 20, *NON_DIGITS, int(CARD), None)
TOO_MANY_ITEMS, DUPLICATE_ITEMS = (
    [{"itemId": number, "quantity": 1} for number in range(1, 22)],
    [LINE, {"itemId": 3, "quantity": 1}],
)
INVALID_ITEMS: CallValues = ([], LINE, None, [3], [LINE, None], TOO_MANY_ITEMS, DUPLICATE_ITEMS)
INVALID_COUNTS = (0, 1001, "5", 1.5, None)
INVALID_ORDER_IDS = ("0", "-1", "abc", "1.5", f"{2**63}", f"{10**30}")
INVALID_ITEM_IDS = ("0", "-1", "abc", f"{2**31}")
INVALID_LIMITS = ("0", "-1", "101", "abc", "1.5", "99999999999")


def refused(calls: Calls, order: int, item: int, absent_item: int) -> Iterator[Call]:
    """Yield every call that the server must reject. ``order`` must contain ``item``, but not ``absent_item``."""

    def call(operation: str, status: int, *ids: int | str, body: object = None, case: str = "") -> Call:
        return calls.call(operation, *ids, body=body, status=status, case=case)

    quantity, card = {"quantity": 1}, {"card": CARD}
    for operation, ids, bodies in (
        ("create order", (), _invalid_orders()),
        ("change card", (order,), _invalid_bodies(card, "card", INVALID_CARDS)),
        ("add item", (order, absent_item), _invalid_bodies(quantity, "quantity", INVALID_QUANTITIES)),
        ("load orders", (), _invalid_bodies({"orders": 1}, "orders", INVALID_COUNTS)),
    ):
        for case, body in (*bodies, *((excerpt(body) or "no body", body) for body in INVALID_OBJECTS)):
            yield call(operation, 400, *ids, body=body, case=case)
    for limit in INVALID_LIMITS:
        yield call("list orders", 400, limit)
    yield call("add item", 400, order, 1001, body=quantity, case="an unknown item")
    yield call("add item", 409, order, item, body=quantity, case="an item already in the order")
    # The server must validate the body first, then the order, then the item. The status shows which check failed.
    yield call("change card", 400, MAX_ID, body={"card": "x"}, case="a bad card for an unknown order")
    yield call("add item", 404, MAX_ID, 1001, body=quantity, case="an unknown item for an unknown order")
    for number in (f"{MAX_ID}", *INVALID_ORDER_IDS):
        yield call("read order", 404, number)
        yield call("read items", 404, number)
        yield call("change card", 404, number, body=card)
        yield call("delete order", 404, number)
        yield call("add item", 404, number, item, body=quantity)
        yield call("delete item", 404, number, item)
    for text in (f"{absent_item}", "1001", *INVALID_ITEM_IDS):
        yield call("read item", 404, order, text)
        yield call("delete item", 404, order, text)
    for text in INVALID_ITEM_IDS:
        yield call("add item", 404, order, text, body=quantity)


def _invalid_bodies(valid: Mapping[str, object], member: str, values: Sequence[object]) -> InvalidBodies:
    """Yield a copy of ``valid`` for each invalid value of ``member``, and a copy without ``member``."""
    for value in values:
        yield f"{member}: {excerpt(json.dumps(value), 60)}", {**valid, member: value}
    yield f"{member} missing", {key: value for key, value in valid.items() if key != member}


def _invalid_orders() -> InvalidBodies:
    valid = {"customerId": 1, "card": CARD, "items": [LINE]}
    for member, values in (("customerId", INVALID_IDS), ("card", INVALID_CARDS), ("items", INVALID_ITEMS)):
        yield from _invalid_bodies(valid, member, values)
    for member, values in (("itemId", INVALID_IDS), ("quantity", INVALID_QUANTITIES)):
        for case, item in _invalid_bodies(LINE, member, values):
            # The valid item is first, so a server that inserts items in sequence must roll back.
            yield case, {**valid, "items": [{"itemId": 4, "quantity": 1}, item]}
