"""No honest order service is objected to, however its framework and its data layer go about it."""

import pytest

from harness.plan.testtypes.registry import TEST_TYPES
from harness.records.models import Closed, Outcome
from harness.runtime import DatabaseAddress
from harness.tests.doubles.honest import Honest
from harness.tests.doubles.honest_orders import HONEST_ORDERS
from harness.verify import verification

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
        verdict = verification.check(
            implementation=honest.name,
            urls=honest.urls,
            endpoint=server.endpoint,
            test_type=TEST_TYPES["order"],
            database=database,
            thorough=honest.name in THOROUGH,
            replicate=0,
            levels=[Closed(connections=8)],
            patience=PATIENCE,
        )
    assert [(r.check, r.message) for r in verdict.results if r.outcome is not Outcome.PASS] == []


def test_there_are_forty_and_each_differs_from_the_others() -> None:
    assert len({honest.name for honest in HONEST_ORDERS}) == len(HONEST_ORDERS) >= 40
    assert len({(honest.pool, id(honest.change)) for honest in HONEST_ORDERS}) == len(HONEST_ORDERS)
    assert {honest.name for honest in HONEST_ORDERS} >= THOROUGH
