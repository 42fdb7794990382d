"""Honest order services: they keep every paragraph of the order service in another way than the tests' own does.

An objection to one of them is a defect of verification. They are ways of frameworks (headers,
framing, JSON, problems) and of data layers (isolation and retries, locks of every kind, ids from a sequence, one statement or many).
"""

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal

import psycopg
from psycopg import IsolationLevel

from harness.tests.doubles.honest import (
    Change,
    Fields,
    Honest,
    a_connection_each,
    cached_date,
    chunked,
    dumped,
    head_without_length,
    headed,
    in_pieces,
    not_found_page,
    slow,
)
from harness.tests.doubles.orders import Db, Document, New, OrderServer, Prices, RefusedError, Wanted
from harness.tests.doubles.reference import Reply, Request, Session

LOT = 50  # ids that a mapper takes at once
TRIES = 200


# ---- header fields and framing ---------------------------------------------------------------------------------------


def typed_without_a_body(self: OrderServer, reply: Reply) -> Fields:
    fields = OrderServer.headers(self, reply)
    return [*fields, ("Content-Type", "application/json")] if reply.status == 204 else fields


def chunked_unless_empty(size: int) -> Change:
    encode = chunked(size)["encode"]

    def method(self: OrderServer, request: Request | None, reply: Reply) -> bytes:
        found: bytes = (OrderServer.encode if reply.status == 204 else encode)(self, request, reply)
        return found

    return {"encode": method}


def located(self: OrderServer, order: Document) -> Reply:
    reply = OrderServer.created(self, order)
    endpoint = self.endpoint
    return replace(reply, headers=[("Location", f"http://{endpoint.host}:{endpoint.port}/orders/{order['id']}")])


def located_always(self: OrderServer, status: int, document: object) -> Reply:
    """Location with every 201, also of an item and of a load; ``created`` sets that of an order."""
    reply = OrderServer.json(self, status, document)
    return replace(reply, headers=[("Location", "/orders")]) if status == 201 else reply


def closed_after_errors(self: OrderServer, session: Session, request: Request) -> Reply:
    """As servers do that have not read a body to its end."""
    reply = OrderServer.reply(self, session, request)
    return replace(reply, close=True) if reply.status == 400 and request.method != "GET" else reply


@contextmanager
def slow_commits(self: OrderServer, db: Db) -> Iterator[None]:
    with db.transaction():
        yield
        time.sleep(0.05)


# ---- JSON ------------------------------------------------------------------------------------------------------------


def escaped(self: OrderServer, document: object) -> bytes:
    """Slashes and digits of strings as escapes, which JSON leaves to whoever writes it."""
    text = json.dumps(document)
    return text.replace("/", "\\/").replace('"12', '"\\u0031\\u0032').encode()


def backwards(self: OrderServer, document: object) -> bytes:
    def turned(value: object) -> object:
        if isinstance(value, Mapping):
            return {key: turned(value[key]) for key in reversed(value)}
        return [turned(one) for one in value] if isinstance(value, list) else value

    return json.dumps(turned(document)).encode()


def talkative(self: OrderServer, status: int, detail: str) -> Reply:
    problem = {
        "type": f"https://example.org/problems/{status}", "title": "Not as asked", "status": status, "detail": detail,
        "instance": "/orders", "violations": [{"field": "card", "message": detail}], "timestamp": 1.5, "traceId": None,
    }  # fmt: skip
    return Reply(status=status, content_type="application/problem+json;charset=UTF-8", body=self.encode_json(problem))


def whole_numbers(self: OrderServer, request: Request) -> Document:
    """2.0 is the integer 2, as where there is one kind of number only."""

    def number(text: str) -> float | int:
        value = float(text)
        return int(value) if value.is_integer() else value

    OrderServer.document(self, request)
    found: Document = json.loads(request.body.decode(), parse_float=number)
    return found


def typed_bodies_only(self: OrderServer, session: Session, request: Request) -> Reply:
    """415 for a body that says of itself that it is no JSON, or nothing."""
    if request.body and "json" not in request.headers.get("content-type", ""):
        return self.problem(415, "a body is application/json")
    return OrderServer.reply(self, session, request)


# ---- transactions ----------------------------------------------------------------------------------------------------


def isolated(level: IsolationLevel) -> Change:
    def route(self: OrderServer, db: Db, request: Request, path: Sequence[str]) -> Reply:
        db.isolation_level = level
        for attempt in range(TRIES):
            try:
                return OrderServer.route(self, db, request, path)
            except (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected):
                time.sleep(0.001 * attempt)
        raise RefusedError(503, "too many tries")

    return {"route": route}


def whole_request(self: OrderServer, db: Db, request: Request, path: Sequence[str]) -> Reply:
    """A transaction around the whole request, reads and refusals included, as filters of frameworks make it."""
    with db.transaction():
        return OrderServer.route(self, db, request, path)


def by_one_lock(self: OrderServer, db: Db, order: int) -> None:
    db.execute("SELECT pg_advisory_xact_lock(%s)", (order,))
    self.there(db, order)


def by_its_own_writing(self: OrderServer, db: Db, order: int) -> None:
    self.there(db, order, "UPDATE orders SET total = total WHERE id = %s RETURNING id")


def unless_changed(self: OrderServer, db: Db, order: int, change: Callable[[], Decimal]) -> None:
    """Optimistic: the row's version is read first, and all is tried again when another transaction was quicker."""
    for attempt in range(TRIES):
        with db.transaction() as transaction:
            version = self.there(db, order, "SELECT xmin::text, total FROM orders WHERE id = %s")
            more = change()
            text = "UPDATE orders SET total = %s WHERE id = %s AND xmin::text = %s"
            if db.execute(text, (version[1] + more, order, version[0])).rowcount:
                return
            raise psycopg.Rollback(transaction)
        time.sleep(0.001 * attempt)
    raise RefusedError(503, "too many tries")


def added_unless_changed(self: OrderServer, db: Db, order: int, item: int, quantity: int) -> Document:
    found: list[Document] = []

    def change() -> Decimal:
        prices = self.all_prices(db, [item])
        document = self.read(db, order)
        if item in {line["itemId"] for line in document["items"]}:
            self.again(db, order, item, quantity)
        self.insert_items(db, order, [(item, quantity)], prices)
        found.append(self.read(db, order))
        return quantity * prices[item]

    unless_changed(self, db, order, change)
    lines = found[-1]["items"]
    total = sum((line["quantity"] * Decimal(line["price"]) for line in lines), Decimal(0))
    return {**found[-1], "total": self.money(total)}


def taken_out_unless_changed(self: OrderServer, db: Db, order: int, item: int) -> None:
    def change() -> Decimal:
        text = "DELETE FROM order_item WHERE order_id = %s AND item_id = %s RETURNING -quantity * price"
        gone = self.one(db, text, (order, item))
        if not gone:
            raise RefusedError(404, f"there is no item {item} in order {order}")
        return Decimal(gone[0])

    unless_changed(self, db, order, change)


def by_difference(self: OrderServer, db: Db, order: int, item: int, quantity: int) -> Document:
    """The order's row first: its total grows by what comes, and nobody else is at it before the end."""
    with self.transaction(db):
        text = (
            "UPDATE orders SET total = total + %s * coalesce((SELECT price FROM item WHERE id = %s), 0) WHERE id = %s"
        )
        if not db.execute(text, (quantity, item, order)).rowcount:
            raise RefusedError(404, f"there is no order {order}")
        prices = self.all_prices(db, [item])
        self.insert_items(db, order, [(item, quantity)], prices)  # one that is there is refused by its key
        return self.read(db, order)


def without_conflict(self: OrderServer, db: Db, order: int, item: int, quantity: int) -> Document:
    with self.transaction(db):
        self.lock_order(db, order)
        self.all_prices(db, [item])
        text = "INSERT INTO order_item SELECT %s, id, %s, price FROM item WHERE id = %s ON CONFLICT DO NOTHING"
        if not db.execute(text, (order, quantity, item)).rowcount:
            return self.again(db, order, item, quantity)
        self.add_up(db, order)
        return self.read(db, order)


# ---- how an order is written, read and deleted -----------------------------------------------------------------------


def looked_at_last(self: OrderServer, db: Db, new: New) -> Document:
    """Inserts first, and lets the tables' own keys refuse: what is refused has taken an id."""
    with self.transaction(db):
        try:
            order = self.insert(db, new.customer, new.card, Decimal(0))
        except (psycopg.errors.ForeignKeyViolation, psycopg.errors.NumericValueOutOfRange) as error:
            raise RefusedError(400, "an unknown customer") from error
        prices = self.priced(db, new)
        self.insert_items(db, order, new.wanted, prices)
        self.add_up(db, order)
        return self.read(db, order)


def one_statement(self: OrderServer, db: Db, new: New) -> Document:
    ids, quantities = [item for item, _ in new.wanted], [quantity for _, quantity in new.wanted]
    if max(ids) > 2**31 - 1 or new.customer > 2**31 - 1 or min(ids) < 1:
        raise RefusedError(400, "an unknown customer or item")
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
        raise RefusedError(400, "an unknown customer or item")
    number, total, prices = row
    lines = [(item, quantity, price) for (item, quantity), price in zip(sorted(new.wanted), prices, strict=True)]
    return self.shown(number, new.customer, new.card, total, lines)


def from_a_lot(self: OrderServer, db: Db, customer: int, card: str, total: Decimal) -> int:
    """Ids of the sequence, so many at once, as mappers take them: the rest of a lot is never used."""
    with self.lock:
        lot: list[int] = self.state.setdefault("lot", [])
        if not lot:
            taken = "SELECT nextval(pg_get_serial_sequence('orders', 'id')) FROM generate_series(1, %s)"
            lot += [number for (number,) in db.execute(taken, (LOT,))]
        order = lot.pop(0)
    text = "INSERT INTO orders (id, customer_id, card, total) VALUES (%s, %s, %s, %s)"
    db.execute(text, (order, customer, card, total))
    return order


def row_by_row(self: OrderServer, db: Db, order: int, wanted: Wanted, prices: Prices) -> None:
    cursor = psycopg.ClientCursor(db)
    for item, quantity in wanted:
        text = "INSERT INTO order_item (order_id, item_id, quantity, price) VALUES (%s, %s, %s, %s)"
        cursor.execute(text, (order, item, quantity, prices[item]))


def copied(self: OrderServer, db: Db, order: int, wanted: Wanted, prices: Prices) -> None:
    with db.cursor().copy("COPY order_item (order_id, item_id, quantity, price) FROM STDIN") as copy:
        for item, quantity in wanted:
            copy.write_row((order, item, quantity, prices[item]))


def loaded_one_by_one(self: OrderServer, db: Db, count: int) -> int:
    with self.transaction(db):
        prices = self.prices(db, range(1, 1001))
        for number in range(count):
            chosen = 1 + number % 1000
            order = self.insert(db, chosen, "4111111111111111", prices[chosen])
            self.insert_items(db, order, [(chosen, 1)], prices)
    return count


def joined(self: OrderServer, db: Db, order: int) -> Document:
    rows = db.execute(
        "SELECT o.id, o.customer_id, o.card, o.total, i.item_id, i.quantity, i.price FROM orders o "
        "LEFT JOIN order_item i ON i.order_id = o.id WHERE o.id = %s",
        (order,),
    ).fetchall()
    if not rows:
        raise RefusedError(404, f"there is no order {order}")
    number, customer, card, total = rows[0][:4]
    return self.shown(number, customer, card, total, [row[4:] for row in rows if row[4] is not None])


def in_a_snapshot(self: OrderServer, db: Db, order: int) -> Document:
    if db.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
        return OrderServer.read(self, db, order)
    with db.transaction():
        db.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        return OrderServer.read(self, db, order)


def whole_row_locked(self: OrderServer, db: Db, order: int, card: str) -> Document:
    """A mapper's write: the row is read under a lock, and written back whole."""
    with self.transaction(db):
        customer, total = self.there(db, order, "SELECT customer_id, total FROM orders WHERE id = %s FOR UPDATE")
        text = "UPDATE orders SET customer_id = %s, card = %s, total = %s WHERE id = %s"
        db.execute(text, (customer, card, total, order))
        return self.read(db, order)


def items_first(self: OrderServer, db: Db, order: int) -> None:
    with self.transaction(db):
        self.lock_order(db, order)
        for (item,) in db.execute("SELECT item_id FROM order_item WHERE order_id = %s", (order,)).fetchall():
            db.execute("DELETE FROM order_item WHERE order_id = %s AND item_id = %s", (order, item))
        db.execute("DELETE FROM orders WHERE id = %s", (order,))


def written_by_one(self: OrderServer, session: Session, request: Request) -> Reply:
    if request.method == "GET":
        return OrderServer.reply(self, session, request)
    with self.lock:
        turn: threading.Lock = self.state.setdefault("turn", threading.Lock())
    with turn:
        return OrderServer.reply(self, session, request)


# ---- the gallery -----------------------------------------------------------------------------------------------------


def one(name: str, does: str, change: Change, *, pool: int = 24) -> Honest:
    return Honest(name=name, does=does, change=change, test_types=("order",), pool=pool, base=OrderServer)


FURTHER: Fields = [
    ("Vary", "Accept"), ("ETag", '"1"'), ("Cache-Control", "no-store"), ("X-Powered-By", "it"), ("Connection", "keep-alive"),
    ("X-Content-Type-Options", "nosniff"),
]  # fmt: skip

HONEST_ORDERS: tuple[Honest, ...] = (
    one("orders", "is the order service of the tests", {}),
    # framing and header fields
    one("orders-chunked", "sends bodies in chunks of 7 bytes", chunked_unless_empty(7)),
    one("orders-in-pieces", "sends head and body in segments of their own", {"send": in_pieces}),
    one("orders-lower-case", "writes header names in lower case", headed(lambda f: [(n.lower(), v) for n, v in f], OrderServer)),
    one("orders-headers", "has ETag, Vary and Cache-Control", headed(lambda f: [*f[::-1], *FURTHER], OrderServer)),
    one("orders-charset", "says charset=utf-8", headed(lambda f: [(n, f"{v}; charset=utf-8" if n == "Content-Type" else v) for n, v in f], OrderServer)),
    one("orders-typed-204", "names a type where there is no body", {"headers": typed_without_a_body}),
    one("orders-located", "names the order by a whole URL", {"created": located}),
    one("orders-all-located", "sends Location with every 201", {"json": located_always}),
    one("orders-closing", "closes the connection after a bad body", {"reply": closed_after_errors}),
    one("orders-no-head", "answers HEAD with 405", {"reply": lambda self, session, request: Reply(status=405, headers=[("Allow", "GET")]) if request.method == "HEAD" else OrderServer.reply(self, session, request)}),
    one("orders-bare-head", "answers HEAD without a length", {"encode": head_without_length}),
    one("orders-501", "answers methods that there are not with 501, paths with a page", {"unsupported": lambda *_: Reply(status=501), "unknown": not_found_page}),
    one("orders-date", "refreshes Date once a second", {"date": cached_date}),
    # JSON and problems
    one("orders-indented", "indents JSON", dumped(indent=2)),
    one("orders-backwards", "orders members otherwise", {"encode_json": backwards}),
    one("orders-escaped", "escapes characters that need not be", {"encode_json": escaped}),
    one("orders-problems", "extends its problems, and names types of its own", {"problem": talkative}),
    one("orders-2.0", "reads 2.0 as the integer that it is", {"document": whole_numbers}),
    one("orders-415", "refuses bodies without a type", {"reply": typed_bodies_only}),
    # slow ones
    one("orders-slow", "takes 20 ms an answer", slow(0.02, OrderServer)),
    one("orders-slow-commits", "waits 50 ms for each commit", {"transaction": slow_commits}),
    one("orders-one-writer", "writes one after the other", {"reply": written_by_one}),
    # connections to the database
    one("orders-pool-of-one", "has one connection", {}, pool=1),
    one("orders-pool-of-two", "has two connections", {}, pool=2),
    one("orders-connection-each", "connects for each request", {"connection": a_connection_each}),
    # transactions and locks
    one("orders-whole-requests", "has a transaction around each request", {"route": whole_request}),
    one("orders-repeatable-read", "writes in REPEATABLE READ, and tries again", isolated(IsolationLevel.REPEATABLE_READ)),
    one("orders-serializable", "writes in SERIALIZABLE, and tries again", isolated(IsolationLevel.SERIALIZABLE)),
    one("orders-advisory", "takes a lock that is no row's", {"lock_order": by_one_lock}),
    one("orders-touching", "locks by an update that changes nothing", {"lock_order": by_its_own_writing}),
    one("orders-optimistic", "writes if nobody was quicker, else again", {"add": added_unless_changed, "take_out": taken_out_unless_changed}),
    one("orders-by-difference", "adds to the total what comes", {"add": by_difference}),
    one("orders-on-conflict", "leaves it to ON CONFLICT", {"add": without_conflict}),
    # statements
    one("orders-keys-refuse", "inserts, and lets keys refuse", {"create": looked_at_last}),
    one("orders-one-statement", "creates by one statement", {"create": one_statement}),
    one("orders-lots", "takes ids of the sequence in lots", {"insert": from_a_lot}),
    one("orders-row-by-row", "inserts items row by row, with literals", {"insert_items": row_by_row}),
    one("orders-copy", "inserts items by COPY", {"insert_items": copied}),
    one("orders-loaded-singly", "loads orders one by one", {"load": loaded_one_by_one}),
    one("orders-joined", "reads by one join", {"read": joined}),
    one("orders-snapshots", "reads in read-only snapshots", {"read": in_a_snapshot}),
    one("orders-whole-rows", "locks, and writes the whole row back", {"change": whole_row_locked}),
    one("orders-items-first", "deletes items one by one, then the order", {"delete": items_first}),
)  # fmt: skip
