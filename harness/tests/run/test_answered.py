"""What the database did for verification is not what it did for a load."""

from collections.abc import Mapping

import pytest

from harness.request.testtypes.registry import TEST_TYPES
from harness.run.answered import Answered
from harness.verify.checks.load import DatabaseCounters
from harness.verify.checks.statement_counts import Snapshot

SELECT = "SELECT id, randomnumber FROM world WHERE id = $1"
WHOLE_TABLE = "SELECT id, randomnumber FROM world"
UPDATE = "UPDATE world SET randomnumber = new.number FROM unnest($1, $2) AS new (id, number) WHERE world.id = new.id"
PAGE = "SELECT id, message FROM fortune"


def counted(rows: Mapping[str, tuple[int, int]], deallocated: int = 0) -> DatabaseCounters:
    """Counters after these statements, by name: calls and rows."""
    texts = {"select": SELECT, "whole_table": WHOLE_TABLE, "update": UPDATE, "page": PAGE}
    return DatabaseCounters(
        statements=Snapshot(
            counted={(number, texts[name]): (*done, 0) for number, (name, done) in enumerate(rows.items())},
            deallocated=deallocated,
            open_portals=0,
        )
    )


NOTHING = counted({})


@pytest.mark.parametrize(
    ("name", "done", "due"),
    [
        ("db", {"select": (800, 800)}, (800, 0, 0)),
        ("query", {"select": (800, 800), "whole_table": (3, 30_000)}, (800, 0, 0)),
        ("update", {"select": (600, 600), "update": (30, 600)}, (600, 600, 0)),
        ("fortune", {"page": (50, 600)}, (0, 0, 50)),
        ("cached-query", {"select": (800, 800)}, (0, 0, 0)),
    ],
)
def test_rows_of_verification_do_not_pay_for_rows_of_a_load(
    name: str, done: dict[str, tuple[int, int]], due: tuple[int, int, int]
) -> None:
    answered = Answered(before=NOTHING)
    answered.add_verification(TEST_TYPES[name], NOTHING, counted(done))
    assert (answered.reads, answered.writes, answered.fortunes) == due


@pytest.mark.parametrize("after", [DatabaseCounters(), counted({"select": (800, 800)}, deallocated=1)])
def test_where_statements_are_not_counted_exactly_nothing_is_due(after: DatabaseCounters) -> None:
    answered = Answered(before=NOTHING)
    answered.add_verification(TEST_TYPES["db"], NOTHING, after)
    assert answered.reads == 0
