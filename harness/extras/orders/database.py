"""Reads and changes the order tables directly in the database, and delays the server's commits."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg

from harness.extras.orders.entities import Order, OrderItem, OrdersById, Prices
from harness.runtime import DatabaseAddress
from harness.runtime.database import connect
from harness.verify.checks.statement_counts import StatementSnapshot, find_counting_obstacle, take_snapshot

# Second keys of tfb's advisory locks. Each table has a key, so that tfb can block commits to the tables separately.
ORDERS, ITEMS = 1, 2
KEY = 0x746662  # first key of tfb's advisory locks; the value is arbitrary
SETTLE_SECONDS, LOOK_SECONDS = 15.0, 0.1  # maximum wait until the server is idle, and polling interval
ORDERS_QUERY = """
    SELECT o.id, o.customer_id, o.card, o.total, i.item_id, i.quantity, i.price
    FROM orders AS o LEFT JOIN order_item AS i ON i.order_id = o.id WHERE o.id > %s"""
# Statements that create a deferred trigger, which runs at commit. The commit waits while tfb holds the advisory lock.
HOLD = (
    "CREATE FUNCTION tfb_hold() RETURNS trigger LANGUAGE plpgsql AS "
    f"'BEGIN PERFORM pg_advisory_xact_lock_shared({KEY}, TG_ARGV[0]::integer); RETURN NULL; END'",
    *(
        f"CREATE CONSTRAINT TRIGGER tfb_hold AFTER INSERT OR UPDATE OR DELETE ON {table} "
        f"DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION tfb_hold({part})"
        for table, part in (("orders", ORDERS), ("order_item", ITEMS))
    ),
)
RELEASE_COMMITS = "DROP FUNCTION IF EXISTS tfb_hold() CASCADE"
# Counts the server's active sessions, and selects values that almost every write changes.
ACTIVE_SESSIONS_QUERY = """
    SELECT (SELECT count(*) FROM pg_stat_activity
            WHERE usename = %s AND datname = current_database() AND pid <> pg_backend_pid()
            AND state IN ('active', 'idle in transaction')),
           (SELECT count(*) FROM orders), (SELECT max(id) FROM orders), (SELECT count(*) FROM order_item)"""


class OrderTables:
    """tfb's connection to the orders database."""

    def __init__(self, connection: psycopg.Connection, database: DatabaseAddress) -> None:
        self._connection = connection
        self._database = database
        self.above = 0  # ``orders()`` returns only orders with higher ids
        self.admin = database.admin_user is not None

    def ignore_old(self) -> None:
        """Make ``orders()`` return only the newest 200 orders and later ones, because a load creates many orders."""
        # A server's list of orders contains at most 100, so 200 suffice.
        query = "SELECT coalesce(min(id), 1) - 1 FROM (SELECT id FROM orders ORDER BY id DESC LIMIT 200) AS newest"
        (self.above,) = self._connection.execute(query).fetchone() or (0,)

    def orders(self) -> OrdersById:
        """Return the orders with their items, read in a single consistent snapshot."""
        orders: dict[int, Order] = {}
        lines: dict[int, dict[int, OrderItem]] = {}
        for number, customer, card, total, item, quantity, price in self._connection.execute(
            ORDERS_QUERY, (self.above,)
        ):
            order_lines = lines.setdefault(number, {})
            orders[number] = Order(customer=customer, card=card, total=total, lines=order_lines)
            if item is not None:
                order_lines[item] = OrderItem(quantity=quantity, price=price)
        return orders

    def empty(self) -> None:
        """Delete all orders. As administrator, also reset the id sequences and raise all prices by 0.01.

        The new prices expose servers that cache prices.
        """
        statements = (
            "TRUNCATE orders, order_item RESTART IDENTITY",
            "UPDATE item SET price = price + 0.01",
            "VACUUM item",
        )
        for statement in statements if self.admin else ("DELETE FROM orders",):
            self._connection.execute(statement.encode())

    def settle(self, seconds: float = SETTLE_SECONDS) -> None:
        """Wait until the server's sessions are idle and the tables stop changing, but at most ``seconds``.

        After an overload, the server may still be processing requests that the generator has abandoned. These requests
        must not change the tables during the next load. If they do, later checks report it.
        """
        deadline = time.monotonic() + seconds
        previous_state: object = None
        while time.monotonic() < deadline:
            state = self._connection.execute(ACTIVE_SESSIONS_QUERY, (self._database.user,)).fetchone()
            if state is not None and state[0] == 0 and state == previous_state:
                return
            previous_state = state
            time.sleep(LOOK_SECONDS)

    def statements(self) -> StatementSnapshot | None:
        """Return PostgreSQL's statement counts so far, or None if PostgreSQL does not count statements."""
        return take_snapshot(self._connection) if self.admin and not find_counting_obstacle(self._connection) else None

    def prices(self) -> Prices:
        """Return the prices of all items by item id."""
        return dict(self._connection.execute("SELECT id, price FROM item").fetchall())

    @contextmanager
    def changed_price(self, item: int) -> Iterator[None]:
        """Change an item's price while the context is active. Requires an administrator."""
        change = "UPDATE item SET price = price + %s WHERE id = %s"
        self._connection.execute(change, ("1.11", item))
        try:
            yield
        finally:
            self._connection.execute(change, ("-1.11", item))

    def change(self, order: int, card: str, item: int, quantity: int) -> None:
        """Change an order's card and total, and the quantity of an item, directly in the database."""
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
        """Delete an order with all items, directly in the database."""
        self._connection.execute("DELETE FROM orders WHERE id = %s", (order,))

    @contextmanager
    def commits_held(self) -> Iterator[Callable[[int], bool]]:
        """Block commits that write to ``orders`` or ``order_item`` while the context is active.

        Yield a function that unblocks commits to one table (``ORDERS`` or ``ITEMS``) and returns True. Without an
        administrator, tfb locks both tables until the context ends, and the function only returns False.
        """
        with connect(self._database, admin=self.admin) as connection:
            connection.execute("SET lock_timeout = '5s'")
            if not self.admin:
                with connection.transaction():
                    connection.execute("LOCK TABLE orders, order_item IN SHARE MODE")
                    yield lambda _: False
                return

            def release(part: int) -> bool:
                connection.execute("SELECT pg_advisory_unlock(%s, %s)", (KEY, part))
                return True

            for part in (ORDERS, ITEMS):
                connection.execute("SELECT pg_advisory_lock(%s, %s)", (KEY, part))
            try:
                for statement in (RELEASE_COMMITS, *HOLD):
                    connection.execute(statement.encode())
                yield release
            finally:
                connection.execute("SELECT pg_advisory_unlock_all()")
                connection.execute(RELEASE_COMMITS.encode())


@contextmanager
def order_tables(database: DatabaseAddress) -> Iterator[OrderTables]:
    """Connect to the order tables, as administrator if possible.

    The server's role may have session settings that could affect tfb's queries.
    """
    with connect(database, admin=database.admin_user is not None) as connection:
        yield OrderTables(connection, database)
