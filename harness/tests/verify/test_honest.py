"""Honest servers pass even if they differ from the reference server."""

import pytest

from harness.records.verification_record import Outcome
from harness.runtime import DatabaseAddress
from harness.runtime.database.embedded import EmbeddedDatabase
from harness.tests.doubles.honest import HONEST, Honest
from harness.tests.doubles.honest_orders import HONEST_ORDERS
from harness.tests.verify.subjects import objections, verified
from harness.verify.verifier import Verifier

TIMEOUT_SECONDS = 4.0  # generous, because a slow response on a busy machine is no cheat
ORDERS_TIMEOUT_SECONDS = 8.0


@pytest.mark.gallery
@pytest.mark.parametrize("honest", HONEST, ids=lambda honest: honest.name)
def test_an_honest_variant_passes(honest: Honest, postgres: EmbeddedDatabase) -> None:
    postgres.restore()
    verifier = Verifier(TIMEOUT_SECONDS)
    verifier.start_process(postgres.address)
    with honest.server(postgres.address) as server:
        verdicts = [
            verified(server, name, postgres.address, verifier=verifier) for name in ("http", *honest.test_types)
        ]
    results = [result for verdict in verdicts for result in verdict.results] + [*verifier.end_process(postgres.address)]
    assert [result for result in results if result.outcome is Outcome.FAIL] == []


@pytest.mark.gallery
@pytest.mark.parametrize("honest", HONEST_ORDERS, ids=lambda honest: honest.name)
def test_an_honest_order_service_passes(honest: Honest, database: DatabaseAddress) -> None:
    with honest.server(database) as server:
        assert objections(verified(server, "order", database, verifier=Verifier(ORDERS_TIMEOUT_SECONDS))) == {}
