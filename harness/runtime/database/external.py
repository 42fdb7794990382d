"""A PostgreSQL that somebody else runs (``--database-host``): used as it is, rows brought back to the seed."""

import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

import psycopg

from harness.errors import StartError
from harness.runtime import Database, DatabaseAddress
from harness.runtime.database import connect, execute

logger = logging.getLogger("tfb.database")

# Whether the tables are those of toolset/database/orders.sql: somebody else's orders are not taken out.
HOLDS_ORDERS = b"""
    SELECT count(*) = 7 FROM information_schema.columns WHERE table_schema = 'public' AND (table_name, column_name) IN
        (('customer', 'name'), ('item', 'price'), ('orders', 'customer_id'), ('orders', 'card'), ('orders', 'total'),
         ('order_item', 'order_id'), ('order_item', 'item_id'))"""


@dataclass(frozen=True, kw_only=True)
class ExternalDatabase:
    """Where it answers; its CPU can't be read from here."""

    address: DatabaseAddress

    def restore(self) -> None:
        """Write the seeded numbers back, where they differ, and take the orders out."""
        with connect(self.address) as connection:
            execute(connection, "reload.sql")
            if connection.execute(HOLDS_ORDERS).fetchone() == (True,):
                execute(connection, "reload_orders.sql")
            else:
                logger.info(
                    "PostgreSQL at %s:%d has no tables for the test type order; psql -h %s -p %d -d hello_world "
                    "-f toolset/database/orders.sql makes them",
                    *(self.address.host, self.address.port) * 2,
                )

    def crash_reason(self) -> None:
        """It is somebody else's to look after."""
        return

    @property
    def divisible(self) -> bool:
        """It is somebody else's: no database is made in it."""
        return False

    def own(self, name: str) -> AbstractContextManager[Database]:
        """Never: servers that share it are run one after another."""
        raise NotImplementedError(name)

    def connections_free(self) -> int | None:
        """Not for us to know."""
        return None

    def meter(self) -> None:
        """Runs elsewhere."""
        return


@contextmanager
def external(host: str, port: int = 5432) -> Iterator[ExternalDatabase]:
    """Check that the benchmark's tables are there; raises StartError that says how to make them."""
    database = ExternalDatabase(address=DatabaseAddress(host=host, port=port))
    try:
        database.restore()
    except psycopg.Error as error:
        psql = f"psql -h {host} -p {port}"
        raise StartError(
            f"PostgreSQL at {host}:{port} does not hold the benchmark's tables ({str(error).strip()}); make them with: "
            f"{psql} -f toolset/database/role.sql && "
            f"{psql} -d hello_world -f toolset/database/schema.sql -f toolset/database/seed.sql "
            "-f toolset/database/orders.sql"
        ) from error
    yield database
