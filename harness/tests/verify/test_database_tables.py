"""The harness's own view of the tables: what it waits for, and how it dates what it changes."""

import random
import threading
import time
from dataclasses import dataclass
from types import SimpleNamespace
from typing import cast

import psycopg
import pytest
from psycopg import sql

from harness.runtime import DatabaseAddress
from harness.runtime.database import connect
from harness.runtime.database.embedded import EmbeddedDatabase
from harness.verify import database_tables


def test_settling_waits_for_what_is_still_being_written(postgres: EmbeddedDatabase) -> None:
    postgres.restore()

    def write() -> None:
        with connect(postgres.address) as late:
            for number in range(20):
                late.execute("UPDATE world SET randomnumber = %s, id = id WHERE id = 1", (number + 1,))
                late.execute("SELECT pg_sleep(0.02)")

    with database_tables.tables(postgres.address) as view:
        writer = threading.Thread(target=write)
        writer.start()
        time.sleep(0.1)
        view.settle()
        writer.join(0.5)
        assert not writer.is_alive()
        assert view.world()["world"][1] == 20


def test_settling_ends_when_some_looks_in_a_row_find_the_same_and_nobody_at_work() -> None:
    looks = iter([(1, 1, 0), (1, 1, 2), (1, 1, 2), (1, 1, 0), (1, 2, 0), (1, 2, 0), (1, 2, 0), (1, 2, 0)])
    view = database_tables.DatabaseTables(
        cast("psycopg.Connection", SimpleNamespace(execute=lambda _: Cursor(next(looks)))), admin=True
    )
    view.settle()
    assert list(looks) == []


@dataclass
class Cursor:
    row: tuple[int, int, int]

    def fetchone(self) -> tuple[int, int, int]:
        return self.row


def test_settling_gives_up_when_its_time_is_over(postgres: EmbeddedDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_tables, "SETTLE_SECONDS", 0.05)
    with connect(postgres.address) as busy, database_tables.tables(postgres.address) as view:
        sleeper = threading.Thread(target=busy.execute, args=("SELECT pg_sleep(1)",))
        sleeper.start()
        view.settle()
        assert sleeper.is_alive()
        sleeper.join()


@pytest.mark.parametrize("ahead", [-3600.0, 3600.0])
def test_a_change_is_dated_by_the_database_on_both_sides_of_its_commit(
    database: DatabaseAddress, monkeypatch: pytest.MonkeyPatch, ahead: float
) -> None:
    """Not by the statement's beginning and end: of a clock that is an hour off, one bound is its own."""
    monkeypatch.setattr(database_tables, "ahead", lambda _: (ahead, ahead))
    with database_tables.tables(database) as view:
        begun = time.time()
        changes = view.change(5, random.Random(1))
        done = time.time()
    assert changes.keys() == {"world", "World"}
    for change in changes.values():
        if ahead < 0:  # it was an hour later than the database says
            assert change.begun > done >= change.done
        else:
            assert change.begun >= begun > change.done


def test_a_look_is_of_one_moment_however_long_reading_takes(
    database: DatabaseAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    with database_tables.tables(database) as view, database_tables.tables(database) as other:
        before, read = view.world(), view.texts

        def slowly() -> dict[str, str]:
            other.change(1000, random.Random(1))
            return read()

        monkeypatch.setattr(view, "texts", slowly)
        begun = time.time()
        texts, since, until = view.look()
        assert {name: database_tables.numbers(text) for name, text in texts.items()} == before
        assert begun <= since <= until <= time.time()
        other.restore(before)


def test_what_was_changed_is_told_and_put_back(database: DatabaseAddress) -> None:
    with database_tables.tables(database) as view:
        before = view.world()
        changes = view.change(1000, random.Random(1))
        after = view.world()
        assert database_tables.numbers(changes["world"].text).items() <= after["world"].items()
        assert sum(before["World"][i] != after["World"][i] for i in range(1, 10_001)) == 1000
        view.restore(before)
        assert view.world() == before


def test_a_change_that_fails_changes_nothing_and_leaves_the_connection_usable(database: DatabaseAddress) -> None:
    with database_tables.tables(database) as view:
        before = view.fortunes()
        with pytest.raises(psycopg.errors.UndefinedTable):
            view.committed(sql.SQL("DELETE FROM fortune").format(), sql.SQL("DELETE FROM nowhere").format())
        assert view.fortunes() == before
        assert view.committed(*[sql.SQL("SELECT 1, 2").format()] * 3)[0] == [[(1, 2)]] * 3
