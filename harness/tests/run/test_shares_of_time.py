"""What audits, warm-ups, searches and the order service's loads do with the time and the words that they have."""

import logging
import random
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.errors import BuildError, LoadError, MachineLostError
from harness.measure.audit import audit
from harness.measure.factor_search import FactorSearch, meets
from harness.measure.steady import SteadyDetector
from harness.plan import profile as profiles
from harness.plan.profile import OrderRules, WarmUpRule
from harness.records import orders as order_records
from harness.records.models import CheckResult, Latency, LatencyGoal, Scenario, Outcome, Window
from harness.records.orders import OrderCapacity
from harness.run import orders, replicating, running, vanishing, warming
from harness.run.audit_time import AuditTime
from harness.run.heartbeat import last_line, still
from harness.run.orders import _Loads
from harness.run.warming import Warmth
from harness.stats import stopping
from harness.tests.doubles.fakes_runtime import FakeMachines
from harness.tests.doubles.fakes_world import FakeClock
from harness.tests.measure.observed import target
from harness.tests.measure.test_factor_search import load
from harness.tests.measure.test_order_records import SAMPLE, operation
from harness.tests.run.measuring import SetUp, set_up
from harness.tests.run.test_warming import Busy

SMOKE = profiles.load("smoke")
QUICK = profiles.load("quick")


def test_each_audit_that_is_owed_has_an_equal_part_of_what_is_not_reserved() -> None:
    time = AuditTime(seconds=50.0, owed=10, reserved=0.2, overhead=1.0)
    assert (time._each, time._left()) == (4.0, 10.0)
    assert time.load_seconds(3.0, owed=True, seed=1) == 3.0  # four seconds less one
    time.took(3.0, 4.5, owed=True)
    assert (time.owed, time.spent, time.audits, time._balance) == (9, 4.5, 1, -0.5)
    assert time.overhead == pytest.approx(1.0 + 0.2 * 0.5)
    assert time._left() == pytest.approx(9.5)
    time.took(2.0, 1.5, owed=False)  # shorter than it was told to be
    assert (time.owed, time.spent, time.audits, time._balance) == (9, 6.0, 2, -0.5)
    assert time.overhead == pytest.approx(0.8 * 1.1)


def test_what_is_owed_is_never_less_than_nothing() -> None:
    time = AuditTime(seconds=10.0, owed=1)
    time.took(1.0, 2.0, owed=True)
    time.took(1.0, 2.0, owed=True)
    assert (time.owed, time._balance) == (0, -4.0)
    assert AuditTime(seconds=10.0, owed=0)._each == 10.0


@pytest.mark.parametrize(("left", "affords"), [(1.8, True), (1.79, False)])
def test_another_audit_needs_the_least_load_and_what_goes_with_it(left: float, affords: bool) -> None:
    assert AuditTime(seconds=left, owed=0).affords_another() is affords


def test_an_audit_that_does_not_fit_lasts_the_least_or_all_of_it_so_that_the_mean_fits() -> None:
    """Three seconds are left where ten are wanted: two of nine above the least."""
    drawn = [AuditTime(seconds=3.8, owed=0).load_seconds(10.0, owed=False, seed=seed) for seed in range(600)]
    assert set(drawn) == {1.0, 10.0}
    assert sum(drawn) / len(drawn) == pytest.approx(3.0, abs=0.5)
    assert drawn == [AuditTime(seconds=3.8, owed=0).load_seconds(10.0, owed=False, seed=seed) for seed in range(600)]
    assert AuditTime(seconds=0.0, owed=0).load_seconds(1.0, owed=False, seed=1) == 1.0
    assert {AuditTime(seconds=0.0, owed=0).load_seconds(2.0, owed=False, seed=seed) for seed in range(99)} == {1.0}


def test_the_time_of_audits_is_the_profile_s_share_of_the_plan(tmp_path: Path) -> None:
    turns = set_up(tmp_path, QUICK, ("a", "b"), ("json", "db", "query"))
    found = AuditTime.of(turns.plan, QUICK)
    assert found == AuditTime(seconds=0.1 * 600.0, owed=6, reserved=0.2)
    replication = SMOKE.replication.model_copy(update={"minimum": 3, "maximum": 4})
    profile = SMOKE.model_copy(update={"replication": replication})
    blocks = set_up(tmp_path / "blocks", profile, ("a", "b"), ("json",))
    assert AuditTime.of(blocks.plan, profile) == AuditTime(seconds=0.5 * blocks.plan.expected_seconds, owed=6)


def test_what_audits_came_to_is_a_line() -> None:
    time = AuditTime(seconds=12.34, owed=2)
    assert time.text(100.0) == ""
    time.took(1.0, 2.5, owed=True)
    assert time.text(0.0) == ""
    assert time.text(0.5) == "1 audits took 2.5 s, 500.0% of 0 s of measuring (planned: at most 12.3 s)"
    time.took(1.0, 2.5, owed=True)
    assert time.text(100.0) == "2 audits took 5.0 s, 5.0% of 100 s of measuring (planned: at most 12.3 s)"


RULE = WarmUpRule(span=2, tolerance=0.25, times=2, minimum_requests=500, patience_seconds=8.0, minimum_seconds=5.0)


def window(cost: float, responses: float | None = 100.0, duration: float = 1.0) -> Window:
    cpu = cost * (responses or 0.0)
    return Window(
        start=0.0, duration=duration, responses=responses, server_cpu=cpu, wait_share=None, rss=None, connections=None
    )


def steady_after(detector: SteadyDetector, *windows: Window) -> int | None:
    return next((count for count, each in enumerate(windows, 1) if detector.observe(each)), None)


@pytest.mark.parametrize(
    ("rule", "responses", "after"),
    [
        ({}, 100.0, 5),  # the second look that agrees, with five seconds and five hundred responses
        ({"minimum_seconds": 5.5}, 100.0, 6),
        ({"minimum_requests": 501}, 100.0, 6),
        ({}, 50.0, 8),  # patience
        ({"patience_seconds": 8.5}, 50.0, 9),
        ({"times": 3}, 100.0, 6),
        ({"span": 3}, 100.0, 7),
        ({"times": 1}, 125.0, 5),
        ({"times": 1, "minimum_seconds": 0.0}, 125.0, 4),
    ],
)
def test_a_warm_up_is_over_at_the_window_with_which_all_is_true(
    rule: dict[str, Any], responses: float, after: int
) -> None:
    detector = SteadyDetector(RULE.model_copy(update=rule), jit=False)
    assert steady_after(detector, *[window(1.0, responses)] * 12) == after


@pytest.mark.parametrize(("later", "agrees"), [(1.25, True), (1.26, False), (0.75, True), (0.74, False)])
def test_costs_agree_within_the_tolerance_itself(later: float, agrees: bool) -> None:
    rule = RULE.model_copy(update={"times": 1, "minimum_seconds": 0.0, "minimum_requests": 0})
    detector = SteadyDetector(rule, jit=False)
    found = steady_after(detector, *[window(1.0)] * 2, *[window(later)] * 2)
    assert (found == 4) is agrees


def test_a_warm_up_is_capped_at_its_time_and_a_fixed_one_at_its_own() -> None:
    rule = RULE.model_copy(update={"cap_seconds": 3.0, "jit_cap_seconds": 4.0, "fixed_seconds": 2.0})
    for jit, kind, cap in ((False, "steady", 3.0), (True, "steady", 4.0), (True, "fixed", 2.0)):
        detector = SteadyDetector(rule.model_copy(update={"kind": kind}), jit=jit)
        detector.observe(window(1.0, duration=cap - 0.5))
        assert not detector.capped
        detector.observe(window(9.0, duration=0.5))
        assert detector.capped


def test_what_was_steady_stays_so() -> None:
    detector = SteadyDetector(RULE, jit=False)
    assert steady_after(detector, *[window(1.0)] * 5) == 5
    assert (detector.seconds_to_steady, detector.requests_to_steady) == (2.0, 200)
    assert detector.observe(window(9.0)) is True
    assert detector.observe(window(1.0, 0.0)) is True
    assert (detector.steady, detector.seconds_to_steady) == (True, 2.0)


def cells_of(clock: FakeClock, *kinds: str, members: int = 1, cap: float = 99.0) -> list[Warmth]:
    rule = RULE.model_copy(update={"cap_seconds": cap, "minimum_requests": 10**9, "patience_seconds": 10**6})
    servers = [Busy(clock, kinds) for _ in range(members)]
    return [
        Warmth(member=server, test_type=kind, detector=SteadyDetector(rule, jit=False))  # type: ignore[arg-type]
        for server in servers
        for kind in kinds
    ]


def warmed(cells: list[Warmth], clock: FakeClock, seconds: float, *, works: bool = True) -> list[Warmth]:
    seen: list[Warmth] = []

    def burst(cell: Warmth) -> bool:
        seen.append(cell)
        clock.sleep(2.0)
        cell.detector.observe(window(1.0, duration=2.0))
        return works

    warming.in_turns(cells, burst, clock, seconds=seconds, seed=1)
    return seen


@pytest.mark.parametrize(("seconds", "bursts"), [(4.0, 2), (4.1, 3), (6.0, 3), (0.0, 2)])
def test_bursts_end_with_their_time_and_none_begins_at_its_end(seconds: float, bursts: int) -> None:
    clock = FakeClock()
    assert len(warmed(cells_of(clock, "json", members=2), clock, seconds)) == bursts


def test_cells_are_done_at_their_cap_and_each_lap_has_an_order_of_its_own() -> None:
    clock = FakeClock()
    cells = cells_of(clock, *"abcd", cap=12.0)
    seen = [cell.test_type for cell in warmed(cells, clock, 600.0)]
    laps = [tuple(seen[lap : lap + 4]) for lap in range(0, 24, 4)]
    assert len(seen) == 24
    assert len(set(laps)) > 2
    for number, lap in enumerate(laps):
        order = list("abcd")
        random.Random(f"1/{number}").shuffle(order)
        assert lap == tuple(order)


def test_the_only_server_that_is_left_pauses_behind_each_good_burst_and_all_come_to_rest() -> None:
    for members, works, seconds in ((1, True, 2 * 2.25 + 0.25), (1, False, 2 * 2.0 + 0.25), (2, True, 4 * 2.0 + 0.25)):
        clock = FakeClock()
        warmed(cells_of(clock, "json", members=members, cap=4.0), clock, 600.0, works=works)
        assert clock.monotonic() - 1000.0 == pytest.approx(seconds)


def test_a_test_type_without_a_burst_has_no_warm_up() -> None:
    (cell,) = cells_of(FakeClock(), "json")
    assert cell.result is None
    assert not cell.done
    cell.member.targets.clear()
    assert cell.done


GOAL = LatencyGoal(percentile=99.0, seconds=0.1)
RULES = OrderRules(goal=GOAL, bracket=0.1)


def histogram(*cells: tuple[float, int]) -> Latency:
    return Latency(
        basis="open-loop, intended send time", mean=0.0, stdev=0.0, min=0.0, max=0.0, percentiles={}, histogram=cells
    )


def test_a_goal_is_met_by_those_at_its_time_of_all_that_create_orders() -> None:
    creates = (
        operation(due=50, latency=histogram((0.1, 50))),
        operation(due=50, latency=histogram((0.05, 49), (0.1001, 1)), use_case="b"),
        operation("pay", due=100, latency=histogram((9.0, 100))),
    )
    sample = SAMPLE.model_copy(update={"operations": creates, "restarted": False, "unfinished": 0})
    assert meets(sample, GOAL)
    assert not meets(sample, LatencyGoal(percentile=99.5, seconds=0.1))
    for change in ({"restarted": True}, {"unfinished": 1}, {"operations": ()}, {"operations": creates[2:]}):
        assert not meets(sample.model_copy(update=change), GOAL)
    unknown = (operation(due=1, latency=None), creates[0])
    assert not meets(sample.model_copy(update={"operations": unknown}), GOAL)


def test_the_search_for_a_factor_is_recorded_with_both_its_ends() -> None:
    search = FactorSearch(RULES)
    assert search.next_factor() is None
    search.add(load(8.0))
    assert search.next_factor() == 16.0
    search.add(load(16.0, late=500))
    assert search.next_factor() == pytest.approx(128**0.5)
    found = search.capacity(target("order"))
    assert found == OrderCapacity(
        implementation="a", block=3, process=1, goal=GOAL, factor=8.0, above=16.0, decided=False, loads=2
    )
    search.add(load(8.8, late=500))
    assert search.capacity(target("order")).decided
    assert search.next_factor() is None
    search.add(load(8.0, late=500))  # a factor at which one load missed is one that is missed
    assert (search.capacity(target("order")).factor, search.capacity(target("order")).above) == (None, 8.0)
    assert search.next_factor() == 4.0


@pytest.mark.parametrize(("high", "following"), [(0.5, 0.25), (0.49, None)])
def test_a_search_for_a_factor_gives_up_below_a_quarter(high: float, following: float | None) -> None:
    search = FactorSearch(RULES)
    search.add(load(high, late=500))
    assert search.next_factor() == following
    assert search.capacity(target("order")).decided is False


GOOD = CheckResult(check="rows", rule="order.1", outcome=Outcome.PASS)
BAD = CheckResult(check="rows", rule="order.1", outcome=Outcome.FAIL)


class Orders:
    """The order service on one process in name alone: what is asked for of each load."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **rules: Any) -> None:
        known = {
            "factors": (1.0, 8.0), "seconds": 4.0, "warm_up_factor": 16.0, "warm_up_seconds": 9.0, "search_loads": 0,
        }  # fmt: skip
        changed = OrderRules(**{**known, **rules})
        self.made: SetUp = set_up(tmp_path, SMOKE.model_copy(update={"orders": changed}), ("a",), ("order",))
        self.happened: list[Any] = []
        self.results: tuple[CheckResult, ...] = (GOOD,)
        self.target = target("order", tuple(Scenario(connections=64, factor=f) for f in (1.0, 8.0)))
        verifier = SimpleNamespace(
            empty_orders=lambda address: self.happened.append(("empty", address)), orders_answered=self.answered
        )
        scenarios = lambda *how: ("scenarios", *how)  # noqa: E731
        run = self.made.run
        self.run = replace(
            run,
            testbed=replace(run.testbed, verifier=verifier),
            rate_tools=replace(run.rate_tools, scenarios=scenarios),  # type: ignore[arg-type]
        )
        monkeypatch.setattr(orders, "take_load", self.take)
        replicate: Any = SimpleNamespace(
            keep=lambda sample: self.happened.append(("keep", sample.level.factor)),
            judge_again=lambda on, results, where: self.happened.append(("judge", on is self.target, results, where)),
        )
        self.loads = _Loads(self.run, replicate, self.target, random.Random(1))

    def answered(self, *words: Any) -> tuple[CheckResult, ...]:
        self.happened.append(("answered", *words))
        return self.results

    def take(self, bed: Any, on: Any, factor: float, **how: Any) -> Any:
        assert (bed, on) == (self.run.testbed, self.target)
        assert how["folder"].name.startswith("tfb-orders-")
        assert how["generator"] == ("scenarios", "fake", 2.0)
        assert 0 <= how["seed"] < 1 << 31
        self.happened.append(("load", factor, how["seconds"], how["seed"]))
        return SimpleNamespace(sample=load(factor), answers=how["folder"] / "answers")

    @property
    def loaded(self) -> list[tuple[float, float]]:
        return [(each[1], each[2]) for each in self.happened if each[0] == "load"]


def test_orders_are_warmed_in_loads_of_the_usual_length_and_then_loaded_at_each_factor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Orders(tmp_path, monkeypatch)
    made.loads.run()
    assert made.loaded[:3] == [(16.0, 4.0), (16.0, 4.0), (16.0, 1.0)]
    assert sorted(made.loaded[3:]) == [(1.0, 4.0), (8.0, 4.0)]
    assert len({each[3] for each in made.happened if each[0] == "load"}) == 5
    address = made.target.database.address
    assert [each[0] for each in made.happened[:4]] == ["empty", "load", "answered", "judge"]
    assert made.happened[0] == ("empty", address)
    assert made.happened[2][2] == address
    assert made.happened[3] == ("judge", True, (), "under load, x16")
    assert made.happened[-1] == ("judge", True, (GOOD,), "under load")
    assert sorted(each[1] for each in made.happened if each[0] == "keep") == [1.0, 8.0]
    found = order_records.read(made.run.store.folder)
    assert sorted(sample.factor for sample in found.samples) == [1.0, 8.0]
    assert found.capacities == ()  # nothing was searched for
    told = [(state.test_type, state.stage, state.level) for state in made.made.display.states]
    assert told[:3] == [("order", "warm-up", "x16")] * 3
    assert sorted(told[3:]) == [("order", "measure", "x1"), ("order", "measure", "x8")]


def test_what_a_load_s_answers_object_to_is_judged_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Orders(tmp_path, monkeypatch, warm_up_seconds=0.5)
    made.results = (BAD, GOOD)
    made.loads.run()
    assert made.loaded[0] == (16.0, 1.0)
    judged = [each for each in made.happened if each[0] == "judge"]
    assert judged[0] == ("judge", True, (BAD,), "under load, x16")
    assert judged[-1] == ("judge", True, (GOOD,), "under load")


def test_a_search_s_loads_are_recorded_and_not_ranked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Orders(tmp_path, monkeypatch, warm_up_seconds=0.0, search_loads=2)
    made.loads.run()
    assert [factor for factor, _ in made.loaded[2:]] == [16.0, 32.0]
    assert sorted(each[1] for each in made.happened if each[0] == "keep") == [1.0, 8.0]
    found = order_records.read(made.run.store.folder)
    assert len(found.samples) == 4
    assert (found.capacities[0].factor, found.capacities[0].loads) == (32.0, 4)


@pytest.mark.parametrize("verified", [True, False])
@pytest.mark.parametrize("fails", [True, False])
def test_the_order_service_is_verified_loaded_and_verified_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verified: bool, fails: bool
) -> None:
    made = set_up(tmp_path, SMOKE, ("a",), ("order",))
    happened: Any = []
    on = target("order")

    class Loads:
        def __init__(self, run: Any, replicate: Any, of: Any, drawn: random.Random) -> None:
            happened.append((run is made.run, of is on, drawn.random()))

        def run(self) -> None:
            if fails:
                raise LoadError("lost")

    monkeypatch.setattr(orders, "_Loads", Loads)
    planned = replace(made.plan.blocks[0][0], block=4)
    replicate: Any = SimpleNamespace(
        planned=planned,
        target=lambda name: happened.append(name) or (on if verified else None),
        verify_after_load=lambda of: happened.append(("after", of is on)),
        fail=happened.append,
        server=SimpleNamespace(require_alive=lambda: happened.append("alive?")),
    )
    orders.measure(made.run, replicate, "order")
    begun = (True, True, random.Random("1/4/a/order").random())
    ended = "order: lost" if fails else ("after", True)
    assert happened == (["order", begun, ended, "alive?"] if verified else ["order", "alive?"])


def test_why_nothing_is_audited_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    def lacks() -> str:
        raise BuildError("the generator does not compile")

    with caplog.at_level(logging.WARNING, logger="tfb"):
        assert running.audits(SimpleNamespace(own_generator=lacks)) is None
        assert running.audits(SimpleNamespace(own_generator=lambda: "x")) is audit
    (record,) = caplog.records
    assert record.getMessage() == "no sample is audited: the generator does not compile"
    assert record.name == "tfb.run"


def test_tables_say_when_a_run_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stopping, "undecided", lambda *words: words)
    records: Any = SimpleNamespace(samples=["s"])
    found: Any = running.by_tables(records, [("a", "json")], SMOKE.replication)
    assert found == (["s"], [("a", "json")], SMOKE.replication)


def test_a_process_in_which_something_failed_is_looked_around_for_its_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = set_up(tmp_path, SMOKE, ("a",), ("json",))
    looked: list[Any] = []
    monkeypatch.setattr(vanishing, "look", looked.append)
    replicating._run(made.run, made.plan.blocks[0][0])
    assert looked == []
    made.fake.verifier.fails_after = frozenset({("a", "json")})
    replicating._run(made.run, made.plan.blocks[0][0])
    assert looked == [made.run]


@pytest.mark.parametrize("stays_away", [True, False])
def test_a_machine_is_waited_for_half_a_minute(tmp_path: Path, stays_away: bool) -> None:
    made = set_up(tmp_path, SMOKE)
    machines = FakeMachines(made.fake.world, stays_away=stays_away)
    run = replace(made.run, testbed=replace(made.run.testbed, runtime=machines))
    lost = MachineLostError("app is away")
    if stays_away:
        with pytest.raises(MachineLostError, match="app is away"):
            vanishing.await_return(run, {("b", 0), ("a", 1), ("a", 0)}, lost)
    else:
        vanishing.await_return(run, {("b", 0), ("a", 1), ("a", 0)}, lost)
    assert machines.waited == [30.0]
    back = [] if stays_away else ["! all machines answer again: a, b is measured from its beginning"]
    assert made.display.lines == ["! app is away; waiting up to 30 s for it", *back]
    with pytest.raises(MachineLostError, match="app is away"):
        vanishing.await_return(made.run, set(), lost)  # a runtime without machines


def test_the_last_words_of_a_log_are_printable_and_short(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"first\n" + b"x" * 150 + b"\n\xff\x07 \n")
    assert last_line(log) == "\ufffd"
    log.write_bytes(b"old\n" + b"y" * 150 + b"\n\n")
    assert last_line(log) == "y" * 100
    log.write_bytes(b"z" * 4096 + b"\r\n" * 2)
    assert last_line(log) == "z" * 100
    log.write_bytes(b"")
    assert (last_line(log), still(3.0, log)) == ("", "3 s")
    assert last_line(tmp_path / "none") == ""
