"""Sends the calls of an order service over a keep-alive connection, and never one of them twice."""

import json
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

from harness.runtime import Endpoint
from harness.verify import wire
from harness.verify.checks.order_evidence import Answer, Call
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
