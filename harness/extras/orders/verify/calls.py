"""The calls of an order service, right ones and such as it must refuse, and a connection that sends none twice."""

import json
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Self

from harness.extras.orders.verify.evidence import Answer, Call, Operation
from harness.runtime import Endpoint
from harness.verify import wire
from harness.verify.wire import Connection, WireError

ACCEPT = "application/json, application/problem+json"


class Caller:
    """One connection, a new one where the server has closed it."""

    def __init__(self, endpoint: Endpoint, patience: float) -> None:
        self._endpoint = endpoint
        self._patience = patience
        self._line: Connection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._close()

    def send(self, call: Call) -> Answer:
        """What came: a write that was not answered may have been carried out, so it is not sent again."""
        if self._line is not None and (self._line.stray() or self._line.ended(0)):
            self._close()
        headers = wire.generator_headers(ACCEPT)
        data = wire.request(call.path, headers, method=call.method, host=self._endpoint.host, body=call.body)
        try:
            if self._line is None:
                self._line = Connection(self._endpoint, self._patience)
            self._line.send(data)
            response = self._line.receive(call.method)
        except WireError as error:
            self._close()
            return Answer(call=call, response=None, error=str(error))
        if (response.get("connection") or "").lower() == "close":
            self._close()
        return Answer(call=call, response=response)

    def _close(self) -> None:
        if self._line is not None:
            self._line.close()
            self._line = None


def encoded(document: object) -> bytes:
    """A document as it is sent."""
    return json.dumps(document, separators=(",", ":")).encode()


class Calls:
    """The calls of the service at a declared URL."""

    def __init__(self, base: str) -> None:
        self.base = base

    def create(
        self,
        lines: Sequence[tuple[int, int]],
        *,
        customer: int = 1,
        card: str = "4111111111111111",
        more: Mapping[str, object] | None = None,
        of_items: Mapping[str, object] | None = None,
    ) -> Call:
        """POST /orders; ``more`` and ``of_items`` are members that the server must ignore."""
        items = [{"itemId": item, "quantity": quantity, **(of_items or {})} for item, quantity in lines]
        return Call(
            operation="create order",
            method="POST",
            path=self.base,
            body=encoded({"customerId": customer, "card": card, "items": items, **(more or {})}),
            status=201,
            customer=customer,
            card=card,
            lines=tuple(lines),
        )

    def read(self, order: int) -> Call:
        """GET /orders/{id}."""
        return Call(operation="read order", method="GET", path=f"{self.base}/{order}", status=200, order=order)

    def items(self, order: int) -> Call:
        """GET /orders/{id}/items."""
        return Call(operation="read items", method="GET", path=f"{self.base}/{order}/items", status=200, order=order)

    def item(self, order: int, item: int) -> Call:
        """GET /orders/{id}/items/{itemId}."""
        path = f"{self.base}/{order}/items/{item}"
        return Call(operation="read item", method="GET", path=path, status=200, order=order, item=item)

    def change(self, order: int, card: str) -> Call:
        """PUT /orders/{id}."""
        body = encoded({"card": card})
        path = f"{self.base}/{order}"
        return Call(operation="change card", method="PUT", path=path, body=body, status=200, order=order, card=card)

    def delete(self, order: int) -> Call:
        """DELETE /orders/{id}."""
        return Call(operation="delete order", method="DELETE", path=f"{self.base}/{order}", status=204, order=order)

    def add(self, order: int, item: int, quantity: int, case: str = "") -> Call:
        """POST /orders/{id}/items/{itemId}."""
        return Call(
            operation="add item",
            method="POST",
            path=f"{self.base}/{order}/items/{item}",
            body=encoded({"quantity": quantity}),
            status=201,
            case=case,
            order=order,
            item=item,
            lines=((item, quantity),),
        )

    def take_out(self, order: int, item: int, case: str = "") -> Call:
        """DELETE /orders/{id}/items/{itemId}."""
        path = f"{self.base}/{order}/items/{item}"
        return Call(operation="delete item", method="DELETE", path=path, status=204, case=case, order=order, item=item)

    def newest(self, limit: int | None = None) -> Call:
        """GET /orders, with a limit or without."""
        path = self.base if limit is None else f"{self.base}?limit={limit}"
        return Call(operation="list orders", method="GET", path=path, status=200, count=limit or 20)

    def load(self, count: int) -> Call:
        """POST /orders/dataload."""
        path, body = f"{self.base}/dataload", encoded({"orders": count})
        return Call(operation="load orders", method="POST", path=path, body=body, status=201, count=count)


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


def refused(base: str, order: int, item: int, absent: int) -> Iterator[Call]:
    """All of them; ``order`` is there and holds ``item``, not ``absent``, which is one of the items that there are."""

    def call(
        operation: Operation, method: str, path: str, status: int, case: str = "", body: bytes | None = None
    ) -> Call:
        return Call(operation=operation, method=method, path=base + path, status=status, case=case, body=body)

    for case, body in _bad_orders():
        yield call("create order", "POST", "", 400, case, body)
    own = f"/{order}"
    for case, body in _bad({"card": CARD}, "card", NO_CARD):
        yield call("change card", "PUT", own, 400, case, body)
    for case, body in _bad({"quantity": 1}, "quantity", NO_QUANTITY):
        yield call("add item", "POST", f"{own}/items/{absent}", 400, case, body)
    for case, body in _bad({"orders": 1}, "orders", NO_COUNT):
        yield call("load orders", "POST", "/dataload", 400, case, body)
    for limit in NO_LIMIT:
        yield call("list orders", "GET", f"?limit={limit}", 400)
    quantity, card = encoded({"quantity": 1}), encoded({"card": CARD})
    yield call("add item", "POST", f"{own}/items/1001", 400, "an unknown item", quantity)
    yield call("add item", "POST", f"{own}/items/{item}", 409, "an item of the order", quantity)
    # A bad body is refused before the order is looked for, and the order is looked for before the item.
    yield call("change card", "PUT", f"/{FAR}", 400, "a bad card for an unknown order", encoded({"card": "x"}))
    yield call("add item", "POST", f"/{FAR}/items/1001", 404, "an unknown item for an unknown order", quantity)
    for number in (f"{FAR}", *NO_ORDER_ID):
        yield call("read order", "GET", f"/{number}", 404)
        yield call("read items", "GET", f"/{number}/items", 404)
        yield call("change card", "PUT", f"/{number}", 404, "", card)
        yield call("delete order", "DELETE", f"/{number}", 404)
        yield call("add item", "POST", f"/{number}/items/{item}", 404, "", quantity)
        yield call("delete item", "DELETE", f"/{number}/items/{item}", 404)
    for text in (f"{absent}", "1001", *NO_ITEM_ID):
        yield call("read item", "GET", f"{own}/items/{text}", 404)
        yield call("delete item", "DELETE", f"{own}/items/{text}", 404)
    for text in NO_ITEM_ID:
        yield call("add item", "POST", f"{own}/items/{text}", 404, "", quantity)


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
