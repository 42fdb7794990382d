"""An honest order service passes. If the evidence lacks observations, this is reported."""

import threading
from dataclasses import replace

import pytest

from harness.extras.orders.database import order_tables
from harness.records.verification_record import CheckResult
from harness.runtime import DatabaseAddress
from harness.runtime.database import connect
from harness.tests.doubles.order_server import OrderServer
from harness.tests.doubles.rogues.gallery import ROGUES
from harness.tests.verify.subjects import objections, verified
from harness.verify.checks.after_load import read_server_state
from harness.verify.verifier import Verifier

TIMEOUT_SECONDS = 5.0


def objected(server: OrderServer, database: DatabaseAddress | None, *, thorough: bool = True) -> dict[str, CheckResult]:
    return objections(verified(server, "order", database, thorough=thorough, verifier=Verifier(TIMEOUT_SECONDS)))


@pytest.mark.gallery
@pytest.mark.parametrize("thorough", [True, False])
def test_an_honest_service_passes_and_leaves_nothing(thorough: bool, database: DatabaseAddress) -> None:
    with OrderServer(database) as server, connect(database, admin=True) as admin:
        before = read_server_state(admin, "benchmarkdbuser")
        assert objections(verified(server, "http")) == {}
        assert objected(server, database, thorough=thorough) == {}
        assert read_server_state(admin, "benchmarkdbuser") == before


@pytest.mark.gallery
def test_without_administrator_the_role_locks_the_tables(database: DatabaseAddress) -> None:
    nobody = replace(database, admin_user=None, admin_password=None)
    with OrderServer(database) as server:
        assert objected(server, nobody) == {}
    rogue = ROGUES["card-later"].server(database)
    assert isinstance(rogue, OrderServer)
    with rogue:
        assert list(objected(rogue, nobody)) == ["committed-before-answered"]


@pytest.mark.gallery
def test_missing_tables_are_reported(database: DatabaseAddress) -> None:
    with OrderServer(database) as server:
        for unseen in (None, replace(database, port=1)):
            assert list(objected(server, unseen)) == ["tables-seen"]


@pytest.mark.gallery
def test_reading_rows_waits_for_open_writes(database: DatabaseAddress) -> None:
    with connect(database) as late, order_tables(database) as view:
        view.empty()
        late.autocommit = False
        late.execute("INSERT INTO orders (customer_id, card, total) VALUES (1, '4111111111111111', 0)")
        timer = threading.Timer(0.5, late.commit)
        timer.start()
        view.settle()
        assert len(view.orders()) == 1
        view.empty()
        timer.join()
