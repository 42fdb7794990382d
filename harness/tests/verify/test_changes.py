"""Tests for changes that tfb makes to the tables during a load."""

import time

import psycopg
import pytest

from harness.plan.testtypes.registry import TEST_TYPES
from harness.runtime import DatabaseAddress
from harness.tests.doubles.reference import ReferenceServer
from harness.verify import changes
from harness.verify.checks.evidence import TableVersion
from harness.verify.database_tables import DatabaseTables, open_tables


@pytest.fixture
def versions(database: DatabaseAddress, monkeypatch: pytest.MonkeyPatch) -> list[TableVersion[str]]:
    """Return the versions of the fortune table that tfb created during a load."""
    monkeypatch.setattr(changes, "INTERVAL_SECONDS", (0.0, 0.001))
    with open_tables(database) as view:
        before, until = view.read_fortunes(), time.monotonic() + 30
        load = changes.ConcurrentChanges(TEST_TYPES["fortune"], view, seconds=1.0, seed=1, put_back=False)
        with load:
            while len(load.fortunes) < 60 and time.monotonic() < until:
                time.sleep(0.01)
        assert view.read_fortunes() == before
        return load.fortunes


def test_changed_fortunes_move_and_need_escaping(versions: list[TableVersion[str]]) -> None:
    seeded = versions[0].rows
    changed = [{i: m for i, m in version.rows.items() if m != seeded[i]} for version in versions[1:]]
    assert all(len(rows) == 1 and "<b>&amp;" in message for rows in changed for message in rows.values())
    assert len({i for rows in changed for i in rows}) > 5
    orders = [sorted(version.rows, key=version.rows.__getitem__) for version in versions[1:]]
    assert len({order.index(i) for order, rows in zip(orders, changed, strict=True) for i in rows}) > 5


def test_pages_keep_their_length(versions: list[TableVersion[str]]) -> None:
    server = ReferenceServer()
    lengths = [len(server.page(server.order(list(version.rows.items())))) for version in versions]
    assert max(lengths) - lengths[0] < 0.01 * lengths[0]
    assert min(lengths) == lengths[0]


@pytest.mark.parametrize(("inside", "raised"), [(None, psycopg.OperationalError), (ValueError(), ValueError)])
def test_failed_restore_is_raised_unless_the_load_failed(
    database: DatabaseAddress, inside: Exception | None, raised: type[Exception]
) -> None:
    def load(view: DatabaseTables) -> None:
        with changes.ConcurrentChanges(TEST_TYPES["fortune"], view, seconds=60.0, seed=1, put_back=False):
            view.connection.close()
            if inside:
                raise inside

    with open_tables(database) as view, pytest.raises(raised):
        load(view)
