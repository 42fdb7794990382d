"""Waiting for the writes that a load has left behind, and dating those of the harness itself."""

import time
from collections.abc import Collection, Sequence

import psycopg
import pytest
from psycopg import sql

from harness.runtime.database.embedded import EmbeddedDatabase
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


class Clock:
    """A clock that is ahead of ours by some seconds, each look at which takes a while before or after it is read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, ahead: float, pauses: Sequence[tuple[float, float]]) -> None:
        self.now, self.ahead, self.pauses = 1000.0, ahead, iter(pauses)
        monkeypatch.setattr("harness.verify.checks.tables.time.time", lambda: self.now)

    def __call__(self) -> float:
        before, after = next(self.pauses)
        self.now += before
        there = self.now + self.ahead
        self.now += after
        return there


def test_another_clock_is_known_as_well_as_its_best_looks_allow(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, 0.5, [(0.020, 0.001), (0.002, 0.030), (0.010, 0.010)])
    assert tables.ahead(clock, looks=3) == pytest.approx((0.499, 0.502))


@pytest.mark.parametrize("ahead", [-3600.0, 3600.0])
def test_a_change_is_dated_by_the_database_on_both_sides_of_its_commit(
    postgres: EmbeddedDatabase, monkeypatch: pytest.MonkeyPatch, ahead: float
) -> None:
    """Not by the statement's beginning and end: of a clock that is an hour off, one bound is its own."""
    postgres.restore()
    monkeypatch.setattr(tables, "ahead", lambda _: (ahead, ahead))
    with tables.tables(postgres.address) as view:
        begun = time.time()
        times = view.change(0.5, seed=1)
        done = time.time()
    postgres.restore()
    assert times.keys() == {"world", "World"}
    for since, until in times.values():
        if ahead < 0:  # it was an hour later than the database says
            assert since > done
            assert until <= done
        else:
            assert since >= begun
            assert until < begun


def test_ids_are_compared_as_the_column_s_type(postgres: EmbeddedDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else PostgreSQL goes through all of them for each row: ten times as long, beside a server on the same CPUs."""
    asked: list[sql.Composed] = []

    def committed(*statements: sql.Composed) -> tuple[float, float]:
        asked.extend(statements)
        return 0.0, 0.0

    with tables.tables(postgres.address) as view:
        monkeypatch.setattr(view, "committed", committed)
        view.change(0.5, seed=1)
        plan = view._connection.execute(sql.SQL("EXPLAIN {}").format(asked[0])).fetchall()
    (condition,) = (line for (line,) in plan if "ANY" in line)
    assert "::integer[]" in condition


def test_a_change_that_fails_changes_nothing_and_leaves_the_connection_usable(postgres: EmbeddedDatabase) -> None:
    with tables.tables(postgres.address) as view:
        before = view.fortunes()
        with pytest.raises(psycopg.errors.UndefinedTable):
            view.committed(sql.SQL("DELETE FROM fortune").format(), sql.SQL("DELETE FROM nowhere").format())
        assert view.fortunes() == before
