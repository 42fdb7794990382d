"""Tests for the wait for a load's last writes, and for the times at which changes became visible."""

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


def test_waiting_continues_while_sessions_write(postgres: EmbeddedDatabase) -> None:
    postgres.restore()

    def write() -> None:
        with connect(postgres.address) as late:
            for number in range(20):
                late.execute("UPDATE world SET randomnumber = %s, id = id WHERE id = 1", (number + 1,))
                late.execute("SELECT pg_sleep(0.02)")

    with database_tables.open_tables(postgres.address) as view:
        writer = threading.Thread(target=write)
        writer.start()
        time.sleep(0.1)
        view.wait_until_idle()
        writer.join(0.5)
        assert not writer.is_alive()
        assert view.read_world()["world"][1] == 20


def test_waiting_ends_after_several_unchanged_reads() -> None:
    looks = iter([(1, 1, 0), (1, 1, 2), (1, 1, 2), (1, 1, 0), (1, 2, 0), (1, 2, 0), (1, 2, 0), (1, 2, 0)])
    view = database_tables.DatabaseTables(
        cast("psycopg.Connection", SimpleNamespace(execute=lambda _: Cursor(next(looks)))), admin=True
    )
    view.wait_until_idle()
    assert list(looks) == []


@dataclass
class Cursor:
    row: tuple[int, int, int]

    def fetchone(self) -> tuple[int, int, int]:
        return self.row


def test_waiting_has_a_time_limit(postgres: EmbeddedDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_tables, "MAX_IDLE_WAIT_SECONDS", 0.05)
    with connect(postgres.address) as busy, database_tables.open_tables(postgres.address) as view:
        sleeper = threading.Thread(target=busy.execute, args=("SELECT pg_sleep(1)",))
        sleeper.start()
        view.wait_until_idle()
        assert sleeper.is_alive()
        sleeper.join()


@pytest.mark.parametrize("ahead", [-3600.0, 3600.0])
def test_changes_are_dated_by_the_database_around_commit(
    database: DatabaseAddress, monkeypatch: pytest.MonkeyPatch, ahead: float
) -> None:
    """If the database's clock is an hour off, the process's own clock bounds the time of each change."""
    monkeypatch.setattr(database_tables, "clock_lead_bounds", lambda _: (ahead, ahead))
    with database_tables.open_tables(database) as view:
        started_at = time.time()
        changes = view.change_rows(5, random.Random(1))
        done = time.time()
    assert changes.keys() == {"world", "World"}
    for change in changes.values():
        if ahead < 0:  # the database's clock is an hour behind
            assert change.started_at > done >= change.ended_at
        else:
            assert change.started_at >= started_at > change.ended_at


def test_snapshots_show_one_moment(database: DatabaseAddress, monkeypatch: pytest.MonkeyPatch) -> None:
    with database_tables.open_tables(database) as view, database_tables.open_tables(database) as other:
        before, read = view.read_world(), view.read_texts

        def slowly() -> dict[str, str]:
            other.change_rows(1000, random.Random(1))
            return read()

        monkeypatch.setattr(view, "read_texts", slowly)
        started_at = time.time()
        texts, since, until = view.read_snapshot()
        assert {name: database_tables.parse_table_text(text) for name, text in texts.items()} == before
        assert started_at <= since <= until <= time.time()
        other.restore_world(before)


def test_changes_are_reported_and_restored(database: DatabaseAddress) -> None:
    with database_tables.open_tables(database) as view:
        before = view.read_world()
        changes = view.change_rows(1000, random.Random(1))
        after = view.read_world()
        assert database_tables.parse_table_text(changes["world"].text).items() <= after["world"].items()
        assert sum(before["World"][i] != after["World"][i] for i in range(1, 10_001)) == 1000
        view.restore_world(before)
        assert view.read_world() == before


def test_failed_changes_leave_the_connection_usable(database: DatabaseAddress) -> None:
    with database_tables.open_tables(database) as view:
        before = view.read_fortunes()
        with pytest.raises(psycopg.errors.UndefinedTable):
            view.commit(sql.SQL("DELETE FROM fortune").format(), sql.SQL("DELETE FROM nowhere").format())
        assert view.read_fortunes() == before
        assert view.commit(*[sql.SQL("SELECT 1, 2").format()] * 3)[0] == [[(1, 2)]] * 3
