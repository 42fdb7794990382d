"""A correct order service in Python. Each step is a method, so that misbehaving subclasses can override it."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, ClassVar
from urllib.parse import parse_qs

import psycopg

from harness.tests.doubles.http_double import ClientSession, ReceivedRequest, Reply
from harness.tests.doubles.reference import ReferenceServer

LARGEST_ITEM, LARGEST_ORDER = 2**31 - 1, 2**63 - 1
LOADED_CARD = "4111111111111111"

Document = dict[str, Any]
Wanted = list[tuple[int, int]]  # (item id, quantity)
Bought = tuple[int, int, Decimal]  # (item id, quantity, price)
PriceList = Mapping[int, Decimal]
Db = psycopg.Connection


@dataclass(frozen=True, kw_only=True)
class New:
    customer: int
    card: str
    wanted: Wanted
    document: Document


class RefusedError(Exception):
    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status


class OrderServer(ReferenceServer):
    urls: ClassVar[Mapping[str, str]] = {"order": "/orders"}
    reasons: ClassVar = {**ReferenceServer.reasons, 201: "Created", 204: "No Content", 409: "Conflict"}

    def reply(self, session: ClientSession, request: ReceivedRequest) -> Reply:
        path = request.path.rstrip("/").split("/")[1:]
        if path[:1] != ["orders"]:
            return super().reply(session, request)
        try:
            with self.connection() as db:
                return self.route(db, request, path[1:])
        except RefusedError as refused:
            return self.problem(refused.status, str(refused))
        except psycopg.errors.UniqueViolation:
            return self.problem(409, "the item is already in the order")
        except psycopg.Error as error:
            return Reply(status=500, body=str(error).encode())

    def route(self, db: Db, request: ReceivedRequest, path: Sequence[str]) -> Reply:
        method = "GET" if request.method == "HEAD" else request.method
        match (method, *path):
            case ("GET",):
                return self.json(200, self.newest(db, self.limit(request.query)))
            case ("POST",):
                return self.created(self.create(db, self.checked(self.document(request))))
            case ("POST", "dataload"):
                return self.json(201, {"created": self.load(db, self.integer(request, "orders", 1000))})
            case ("GET", order):
                return self.json(200, self.read(db, self.order_id(order)))
            case ("PUT", order):
                card = self.card(self.document(request).get("card"))
                return self.json(200, self.change(db, self.order_id(order), card))
            case ("DELETE", order):
                self.delete(db, self.order_id(order))
                return Reply(status=204)
            case (_, order, "items", *item):
                return self._route_items(db, request, (method, order, *item))
        return self.unsupported(request)

    def _route_items(self, db: Db, request: ReceivedRequest, path: Sequence[str]) -> Reply:
        match path:
            case ("GET", order):
                return self.json(200, self.read(db, self.order_id(order))["items"])
            case ("POST", order, item):
                quantity = self.integer(request, "quantity", 100)
                return self.json(201, self.add(db, self.order_id(order), self.item_id(item), quantity))
            case ("GET", order, item):
                return self.json(200, self.item(db, self.order_id(order), self.item_id(item)))
            case ("DELETE", order, item):
                self.take_out(db, self.order_id(order), self.item_id(item))
                return Reply(status=204)
        return self.unsupported(request)

    def json(self, status: int, document: object) -> Reply:
        return Reply(status=status, content_type="application/json", body=self.encode_json(document))

    def created(self, order: Document) -> Reply:
        return replace(self.json(201, order), headers=[("Location", f"/orders/{order['id']}")])

    def problem(self, status: int, detail: str) -> Reply:
        problem = {"type": "about:blank", "title": self.reasons[status], "status": status, "detail": detail}
        return Reply(status=status, content_type="application/problem+json", body=self.encode_json(problem))

    def document(self, request: ReceivedRequest) -> Document:
        try:
            document = json.loads(request.body.decode())
        except ValueError as error:
            raise RefusedError(400, "the body is not JSON") from error
        if not isinstance(document, dict):
            raise RefusedError(400, "the body is not an object")
        return document

    def checked(self, document: Document) -> New:
        items = document.get("items")
        if type(document.get("customerId")) is not int or not isinstance(items, list) or not 1 <= len(items) <= 20:
            raise RefusedError(400, "an order must have a customer and 1 to 20 items")
        wanted = []
        for item in items:
            if not isinstance(item, dict) or type(item.get("itemId")) is not int:
                raise RefusedError(400, "an item must have an id")
            wanted.append((item["itemId"], self.quantity(item.get("quantity"))))
        if len(dict(wanted)) != len(wanted):
            raise RefusedError(400, "an item is listed twice")
        card = self.card(document.get("card"))
        return New(customer=document["customerId"], card=card, wanted=wanted, document=document)

    def card(self, value: object) -> str:
        if not isinstance(value, str) or not re.fullmatch(r"[0-9]{12,19}", value):
            raise RefusedError(400, "a card number must have 12 to 19 digits")
        return value

    def quantity(self, value: object) -> int:
        if type(value) is not int or not 1 <= value <= 100:
            raise RefusedError(400, "a quantity must be between 1 and 100")
        return value

    def integer(self, request: ReceivedRequest, name: str, most: int) -> int:
        value = self.document(request).get(name)
        if type(value) is not int or not 1 <= value <= most:
            raise RefusedError(400, f"{name} must be between 1 and {most}")
        return value

    def limit(self, query: str) -> int:
        text = parse_qs(query).get("limit", ["20"])[0]
        if not re.fullmatch(r"[0-9]{1,3}", text) or not 1 <= int(text) <= 100:
            raise RefusedError(400, "limit must be between 1 and 100")
        return int(text)

    def item_id(self, text: str) -> int:
        return self.order_id(text, LARGEST_ITEM)

    def order_id(self, text: str, largest: int = LARGEST_ORDER) -> int:
        if not re.fullmatch(r"[0-9]{1,19}", text) or not 1 <= int(text) <= largest:
            raise RefusedError(404, f"{text} does not exist")
        return int(text)

    @contextmanager
    def transaction(self, db: Db) -> Iterator[None]:
        with db.transaction():
            yield

    def create(self, db: Db, new: New) -> Document:
        with self.transaction(db):
            known = 1 <= new.customer <= LARGEST_ITEM
            if not known or not self.one(db, "SELECT 1 FROM customer WHERE id = %s", (new.customer,)):
                raise RefusedError(400, "unknown customer")
            prices = self.priced(db, new)
            total = self.total(new, prices)
            order = self.insert(db, new.customer, new.card, total)
            self.insert_items(db, order, new.wanted, prices)
        lines = [(item, quantity, prices[item]) for item, quantity in new.wanted]
        return self.shown(order, new.customer, new.card, total, lines)

    def priced(self, db: Db, new: New) -> PriceList:
        return self.all_prices(db, [item for item, _ in new.wanted])

    def all_prices(self, db: Db, items: Sequence[int]) -> PriceList:
        """Return the items' prices. Reject the request with status 400 if an item does not exist."""
        prices = self.prices(db, items)
        if len(prices) != len(items):
            raise RefusedError(400, "unknown item")
        return prices

    def prices(self, db: Db, items: Sequence[int]) -> PriceList:
        """Return the prices of those items that exist."""
        known = [item for item in items if 1 <= item <= LARGEST_ITEM]
        return dict(db.execute("SELECT id, price FROM item WHERE id = ANY(%s::int[])", (known,)).fetchall())

    def total(self, new: New, prices: PriceList) -> Decimal:
        return sum((quantity * prices[item] for item, quantity in new.wanted), Decimal(0))

    def insert(self, db: Db, customer: int, card: str, total: Decimal) -> int:
        text = "INSERT INTO orders (customer_id, card, total) VALUES (%s, %s, %s) RETURNING id"
        (order,) = self.one(db, text, (customer, card, total))
        return int(order)

    def insert_items(self, db: Db, order: int, wanted: Wanted, prices: PriceList) -> None:
        rows = [(order, item, quantity, prices[item]) for item, quantity in wanted]
        with db.cursor() as cursor:
            cursor.executemany("INSERT INTO order_item VALUES (%s, %s, %s, %s)", rows)

    def read(self, db: Db, order: int) -> Document:
        row = self.there(db, order, "SELECT id, customer_id, card, total FROM orders WHERE id = %s")
        items = db.execute("SELECT item_id, quantity, price FROM order_item WHERE order_id = %s", (order,)).fetchall()
        number, customer, card, total = row
        return self.shown(number, customer, card, total, items)

    def newest(self, db: Db, limit: int) -> list[Document]:
        rows = db.execute("SELECT id, customer_id, card, total FROM orders ORDER BY id DESC LIMIT %s", (limit,))
        orders = [self.shown(n, customer, card, total, ()) for n, customer, card, total in rows.fetchall()]
        return [{key: value for key, value in order.items() if key != "items"} for order in orders]

    def change(self, db: Db, order: int, card: str) -> Document:
        with self.transaction(db):
            db.execute("UPDATE orders SET card = %s WHERE id = %s", (card, order))
            return self.read(db, order)

    def delete(self, db: Db, order: int) -> None:
        with self.transaction(db):
            self.there(db, order, "DELETE FROM orders WHERE id = %s RETURNING id")

    def item(self, db: Db, order: int, item: int) -> Document:
        for found in self.read(db, order)["items"]:
            if found["itemId"] == item:
                return dict(found)
        raise RefusedError(404, f"order {order} contains no item {item}")

    def add(self, db: Db, order: int, item: int, quantity: int) -> Document:
        with self.transaction(db):
            self.lock_order(db, order)
            prices = self.all_prices(db, [item])
            if item in {found["itemId"] for found in self.read(db, order)["items"]}:
                return self.again(db, order, item, quantity)
            self.insert_items(db, order, [(item, quantity)], prices)
            self.add_up(db, order)
            return self.read(db, order)

    def again(self, db: Db, order: int, item: int, quantity: int) -> Document:
        raise RefusedError(409, f"order {order} already contains item {item}")

    def take_out(self, db: Db, order: int, item: int) -> None:
        with self.transaction(db):
            self.lock_order(db, order)
            gone = "DELETE FROM order_item WHERE order_id = %s AND item_id = %s"
            if not db.execute(gone, (order, item)).rowcount:
                raise RefusedError(404, f"order {order} contains no item {item}")
            self.add_up(db, order)

    def lock_order(self, db: Db, order: int) -> None:
        """Lock the order's row, so that only one transaction at a time can change the order's items."""
        self.there(db, order, "SELECT 1 FROM orders WHERE id = %s FOR UPDATE")

    def add_up(self, db: Db, order: int) -> None:
        summed = "SELECT coalesce(sum(quantity * price), 0) FROM order_item WHERE order_id = %s"
        (total,) = self.one(db, summed, (order,))
        db.execute("UPDATE orders SET total = %s WHERE id = %s", (total, order))

    def load(self, db: Db, count: int) -> int:
        with self.transaction(db):
            db.execute(
                "WITH made AS (INSERT INTO orders (customer_id, card, total) SELECT id, %s, price FROM item "
                "WHERE id <= %s ORDER BY id RETURNING id, customer_id, total) "
                "INSERT INTO order_item SELECT id, customer_id, 1, total FROM made",
                (LOADED_CARD, count),
            )
        return count

    def shown(self, order: int, customer: int, card: str, total: Decimal, items: Sequence[Bought]) -> Document:
        lines = [{"itemId": i, "quantity": count, "price": self.money(price)} for i, count, price in sorted(items)]
        return {"id": order, "customerId": customer, "card": card, "total": self.money(total), "items": lines}

    def money(self, value: Decimal) -> object:
        return f"{value:.2f}"

    def there(self, db: Db, order: int, query: str = "SELECT 1 FROM orders WHERE id = %s") -> tuple[Any, ...]:
        """Return the row that the query finds for the order. Reject the request with status 404 if there is no row."""
        if not (row := self.one(db, query, (order,))):
            raise RefusedError(404, f"order {order} does not exist")
        return row

    def one(self, db: Db, query: str, values: Sequence[object]) -> tuple[Any, ...]:
        """Return the first row of the result, or an empty tuple."""
        return db.execute(query.encode(), values).fetchone() or ()
