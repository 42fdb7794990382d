"""The calls of an order service, right ones and such as it must refuse; what comes of them its description says."""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from harness.extras.orders.model import Call
from harness.paths import REPOSITORY
from harness.plan.requests import Expect, Prepared

PROBLEM = "application/problem+json"
OPERATIONS: Mapping[str, tuple[str, str, int]] = {  # method, path and status of what is right
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
    """What docs/orders.openapi.json has come of an operation that ends with this status."""
    description = json.loads((REPOSITORY / "docs" / "orders.openapi.json").read_text(encoding="utf-8"))
    method, path, _ = OPERATIONS[operation]
    response = description["paths"][path][method.lower()]["responses"][f"{status}"]
    if name := response.get("$ref", "").rpartition("/")[2]:
        response = description["components"]["responses"][name]
    said: dict[str, object] = {"status": status, "json": {"status": status} if status >= 400 else None}
    for media_type, content in response.get("content", {}).items():
        schema = {**content["schema"], "components": description["components"]}
        said |= {"content_type": media_type, "json_schema": schema}
    return Expect.model_validate(said)


def encoded(document: object) -> bytes:
    """A document as it is sent."""
    return json.dumps(document, separators=(",", ":")).encode()


class Calls:
    """The calls of the service at a declared URL."""

    def __init__(self, base: str) -> None:
        self._base = base

    def call(
        self,
        operation: str,
        order: int = 0,
        item: int = 0,
        body: object = None,
        *,
        case: str = "",
        status: int | None = None,
        ids: Sequence[object] = (),
        query: str = "",
        customer: int = 0,
        card: str = "",
        lines: Sequence[tuple[int, int]] = (),
        many: int = 0,
    ) -> Call:
        """A call; ``body`` is a document, or bytes as they are; ``ids``: other than those of order and item."""
        method, path, good = OPERATIONS[operation]
        of = [*ids, *[order, item][len(ids) :]]
        expect = expected(operation, good if status is None else status)
        if operation == "load orders" and many:
            expect = expect.model_copy(update={"subset": {"created": many}})
        data = body if isinstance(body, bytes) else b"" if body is None else encoded(body)
        headers = (("Accept", f"application/json, {PROBLEM}"),)
        asked = Prepared(
            request=operation,
            method=method,
            target=self._base + path.removeprefix("/orders").format(id=of[0], itemId=of[1]) + query,
            headers=headers if body is None else (*headers, ("Content-Type", "application/json")),
            body=data,
            expect=expect,
        )
        return Call(
            name=case,
            asked=asked,
            operation=operation,
            order=order,
            item=item,
            customer=customer,
            card=card,
            lines=tuple(lines),
            many=many,
        )

    def create(
        self,
        lines: Sequence[tuple[int, int]],
        *,
        customer: int = 1,
        card: str = "4111111111111111",
        more: Mapping[str, object] | None = None,
        of_items: Mapping[str, object] | None = None,
    ) -> Call:
        """A new order; ``more`` and ``of_items`` are members that the server must ignore."""
        items = [{"itemId": item, "quantity": quantity, **(of_items or {})} for item, quantity in lines]
        body = {"customerId": customer, "card": card, "items": items, **(more or {})}
        return self.call("create order", body=body, customer=customer, card=card, lines=lines)

    def change(self, order: int, card: str) -> Call:
        """Another card."""
        return self.call("change card", order, body={"card": card}, card=card)

    def add(self, order: int, item: int, quantity: int, case: str = "") -> Call:
        """A further item."""
        lines = [(item, quantity)]
        return self.call("add item", order, item, {"quantity": quantity}, case=case, lines=lines)

    def newest(self, limit: int | None = None) -> Call:
        """The list, with a limit or without."""
        return self.call("list orders", query="" if limit is None else f"?limit={limit}", many=limit or 20)

    def load(self, count: int) -> Call:
        """Many orders by one call."""
        return self.call("load orders", body={"orders": count}, many=count)


CARD = "4111111111111111"
LINE = {"itemId": 3, "quantity": 2}
FAR = 9_223_372_036_854_775_807  # the highest id that there can be
NOT_JSON = {
    "no body": b"",
    "not JSON": b'{"customerId":1,',
    "an array": b"[]",
    "a string": b'"order"',
    "null": b"null",
    "not UTF-8": b'{"card":"\xff\xfe"}',
}
# Values that are no id of a customer or an item, as JSON has them.
NO_ID = {
    "a string": "1",
    "a fraction": 1.5,
    "null": None,
    "a boolean": True,
    "zero": 0,
    "negative": -1,
    "unknown": 1001,
    "more than 32 bits": 2_147_483_648,
    "more than 64 bits": 10**30,
}
NO_QUANTITY = {
    "zero": 0,
    "negative": -1,
    "101": 101,
    "a string": "2",
    "a fraction": 1.5,
    "null": None,
    "a boolean": True,
    "more than 32 bits": 4_294_967_298,
}
NO_CARD = {
    "11 digits": "4" * 11,
    "20 digits": "4" * 20,
    "a letter": "411111111111111x",
    "blanks": "4111 1111 1111 1111",
    "no digits": "",
    "digits of another script": "\uff14" * 16,
    "a line end": CARD + "\n",
    "a number": 4111111111111111,
    "null": None,
}
NO_ITEMS: dict[str, object] = {
    "none": [],
    "no array": LINE,
    "null": None,
    "numbers": [3],
    "null among them": [LINE, None],
    "21": [{"itemId": number, "quantity": 1} for number in range(1, 22)],
    "one twice": [LINE, {"itemId": 4, "quantity": 1}, {"itemId": 3, "quantity": 1}],
}
NO_ORDER_ID = ("0", "-1", "abc", "1.5", "9223372036854775808", f"{10**30}")
NO_ITEM_ID = ("0", "-1", "abc", "2147483648")
NO_LIMIT = ("0", "-1", "101", "abc", "1.5", "99999999999")
NO_COUNT = {"zero": 0, "1001": 1001, "a string": "5", "a fraction": 1.5, "null": None}


def refused(calls: Calls, order: int, item: int, absent: int) -> Iterator[Call]:
    """All of them; ``order`` is there and holds ``item``, not ``absent``, which is one of the items that there are."""

    def call(operation: str, status: int, *ids: object, body: object = None, case: str = "") -> Call:
        return calls.call(operation, body=body, status=status, ids=ids, case=case)

    for case, body in _bad_orders():
        yield call("create order", 400, body=body, case=case)
    for case, body in _bad({"card": CARD}, "card", NO_CARD):
        yield call("change card", 400, order, body=body, case=case)
    for case, body in _bad({"quantity": 1}, "quantity", NO_QUANTITY):
        yield call("add item", 400, order, absent, body=body, case=case)
    for case, body in _bad({"orders": 1}, "orders", NO_COUNT):
        yield call("load orders", 400, body=body, case=case)
    for limit in NO_LIMIT:
        yield calls.call("list orders", status=400, query=f"?limit={limit}")
    quantity, card = {"quantity": 1}, {"card": CARD}
    yield call("add item", 400, order, 1001, body=quantity, case="an unknown item")
    yield call("add item", 409, order, item, body=quantity, case="an item of the order")
    # A bad body is refused before the order is looked for, and the order is looked for before the item.
    yield call("change card", 400, FAR, body={"card": "x"}, case="a bad card for an unknown order")
    yield call("add item", 404, FAR, 1001, body=quantity, case="an unknown item for an unknown order")
    for number in (f"{FAR}", *NO_ORDER_ID):
        yield call("read order", 404, number)
        yield call("read items", 404, number)
        yield call("change card", 404, number, body=card)
        yield call("delete order", 404, number)
        yield call("add item", 404, number, item, body=quantity)
        yield call("delete item", 404, number, item)
    for text in (f"{absent}", "1001", *NO_ITEM_ID):
        yield call("read item", 404, order, text)
        yield call("delete item", 404, order, text)
    for text in NO_ITEM_ID:
        yield call("add item", 404, order, text, body=quantity)


def _bad(good: dict[str, object], member: str, values: dict[str, object]) -> Iterator[tuple[str, bytes]]:
    """A document with one bad member, without it, and what is no document."""
    for case, value in values.items():
        yield f"{member}: {case}", encoded({**good, member: value})
    yield f"{member} left out", encoded({key: value for key, value in good.items() if key != member})
    yield from NOT_JSON.items()


def _bad_orders() -> Iterator[tuple[str, bytes]]:
    good: dict[str, object] = {"customerId": 1, "card": CARD, "items": [LINE]}
    yield from _bad(good, "customerId", NO_ID)
    yield from list(_bad(good, "card", NO_CARD))[: -len(NOT_JSON)]
    yield from list(_bad(good, "items", NO_ITEMS))[: -len(NOT_JSON)]
    for member, values in (("itemId", NO_ID), ("quantity", NO_QUANTITY)):
        for case, value in values.items():
            # Behind a good one: what is written before it is found must not stay.
            items = [{"itemId": 4, "quantity": 1}, {**LINE, member: value}]
            yield f"{member}: {case}", encoded({**good, "items": items})
        yield f"{member} left out", encoded({**good, "items": [{k: v for k, v in LINE.items() if k != member}]})
