"""Waiting for the writes that a load has left behind."""

from collections.abc import Collection

import psycopg
import pytest

from harness.verify.checks import tables
from harness.verify.checks.evidence import World
from harness.verify.checks.tables import Tables


class Busy(Tables):
    """A database in which a row changes for some looks, then no more."""

    def __init__(self, changes: int) -> None:
        super().__init__(psycopg.Connection.__new__(psycopg.Connection))
        self.changes = changes
        self.looks = 0

    def world(self, ids: Collection[int] | None = None) -> World:
        self.looks += 1
        return World(tables={"world": {1: min(self.looks, self.changes)}})


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "STILL_INTERVAL", 0.0)


def test_settling_waits_until_a_row_has_stopped_changing() -> None:
    busy = Busy(changes=20)
    assert busy.settle().tables == {"world": {1: 20}}
    assert busy.looks == 20 + tables.STILL_LOOKS - 1


def test_settling_gives_up_when_its_time_is_over() -> None:
    busy = Busy(changes=10**9)
    busy.settle(seconds=0.05)
    assert busy.looks > 1
