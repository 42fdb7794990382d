"""Honest order services, which meet all requirements but differ from ``order_server``.

Any finding about them is a defect of verification. They imitate frameworks (headers, framing, JSON, problem details)
and data layers (isolation levels and retries, ids from a sequence, one or many statements).
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal

import psycopg

from harness.tests.doubles.honest import (
    Fields,
    Honest,
    VariantChange,
    cached_date,
    chunked,
    headed,
    in_pieces,
    not_found_page,
)
from harness.tests.doubles.http_double import ClientSession, ReceivedRequest, Reply
from harness.tests.doubles.order_server import Db, Document, New, OrderServer, RefusedError

LOT = 50  # number of ids that an object mapper reserves at a time
TRIES = 200


def chunked_unless_empty(self: OrderServer, request: ReceivedRequest | None, reply: Reply) -> bytes:
    encode = OrderServer.encode if reply.status == 204 else chunked(7)["encode"]
    return bytes(encode(self, request, reply))


def located(self: OrderServer, order: Document) -> Reply:
    reply = OrderServer.created(self, order)
    endpoint = self.endpoint
    return replace(reply, headers=[("Location", f"http://{endpoint.host}:{endpoint.port}/orders/{order['id']}")])


def closed_after_errors(self: OrderServer, session: ClientSession, request: ReceivedRequest) -> Reply:
    """Close the connection after an error, like a server that has not read the complete body."""
    reply = OrderServer.reply(self, session, request)
    return replace(reply, close=True) if reply.status == 400 and request.method != "GET" else reply


@contextmanager
def slow_commits(self: OrderServer, db: Db) -> Iterator[None]:
    with db.transaction():
        yield
        time.sleep(0.05)


def otherwise(self: OrderServer, document: object) -> bytes:
    """Encode members in reverse order and escape some characters needlessly."""

    def reverse(value: object) -> object:
        if isinstance(value, Mapping):
            return {key: reverse(value[key]) for key in reversed(value)}
        return [reverse(one) for one in value] if isinstance(value, list) else value

    text = json.dumps(reverse(document), indent=2)
    return text.replace("/", "\\/").replace('"12', '"\\u0031\\u0032').encode()


def talkative(self: OrderServer, status: int, detail: str) -> Reply:
    problem = {
        "type": f"https://example.org/problems/{status}", "title": "Not as asked", "status": status, "detail": detail,
        "instance": "/orders", "violations": [{"field": "card", "message": detail}], "timestamp": 1.5, "traceId": None,
    }  # fmt: skip
    return Reply(status=status, content_type="application/problem+json;charset=UTF-8", body=self.encode_json(problem))


def whole_numbers(self: OrderServer, request: ReceivedRequest) -> Document:
    """Read 2.0 as the integer 2, as languages with a single number type do."""

    def number(text: str) -> float | int:
        value = float(text)
        return int(value) if value.is_integer() else value

    OrderServer.document(self, request)
    found: Document = json.loads(request.body.decode(), parse_float=number)
    return found


def typed_bodies_only(self: OrderServer, session: ClientSession, request: ReceivedRequest) -> Reply:
    """Refuse bodies with status 415 unless Content-Type is JSON."""
    if request.body and "json" not in request.headers.get("content-type", ""):
        return self.problem(415, "the body must be application/json")
    return OrderServer.reply(self, session, request)


def tried_again(self: OrderServer, db: Db, request: ReceivedRequest, path: Sequence[str]) -> Reply:
    for attempt in range(TRIES):
        try:
            return OrderServer.route(self, db, request, path)
        except (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected):
            time.sleep(0.001 * attempt)
    raise RefusedError(503, "too many tries")


def serializable(self: OrderServer, db: Db, request: ReceivedRequest, path: Sequence[str]) -> Reply:
    db.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
    return tried_again(self, db, request, path)


def version_read(self: OrderServer, db: Db, order: int) -> None:
    """Read the row's version (xmin) instead of locking the row.

    A concurrent change makes the transaction fail and repeat.
    """
    (self.state[f"{id(db)}"],) = self.there(db, order, "SELECT xmin::text FROM orders WHERE id = %s")


def added_up_unless_changed(self: OrderServer, db: Db, order: int) -> None:
    text = (
        "UPDATE orders SET total = (SELECT coalesce(sum(quantity * price), 0) FROM order_item WHERE order_id = id) "
        "WHERE id = %s AND xmin::text = %s"
    )
    if not db.execute(text, (order, self.state[f"{id(db)}"])).rowcount:
        raise psycopg.errors.SerializationFailure


def by_difference(self: OrderServer, db: Db, order: int, item: int, quantity: int) -> Document:
    """Update the total first. This locks the order until the transaction ends."""
    with self.transaction(db):
        text = (
            "UPDATE orders SET total = total + %s * coalesce((SELECT price FROM item WHERE id = %s), 0) WHERE id = %s"
        )
        if not db.execute(text, (quantity, item, order)).rowcount:
            raise RefusedError(404, f"order {order} does not exist")
        prices = self.all_prices(db, [item])
        self.insert_items(db, order, [(item, quantity)], prices)  # violates the primary key if the order has the item
        return self.read(db, order)


def looked_at_last(self: OrderServer, db: Db, new: New) -> Document:
    """Insert first and let the tables' keys reject invalid orders. A rejected order uses up an id."""
    with self.transaction(db):
        try:
            order = self.insert(db, new.customer, new.card, Decimal(0))
        except (psycopg.errors.ForeignKeyViolation, psycopg.errors.NumericValueOutOfRange) as error:
            raise RefusedError(400, "unknown customer") from error
        prices = self.priced(db, new)
        self.insert_items(db, order, new.wanted, prices)
        self.add_up(db, order)
        return self.read(db, order)


def one_statement(self: OrderServer, db: Db, new: New) -> Document:
    ids, quantities = [item for item, _ in new.wanted], [quantity for _, quantity in new.wanted]
    if max(ids) > 2**31 - 1 or new.customer > 2**31 - 1 or min(ids) < 1:
        raise RefusedError(400, "unknown customer or item")
    row = self.one(
        db,
        "WITH wanted AS (SELECT w.id, w.quantity, i.price FROM unnest(%s::int[], %s::int[]) AS w (id, quantity) "
        "JOIN item i ON i.id = w.id), made AS (INSERT INTO orders (customer_id, card, total) "
        "SELECT c.id, %s, (SELECT sum(quantity * price) FROM wanted) FROM customer c "
        "WHERE c.id = %s AND (SELECT count(*) FROM wanted) = %s RETURNING id, total), "
        "lines AS (INSERT INTO order_item SELECT made.id, wanted.id, quantity, price FROM made, wanted) "
        "SELECT made.id, made.total, (SELECT array_agg(price ORDER BY id) FROM wanted) FROM made",
        (ids, quantities, new.card, new.customer, len(ids)),
    )
    if not row:
        raise RefusedError(400, "unknown customer or item")
    number, total, prices = row
    lines = [(item, quantity, price) for (item, quantity), price in zip(sorted(new.wanted), prices, strict=True)]
    return self.shown(number, new.customer, new.card, total, lines)


def from_a_lot(self: OrderServer, db: Db, customer: int, card: str, total: Decimal) -> int:
    """Reserve ids from the sequence in lots, as object mappers do. Ids that remain in the last lot are never used."""
    with self.lock:
        lot: list[int] = self.state.setdefault("lot", [])
        if not lot:
            taken = "SELECT nextval(pg_get_serial_sequence('orders', 'id')) FROM generate_series(1, %s)"
            lot += [number for (number,) in db.execute(taken, (LOT,))]
        order = lot.pop(0)
    text = "INSERT INTO orders (id, customer_id, card, total) VALUES (%s, %s, %s, %s)"
    db.execute(text, (order, customer, card, total))
    return order


def one(name: str, does: str, change: VariantChange, *, pool: int = 24) -> Honest:
    return Honest(name=name, does=does, change=change, test_types=("order",), pool=pool, base=OrderServer)


FURTHER: Fields = [
    ("Vary", "Accept"), ("ETag", '"1"'), ("Cache-Control", "no-store"), ("X-Powered-By", "it"), ("Connection", "keep-alive"),
    ("X-Content-Type-Options", "nosniff"),
]  # fmt: skip

HONEST_ORDERS: tuple[Honest, ...] = (
    one("orders-framed", "sends 7-byte chunks in separate segments, refreshes Date every second, uses 501 and a 404 page", {
        "encode": chunked_unless_empty, "send": in_pieces, "date": cached_date, "unsupported": lambda *_: Reply(status=501), "unknown": not_found_page}),
    one("orders-headed", "sends additional, lower-case fields, and charset=utf-8", headed(lambda f: [
        (n.lower(), f"{v}; charset=utf-8" if n == "Content-Type" else v) for n, v in (*f[::-1], *FURTHER)], OrderServer)),
    one("orders-located", "sends an absolute URL in Location", {"created": located}),
    one("orders-closing", "closes the connection after a bad body", {"reply": closed_after_errors}),
    one("orders-json", "indents JSON, reverses members and escapes characters needlessly", {"encode_json": otherwise}),
    one("orders-problems", "adds members and custom types to problem details", {"problem": talkative}),
    one("orders-2.0", "reads 2.0 as an integer", {"document": whole_numbers}),
    one("orders-415", "refuses bodies without a Content-Type", {"reply": typed_bodies_only}),
    one("orders-slow-commits", "waits 50 ms before each commit", {"transaction": slow_commits}),
    one("orders-pool-of-one", "uses a single connection", {}, pool=1),
    one("orders-serializable", "runs SERIALIZABLE transactions, with retries", {"route": serializable}),
    one("orders-optimistic", "uses optimistic locking, with retries", {"route": tried_again, "lock_order": version_read, "add_up": added_up_unless_changed}),
    one("orders-by-difference", "adds each change to the total", {"add": by_difference}),
    one("orders-keys-refuse", "inserts first and lets keys reject orders", {"create": looked_at_last}),
    one("orders-one-statement", "creates an order in one statement", {"create": one_statement}),
    one("orders-lots", "reserves ids from the sequence in lots", {"insert": from_a_lot}),
)  # fmt: skip
