"""The order service's tables: who answers soonest, at what cost, up to which factor, from loads that are known."""

import csv
import io
from pathlib import Path

import pytest

from harness.records.models import Gate, Outcome, RunInfo, RunRecords, Scenario
from harness.records.orders import OrderCapacity, OrderRecords, OrderSample
from harness.report import Report, orders, terminal
from harness.report.sentence import sentence
from harness.stats.model import Ranking
from harness.stats.orders import with_orders
from harness.stats.ranking import rank
from harness.tests.doubles.order_data import GOAL, load, sample
from harness.tests.stats.records import run

BLOCKS = range(4)


def ranked(*loads: OrderSample, capacities: tuple[OrderCapacity, ...] = ()) -> tuple[RunInfo, Ranking, RunRecords]:
    names = sorted({one.implementation for one in loads})
    levels = {"order": tuple(Scenario(connections=64, factor=f) for f in sorted({one.factor for one in loads}))}
    info = run(*names, levels=levels)
    samples = [sample(one) for one in loads]
    ranking = rank(info, samples, [], [])
    ranking = with_orders(ranking, info, samples, OrderRecords(samples=loads, capacities=capacities))
    return info, ranking, RunRecords(info=info, samples=samples, replicates=[], verdicts=[], problems=())


FAST = [load("fast", block, 8.0, 0.002 * (1 + block / 100)) for block in BLOCKS]
SLOW = [load("slow", block, 8.0, 0.004 * (1 + block / 100)) for block in BLOCKS]


def test_the_order_service_is_ranked_by_the_response_time_of_create_order_and_by_cpu_per_arrival() -> None:
    _, ranking, _ = ranked(*FAST, *SLOW)
    assert ranking.orders is not None
    (table,) = ranking.orders.tables
    first, second = table.rows
    assert (table.factor, first.implementation, second.implementation) == (8.0, "fast", "slow")
    assert first.response is not None
    assert second.response is not None
    assert (first.response.rank.label, second.response.rank.label) == ("1", "2")
    assert first.response.estimate.median == pytest.approx(0.002, rel=0.03)
    assert second.response.to_best is not None
    assert second.response.to_best.value == pytest.approx(2.0)
    assert first.cpu_per_arrival is not None
    assert first.cpu_per_arrival.estimate.median == pytest.approx(0.001, rel=0.03)
    assert first.database_cpu_per_arrival is not None
    assert first.database_cpu_per_arrival.median == pytest.approx(0.0005, rel=0.03)


def test_a_percentile_needs_requests_beyond_it_and_every_operation_is_told_beside_the_whole_arrival() -> None:
    _, ranking, _ = ranked(*FAST)
    assert ranking.orders is not None
    points = {(point.use_case, point.operation): point for point in ranking.orders.points["fast"]}
    create, arrival = points["online shop order", "create order"], points["online shop order", ""]
    assert (create.operation, create.answered, create.failed) == ("create order", 4 * 998, 4 * 2)
    assert sorted(create.percentiles) == ["50", "90", "99"]
    assert arrival.operation == ""
    assert arrival.percentiles["50"].median == pytest.approx(0.004, rel=0.03)


def test_a_load_that_a_gate_keeps_out_has_no_response_time() -> None:
    late = (Gate(name="generator-lag", outcome=Outcome.FAIL, value=1.0, threshold=0.2, word="generator lag"),)
    _, ranking, _ = ranked(*FAST, *(load("late", block, 8.0, 0.001, gates=late) for block in BLOCKS))
    assert ranking.orders is not None
    (table,) = ranking.orders.tables
    assert [(row.implementation, row.ranked) for row in table.rows] == [("fast", True), ("late", False)]
    assert table.rows[1].response is None
    assert "generator lag" in table.rows[1].reason
    assert ranking.orders.points["late"][0].percentiles == {}


def capacity(name: str, block: int, factor: float | None) -> OrderCapacity:
    above = None if factor is None else factor * 1.1
    return OrderCapacity(implementation=name, block=block, goal=GOAL, factor=factor, above=above, decided=True, loads=5)


def test_who_missed_the_goal_in_one_process_has_no_capacity() -> None:
    found = (
        *(capacity("fast", block, 64.0 + block) for block in BLOCKS),
        *(capacity("slow", block, 32.0 if block else None) for block in BLOCKS),
    )
    _, ranking, _ = ranked(*FAST, *SLOW, capacities=found)
    assert ranking.orders is not None
    first, second = ranking.orders.capacities
    assert first.capacity is not None
    assert first.implementation == "fast"
    assert first.capacity.estimate.median == pytest.approx(65.5, rel=0.01)
    assert (second.implementation, second.capacity) == ("slow", None)
    assert second.reason == "p99 ≤ 100 ms held at no factor in 1 of 4 replicates"


def test_the_answer_of_a_run_says_who_answers_soonest_and_not_who_has_more_requests() -> None:
    info, ranking, _ = ranked(*FAST, *SLOW)
    lead = sentence(info, ranking, "order").lead
    assert lead.startswith("fast answers soonest in Order service ×8 with a median of 2.03 ms for create order, 2.00×")
    assert "requests/s" not in lead


def test_the_terminal_shows_response_times_in_place_of_a_throughput_that_is_given() -> None:
    info, ranking, _ = ranked(*FAST, *SLOW)
    out = io.StringIO()
    terminal.show(info, ranking, terminal.console(out))
    assert "order ×8, by the response time of create order" in out.getvalue()
    assert "order at x8" not in out.getvalue()


def test_the_csv_has_a_line_for_every_operation(tmp_path: Path) -> None:
    _, ranking, records = ranked(*FAST)
    out = io.StringIO()
    orders.export(Report(folder=tmp_path, records=records, ranking=ranking), out)
    lines = {(line["use_case"], line["operation"]): line for line in csv.DictReader(io.StringIO(out.getvalue()))}
    assert ("order with unwanted items", "the whole arrival") in lines
    create = lines["online shop order", "create order"]
    assert float(create["response_time_p99_seconds"]) == pytest.approx(0.006, rel=0.03)
