"""A latency run on servers that are queues with a known curve: capacities at the goal, intervals, gates and time."""

from pathlib import Path

import pytest

from harness.errors import Exit
from harness.plan import profile as profiles
from harness.plan.profile import Profile
from harness.records import store
from harness.records.models import LatencyGoal, Outcome, RateSample
from harness.records.rates import read
from harness.run.workflow import RunOutcome
from harness.stats.model import LatencyTable
from harness.tests.doubles.fakes_rates import true_capacity
from harness.tests.doubles.fakes_run import FakeRun
from harness.tests.doubles.fakes_world import Behaviour

LATENCY = profiles.load("latency")
MU = {"quick": 40_000.0, "middle": 20_000.0, "slow": 4_000.0}
SERVERS = {name: Behaviour(cpu_per_request=2 / mu, process_spread=0.005) for name, mu in MU.items()}


def goal_of(profile: Profile, goal: LatencyGoal) -> Profile:
    assert profile.latency is not None
    return profile.model_copy(update={"latency": profile.latency.model_copy(update={"goal": goal})})


def rates_of(folder: Path) -> tuple[RateSample, ...]:
    return read(store.runs(folder / "results")[-1]).rates


def table(outcome: RunOutcome) -> LatencyTable:
    return outcome.ranking.latency["json"]


def test_the_capacities_of_known_queues_are_found_and_ranked_with_intervals(tmp_path: Path) -> None:
    outcome = FakeRun(tmp_path, SERVERS, LATENCY).run()
    assert (outcome.failures, outcome.exit_code) == ((), Exit.OK)
    rows = table(outcome).rows
    assert [row.implementation for row in rows] == ["quick", "middle", "slow"]
    for row in rows:
        truth = true_capacity(MU[row.implementation], 0.010)
        assert row.capacity is not None
        assert row.above is not None
        estimate = row.capacity.estimate
        assert estimate.replicates == 3
        assert estimate.low is not None
        assert estimate.low < estimate.median < row.above
        assert estimate.median == pytest.approx(truth, rel=0.07)
        assert estimate.median * 0.98 <= truth <= row.above * 1.02
        assert row.capacity.rank.label == str(row.capacity.position)
    slow = rows[-1].capacity
    assert slow is not None
    assert slow.to_best is not None
    assert slow.to_best.value == pytest.approx(true_capacity(4e3, 0.01) / true_capacity(40e3, 0.01), rel=0.05)


def test_latency_over_load_is_the_queue_s_with_an_interval_over_the_processes(tmp_path: Path) -> None:
    rows = {row.implementation: row for row in table(FakeRun(tmp_path, SERVERS, LATENCY).run()).rows}
    shares = {point.share: point for point in rows["slow"].points if point.share}
    assert sorted(shares) == [0.10, 0.25, 0.50, 0.70, 0.80, 0.90, 0.95]
    half = shares[0.5].percentiles["99"]
    assert half.median == pytest.approx(4.605 / 2000, rel=0.05)
    assert half.low is not None
    assert half.high is not None
    assert half.low <= half.median <= half.high
    assert half.replicates == 3
    assert "99.9" not in shares[0.1].percentiles  # 400 requests/s for a second: less than one is slower
    common = {name: [p.rate for p in row.points if p.purpose == "common"] for name, row in rows.items()}
    assert common == {"quick": [1000, 3000], "middle": [1000, 3000], "slow": [1000, 3000]}


def test_equal_servers_are_tied(tmp_path: Path) -> None:
    behaviour = Behaviour(cpu_per_request=100e-6, process_spread=0.02)
    rows = table(FakeRun(tmp_path, {"a": behaviour, "b": behaviour}, LATENCY).run()).rows
    assert [row.capacity.rank.label for row in rows if row.capacity] == ["1–2", "1–2"]
    assert {row.capacity.tie_group for row in rows if row.capacity} == {1}


def test_a_goal_that_no_rate_meets_is_no_rank(tmp_path: Path) -> None:
    profile = goal_of(LATENCY, LatencyGoal(percentile=99, seconds=0.001))
    rows = table(FakeRun(tmp_path, {**SERVERS}, profile).run()).rows
    assert [(row.implementation, row.ranked) for row in rows] == [("quick", True), ("middle", True), ("slow", False)]
    assert rows[-1].reason == "p99 ≤ 1 ms shown at no rate in 3 of 3 replicates"
    assert rows[-1].capacity is None


def test_a_late_generator_keeps_the_percentiles_out_and_decides_nothing_against_a_server(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path, {"a": SERVERS["slow"]}, LATENCY)
    fake.rates.lag_share = 0.5
    (row,) = table(fake.run()).rows
    assert {point.replicates for point in row.points if point.share and point.share > 0.4} == {0}
    assert all(point.percentiles == {} for point in row.points if point.replicates == 0)
    assert "generator lag" in row.points[-1].words
    assert "lower bound" in row.words  # no load beyond it says that the server was late


@pytest.mark.parametrize(("what", "gate"), [("errors", "errors"), ("unfinished", "unfinished")])
def test_what_was_lost_fails_its_gate(tmp_path: Path, what: str, gate: str) -> None:
    fake = FakeRun(tmp_path, {"a": SERVERS["quick"]}, LATENCY)
    setattr(fake.rates, what, 30)
    outcome = fake.run()
    failed = {g.name for s in rates_of(tmp_path) for g in s.gates if g.outcome is Outcome.FAIL}
    assert gate in failed
    assert table(outcome).rows[0].reason.startswith("p99 ≤ 10 ms shown at no rate")


def test_a_rate_beyond_the_capacity_is_not_achieved_and_bounds_the_search(tmp_path: Path) -> None:
    FakeRun(tmp_path, {"a": SERVERS["quick"]}, LATENCY).run()
    beyond = [s for s in rates_of(tmp_path) if s.asked_rate > 1.02 * MU["quick"]]
    assert beyond
    for sample in beyond:
        (gate,) = [g for g in sample.gates if g.name == "achieved-rate"]
        assert gate.outcome is Outcome.FAIL


def test_a_stall_at_one_low_rate_is_said_and_is_not_the_capacity(tmp_path: Path) -> None:
    fake = FakeRun(tmp_path, {"a": SERVERS["middle"]}, LATENCY)
    fake.rates.stalls = lambda rate: 0.2 * MU["middle"] < rate < 0.3 * MU["middle"]
    (row,) = table(fake.run()).rows
    assert row.capacity is not None
    assert row.capacity.estimate.median == pytest.approx(true_capacity(MU["middle"], 0.010), rel=0.07)
    assert "3 contradicting loads" in row.words


def test_four_servers_and_two_test_types_end_within_twenty_minutes(tmp_path: Path) -> None:
    four = {name: Behaviour(cpu_per_request=2 / 6000, start_seconds=4.0) for name in "abcd"}
    fake = FakeRun(tmp_path, four, LATENCY, test_types=("json", "db"), jit=frozenset("abcd"))
    before = fake.world.clock.monotonic()
    outcome = fake.run()
    assert outcome.exit_code == Exit.OK
    standings = [row.capacity for found in outcome.ranking.latency.values() for row in found.rows]
    assert [standing and standing.estimate.replicates for standing in standings] == [3] * 8
    assert fake.world.clock.monotonic() - before < 20 * 60


def test_the_loads_of_each_process_come_in_an_order_of_their_own(tmp_path: Path) -> None:
    FakeRun(tmp_path, {"a": SERVERS["quick"]}, LATENCY).run()
    rates = rates_of(tmp_path)
    orders = [[s.share for s in rates if s.block == block and s.purpose != "search"] for block in range(3)]
    assert len({tuple(order) for order in orders}) == 3
    assert len({tuple(sorted(order, key=lambda share: share or 0)) for order in orders}) == 1


def test_a_third_block_that_would_end_too_late_is_left_out_and_said(tmp_path: Path) -> None:
    assert LATENCY.latency is not None
    short = LATENCY.model_copy(update={"latency": LATENCY.latency.model_copy(update={"time_seconds": 40.0})})
    fake = FakeRun(tmp_path, {"a": SERVERS["quick"]}, short)
    (row,) = table(fake.run()).rows
    assert {s.block for s in rates_of(tmp_path)} == {0, 1}
    assert row.capacity is not None
    assert row.capacity.estimate.replicates == 2
    assert row.capacity.estimate.low is not None
