"""What was counted around a load, against what was answered."""

from dataclasses import replace
from typing import cast

import psycopg
import pytest

from harness.plan.testtypes.registry import TEST_TYPES
from harness.records.models import Outcome
from harness.runtime import DatabaseAddress
from harness.runtime.database import connect
from harness.verify import verification
from harness.verify.checks import LOAD
from harness.verify.checks.evidence import Due, Evidence
from harness.verify.checks.statement_counts import MOST_STATEMENTS, Snapshot, Statement, snapshot
from harness.verify.tables import Tables

ONE_ROW = "SELECT id, randomnumber FROM world WHERE id = $1"
FORTUNES = "SELECT id, message FROM fortune"
NOTHING = Snapshot(counted={}, deallocated=7, waiting=())


def counts(text: str, calls: int, rows: int, pages: int) -> Statement:
    return Statement(text=text, calls=calls, rows=rows, pages=pages)


def failing(evidence: Evidence) -> set[str]:
    return {result.check for result in verification.judge(evidence) if result.outcome is Outcome.FAIL}


def found(test_type: str, answers: int, *counted: Statement) -> set[str]:
    """What objects to these statements behind so many answers, of 20 rows where it has a number of them."""
    due = Due.of(TEST_TYPES[test_type], 20 if TEST_TYPES[test_type].counts_rows else 1, answers)
    return failing(Evidence(test_type=LOAD, due=due, counts=counted))


def test_a_select_for_each_row_and_for_each_page_is_what_is_due() -> None:
    assert found("query", 100, counts(ONE_ROW, 2000, 2000, 6000)) == set()
    assert found("fortune", 100, counts(FORTUNES, 60, 720, 60), counts(f"{FORTUNES} f", 40, 480, 40)) == set()
    update = counts("UPDATE world SET randomnumber = $1 WHERE id = $2", 2000, 1999, 9000)
    assert found("update", 100, counts(ONE_ROW, 2000, 2000, 6000), update) == set()


def test_rows_that_a_join_makes_up_are_no_fortunes_of_other_pages() -> None:
    made_up = counts("SELECT FROM fortune, generate_series($1,$2)", 40, 12 * 58000, 40)
    assert found("fortune", 60000, counts(FORTUNES, 2000, 24000, 2000), made_up) == {"rows-read"}


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("SELECT xmin FROM fortune", 12),
        (f"{FORTUNES} UNION ALL SELECT $1, $2", 13),
        (f"{FORTUNES} ORDER BY message", 12),
    ],
)
def test_a_page_is_made_of_messages_that_were_found_as_they_are(text: str, rows: int) -> None:
    assert found("fortune", 100, counts(text, 100, 100 * rows, 100)) == {"rows-read"}
    assert found("fortune", 100, counts(text, 100, 100 * rows, 100), counts(FORTUNES, 100, 1200, 100)) == set()


def test_a_document_that_the_database_writes_is_no_row() -> None:
    assert found("db", 100, counts("SELECT to_json(w) FROM world w WHERE id = $1", 100, 100, 300)) == {"rows-read"}


@pytest.mark.parametrize(
    "text", ["SELECT * FROM world WHERE id = ANY($1)", "SELECT * FROM world WHERE $1 @> ARRAY[id]"]
)
def test_many_rows_of_a_call_are_not_evened_out_by_calls_that_find_none(text: str) -> None:
    assert found("query", 100, counts(text, 2000, 2000, 6000)) == {"one-row-a-select"}


def test_of_the_pages_that_were_touched_each_row_takes_three() -> None:
    assert found("query", 100, counts(f"{ONE_ROW} AND $2", 2000, 2000, 5000)) == {"rows-read"}
    assert found("db", 100, counts(ONE_ROW, 100, 0, 200)) == {"rows-read"}


def test_a_table_is_not_hidden_by_spelling_it_by_code_points() -> None:
    hidden = counts(r'SELECT id, randomnumber FROM U&"w\006Frld" WHERE id = $1', 100, 2000, 5500)
    assert found("query", 100, counts(ONE_ROW, 2000, 2000, 6000), hidden) == {"one-row-a-select"}


def test_updates_that_write_no_row_stand_for_no_request() -> None:
    together = counts("UPDATE world SET randomnumber = $1 WHERE id <= $2", 3, 2000, 9000)
    nothing = counts("UPDATE world SET id = id WHERE $1", 100, 0, 0)
    assert found("update", 100, counts(ONE_ROW, 2000, 2000, 6000), together, nothing) == {"rows-written"}


def counted(monkeypatch: pytest.MonkeyPatch, before: Snapshot, now: Snapshot, due: Due) -> Evidence:
    monkeypatch.setattr(verification, "snapshot", lambda _: now)
    monkeypatch.setattr(verification, "STRAGGLING_SECONDS", 0.0)
    return verification.counted(Tables(cast("psycopg.Connection", None), admin=True), before, due, 1)


@pytest.mark.parametrize(("different", "objections"), [(MOST_STATEMENTS - 1000, {"rows-read"}), (900, set())])
def test_a_server_that_floods_the_counters_fails_and_not_those_beside_it(
    different: int, objections: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = Snapshot(counted={(n, ""): (1, 1, 1) for n in range(different)}, deallocated=8, waiting=())
    evidence = counted(monkeypatch, NOTHING, now, Due(reads=5))
    assert failing(evidence) == objections
    assert {r.check for r in verification.judge(evidence) if r.outcome is Outcome.WARN} == {"statements-counted"}


def test_between_two_snapshots_are_the_calls_of_known_and_of_new_statements() -> None:
    earlier = replace(NOTHING, counted={(1, "a"): (10, 20, 30), (2, "b"): (1, 1, 1)})
    later = replace(NOTHING, counted={(1, "a"): (13, 25, 37), (2, "b"): (1, 1, 1), (3, "c"): (2, 4, 6)})
    assert later.since(earlier) == (
        Statement(text="a", calls=3, rows=5, pages=7),
        Statement(text="c", calls=2, rows=4, pages=6),
    )
    assert later.since(replace(earlier, deallocated=6)) is None


@pytest.mark.parametrize(
    ("before", "now", "pages"),
    [
        ([], [FORTUNES] * 8, 24),
        ([ONE_ROW] * 8, [FORTUNES] * 8, 24),
        ([FORTUNES] * 8, [FORTUNES] * 8, 32),
        ([FORTUNES] * 490, [FORTUNES] * 490, 32),
        ([FORTUNES] * 8, [], 32),
        ([], [ONE_ROW, "BEGIN", "SELECT 1"] * 8, 32),
    ],
)
def test_only_what_was_left_open_meanwhile_may_hold_pages_back(
    before: list[str], now: list[str], pages: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, last = (replace(NOTHING, waiting=tuple(texts)) for texts in (before, now))
    assert counted(monkeypatch, first, last, Due(pages=32)).due == Due(pages=pages)


def test_a_write_that_waits_may_be_of_many_rows_and_is_no_read() -> None:
    texts = [f"{ONE_ROW} FOR UPDATE", "UPDATE world SET randomnumber = $1 WHERE id = $2"]
    assert Due.waiting(texts, 20) == Due(reads=1, writes=20, updates=1)


def test_the_last_statement_of_an_open_transaction_is_known_to_wait(database: DatabaseAddress) -> None:
    with connect(database) as measured, connect(database, admin=True) as admin:
        measured.execute("BEGIN")
        measured.execute("SELECT id FROM world WHERE id = %s", (1,))
        assert snapshot(admin).waiting == ("SELECT id FROM world WHERE id = $1",)
