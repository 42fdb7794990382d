"""Servers that are alive together: what one window, one burst and one end of them does and hands on."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.errors import DatabaseDiedError, LoadError, MachineLostError, ServerDiedError, StoreError
from harness.measure import sweep
from harness.plan import profile as profiles
from harness.plan.rounds import Cell
from harness.records import store
from harness.records.models import Closed, Load, Sample, WarmUp
from harness.run import vanishing, warming
from harness.run.audit_time import AuditTime
from harness.run.fleet import Fleet
from harness.run.member import Member
from harness.run.warming import Warmth, settle
from harness.runtime import Reading
from harness.tests.doubles.fakes_world import Behaviour, FakeClock
from harness.tests.measure.observed import observation
from harness.tests.measure.test_sweep import SAMPLE
from harness.tests.run.measuring import SetUp, set_up

QUICK = profiles.load("quick")
C16, C64 = Closed(connections=16), Closed(connections=64)
CELL = Cell(implementation="a", test_type="json", level=C64)
WARM = WarmUp(
    duration=1.0, requests=5, steady=True, seconds_to_steady=None, requests_to_steady=None, worst_latency=None
)


class Up:
    """A fleet of a and b; samples are taken as they are told to be."""

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, kinds: Any = ("json", "update"), **more: Any
    ) -> None:
        self.made: SetUp = set_up(folder, QUICK, ("a", "b"), kinds, **more)
        self.fleet = Fleet(self.made.run)
        self.planned = {planned.implementation: planned for planned in self.made.plan.blocks[0]}
        self.clock = self.made.fake.world.clock
        self.asked: list[Any] = []
        self.error: Exception | None = None
        self.seconds = 2.0
        monkeypatch.setattr(sweep, "take_sample", self.take)

    def take(self, bed: object, target: Any, level: Load, *, seconds: float) -> Sample:
        assert bed is self.made.run.testbed
        self.asked.append((target, level, seconds))
        self.clock.sleep(self.seconds)
        if self.error:
            raise self.error
        name, kind = target.server.implementation.name, target.test_type.name
        changed = {"implementation": name, "test_type": kind, "level": level, "round": target.round}
        return SAMPLE.model_copy(update={**changed, "process": target.process, "gates": ()})

    def member(self, name: str) -> Member:
        return self.fleet.members[name]

    def records(self) -> Any:
        return store.read(self.made.run.store.folder)


@pytest.fixture
def up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Up:
    made = Up(tmp_path, monkeypatch)
    for name in ("a", "b"):
        assert made.fleet.start(made.planned[name])
    return made


def test_a_process_that_starts_is_verified_and_known_by_its_number_its_setup_and_its_connections(up: Up) -> None:
    member = up.member("b")
    planned = member.replicate.planned
    assert (planned.block, planned.process, member.name) == (0, 0, "b")
    update = Closed(connections=64, queries=20)
    assert {kind: each.levels for kind, each in member.targets.items()} == {"json": (C64,), "update": (update,)}
    took = 0.5 + 3 * 0.1  # start, HTTP and two test types
    assert member.setup_seconds == up.fleet.setup_seconds["b"] == pytest.approx(took)
    assert member.loaded_at == up.clock.monotonic() == pytest.approx(1000.0 + 2 * took)
    assert member.connections == 10
    assert member.replicate.database.address.name == "own-b-0"
    assert up.made.display.lines == ["a", "b"]
    up.fleet.stop("b")
    up.fleet.start(up.planned["b"])
    planned = up.member("b").replicate.planned
    assert (planned.block, planned.process) == (1, 1)


def test_processes_that_a_run_has_finished_keep_their_numbers(up: Up) -> None:
    up.fleet.skip("c", 2)
    up.fleet.skip("b", 0)
    assert dict(up.fleet._next) == {"a": 1, "b": 1, "c": 2}


def test_tables_are_shared_where_they_cannot_be_divided(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Up(tmp_path, monkeypatch)
    database = replace(made.made.run.testbed.database, divisible=False)  # type: ignore[type-var]
    run = replace(made.made.run, testbed=replace(made.made.run.testbed, database=database))
    alone = Fleet(run)
    alone.start(made.planned["a"])
    assert alone.members["a"].replicate.database is database


def test_a_server_that_does_not_come_up_does_not_come_up_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Up(tmp_path, monkeypatch)
    made.made.fake.world.behaviours["a"] = Behaviour(never_starts=True)
    assert made.fleet.start(made.planned["a"]) is False
    assert not made.fleet.may_restart("a")
    assert made.fleet.may_restart("b")
    assert made.fleet.members == {}
    assert [record.status for record in made.records().replicates] == ["failed"]


def test_a_process_whose_machine_went_while_it_started_is_to_be_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Up(tmp_path, monkeypatch)
    made.fleet.skip("a", 3)
    for error, lost in ((MachineLostError("app is away"), {("a", 3)}), (StoreError("disk full"), set())):

        def start(*_: object, _error: Exception = error, **__: object) -> None:
            raise _error

        made.made.fake.runtime.start = start  # type: ignore[method-assign, assignment]
        with pytest.raises(type(error)):
            made.fleet.start(made.planned["a"])
        assert made.fleet.forgive() == lost
        assert made.fleet.may_restart("a")


def test_a_server_that_dies_of_its_verification_is_buried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Up(tmp_path, monkeypatch)

    def check(server: Any, *_: object, **__: object) -> None:
        raise ServerDiedError("a: the server ended")

    made.made.fake.verifier.check = check  # type: ignore[method-assign, assignment]
    assert made.fleet.start(made.planned["a"]) is False
    assert (made.fleet.members, made.fleet._deaths["a"]) == ({}, 1)
    (record,) = made.records().replicates
    assert (record.status, record.reason) == ("failed", "a: the server ended")
    assert made.made.fake.world.alive == {}


def test_a_window_is_a_sample_of_its_round_with_the_meters_of_all_that_should_be_idle(up: Up) -> None:
    up.member("a").warm_ups["json"] = WARM
    up.member("a").steady["json"] = True
    assert up.fleet.measure(CELL, 7, 2.0) is True
    ((target, level, seconds),) = up.asked
    assert (level, seconds, target.round) == (C64, 2.0, 7)
    assert list(target.others) == [up.member("b").replicate.server.meter]
    (sample,) = up.records().samples
    assert (sample.implementation, sample.round, sample.warm_up, sample.steady) == ("a", 7, WARM, True)
    assert up.member("a").loaded_at == up.clock.monotonic()
    up.fleet.measure(CELL, 8, 2.0)
    assert up.records().samples[1].warm_up is None
    assert up.records().samples[1].steady is True
    state = up.made.display.states[-1]
    assert (state.implementation, state.test_type, state.level) == ("a", "json", "c64")


@pytest.mark.parametrize(
    "cell", [Cell(implementation="c", test_type="json", level=C64), Cell(implementation="a", test_type="db", level=C64)]
)
def test_what_is_not_there_is_not_measured(up: Up, cell: Cell) -> None:
    assert up.fleet.measure(cell, 7, 2.0) is False
    assert up.asked == []


def test_others_count_as_idle_three_seconds_after_their_own_load(up: Up) -> None:
    now = up.clock.monotonic()
    up.member("b").loaded_at = now - 2.9
    up.fleet.measure(CELL, 0, 2.0)
    assert up.member("b").idle_seconds == 0.0
    up.member("b").loaded_at = up.clock.monotonic() - 3.0
    up.fleet.measure(CELL, 0, 2.0)
    assert up.member("b").idle_seconds == pytest.approx(2.0)
    assert up.member("a").idle_seconds == 0.0


def test_tables_are_restored_behind_a_test_that_writes(up: Up) -> None:
    before = len(up.made.fake.world.events)
    up.fleet.measure(replace(CELL, test_type="update"), 0, 2.0)
    up.fleet.measure(CELL, 0, 2.0)
    assert up.made.fake.world.events[before:] == [("restore", "own-a-0")]


def test_a_load_that_failed_twice_on_a_living_server_leaves_its_test_type_out(up: Up) -> None:
    up.error = LoadError("ended early")
    assert up.fleet.measure(CELL, 0, 2.0) is False
    assert "json" in up.member("a").targets
    assert up.fleet.measure(CELL, 1, 2.0) is False
    assert list(up.member("a").targets) == ["update"]
    assert up.member("a").replicate.reasons == ["json: ended early"] * 2
    assert up.fleet.measure(CELL, 2, 2.0) is False
    assert len(up.asked) == 2


@pytest.mark.parametrize("error", [LoadError("ended early"), ServerDiedError("a is gone")])
def test_a_server_that_died_leaves_the_fleet(up: Up, error: Exception) -> None:
    up.error = error
    member = up.member("a")
    member.replicate.server.meter.dead = True  # type: ignore[attr-defined]
    assert up.fleet.measure(CELL, 0, 2.0) is False
    assert list(up.fleet.members) == ["b"]
    assert member.targets == {}
    assert up.fleet._deaths["a"] == 1
    (record,) = up.records().replicates
    assert record.reason in ("a: the server ended (killed by SIGKILL)", "a is gone")


@pytest.mark.parametrize("error", [StoreError("disk full"), MachineLostError("app is away")])
def test_what_ends_the_run_is_no_end_of_a_server(up: Up, error: Exception) -> None:
    up.error = error
    with pytest.raises(type(error)):
        up.fleet.measure(CELL, 0, 2.0)
    assert list(up.fleet.members) == ["a", "b"]


def test_postgresql_s_end_takes_the_process_that_was_at_work_and_those_that_are_stopped_for_it(up: Up) -> None:
    up.error = LoadError("no answer")
    database = SimpleNamespace(obituary=lambda: "PostgreSQL was killed")
    up.fleet._run = replace(up.made.run, testbed=replace(up.made.run.testbed, database=database))
    with pytest.raises(DatabaseDiedError, match=r"^PostgreSQL was killed$"), up.fleet.alive():
        up.fleet._look_around(("a", 0))
    assert up.fleet.lost == {("a", 0), ("b", 0)}
    assert up.fleet.members == {}
    assert up.made.fake.world.alive == {}
    up.fleet._deaths["a"] = 2
    assert up.fleet.forgive() == {("a", 0), ("b", 0)}
    assert (up.fleet.lost, dict(up.fleet._next)) == (set(), {"a": 0, "b": 0})
    assert up.fleet.may_restart("a")


def test_another_error_stops_all_and_takes_none(up: Up) -> None:
    with pytest.raises(KeyboardInterrupt), up.fleet.alive():
        raise KeyboardInterrupt
    assert (up.fleet.lost, up.fleet.members, up.made.fake.world.alive) == (set(), {}, {})
    assert [record.status for record in up.records().replicates] == ["interrupted"] * 2


def test_members_end_with_their_last_checks(up: Up) -> None:
    with up.fleet.alive():
        pass
    assert up.fleet.members == {}
    assert [record.status for record in up.records().replicates] == ["ok", "ok"]
    stages = Counter(state.stage for state in up.made.display.states)
    assert stages["verifying after the load"] == 4


def test_an_error_in_the_last_checks_is_the_process_s_own(up: Up) -> None:
    def after(*_: object) -> None:
        raise ServerDiedError("a is gone")

    up.made.fake.verifier.after_load = after  # type: ignore[method-assign, assignment]
    up.fleet.stop("a")
    assert list(up.fleet.members) == ["b"]
    assert up.records().replicates[0].reason == "a is gone"

    def away(*_: object) -> None:
        raise MachineLostError("app is away")

    up.made.fake.verifier.after_load = away  # type: ignore[method-assign, assignment]
    with pytest.raises(MachineLostError):
        up.fleet.stop("b")
    assert (up.fleet.members, up.fleet.lost) == ({}, {("b", 0)})


def test_a_machine_that_is_away_takes_what_failed_on_it(up: Up, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(_: object) -> None:
        raise MachineLostError("app is away")

    monkeypatch.setattr(vanishing, "look", away)
    with pytest.raises(MachineLostError):
        up.fleet._look_around(("a", 3))
    assert up.fleet.lost == {("a", 3)}
    up.member("b").replicate.fail("something")
    with pytest.raises(MachineLostError):
        up.fleet.stop("b")
    assert ("b", 0) in up.fleet.lost
    up.fleet.stop("a")  # nothing failed on it: nobody looks


def test_cells_without_an_audit_are_owed_one_where_there_are_audits(up: Up) -> None:
    assert up.fleet.owing() == []
    up.fleet._run = replace(up.made.run, testbed=replace(up.made.run.testbed, auditor=lambda *_: None))  # type: ignore[arg-type]
    up.fleet.audited = {("a", "json")}
    assert up.fleet.owing() == [("a", "update"), ("b", "json"), ("b", "update")]


def fitting(up: Up, *, affords: bool = True) -> None:
    seconds = 1e6 if affords else 0.0
    up.fleet._run = replace(up.made.run, audit_time=AuditTime(seconds=seconds, owed=0))


def coming(up: Up, windows: int, *, process: int = 0, owed: bool = True, level: Load = C64) -> list[bool | None]:
    member = up.member("a")
    member.windows.clear()
    member.replicate.planned = replace(member.replicate.planned, process=process)
    cell = replace(CELL, level=level)
    return [up.fleet._audit_comes(member, cell, owed=owed) for _ in range(windows)]


def test_an_audit_that_is_owed_stands_at_one_of_the_first_two_windows_and_at_all_until_it_was_made(up: Up) -> None:
    fitting(up, affords=False)
    first: Counter[object] = Counter()
    for process in range(200):
        found = coming(up, 3, process=process)
        place = found.index(next(each for each in found if each is not None))
        assert place in (0, 1)
        assert all(each is not None for each in found[place:])
        first[place] += 1
        first[found[place]] += 1
    assert first[0] - first[False] > 70 or first[0] > 60
    assert 60 < sum(coming(up, 3, process=p)[2] is True for p in range(200)) < 140


def test_other_levels_have_no_audit(up: Up) -> None:
    fitting(up)
    assert coming(up, 5, level=C16) == [None] * 5
    assert up.member("a").windows == {}


def test_every_other_further_process_is_audited_again_and_one_in_thirty_of_all_windows(up: Up) -> None:
    fitting(up)
    early = later = before = 0
    for process in range(400):
        found = coming(up, 12, process=process, owed=False)
        early += any(each is not None for each in found[:2])
        later += sum(each is not None for each in found[2:])
        before += sum(each is True for each in found[2:])
    assert 400 * 0.45 < early < 400 * 0.62
    assert 4000 * 0.02 < later < 4000 * 0.04
    assert 0.3 < before / later < 0.7


def test_audits_that_are_not_owed_need_time(up: Up) -> None:
    fitting(up, affords=False)
    assert {each for process in range(50) for each in coming(up, 12, process=process, owed=False)} == {None}


def test_what_is_drawn_of_audits_is_the_seed_s_and_the_cell_s(up: Up) -> None:
    fitting(up)

    def drawn() -> list[list[bool | None]]:
        return [coming(up, 6, process=process, owed=False) for process in range(40)]

    one = drawn()
    assert one == drawn()
    up.fleet._run = replace(up.fleet._run, seed=2)
    assert one != drawn()


@pytest.mark.parametrize("first", [True, False, None])
def test_an_audit_stands_before_or_behind_its_window_and_is_then_known(up: Up, first: bool | None) -> None:
    happened: list[Any] = []
    replicate = up.member("a").replicate
    real = replicate.keep
    replicate.audit = lambda *words, **named: happened.append(("audit", *words[1:], named, len(up.asked)))  # type: ignore[method-assign]

    def keep(sample: Sample, **named: Any) -> None:
        happened.append(("keep", named))
        real(sample)

    replicate.keep = keep  # type: ignore[method-assign]
    up.fleet._audit_comes = lambda *_, **named: happened.append(named) or first  # type: ignore[method-assign, func-returns-value]
    up.fleet.measure(CELL, 0, 2.0)
    target = up.asked[0][0]
    behind = {
        "audit_behind": target if first is False else None,
        "seconds": 2.0 if first is False else None,
        "owed": True,
    }
    before = [("audit", C64, 2.0, {"owed": True}, 0)] if first else []
    assert happened == [{"owed": True}, *before, ("keep", behind)]
    assert up.fleet.audited == (set() if first is None else {("a", "json")})
    happened.clear()
    up.fleet.measure(CELL, 0, 2.0)
    assert happened[0] == {"owed": first is None}


@pytest.mark.parametrize(
    ("error", "left"), [(LoadError("lost"), ["a", "b"]), (ServerDiedError("gone"), ["b"]), (StoreError("full"), None)]
)
def test_a_server_that_ends_of_an_audit_behind_its_window_is_lost_with_it(
    up: Up, error: Exception, left: list[str] | None
) -> None:
    def keep(*_: object, **__: object) -> None:
        raise error

    up.member("a").replicate.keep = keep  # type: ignore[method-assign]
    if left is None:
        with pytest.raises(StoreError):
            up.fleet.measure(CELL, 0, 2.0)
        return
    failed = up.member("a").failed_loads
    assert up.fleet.measure(CELL, 0, 2.0) is False
    assert list(up.fleet.members) == left
    assert failed == ({"json": 1} if "a" in left else {})
    assert up.fleet.audited == set()


def bursts(up: Up, monkeypatch: pytest.MonkeyPatch, error: Exception | None = None) -> list[Any]:
    happened: list[Any] = []

    def burst(bed: object, target: Any, detector: object, seconds: float) -> Any:
        happened.append((bed, target, detector, seconds))
        up.clock.sleep(3.0)
        if error:
            raise error
        return observation()

    monkeypatch.setattr(sweep, "warm_burst", burst)
    return happened


def test_servers_are_warmed_in_turns_and_what_that_took_is_their_setup(up: Up, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    happened = bursts(up, monkeypatch)

    def in_turns(cells: list[Warmth], burst: Callable[[Warmth], bool], clock: object, **named: Any) -> None:
        asked.append(([(cell.member.name, cell.test_type) for cell in cells], clock, named))
        assert burst(cells[0])
        assert cells[0].bursts == [observation()]
        assert [cell.detector.cap_seconds for cell in cells] == [6.0] * 4

    monkeypatch.setattr(warming, "in_turns", in_turns)
    before, restored = up.member("a").setup_seconds, len(up.made.fake.world.events)
    up.fleet.warm(["a", "b", "c"], seconds=50.0, burst_seconds=2.5)
    cells = [(name, kind) for name in "ab" for kind in ("json", "update")]
    assert asked == [(cells, up.clock, {"seconds": 50.0, "seed": 1})]
    assert happened[0][0] is up.made.run.testbed
    assert happened[0][1] is up.member("a").targets["json"]
    assert happened[0][3] == 2.5
    assert up.member("a").setup_seconds == up.fleet.setup_seconds["a"] == before + 3.0
    warm_up = up.member("a").warm_ups["json"]
    assert warm_up is not None
    assert warm_up.requests == 1000
    assert up.member("a").warm_ups["update"] is None
    assert up.member("b").steady == {"json": False, "update": False}
    assert up.made.fake.world.events[restored:] == [("restore", "own-a-0"), ("restore", "own-b-0")]
    assert {up.member(name).loaded_at for name in "ab"} == {up.clock.monotonic()}
    state = next(state for state in up.made.display.states if state.stage == "warm-up")
    assert (state.implementation, state.test_type, state.level) == ("a", "json", "c64")


def test_a_rule_without_time_makes_no_bursts(up: Up, monkeypatch: pytest.MonkeyPatch) -> None:
    happened = bursts(up, monkeypatch)
    profile = QUICK.model_copy(update={"warm_up": QUICK.warm_up.model_copy(update={"cap_seconds": 0.0})})
    up.fleet._run = replace(up.made.run, testbed=replace(up.made.run.testbed, profile=profile))
    up.fleet.warm(["a"], seconds=50.0, burst_seconds=2.5)
    assert (happened, up.member("a").warm_ups) == ([], {})


def test_a_burst_that_failed_leaves_its_test_type_out_at_once(up: Up, monkeypatch: pytest.MonkeyPatch) -> None:
    happened = bursts(up, monkeypatch, LoadError("ended early"))
    up.fleet.warm(["a"], seconds=50.0, burst_seconds=2.5)
    assert len(happened) == 2
    assert up.member("a").targets == {}
    assert up.member("a").warm_ups == {}
    assert sorted(up.member("a").replicate.reasons) == ["json: ended early", "update: ended early"]
    assert up.member("a").setup_seconds == pytest.approx(0.8 + 6.0)


def test_a_server_that_dies_of_a_burst_leaves_the_fleet(up: Up, monkeypatch: pytest.MonkeyPatch) -> None:
    happened = bursts(up, monkeypatch, ServerDiedError("gone"))
    up.fleet.warm(["a", "b"], seconds=50.0, burst_seconds=2.5)
    assert len(happened) == 2
    assert up.fleet.members == {}
    up.fleet.start(up.planned["a"])
    bursts(up, monkeypatch, MachineLostError("away"))
    with pytest.raises(MachineLostError):
        up.fleet.warm(["a"], seconds=50.0, burst_seconds=2.5)


@pytest.mark.parametrize("rule", [{"kind": "fixed"}, {"primer_seconds": 0.5}])
def test_rules_that_come_in_one_piece_warm_each_test_type_to_its_end(
    up: Up, monkeypatch: pytest.MonkeyPatch, rule: dict[str, Any]
) -> None:
    happened: list[Any] = []

    def warm(bed: object, target: Any) -> WarmUp | None:
        happened.append(target)
        return WARM if target.test_type.name == "json" else None

    monkeypatch.setattr(sweep, "warm", warm)
    profile = QUICK.model_copy(update={"warm_up": QUICK.warm_up.model_copy(update=rule)})
    up.fleet._run = replace(up.made.run, testbed=replace(up.made.run.testbed, profile=profile))
    restored = len(up.made.fake.world.events)
    up.fleet.warm(["a"], seconds=50.0, burst_seconds=2.5)
    member = up.member("a")
    assert happened == list(member.targets.values())
    assert (member.warm_ups, member.steady) == ({"json": WARM, "update": None}, {"json": True, "update": None})
    assert up.made.fake.world.events[restored:] == [("restore", "own-a-0")]


def idle_member(jit: bool = False) -> Member:
    return Member(replicate=SimpleNamespace(planned=SimpleNamespace(implementation="a", jit=jit)))  # type: ignore[arg-type]


def reading(at: float, used: float) -> Reading:
    return Reading(at=at, cpu_seconds=used, rss=None, run_seconds=None, wait_seconds=None)


def test_idleness_adds_up_where_both_readings_are_there() -> None:
    member = idle_member()
    member.count_idle(reading(1.0, 5.0), reading(3.5, 5.25))
    member.count_idle(None, reading(9.0, 9.0))
    member.count_idle(reading(9.0, 9.0), None)
    member.count_idle(reading(4.0, 6.0), reading(5.0, 6.5))
    assert (member.idle_seconds, member.idle_cpu_seconds) == (3.5, 0.75)


@pytest.mark.parametrize(("used", "disturbs"), [(0.025, False), (0.026, True)])
def test_a_server_disturbs_beyond_the_limit_after_five_seconds(used: float, disturbs: bool) -> None:
    member = idle_member()
    member.idle_seconds, member.idle_cpu_seconds = 4.9, 4.0
    assert not member.disturbs(0.005)
    assert member.idle_seconds == 4.9
    member.idle_seconds, member.idle_cpu_seconds = 5.0, used
    assert member.disturbs(0.005) is disturbs
    assert (member.idle_seconds, member.idle_cpu_seconds, member.idle_share) == (0.0, 0.0, used / 5)


def test_a_jit_runtime_disturbs_by_three_looks_in_a_row() -> None:
    member = idle_member(jit=True)
    found = []
    for used in (1.0, 1.0, 0.0, 1.0, 1.0, 1.0, 1.0):
        member.idle_seconds, member.idle_cpu_seconds = 5.0, used
        found.append(member.disturbs(0.005))
    assert found == [False] * 5 + [True, True]


def test_a_server_that_is_gone_has_no_reading() -> None:
    def gone() -> None:
        raise ServerDiedError("gone")

    member = idle_member()
    member.replicate.server = SimpleNamespace(meter=SimpleNamespace(read=gone))
    assert member.reading() is None


class Settling:
    """A member whose readings come one after the other."""

    def __init__(self, *readings: Reading | None) -> None:
        self.readings = list(readings)
        self.looks = 0

    def reading(self) -> Reading | None:
        self.looks += 1
        return self.readings.pop(0) if len(self.readings) > 1 else self.readings[0]


def test_servers_are_waited_for_until_all_use_less_than_a_twentieth_of_a_cpu() -> None:
    clock = FakeClock()
    busy = Settling(*(reading(1000 + 0.25 * n, used) for n, used in enumerate((0.0, 0.2, 0.213, 0.225, 0.5))))
    quiet = Settling(*(reading(1000 + 0.25 * n, 7.0) for n in range(5)))
    settle([quiet, busy], clock, 8.0)  # type: ignore[list-item]
    assert clock.monotonic() == 1000.75  # in the third quarter of a second it used 0.048 of a CPU, before 0.052
    assert (busy.looks, quiet.looks) == (4, 4)


def test_servers_are_waited_for_no_longer_than_asked() -> None:
    clock = FakeClock()
    settle([Settling(*(reading(1000 + 0.25 * n, float(n)) for n in range(99)))], clock, 1.5)  # type: ignore[list-item]
    assert clock.monotonic() == 1001.5


@pytest.mark.parametrize("readings", [(None,), (reading(1000.0, 0.0),), ()])
def test_who_cannot_be_read_is_not_waited_for(readings: tuple[Reading | None, ...]) -> None:
    clock = FakeClock()
    settle([Settling(*readings)] if readings else [], clock, 8.0)  # type: ignore[list-item]
    assert clock.monotonic() == 1000.25


def test_pauses_and_the_end_of_a_warm_up_have_their_bounds() -> None:
    assert (warming.GLANCE_SECONDS, warming.PAUSE_SECONDS, warming.SETTLE_SECONDS) == (0.25, 1.5, 8.0)
