"""Rogues for the order service."""

import contextlib
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import psycopg

from harness.tests.doubles.http_double import ClientSession, ReceivedRequest, Reply
from harness.tests.doubles.order_server import Db, Document, New, OrderServer, PriceList, RefusedError
from harness.tests.doubles.rogues import Rogue, every, under_load
from harness.tests.doubles.rogues.busy import while_busy

LATE_SECONDS = 0.03


def swallow(self: OrderServer, session: ClientSession, request: ReceivedRequest) -> Reply:
    if request.method == "PUT" and every(self, 20):
        raise OSError("the connection is closed")
    return OrderServer.reply(self, session, request)


def as_vendor_type(self: OrderServer, status: int, document: object) -> Reply:
    reply = OrderServer.json(self, status, document)
    return replace(reply, content_type="application/vnd.order+json") if status == 201 else reply


def with_lines_backwards(self: OrderServer, *arguments: Any) -> Document:
    order = OrderServer.shown(self, *arguments)
    return {**order, "items": order["items"][::-1]}


def order_stays(self: OrderServer, db: Db, new: New) -> Document:
    """Leave an order with invalid items in the table, as if the rollback were missing."""
    try:
        return OrderServer.create(self, db, new)
    except RefusedError:
        if 1 <= new.customer <= 1000:
            self.insert(db, new.customer, new.card, Decimal(0))
        raise


def lost(self: OrderServer, db: Db, new: New) -> Document:
    order: Document = {}
    with contextlib.suppress(psycopg.Rollback), db.transaction():
        order = OrderServer.create(self, db, new)
        if every(self, 10):
            raise psycopg.Rollback
    return order


def without_the_last(self: OrderServer, db: Db, new: New) -> Document:
    kept = new.wanted[:-1] if len(new.wanted) > 10 else new.wanted
    return OrderServer.create(self, db, replace(new, wanted=kept))


def doubled(self: OrderServer, db: Db, new: New) -> Document:
    if len(new.wanted) == 1:
        OrderServer.create(self, db, new)
    return OrderServer.create(self, db, new)


def priced_by_client(self: OrderServer, db: Db, new: New) -> PriceList:
    prices = OrderServer.priced(self, db, new)
    return {**prices, **{i["itemId"]: Decimal(i["price"]) for i in new.document["items"] if "price" in i}}


def cached_prices(self: OrderServer, db: Db, items: Sequence[int]) -> PriceList:
    kept = self.state.setdefault("prices", {})
    kept |= OrderServer.prices(self, db, [item for item in items if item not in kept])
    return {item: kept[item] for item in items if item in kept}


def total_in_float(self: OrderServer, new: New, prices: PriceList) -> Decimal:
    total = OrderServer.total(self, new, prices)
    return total if total < 10_000 else round(total, -1)


def marked_deleted(self: OrderServer, db: Db, order: int) -> None:
    self.read(db, order)
    self.state.setdefault("deleted", set()).add(order)


def read_unless_marked(self: OrderServer, db: Db, order: int) -> Document:
    if order in self.state.get("deleted", ()):
        raise RefusedError(404, f"order {order} does not exist")
    return OrderServer.read(self, db, order)


def same_cards(self: OrderServer, db: Db, order: int, card: str) -> Document:
    with db.transaction():
        old = self.read(db, order)["card"]
        db.execute("UPDATE orders SET card = %s WHERE card = %s", (card, old))
        return self.read(db, order)


def loads_one_less(self: OrderServer, db: Db, count: int) -> int:
    OrderServer.load(self, db, count - 1)
    return count


def answers_before(self: OrderServer, db: Db, order: int, item: int, quantity: int) -> Document:
    OrderServer.add(self, db, order, item, quantity)
    found = self.read(db, order)
    return {**found, "items": [line for line in found["items"] if line["itemId"] != item]}


def early_change(self: OrderServer, db: Db, order: int, card: str) -> Document:
    stored_order = self.read(db, order)

    def write() -> None:
        time.sleep(0.02)
        with self.connection() as another:
            OrderServer.change(self, another, order, card)

    threading.Thread(target=write).start()
    return {**stored_order, "card": card}


def early_commit(self: OrderServer, db: Db, new: New) -> Document:
    another = self.connect()
    another.autocommit = False
    another.execute("SELECT 1")  # starts the transaction in which ``create`` runs

    def commit() -> None:
        with another:
            pass

    try:
        return OrderServer.create(self, another, new)
    finally:
        threading.Thread(target=commit).start()


def behind(self: OrderServer, db: Db, new: New) -> Document:
    """Reserve an id, respond, and write the order slightly later."""
    prices = self.priced(db, new)
    (order,), total = self.one(db, "SELECT nextval('orders_id_seq')", ()), self.total(new, prices)

    def write() -> None:
        time.sleep(LATE_SECONDS)
        with self.connect() as another, another.transaction():
            text = "INSERT INTO orders (id, customer_id, card, total) VALUES (%s, %s, %s, %s)"
            another.execute(text, (order, new.customer, new.card, total))
            self.insert_items(another, order, new.wanted, prices)

    writer = self.state[f"{order}"] = threading.Thread(target=write)
    writer.start()
    lines = [(item, quantity, prices[item]) for item, quantity in new.wanted]
    return self.shown(order, new.customer, new.card, total, lines)


def once_written(self: OrderServer, db: Db, request: ReceivedRequest, path: Sequence[str]) -> Reply:
    if path and (writer := self.state.pop(path[0], None)):
        writer.join()
    return OrderServer.route(self, db, request, path)


def inserted_in_lots(self: OrderServer, db: Db, customer: int, card: str, total: Decimal) -> int:
    """Insert ten orders in advance, and fill in one of them for each request."""
    with self.lock:
        if not (lot := self.state.setdefault("lot", [])):
            text = (
                "INSERT INTO orders (customer_id, card, total) SELECT 1, %s, 0 FROM generate_series(1, 10) RETURNING id"
            )
            with self.connect() as another:
                lot += [number for (number,) in another.execute(text, (card,)).fetchall()]
        order = lot.pop()
    db.execute(
        "UPDATE orders SET customer_id = %s, card = %s, total = %s WHERE id = %s", (customer, card, total, order)
    )
    return int(order)


def inserted_alone(self: OrderServer, db: Db, customer: int, card: str, total: Decimal) -> int:
    """Insert on a separate connection, which commits the order without its items."""
    with self.connect() as another:
        return OrderServer.insert(self, another, customer, card, total)


def summed_later(self: OrderServer, db: Db, order: int, item: int, quantity: int) -> Document:
    with db.transaction():
        self.lock_order(db, order)
        prices = self.all_prices(db, [item])
        if item in {found["itemId"] for found in self.read(db, order)["items"]}:
            return OrderServer.again(self, db, order, item, quantity)
        self.insert_items(db, order, [(item, quantity)], prices)
    with db.transaction():
        self.lock_order(db, order)
        self.add_up(db, order)
    return self.read(db, order)


def whole_row(self: OrderServer, db: Db, order: int, card: str) -> Document:
    with db.transaction():
        found = self.read(db, order)
        values = (found["customerId"], card, found["total"], order)
        db.execute("UPDATE orders SET customer_id = %s, card = %s, total = %s WHERE id = %s", values)
        return self.read(db, order)


def cached_order(self: OrderServer, db: Db, request: ReceivedRequest, path: Sequence[str]) -> Reply:
    """Cache orders on reads. Only writes through this server invalidate the cache."""
    cache = self.state.setdefault("kept", {})
    key = tuple(path)
    if request.method == "GET" and len(path) == 1:
        if key not in cache:
            cache[key] = OrderServer.route(self, db, request, path)
        return cache[key]  # type: ignore[no-any-return]
    reply = OrderServer.route(self, db, request, path)
    cache.pop(key[:1], None)
    return reply


def list_of_a_second(self: OrderServer, db: Db, limit: int) -> list[Document]:
    cached = self.state.setdefault("lists", {})
    if limit not in cached or time.monotonic() - cached[limit][0] > 1:
        cached[limit] = time.monotonic(), OrderServer.newest(self, db, limit)
    return cached[limit][1]  # type: ignore[no-any-return]


def rogue(name: str, caught_by: str, does: str, **methods: Any) -> Rogue:
    return Rogue(name=name, test_type="order", caught_by=caught_by, does=does, change=methods, base=OrderServer)


ROGUES = (
    rogue("swallows-cards", "declared-answer", "leaves every 20th card change unanswered", reply=swallow),
    rogue("vendor-type", "declared-content-type", "declares orders as application/vnd.order+json", json=as_vendor_type),
    rogue("items-backwards", "answer-agrees", "returns items in descending order of their ids", shown=with_lines_backwards),
    rogue("float-money", "declared-json", "returns money as a JSON number", money=lambda _, value: float(value)),
    rogue("no-location", "location-named", "omits Location", created=lambda self, order: replace(OrderServer.created(self, order), headers=[])),
    rogue("any-quantity", "declared-status", "accepts quantities above 100", quantity=lambda self, value: value if type(value) is int and 100 < value < 1000 else OrderServer.quantity(self, value)),
    rogue("problems-as-json", "declared-content-type", "declares problems as application/json", problem=lambda self, status, detail: replace(OrderServer.problem(self, status, detail), content_type="application/json")),
    rogue("refused-order-stays", "tables-as-answered", "stores a rejected order", create=order_stays),
    rogue("loses-orders", "tables-as-answered", "rolls every tenth order back, but returns it", create=lost),
    rogue("loses-the-last-item", "tables-as-answered", "stores long orders without their last item", create=without_the_last),
    rogue("doubles-orders", "tables-as-answered", "creates single-item orders twice", create=doubled),
    rogue("client-s-price", "tables-as-answered", "uses the price that the client sent", priced=priced_by_client),
    rogue("cached-prices", "tables-as-answered", "caches the prices of items", prices=cached_prices),
    rogue("client-s-total", "tables-as-answered", "uses the total that the client sent", total=lambda self, new, prices: Decimal(new.document["total"]) if "total" in new.document else OrderServer.total(self, new, prices)),
    rogue("rounded-total", "tables-as-answered", "rounds high totals", total=total_in_float),
    rogue("deletes-in-memory", "tables-as-answered", "deletes orders only in memory", delete=marked_deleted, read=read_unless_marked),
    rogue("same-cards", "tables-as-answered", "changes all orders that have the same card", change=same_cards),
    rogue("loads-one-less", "tables-as-answered", "loads fewer orders than it reports", load=loads_one_less),
    rogue("answers-of-before", "answer-agrees", "returns an order without its new item", add=answers_before),
    rogue("card-later", "committed-before-answered", "writes the card after the response", change=early_change),
    rogue("commits-later", "committed-before-answered", "commits the order after the response", create=early_commit),
    rogue("items-in-a-second-transaction", "one-transaction", "commits an order before its items", insert=inserted_alone),
    rogue("total-in-a-second-transaction", "one-transaction", "commits an item before the total", add=summed_later),
    rogue("locks-nothing", "orders-in-a-crowd", "does not lock orders before changing items", lock_order=lambda self, db, order: self.there(db, order)),
    rogue("writes-whole-rows", "orders-in-a-crowd", "overwrites the total with an old one when the card changes", change=whole_row),
    rogue("cached-orders", "reads-are-current", "caches orders", route=cached_order),
    under_load("writes-behind-when-busy", "order", "load-as-answered", "writes an order 30 ms after the response, under load", {"route": once_written, **while_busy({"create": behind}, OrderServer)}, base=OrderServer),
    under_load("keeps-prices-when-busy", "order", "load-statements", "caches the prices of items, under load", while_busy({"prices": cached_prices}, OrderServer), base=OrderServer),
    under_load("inserts-in-lots-when-busy", "order", "load-statements", "inserts ten orders at a time, under load", while_busy({"insert": inserted_in_lots}, OrderServer), base=OrderServer),
    rogue("list-of-a-second", "reads-are-current", "caches the list of orders for a second", newest=list_of_a_second),
)  # fmt: skip
