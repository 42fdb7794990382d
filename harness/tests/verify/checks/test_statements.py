"""The number of statements during a load must fit the responses."""

from dataclasses import replace
from typing import cast

import psycopg
import pytest

from harness.plan.testtypes.registry import TEST_TYPES
from harness.records.verification_record import Outcome
from harness.runtime import DatabaseAddress
from harness.runtime.database import connect
from harness.tests.approve import approve
from harness.tests.verify.subjects import judge_rule
from harness.verify import verification
from harness.verify.checks import LOAD
from harness.verify.checks.evidence import DatabaseActivity, Evidence, ExpectedWork
from harness.verify.checks.statement_counts import (
    MAX_STATEMENTS,
    NormalisedStatement,
    StatementSnapshot,
    take_snapshot,
)
from harness.verify.database_tables import DatabaseTables

ONE_ROW = "SELECT id, randomnumber FROM world WHERE id = $1"
FORTUNES = "SELECT id, message FROM fortune"
NOTHING = StatementSnapshot(counted={}, deallocated=7, open_statements=())


def counts(text: str, calls: int, rows: int, pages: int) -> NormalisedStatement:
    return NormalisedStatement(text=text, calls=calls, rows=rows, pages=pages)


def failing(evidence: Evidence) -> set[str]:
    return {result.check for result in verification.run_checks(evidence) if result.outcome is Outcome.FAIL}


UPDATES = counts("UPDATE world SET randomnumber = $1 WHERE id = $2", 2000, 1999, 9000)
READS = counts(ONE_ROW, 2000, 2000, 6000)
TOGETHER = counts("UPDATE world SET randomnumber = $1 WHERE id <= $2", 3, 2000, 9000)


JUDGED: list[tuple[str, list[NormalisedStatement]]] = [
    ("update", [READS, UPDATES]),
    ("fortune", [counts(FORTUNES, 60, 720, 60), counts(f"{FORTUNES} f", 40, 480, 40)]),
    # Each page needs its own SELECT of fortunes. Rows of a join are no substitute.
    ("fortune", [counts(FORTUNES, 3, 36, 3), counts("SELECT FROM fortune, generate_series($1,$2)", 1, 1164, 1)]),
    ("fortune", [counts("SELECT xmin FROM fortune", 100, 1200, 100)]),
    ("fortune", [counts(f"{FORTUNES} UNION ALL SELECT $1, $2", 100, 1300, 100)]),
    ("fortune", [counts("SELECT ctid FROM fortune", 1, 12, 1), counts(f"{FORTUNES} ORDER BY message", 100, 1200, 100)]),
    ("fortune", [counts("SELECT xmin FROM fortune", 100, 1200, 100), counts(FORTUNES, 100, 1200, 100)]),
    # Rows that PostgreSQL encodes as JSON do not count.
    ("db", [counts("SELECT to_json(w) FROM world w WHERE id = $1", 100, 100, 300)]),
    # A SELECT of many rows does not count as SELECTs of single rows, although it touches three pages per row.
    ("query", [counts("SELECT * FROM world WHERE id = ANY($1)", 2000, 2000, 6000)]),
    ("query", [counts("SELECT * FROM world WHERE $1 @> ARRAY[id]", 2000, 2000, 6000)]),
    ("query", [counts(f"{ONE_ROW} AND $2", 2000, 2000, 5000)]),
    ("db", [counts(ONE_ROW, 100, 0, 200)]),
    ("query", [READS, counts(r'SELECT id, randomnumber FROM U&"w\006Frld" WHERE id = $1', 100, 2000, 5500)]),
    ("update", [READS, TOGETHER, counts("UPDATE world SET id = id WHERE $1", 100, 0, 0)]),
    ("db", [counts(ONE_ROW, 99, 99, 98), counts("SELECT id, randomnumber FROM world", 1, 10_000, 45)]),
]


def test_findings_for_statements_are_as_approved() -> None:
    """Judge 100 responses. They have 20 rows each if the test type has a row count."""
    due = [
        ExpectedWork.for_responses(TEST_TYPES[kind], 20 if TEST_TYPES[kind].counts_rows else 1, 100)
        for kind, _ in JUDGED
    ]
    evidence = [
        Evidence(test_type=LOAD, expected_work=work, statements=made)
        for work, (_, made) in zip(due, JUDGED, strict=True)
    ]
    evidence += [
        Evidence(
            test_type=LOAD,
            expected_work=work,
            database_activity=DatabaseActivity(fetched=98, updated=1975, deadlocks=0, left_behind=()),
        )
        for work in due[1::7]
    ]
    approve("verify-statements", [judge_rule(each, "statements") for each in evidence])


def counted(
    monkeypatch: pytest.MonkeyPatch, before: StatementSnapshot, now: StatementSnapshot, due: ExpectedWork
) -> Evidence:
    monkeypatch.setattr(verification, "take_snapshot", lambda _: now)
    monkeypatch.setattr(verification, "MAX_COUNT_DELAY_SECONDS", 0.0)
    return verification.wait_for_statements(
        DatabaseTables(cast("psycopg.Connection", None), admin=True), before, due, 1
    )


@pytest.mark.parametrize(("different", "objections"), [(MAX_STATEMENTS - 1000, {"rows-read"}), (900, set())])
def test_only_the_server_that_floods_counters_fails(
    different: int, objections: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = StatementSnapshot(counted={(n, ""): (1, 1, 1) for n in range(different)}, deallocated=8, open_statements=())
    evidence = counted(monkeypatch, NOTHING, now, ExpectedWork(reads=5))
    assert failing(evidence) == objections
    assert {r.check for r in verification.run_checks(evidence) if r.outcome is Outcome.WARN} == {"statements-counted"}


def test_differences_include_known_and_new_statements() -> None:
    earlier = replace(NOTHING, counted={(1, "a"): (10, 20, 30), (2, "b"): (1, 1, 1)})
    later = replace(NOTHING, counted={(1, "a"): (13, 25, 37), (2, "b"): (1, 1, 1), (3, "c"): (2, 4, 6)})
    assert later.since(earlier) == (
        NormalisedStatement(text="a", calls=3, rows=5, pages=7),
        NormalisedStatement(text="c", calls=2, rows=4, pages=6),
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
def test_open_transactions_reduce_the_expected_pages(
    before: list[str], now: list[str], pages: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, last = (replace(NOTHING, open_statements=tuple(texts)) for texts in (before, now))
    assert counted(monkeypatch, first, last, ExpectedWork(pages=32)).expected_work == ExpectedWork(pages=pages)


def test_late_counts_are_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    late = replace(NOTHING, counted={(1, ONE_ROW): (20, 20, 60)})
    seen = iter([NOTHING, replace(late, counted={(1, ONE_ROW): (19, 19, 57)}), late, late])
    monkeypatch.setattr(verification, "take_snapshot", lambda _: next(seen))
    view = DatabaseTables(cast("psycopg.Connection", None), admin=True)
    found = verification.wait_for_statements(view, NOTHING, ExpectedWork(reads=20), 1)
    assert failing(found) == set()
    assert [one.calls for one in found.statements or ()] == [20]


@pytest.mark.parametrize(
    ("each", "answers", "due"),
    [  # 21, 1 and nearly 0 rows are expected to need no write
        (20, 1000, ExpectedWork(reads=20_000, writes=20_000 - 21 - 34, updates=1000)),
        (1, 10_000, ExpectedWork(reads=10_000, writes=10_000 - 1 - 12, updates=10_000 - 1 - 12)),
        (20, 1, ExpectedWork(reads=20, writes=13, updates=1)),
    ],
)
def test_repeated_rows_and_unchanged_numbers_are_spared(each: int, answers: int, due: ExpectedWork) -> None:
    """The tolerance is six standard deviations plus six rows."""
    assert ExpectedWork.for_responses(TEST_TYPES["update"], each, answers) == due


def test_open_writes_may_have_many_rows() -> None:
    texts = [f"{ONE_ROW} FOR UPDATE", "UPDATE world SET randomnumber = $1 WHERE id = $2"]
    assert ExpectedWork.in_open_transactions(texts, 20) == ExpectedWork(reads=1, writes=20, updates=1)


def test_open_transactions_show_their_last_statement(database: DatabaseAddress) -> None:
    with connect(database) as measured, connect(database, admin=True) as admin:
        measured.execute("BEGIN")
        measured.execute("SELECT id FROM world WHERE id = %s", (1,))
        assert take_snapshot(admin).open_statements == ("SELECT id FROM world WHERE id = $1",)


@pytest.mark.parametrize(
    ("excess", "objects"),
    [
        ([0] * 20, False),
        ([20] * 40, False),  # two index pages per SELECT
        ([20] * 30 + [21] * 10, False),  # a connection's first query touches one more page
        ([20] * 29 + [21] * 11, True),
        ([17, 18, 19] * 10, True),
        ([17, 18, 19] * 5, False),  # too few requests
    ],
)
def test_pages_of_other_rows_fail(excess: list[int], objects: bool) -> None:
    assert outcome_of_pages([(25 + n % 7 + more, 25 + n % 7, 20 + n % 5) for n, more in enumerate(excess)]) is objects


@pytest.mark.parametrize(("scan", "reads"), [(0, 1), (1, 1), (0, 2), (1, 2)])
def test_scans_may_end_early_and_repeat(scan: int, reads: int) -> None:
    pages = [(25 + n % 7, 20 + n % 5) for n in range(40)]
    assert outcome_of_pages([(20 + reads * each[scan], *each) for each in pages]) is False


def outcome_of_pages(pages: list[tuple[int, int, int]]) -> bool:
    """Return whether the check that compares returned rows to touched pages fails."""
    evidence = Evidence(test_type="update", pages_read=pages)
    found = [result for result in verification.run_checks(evidence) if result.check == "returned-rows-read"]
    return Outcome.FAIL in [result.outcome for result in found]
