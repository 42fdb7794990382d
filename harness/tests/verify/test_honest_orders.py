"""No honest order service is objected to, however its framework and its data layer go about it."""

import pytest

from harness.runtime import DatabaseAddress
from harness.tests.doubles.honest import Honest
from harness.tests.doubles.honest_orders import HONEST_ORDERS
from harness.tests.verify.subjects import objections, verified

PATIENCE = 8.0  # seconds; the machine may be busy, and a slow answer is no dishonest one
# What only a thorough verification looks at: refusals, many at once, and commits that are held up.
THOROUGH = frozenset(
    (
        *("orders-problems", "orders-slow-commits", "orders-pool-of-one", "orders-serializable", "orders-optimistic"),
        *("orders-keys-refuse", "orders-one-statement", "orders-by-difference", "orders-closing", "orders-lots"),
    )
)


@pytest.mark.gallery
@pytest.mark.parametrize("honest", HONEST_ORDERS, ids=lambda honest: honest.name)
def test_verification_objects_to_nothing(honest: Honest, database: DatabaseAddress) -> None:
    with honest.server(database) as server:
        thorough = honest.name in THOROUGH
        assert objections(verified(server, "order", database, thorough=thorough, patience=PATIENCE)) == {}
