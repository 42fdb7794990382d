"""Direct access to the order tables: reads them, changes rows without the server, and holds commits back."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg

from harness.extras.orders.entities import Order, OrderItem, OrdersById, Prices
from harness.runtime import DatabaseAddress
from harness.runtime.database import connect
from harness.verify.checks.statement_counts import StatementSnapshot, find_counting_obstacle, take_snapshot

ORDERS, ITEMS = 1, 2  # the two parts of a transaction whose commit can be delayed
KEY = 0x746662  # key of the advisory locks
LOCK_SECONDS = 5
SETTLE_SECONDS, LOOK_SECONDS = 15.0, 0.1
NEWEST = 200  # number of older orders that ``leave_old`` keeps, which exceeds the maximum length of a list
ORDERS_QUERY = """
    SELECT o.id, o.customer_id, o.card, o.total, i.item_id, i.quantity, i.price
    FROM orders AS o LEFT JOIN order_item AS i ON i.order_id = o.id WHERE o.id > %s"""
# A deferred trigger that runs when a transaction commits. It waits while tfb holds the advisory lock.
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
# The number of active sessions of the server, and values that change with every write.
ACTIVE_SESSIONS_QUERY = """
    SELECT (SELECT count(*) FROM pg_stat_activity
            WHERE usename = %s AND datname = current_database() AND pid <> pg_backend_pid()
            AND state IN ('active', 'idle in transaction')),
           (SELECT count(*) FROM orders), (SELECT max(id) FROM orders), (SELECT count(*) FROM order_item)"""


class OrderTables:
    """A connection of tfb to the database with the orders."""

    def __init__(self, connection: psycopg.Connection, database: DatabaseAddress) -> None:
        self._connection = connection
        self._database = database
        self.above = 0  # orders with ids up to this value are ignored
        self.admin = database.admin_user is not None

    def leave_old(self) -> None:
        """Ignore all except the newest orders from now on, because after a load there are too many to read."""
        query = "SELECT coalesce(min(id), 1) - 1 FROM (SELECT id FROM orders ORDER BY id DESC LIMIT %s) AS newest"
        (self.above,) = self._connection.execute(query, (NEWEST,)).fetchone() or (0,)

    def orders(self) -> OrdersById:
        """Return the orders with their items, read in a consistent snapshot."""
        found: dict[int, Order] = {}
        lines: dict[int, dict[int, OrderItem]] = {}
        for number, customer, card, total, item, quantity, price in self._connection.execute(
            ORDERS_QUERY, (self.above,)
        ):
            own = lines.setdefault(number, {})
            found[number] = Order(customer=customer, card=card, total=total, lines=own)
            if item is not None:
                own[item] = OrderItem(quantity=quantity, price=price)
        return found

    def empty(self) -> None:
        """Delete all orders. As administrator, also restart the ids and raise all prices, which invalidates caches."""
        everything = (
            "TRUNCATE orders, order_item RESTART IDENTITY",
            "UPDATE item SET price = price + 0.01",
            "VACUUM item",
        )
        for statement in everything if self.admin else ("DELETE FROM orders",):
            self._connection.execute(statement.encode())

    def settle(self, seconds: float = SETTLE_SECONDS) -> None:
        """Wait until all sessions of the server are idle and the tables stop changing, for at most ``seconds``.

        After an overload, the server still processes requests that the generator has abandoned. These requests must not
        write to the tables of the next load. If the time limit is reached, later checks report the effects.
        """
        until = time.monotonic() + seconds
        before: object = None
        while time.monotonic() < until:
            now = self._connection.execute(ACTIVE_SESSIONS_QUERY, (self._database.user,)).fetchone()
            if now is not None and now[0] == 0 and now == before:
                return
            before = now
            time.sleep(LOOK_SECONDS)

    def statements(self) -> StatementSnapshot | None:
        """Return the statement counts of all servers until now, or None if statements are not counted."""
        return take_snapshot(self._connection) if self.admin and not find_counting_obstacle(self._connection) else None

    def prices(self) -> Prices:
        """Return the prices of all items."""
        return dict(self._connection.execute("SELECT id, price FROM item").fetchall())

    @contextmanager
    def changed_price(self, item: int) -> Iterator[None]:
        """Change the price of an item while the context is active. Requires an administrator."""
        change = "UPDATE item SET price = price + %s WHERE id = %s"
        self._connection.execute(change, ("1.11", item))
        try:
            yield
        finally:
            self._connection.execute(change, ("-1.11", item))

    def change(self, order: int, card: str, item: int, quantity: int) -> None:
        """Change the card and the total of an order and the quantity of an item, without the server."""
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
        """Delete an order with all items, without the server."""
        self._connection.execute("DELETE FROM orders WHERE id = %s", (order,))

    @contextmanager
    def commits_held(self) -> Iterator[Callable[[int], bool]]:
        """Prevent transactions that write orders or items from committing while the context is active.

        Yields:
            A function that releases a part (``ORDERS`` or ``ITEMS``) and returns whether it was able to. Releasing
            requires an administrator.
        """
        with connect(self._database, admin=self.admin) as connection:
            connection.execute(f"SET lock_timeout = '{LOCK_SECONDS}s'".encode())
            if not self.admin:
                with connection.transaction():
                    connection.execute("LOCK TABLE orders, order_item IN SHARE MODE")
                    yield lambda _: False
                return

            def let_through(part: int) -> bool:
                connection.execute("SELECT pg_advisory_unlock(%s, %s)", (KEY, part))
                return True

            for part in (ORDERS, ITEMS):
                connection.execute("SELECT pg_advisory_lock(%s, %s)", (KEY, part))
            try:
                for statement in (RELEASE_COMMITS, *HOLD):
                    connection.execute(statement.encode())
                yield let_through
            finally:
                connection.execute("SELECT pg_advisory_unlock_all()")
                connection.execute(RELEASE_COMMITS.encode())


@contextmanager
def order_tables(database: DatabaseAddress) -> Iterator[OrderTables]:
    """Connect to the tables, as administrator if known, so that the server's settings do not affect the connection."""
    with connect(database, admin=database.admin_user is not None) as connection:
        yield OrderTables(connection, database)
