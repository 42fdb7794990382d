"""The harness's own look at the tables of orders, what it changes behind a server, and commits that it holds up."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg

from harness.extras.orders.model import Line, Order, Orders, Prices
from harness.runtime import DatabaseAddress
from harness.runtime.database import connect
from harness.verify.checks.statement_counts import Snapshot, snapshot, uncounted

ORDERS, ITEMS = 1, 2  # the parts of a transaction whose commit can be held up
KEY = 0x746662  # of the advisory locks
LOCK_SECONDS = 5
SETTLE_SECONDS, LOOK_SECONDS = 15.0, 0.1
NEWEST = 200  # orders of before that verification goes on looking at: more than a list holds
EVERYTHING = """
    SELECT o.id, o.customer_id, o.card, o.total, i.item_id, i.quantity, i.price
    FROM orders AS o LEFT JOIN order_item AS i ON i.order_id = o.id WHERE o.id > %s"""
# Deferred: it runs when a transaction commits, and waits there for as long as the harness holds the lock.
HOLD = (
    "CREATE FUNCTION tfb_hold() RETURNS trigger LANGUAGE plpgsql AS "
    f"'BEGIN PERFORM pg_advisory_xact_lock_shared({KEY}, TG_ARGV[0]::integer); RETURN NULL; END'",
    *(
        f"CREATE CONSTRAINT TRIGGER tfb_hold AFTER INSERT OR UPDATE OR DELETE ON {table} "
        f"DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION tfb_hold({part})"
        for table, part in (("orders", ORDERS), ("order_item", ITEMS))
    ),
)
LET_GO = "DROP FUNCTION IF EXISTS tfb_hold() CASCADE"
# Sessions of the server within a statement or a transaction; and what changes when anybody writes.
AT_WORK = """
    SELECT (SELECT count(*) FROM pg_stat_activity
            WHERE usename = %s AND datname = current_database() AND pid <> pg_backend_pid()
            AND state IN ('active', 'idle in transaction')),
           (SELECT count(*) FROM orders), (SELECT max(id) FROM orders), (SELECT count(*) FROM order_item)"""


class OrderTables:
    """One connection of the harness to the shared database."""

    def __init__(self, connection: psycopg.Connection, database: DatabaseAddress) -> None:
        self._connection = connection
        self._database = database
        self.above = 0  # older orders are not looked at
        self.admin = database.admin_user is not None

    def leave_old(self) -> None:
        """Look at the newest orders alone from now on: after a load there are too many to be read around each call."""
        query = "SELECT coalesce(min(id), 1) - 1 FROM (SELECT id FROM orders ORDER BY id DESC LIMIT %s) AS newest"
        (self.above,) = self._connection.execute(query, (NEWEST,)).fetchone() or (0,)

    def orders(self) -> Orders:
        """All orders with their items, or the newest, by one statement: one moment."""
        found: dict[int, Order] = {}
        lines: dict[int, dict[int, Line]] = {}
        for number, customer, card, total, item, quantity, price in self._connection.execute(EVERYTHING, (self.above,)):
            own = lines.setdefault(number, {})
            found[number] = Order(customer=customer, card=card, total=total, lines=own)
            if item is not None:
                own[item] = Line(quantity=quantity, price=price)
        return found

    def empty(self) -> None:
        """No orders, whoever is connected; of an administrator the ids begin anew, and prices rise: none is kept."""
        everything = (
            "TRUNCATE orders, order_item RESTART IDENTITY",
            "UPDATE item SET price = price + 0.01",
            "VACUUM item",
        )
        for statement in everything if self.admin else ("DELETE FROM orders",):
            self._connection.execute(statement.encode())

    def settle(self, seconds: float = SETTLE_SECONDS) -> None:
        """Wait until no session of the server is at work and no order comes or goes: what was under way has ended.

        A load that was too much leaves requests in the server that nobody waits for any more; they must not write into
        the next load's tables. Gives up after so many seconds: whatever is judged then tells of it.
        """
        until = time.monotonic() + seconds
        before: object = None
        while time.monotonic() < until:
            now = self._connection.execute(AT_WORK, (self._database.user,)).fetchone()
            if now is not None and now[0] == 0 and now == before:
                return
            before = now
            time.sleep(LOOK_SECONDS)

    def statements(self) -> Snapshot | None:
        """What servers' statements came to so far; None where they are not counted."""
        return snapshot(self._connection) if self.admin and not uncounted(self._connection) else None

    def prices(self) -> Prices:
        """Of all items."""
        return dict(self._connection.execute("SELECT id, price FROM item").fetchall())

    @contextmanager
    def changed_price(self, item: int) -> Iterator[None]:
        """Another price of an item for the length of the block; needs the administrator."""
        change = "UPDATE item SET price = price + %s WHERE id = %s"
        self._connection.execute(change, ("1.11", item))
        try:
            yield
        finally:
            self._connection.execute(change, ("-1.11", item))

    def change(self, order: int, card: str, item: int, quantity: int) -> None:
        """Another card, and another quantity of an item with the total that it makes, behind the server."""
        with self._connection.transaction():
            self._connection.execute(
                "UPDATE order_item SET quantity = %s WHERE order_id = %s AND item_id = %s", (quantity, order, item)
            )
            self._connection.execute(
                "UPDATE orders SET card = %s, total = (SELECT sum(quantity * price) FROM order_item "
                "WHERE order_id = orders.id) WHERE id = %s",
                (card, order),
            )

    def delete(self, order: int) -> None:
        """An order and its items, behind the server."""
        self._connection.execute("DELETE FROM orders WHERE id = %s", (order,))

    @contextmanager
    def commits_held(self) -> Iterator[Callable[[int], bool]]:
        """No transaction that writes orders or their items commits within the block, but for the parts let through.

        What it yields lets a part through, and says whether it could: it takes an administrator.
        """
        with connect(self._database, admin=self.admin) as gate:
            gate.execute(f"SET lock_timeout = '{LOCK_SECONDS}s'".encode())
            if not self.admin:
                with gate.transaction():
                    gate.execute("LOCK TABLE orders, order_item IN SHARE MODE")
                    yield lambda _: False
                return

            def let_through(part: int) -> bool:
                gate.execute("SELECT pg_advisory_unlock(%s, %s)", (KEY, part))
                return True

            for part in (ORDERS, ITEMS):
                gate.execute("SELECT pg_advisory_lock(%s, %s)", (KEY, part))
            try:
                for statement in (LET_GO, *HOLD):
                    gate.execute(statement.encode())
                yield let_through
            finally:
                gate.execute("SELECT pg_advisory_unlock_all()")
                gate.execute(LET_GO.encode())


@contextmanager
def order_tables(database: DatabaseAddress) -> Iterator[OrderTables]:
    """Connect as the administrator where known: nothing of the server's is in this session."""
    with connect(database, admin=database.admin_user is not None) as connection:
        yield OrderTables(connection, database)
