"""The order service on fakes: loads at factors on empty tables, judged, searched, ranked by response time."""

from pathlib import Path

from harness.errors import Exit
from harness.plan import profile as profiles
from harness.plan.profile import OrderRules, by_arrivals
from harness.records import orders, store
from harness.tests.doubles.fakes_run import FakeRun
from harness.tests.doubles.fakes_world import Behaviour

RULES = OrderRules(factors=(1.0, 8.0), seconds=4.0, warm_up_factor=8.0, warm_up_seconds=4.0, search_loads=2)
PROFILE = by_arrivals(profiles.load("quick").model_copy(update={"orders": RULES}))
SERVERS = {"one": Behaviour(cpu_per_request=2e-4), "two": Behaviour(cpu_per_request=4e-4)}
PROCESSES = 3


def ran(folder: Path, **kind: object) -> FakeRun:
    return FakeRun(folder, SERVERS, PROFILE, test_types=("order",), **kind)  # type: ignore[arg-type]


def test_every_process_is_warmed_loaded_at_each_factor_and_searched_each_time_on_empty_tables(tmp_path: Path) -> None:
    run = ran(tmp_path)
    outcome = run.run()
    assert (outcome.failures, outcome.exit_code) == ((), Exit.OK)
    loads = orders.read(store.runs(tmp_path / "results")[-1])
    assert loads.problems == ()
    for name in SERVERS:
        mine = [load for load in loads.samples if load.implementation == name]
        assert sorted(load.factor for load in mine) == sorted([1.0, 8.0, 16.0, 32.0] * PROCESSES)
    a_load_for_warming = 1
    assert run.verifier.emptied == len(run.scenarios.loads) == len(SERVERS) * PROCESSES * (4 + a_load_for_warming)
    assert {one.factor for one in loads.capacities} == {32.0}
    assert {one.above for one in loads.capacities} == {None}


def test_the_planned_factors_alone_are_samples_and_tables(tmp_path: Path) -> None:
    outcome = ran(tmp_path).run()
    assert {sample.level.factor for sample in outcome.records.samples} == {1.0, 8.0}
    assert outcome.ranking.orders is not None
    assert [table.factor for table in outcome.ranking.orders.tables] == [1.0, 8.0]
    assert all(row.ranked for table in outcome.ranking.orders.tables for row in table.rows)
    assert [row.words for row in outcome.ranking.orders.capacities] == [("lower bound", "provisional")] * 2


def test_orders_that_the_database_has_not_keep_an_implementation_out_of_the_ranking(tmp_path: Path) -> None:
    run = ran(tmp_path)
    run.verifier.loses_orders = True
    outcome = run.run()
    assert outcome.exit_code == Exit.FAILED
    assert outcome.ranking.orders is not None
    assert [row.ranked for row in outcome.ranking.orders.tables[0].rows] == [False, False]
    assert "fake-orders" in outcome.records.replicates[0].reason


def test_a_profile_that_keeps_servers_side_by_side_gives_the_order_service_fresh_processes() -> None:
    quick = profiles.load("quick")
    assert quick.rounds is not None
    changed = by_arrivals(quick)
    assert changed.rounds is None
    assert changed.replication.minimum == changed.replication.maximum == quick.orders.replicates


def test_loads_of_orders_are_judged_by_the_gates_of_the_profile_s_own_latency() -> None:
    latency = profiles.load("latency")
    assert latency.latency is not None
    strict = latency.model_copy(update={"latency": latency.latency.model_copy(update={"lag_share": 0.01})})
    changed = by_arrivals(strict)
    assert changed.latency is None
    assert changed.orders.at_rates.lag_share == 0.01
