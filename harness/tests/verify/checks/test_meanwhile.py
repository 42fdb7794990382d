"""Answers against tables that change, or are looked at, while many ask."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import psycopg
import pytest

from harness.plan.testtypes.registry import TEST_TYPES
from harness.records.models import Outcome
from harness.runtime import DatabaseAddress
from harness.tests.doubles.reference import ReferenceServer
from harness.verify import meanwhile, verification
from harness.verify.checks.evidence import Evidence, Exchange, FortuneVersion, Look, World
from harness.verify.checks.fortunes import fortunes_in_order
from harness.verify.checks.values import written_before_answered
from harness.verify.wire import Response

SEEDED, CHANGED = {1: "a", 2: "b"}, {1: "a", 2: "c"}


def answer(body: bytes, sent: float, received: float, rows: int | None = None) -> Exchange:
    response = Response(
        version="1.1", status=200, reason="", headers=(), body=body, size=len(body), framing="content-length"
    )
    case = verification.PLAIN if rows is None else verification.rows(rows)
    return Exchange(case=case, target="/", sent_at=sent, received_at=received, connection=0, response=response)


def update(number: int, sent: float, received: float) -> Exchange:
    return answer(f'[{{"id":1,"randomNumber":{number}}}]'.encode(), sent, received, rows=1)


def looked(held: int, updates: Sequence[Exchange]) -> Outcome:
    """The outcome where a look between seconds 10 and 11 found this number in row 1."""
    look = Look(world=World(tables={"world": {1: held}}), since=10.0, until=11.0)
    return written_before_answered.run(Evidence(test_type="update", url="", crowd=list(updates), looks=[look])).outcome


@pytest.mark.parametrize(
    ("held", "outcome"),
    [
        (5, Outcome.FAIL),  # what it held before anybody wrote
        (20, Outcome.FAIL),  # written before another began that was answered as well
        (30, Outcome.PASS),
        (31, Outcome.PASS),  # at the same time as that one
        (40, Outcome.PASS),  # under way when the look came
        (50, Outcome.FAIL),  # asked for after it
    ],
)
def test_a_look_finds_what_was_answered_last_or_is_under_way(held: int, outcome: Outcome) -> None:
    updates = [update(20, 1, 2), update(30, 3, 6), update(31, 4, 5), update(40, 9, 12), update(50, 12, 13)]
    assert looked(held, updates) is outcome


def test_a_row_whose_answer_had_not_come_may_hold_anything() -> None:
    assert looked(5, [update(20, 9, 12)]) is Outcome.PASS


def page(rows: dict[int, str], sent: float, received: float) -> Exchange:
    server = ReferenceServer()
    try:
        return answer(server.page(server.order(list(rows.items()))), sent, received)
    finally:
        server.stop()


@pytest.mark.parametrize(
    ("rows", "sent", "outcome"),
    [
        (SEEDED, 1.0, Outcome.PASS),
        (CHANGED, 1.0, Outcome.FAIL),
        (SEEDED, 9.8, Outcome.PASS),
        (CHANGED, 9.8, Outcome.PASS),
        (SEEDED, 12.0, Outcome.FAIL),
        (CHANGED, 12.0, Outcome.PASS),
    ],
)
def test_a_page_shows_the_fortunes_of_its_time(rows: dict[int, str], sent: float, outcome: Outcome) -> None:
    versions = [FortuneVersion(rows=SEEDED, until=11.0), FortuneVersion(rows=CHANGED, since=10.0)]
    evidence = Evidence(
        test_type="fortune", url="", crowd=[page(rows, sent, sent + 0.5)], fortunes=SEEDED, fortune_versions=versions
    )
    assert fortunes_in_order.run(evidence).outcome is outcome


class FailingTables:
    """The tables of a database that is gone in the middle of a change."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def world(self) -> World:
        return World(tables={"world": {1: 5}})

    def fortunes(self) -> dict[int, str]:
        return SEEDED

    def change(self, _share: float, seed: int) -> dict[str, tuple[float, float]]:
        self.done.append("changed one of two tables")
        raise psycopg.OperationalError("the connection is lost")

    def change_fortune(self, seed: int) -> dict[int, str]:
        self.done.append("changed one of two tables")
        raise psycopg.OperationalError("the connection is lost")

    def restore(self, world: World) -> None:
        self.done.append(f"put back {world.tables}")

    def seeded_fortune(self) -> None:
        self.done.append("put the message back")

    def vacuum(self) -> None:
        self.done.append("vacuumed")


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> FailingTables:
    view = FailingTables()

    @contextmanager
    def tables(_database: DatabaseAddress) -> Iterator[FailingTables]:
        yield view

    monkeypatch.setattr(meanwhile, "tables", tables)
    return view


ADMINISTERED = DatabaseAddress(
    host="127.0.0.1", port=1, name="x", user="x", password="x", admin_user="x", admin_password="x"
)


@pytest.mark.parametrize(
    ("name", "put_back"), [("db", ["put back {'world': {1: 5}}", "vacuumed"]), ("fortune", ["put the message back"])]
)
def test_a_change_that_breaks_off_is_put_back_and_told(failing: FailingTables, name: str, put_back: list[str]) -> None:
    acting = meanwhile.Meanwhile(TEST_TYPES[name], ADMINISTERED, 0.0, seed=1)
    with pytest.raises(psycopg.OperationalError, match="lost"), acting:
        acting._thread.join()
    assert failing.done == ["changed one of two tables", *put_back]


def test_an_interruption_is_not_hidden_by_a_change_that_broke_off(failing: FailingTables) -> None:
    acting = meanwhile.Meanwhile(TEST_TYPES["db"], ADMINISTERED, 0.0, seed=1)

    def interrupted() -> None:
        acting._thread.join()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), acting:
        interrupted()
    assert failing.done[-1] == "vacuumed"


def test_rows_that_were_not_changed_yet_are_left_alone(failing: FailingTables) -> None:
    with meanwhile.Meanwhile(TEST_TYPES["db"], ADMINISTERED, 1_000.0, seed=1):
        pass
    assert failing.done == []
