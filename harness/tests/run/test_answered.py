"""What the database did for verification and watch is not what it did for a load."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pytest

from harness.plan.testtypes.registry import TEST_TYPES
from harness.records.models import Closed, Load
from harness.run.answered import Answered, Due
from harness.verify.checks.evidence import Case, Exchange
from harness.verify.checks.load import DatabaseCounters
from harness.verify.checks.statement_counts import Snapshot
from harness.verify.verification import check_load
from harness.verify.wire import Response

SELECT = "SELECT id, randomnumber FROM world WHERE id = $1"
WHOLE_TABLE = "SELECT id, randomnumber FROM world"
UPDATE = "UPDATE world SET randomnumber = new.number FROM unnest($1, $2) AS new (id, number) WHERE world.id = new.id"
PAGE = "SELECT id, message FROM fortune"


def counted(rows: Mapping[str, tuple[int, int]], deallocated: int = 0, open_portals: int = 0) -> Snapshot:
    """Counters after these statements, by name: calls and rows."""
    texts = {"select": SELECT, "whole_table": WHOLE_TABLE, "update": UPDATE, "page": PAGE}
    return Snapshot(
        counted={(0, texts[name]): (*done, 3 * done[0]) for name, done in rows.items()},
        deallocated=deallocated,
        open_portals=open_portals,
    )


NOTHING = counted({})
LEVEL = Closed(connections=16, queries=20)


@dataclass
class Database:
    """Shows one reading after the other; the clock goes on by a second with each look at it."""

    readings: Iterator[Snapshot]
    seconds: float = 0.0

    def look(self) -> Snapshot:
        return next(self.readings)

    def now(self) -> float:
        self.seconds += 1
        return self.seconds


def answered(*readings: Snapshot) -> Answered:
    database = Database(iter(readings))
    return Answered(before=DatabaseCounters(statements=NOTHING), look=database.look, now=database.now)


def asked(sent_at: float, received_at: float, status: int = 200) -> Exchange:
    response = Response(version="1.1", status=status, reason="", headers=(), body=b"", size=0, framing="content-length")
    return Exchange(
        case=Case(name="20 rows"),
        target="/queries?queries=20",
        sent_at=sent_at,
        received_at=received_at,
        connection=0,
        response=response,
    )


def at_the_end(ledger: Answered, now: Snapshot) -> Due:
    return ledger.due(DatabaseCounters(statements=now))


def test_what_is_due_adds_up_kind_by_kind() -> None:
    assert Due(reads=1, writes=20, fortunes=300) + Due(reads=4, writes=50, fortunes=600) == Due(
        reads=5, writes=70, fortunes=900
    )


@pytest.mark.parametrize(
    ("name", "level", "due"),
    [
        ("json", LEVEL, Due()),
        ("db", Closed(connections=16), Due(reads=7)),
        ("query", LEVEL, Due(reads=140)),
        ("update", LEVEL, Due(reads=140, writes=140)),
        ("fortune", Closed(connections=16), Due(fortunes=7)),
        ("cached-query", LEVEL, Due()),
    ],
)
def test_seven_good_answers_are_due_as_many_rows_as_their_test_type_asks_for(name: str, level: Load, due: Due) -> None:
    ledger = answered()
    for _ in range(2):
        ledger.load_answered(TEST_TYPES[name], level, good=7, failed=3)
    assert ledger.owed == due + due
    assert ledger.failed == (6 if name == "update" else 0)


@pytest.mark.parametrize(
    ("name", "done", "due"),
    [
        ("db", {"select": (800, 800)}, Due(reads=800)),
        ("query", {"select": (800, 800), "whole_table": (3, 30_000)}, Due(reads=800)),
        ("update", {"select": (600, 600), "update": (30, 600)}, Due(reads=600, writes=600)),
        ("fortune", {"page": (50, 600)}, Due(fortunes=50)),
    ],
)
def test_what_comes_before_a_load_does_not_pay_for_rows_of_the_load(
    name: str, done: dict[str, tuple[int, int]], due: Due
) -> None:
    ledger = answered(counted(done), counted(done))
    ledger.load_begins(TEST_TYPES[name])
    ledger.load_ends(TEST_TYPES[name])
    assert at_the_end(ledger, counted(done)) == due


def test_nor_does_what_comes_between_two_loads_or_after_the_last() -> None:
    query = TEST_TYPES["query"]
    done = [counted({"select": (rows, rows)}) for rows in (100, 300, 700, 1_500)]
    ledger = answered(*done)
    for _ in range(2):
        ledger.load_begins(query)
        ledger.load_ends(query)
    assert at_the_end(ledger, counted({"select": (3_100, 3_100)})) == Due(reads=100 + 400 + 1_600)


def test_a_load_that_read_nothing_is_found_however_much_was_read_around_it() -> None:
    query = TEST_TYPES["query"]
    around = counted({"select": (4_000, 4_000)})
    ledger = answered(around, around)
    ledger.load_begins(query)
    ledger.load_ends(query)
    ledger.load_answered(query, LEVEL, good=50, failed=0)
    after = DatabaseCounters(fetched=8_000, statements=counted({"select": (8_000, 8_000)}))
    due = ledger.due(after)
    before = DatabaseCounters(statements=NOTHING)
    failed = [r for r in check_load(before, after, answered_reads=due.reads) if r.outcome == "fail"]
    assert [result.check for result in failed] == ["load-reads-the-table", "load-selects-row-by-row"]


def test_a_session_within_a_transaction_may_hold_back_a_row_of_the_load() -> None:
    query = TEST_TYPES["query"]
    ledger = answered(NOTHING, counted({}, open_portals=2))
    ledger.load_begins(query)
    ledger.load_ends(query)
    assert at_the_end(ledger, counted({"select": (62, 62)})) == Due(reads=60)


def test_where_statements_were_forgotten_nothing_is_taken_off() -> None:
    db = TEST_TYPES["db"]
    ledger = answered(counted({"select": (800, 800)}, deallocated=1), NOTHING)
    ledger.load_begins(db)
    ledger.load_ends(db)
    assert at_the_end(ledger, NOTHING) == Due()


def test_rows_of_a_cache_are_nobodys() -> None:
    ledger = answered()
    cached = TEST_TYPES["cached-query"]
    ledger.load_begins(cached)
    ledger.load_ends(cached)
    ledger.load_answered(cached, LEVEL, good=1_000, failed=0)
    assert at_the_end(ledger, counted({"select": (800, 800)})) == Due()


@pytest.mark.parametrize(
    ("exchanges", "rows"),
    [
        ((asked(0.5, 0.9), asked(1.2, 1.4), asked(1.5, 1.9), asked(1.9, 2.5)), 40),  # the load: from 1 to 2
        ((asked(0.9, 1.4),), 0),
        ((asked(1.2, 1.4, status=500),), 0),
    ],
)
def test_what_the_watch_was_answered_within_a_load_is_due(exchanges: Sequence[Exchange], rows: int) -> None:
    update = TEST_TYPES["update"]
    ledger = answered(NOTHING, NOTHING)
    ledger.load_begins(update)
    ledger.load_ends(update)
    ledger.watched(update, LEVEL, exchanges)
    assert ledger.owed == Due(reads=rows, writes=rows)


def test_an_audit_is_held_against_what_came_since_it_began() -> None:
    query = TEST_TYPES["query"]
    ledger = answered(counted({"select": (800, 800)}), NOTHING, counted({"select": (1_600, 1_600)}, open_portals=3))
    ledger.load_begins(query)
    ledger.load_ends(query)
    ledger.watched(query, LEVEL, (asked(0.5, 0.9), asked(1.9, 2.5)))
    found = ledger.audit_alone(query, LEVEL, good=39)
    assert found is not None
    before, after, due = found
    use = after.since(before)
    assert due == Due(reads=(39 + 1) * 20 - 3)
    assert use.fetched is None  # published late
    assert use.statements is not None
    assert [statement.rows for statement in use.statements.statements] == [800]


def test_responses_to_update_that_failed_are_counted_for_they_explain_a_deadlock() -> None:
    ledger = answered()
    ledger.load_answered(TEST_TYPES["update"], LEVEL, good=0, failed=2)
    ledger.load_answered(TEST_TYPES["query"], LEVEL, good=0, failed=3)
    assert ledger.failed == 2
