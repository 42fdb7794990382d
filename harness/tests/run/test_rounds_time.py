"""How a run in turns divides its time, its memory and its windows: in seconds, one decision at a time."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.errors import DatabaseDiedError, MachineLostError
from harness.plan import profile as profiles
from harness.plan import rounds as planning
from harness.plan.profile import Profile
from harness.plan.rounds import Cell, Shape, headline_cells, other_cells
from harness.records import store
from harness.records.models import AuditedLoad, Closed
from harness.records.store import RunStore
from harness.run import rounds, vanishing
from harness.run.allocation import Allocation, alike, where_it_decides
from harness.run.rounds import Schedule, Timekeeper, known_sizes
from harness.runtime import Reading
from harness.tests.measure.test_sweep import SAMPLE
from harness.tests.run.measuring import SetUp, set_up

QUICK = profiles.load("quick")
WINDOW, OTHER = 2.35, 1.35  # seconds that a window of two and of one take, until it is known better
AUDITED = AuditedLoad(duration=1.0, requests=1, cpu_per_request=None, latency=None)
C64, Q20 = Closed(connections=64), Closed(connections=64, queries=20)


def quick(**rules: Any) -> Profile:
    assert QUICK.rounds is not None
    changed = {"time_seconds": 600.0, "headline_seconds": 2.0, **rules}
    return QUICK.model_copy(update={"rounds": QUICK.rounds.model_copy(update=changed)})


class Rounds:
    """The rounds of a run of a and b, json and query, whose servers are there in name alone."""

    def __init__(self, folder: Path, *, allocate: Any = alike, done: Any = frozenset(), **rules: Any) -> None:
        self.made: SetUp = set_up(folder, quick(**rules))
        self.clock = self.made.fake.world.clock
        run, plan = self.made.run, self.made.plan
        assert run.testbed.profile.rounds is not None
        self.planned = {planned.implementation: planned for planned in plan.blocks[0]}
        self.group = [self.planned[name] for name in ("a", "b")]
        self.it = rounds._Measurement(run, plan, self.made.info, done, run.testbed.profile.rounds, self.group, allocate)
        self.happened: Any = []

    def up(self, name: str, *kinds: str, rss: float | None = 1e8, connections: int = 10, **more: Any) -> Any:
        reading = Reading(at=0.0, cpu_seconds=0.0, rss=rss, run_seconds=None, wait_seconds=None)
        replicate = SimpleNamespace(server=SimpleNamespace(meter=SimpleNamespace(read=lambda: reading)))
        member: Any = SimpleNamespace(
            targets=dict.fromkeys(kinds or ("json", "query")), connections=connections, replicate=replicate, **more
        )
        self.it._fleet.members[name] = member
        return member

    def have(self, what: str, answer: Any = None, *, of: Any = None) -> None:
        """Note calls of a method instead of making them."""

        def noted(*words: Any, **named: Any) -> Any:
            self.happened.append((what, *words, *([named] if named else [])))
            return answer(*words) if callable(answer) else answer

        setattr(of or self.it, what, noted)


@pytest.fixture
def both(tmp_path: Path) -> Rounds:
    """a with both test types, b with one left."""
    made = Rounds(tmp_path)
    made.up("a")
    made.up("b", "json")
    return made


def test_what_windows_take_beyond_their_seconds_is_learned_a_tenth_at_a_time(both: Rounds) -> None:
    time = Timekeeper(both.made.run, deadline=1060.0)
    assert (time.left, time.window(2.0)) == (60.0, WINDOW)
    both.clock.sleep(10.0)
    assert time.left == 50.0
    time.learn(2.0, 3.35)
    assert time.overhead == pytest.approx(0.45)
    time.learn(2.0, 1.0)  # less than nothing is nothing
    assert time.overhead == pytest.approx(0.405)


def test_the_end_of_servers_takes_its_time(both: Rounds) -> None:
    assert both.it._closing() == pytest.approx(2 * 1.5 + 3 * 0.6)


def test_a_window_is_begun_where_it_ends_before_the_last_checks_begin(both: Rounds) -> None:
    until = 1000.0 + both.it._closing() + WINDOW
    assert both.it._fits_a_window(until + 1e-6)
    assert not both.it._fits_a_window(until - 1e-6)


@pytest.mark.parametrize(
    ("every_level", "headlines", "others"), [(False, 4 * WINDOW, 8 * OTHER), (True, 12 * WINDOW, 0)]
)
def test_a_round_takes_its_headline_windows_and_the_other_levels_come_once(
    tmp_path: Path, every_level: bool, headlines: float, others: float
) -> None:
    made = Rounds(tmp_path, every_level=every_level)
    assert list(made.it._windows(made.group)) == pytest.approx([headlines, others])


def test_a_group_has_at_least_two_rounds_and_its_end(both: Rounds) -> None:
    assert both.it._least_seconds(both.group) == pytest.approx(8 * WINDOW + 8 * OTHER + 4.8)
    del both.it._fleet.members["b"]
    assert both.it._least_seconds(both.group) == pytest.approx(4 * WINDOW + 4 * OTHER + 2.7)


def test_a_further_turn_needs_the_start_as_before_two_windows_each_and_the_end(both: Rounds) -> None:
    both.it._fleet.setup_seconds = {"a": 3.0, "b": 4.5, "c": 99.0}
    assert both.it._least_turn(both.group) == pytest.approx(7.5 + 8 * WINDOW + 2 * 1.5 + 4 * 0.6)
    both.it._fleet.setup_seconds = {}
    assert both.it._least_turn(both.group[:1]) == pytest.approx(4 * WINDOW + 1.5 + 1.2)


def test_those_that_are_measured_alone_later_have_their_share_of_what_is_left(both: Rounds) -> None:
    assert both.it._leave_time_for_those_alone(1090.0) == 1090.0
    both.it._alone = {"c"}
    assert both.it._leave_time_for_those_alone(1090.0) == 1060.0
    both.it._fleet.members.clear()
    assert both.it._leave_time_for_those_alone(1090.0) == 1000.0
    both.it._alone = set()
    assert both.it._leave_time_for_those_alone(1090.0) == 1000.0


@pytest.mark.parametrize(
    ("free", "connections", "room"),
    [
        (0.3e9 + 2e8 + 1, 40, True),  # 0.3 of a thousand million bytes stays free, and the largest has two hundred
        (0.3e9 + 2e8, 40, False),
        (1e9, 39, False),
        (1e9, None, True),
    ],
)
def test_there_is_room_for_one_more_like_the_largest(
    tmp_path: Path, free: float, connections: int | None, room: bool
) -> None:
    made = Rounds(tmp_path)
    made.up("a", rss=1e8, connections=40)
    made.up("b", rss=2e8, connections=5)
    testbed = replace(made.made.run.testbed, database=SimpleNamespace(connections_free=lambda: connections))
    made.it._run = replace(made.made.run, free_memory=lambda: free, testbed=testbed)
    assert made.it._has_room(1e9) is room


def test_a_server_of_unknown_size_takes_nothing_and_the_first_always_has_room(tmp_path: Path) -> None:
    made = Rounds(tmp_path)
    made.it._run = replace(made.made.run, free_memory=lambda: 0.3e9 + 0.5)
    assert made.it._has_room(1e9)
    made.up("a", rss=None)
    assert made.it._has_room(1e9)
    made.it._run = replace(made.made.run, free_memory=lambda: 0.3e9)
    assert not made.it._has_room(1e9)


def test_servers_start_while_there_is_room_and_the_others_later_by_themselves(tmp_path: Path) -> None:
    made = Rounds(tmp_path)
    made.have("_has_room", answer=False)
    made.have("start", answer=lambda planned: made.up(planned.implementation), of=made.it._fleet)
    made.it._start_all(made.group, may_separate=True)
    assert made.happened == [("start", made.group[0]), ("_has_room", 8e9)]
    assert made.it._alone == {"b"}
    made.happened.clear()
    made.it._start_all(made.group, may_separate=False)
    assert [what for what, *_ in made.happened] == ["start", "start"]


def test_a_group_s_shape_is_planned_from_what_is_left_of_its_time(
    both: Rounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned: list[Any] = []
    monkeypatch.setattr(planning, "shape", lambda rules, **named: planned.append((rules, named)))
    both.it._fleet.setup_seconds = {"a": 3.0}
    both.clock.sleep(20.0)
    both.it._shape(both.group, 1000.0, 1100.0, 7)
    ((rules, named),) = planned
    assert rules.processes == 7
    assert named == {
        "total_seconds": 100.0,
        "seconds": pytest.approx(80.0 - 4.8),
        "setup_seconds": {"a": pytest.approx(3.0 + 2.4), "b": pytest.approx(2.4)},
        "headline_seconds": pytest.approx(4 * WINDOW),
        "other_seconds": pytest.approx(8 * OTHER),
        "seed": 1,
    }
    both.it._fleet.members.clear()
    both.it._shape(both.group, 1000.0, 1100.0, 7)
    assert planned[1][1]["setup_seconds"] == {}


@pytest.mark.parametrize(("spare", "replaced"), [(1e-6, True), (-1e-6, False)])
def test_a_process_is_replaced_where_there_is_time_to_measure_the_next(
    both: Rounds, spare: float, replaced: bool
) -> None:
    """Its start, a window for each of its test types, and the end of all."""
    fleet = both.it._fleet
    fleet.setup_seconds = {"a": 3.0, "b": 3.0}
    both.have("stop", of=fleet)
    both.have("start", answer=True, of=fleet)
    both.have("_warm")
    until = 1000.0 + both.it._closing() + 3.0 + 2 * WINDOW + spare
    found = both.it._replace([both.group[0]], until)
    assert found == ({"a"} if replaced else set())
    warmed = ("_warm", {"a": both.group[0]} if replaced else {}, pytest.approx(0.33 * (until - 1000.0)))
    assert both.happened == [*([("stop", "a"), ("start", both.group[0])] if replaced else []), warmed]


def test_who_is_gone_or_does_not_come_up_is_not_fresh_and_the_next_one_is_looked_at(both: Rounds) -> None:
    fleet = both.it._fleet
    both.have("stop", of=fleet)
    both.have("start", answer=lambda planned: planned.implementation == "b", of=fleet)
    both.have("_warm")
    assert both.it._replace(both.group, 2000.0) == {"b"}
    del fleet.members["a"]
    both.happened.clear()
    assert both.it._replace(both.group, 2000.0) == {"b"}
    assert [words[:2] for words in both.happened[:2]] == [("stop", "b"), ("start", both.group[1])]


def test_who_dies_of_its_warm_up_is_warmed_as_a_second_process_for_its_part_of_the_time(both: Rounds) -> None:
    fleet = both.it._fleet

    def warm(names: Any, **_: Any) -> None:
        if "a" in names and both.happened.count(("start", both.group[0])) == 0:
            del fleet.members["a"]

    both.have("warm", answer=warm, of=fleet)
    both.have("start", answer=True, of=fleet)
    both.it._warm(both.planned, 30.0)
    assert both.happened == [
        ("warm", [*both.planned], {"seconds": 30.0, "burst_seconds": 2.0}),
        ("start", both.group[0]),
        ("warm", ["a"], {"seconds": 15.0, "burst_seconds": 2.0}),
    ]


def test_who_died_twice_has_no_further_process(both: Rounds) -> None:
    fleet = both.it._fleet
    both.have("warm", answer=lambda *_: fleet.members.clear(), of=fleet)
    both.have("start", answer=True, of=fleet)
    both.have("may_restart", answer=False, of=fleet)
    both.it._warm(both.planned, 30.0)
    assert both.happened[-1] == ("warm", [], {"seconds": 0.0, "burst_seconds": 2.0})
    assert not any(what == "start" for what, *_ in both.happened)


@pytest.mark.parametrize(("busy", "left", "said"), [(["a"], ["b"], True), ([], ["a", "b"], False)])
def test_whoever_works_while_idle_leaves_the_group(both: Rounds, busy: list[str], left: list[str], said: bool) -> None:
    limits: list[float] = []

    def looks(name: str) -> Any:
        def disturbs(limit: float) -> bool:
            limits.append(limit)
            return name in busy

        return disturbs

    for name in ("a", "b"):
        both.up(name, disturbs=looks(name), idle_share=0.0345)
    both.it._fleet.stop = both.it._fleet.members.pop  # type: ignore[assignment, method-assign]
    assert both.it._separate() is said
    assert (list(both.it._fleet.members), both.it._alone) == (left, set(busy))
    assert both.made.display.lines == (["a uses 3.45% of a CPU while idle: run alone"] if said else [])
    assert limits == [0.005, 0.005]


def test_the_last_of_a_group_stays_whatever_it_does(both: Rounds) -> None:
    for name in ("a", "b"):
        both.up(name, disturbs=lambda _: True, idle_share=0.5)
    both.it._fleet.stop = both.it._fleet.members.pop  # type: ignore[assignment, method-assign]
    assert both.it._separate()
    assert (list(both.it._fleet.members), both.it._alone) == (["b"], {"a"})


def test_one_group_has_all_the_time_and_all_processes(both: Rounds) -> None:
    both.have("_turn")
    both.it._processes = 5
    both.it._visits([both.group], may_separate=False)
    assert both.happened == [("_turn", both.group, 600.0, 5, {"may_separate": False})]


def test_several_groups_take_turns_by_their_size_as_long_as_a_turn_has_time(both: Rounds) -> None:
    """Six hundred seconds for twice three: a hundred for each, and a turn that took longer leaves less."""
    one, two = both.group, [both.group[0]]
    took = iter((200.0, 50.0, 240.0))
    both.have("_turn", answer=lambda *_: both.clock.sleep(next(took)))
    both.have("_least_turn", answer=120.0)
    both.it._processes = 2
    both.it._visits([one, two])
    turns = [(words[1], words[2], words[3], words[4]) for words in both.happened if words[0] == "_turn"]
    assert turns == [
        (one, 200.0, 1, {"may_separate": True}),
        (two, 100.0, 1, {"may_separate": True}),
        (one, pytest.approx(350 * 2 / 3), 1, {"may_separate": True}),
    ]  # the last would have had the 110 s that are left, and needs 120
    assert [words for words in both.happened if words[0] == "_least_turn"] == [
        ("_least_turn", one),
        ("_least_turn", two),
    ]


def test_groups_are_made_for_the_memory_that_is_free(both: Rounds, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def groups(*words: Any, **named: Any) -> list[Any]:
        asked.append((words, named))
        return [both.group]

    monkeypatch.setattr(planning, "groups", groups)
    monkeypatch.setattr(rounds, "known_sizes", lambda folder: {"of": folder})
    both.have("_visits", answer=lambda *_: None)
    both.have("_allocation")
    info = both.it.measure()
    folder = both.made.run.store.folder
    assert asked == [((both.group, {"of": folder.parent}, 0.7 * 8e9, 1), {"side_by_side": True})]
    assert both.happened == [
        ("_visits", [both.group]),
        ("_allocation", dict.fromkeys([(n, k) for n in "ab" for k in ("json", "query")], 0), 600.0),
    ]
    assert store.read(folder).info.run_id == info.run_id


@pytest.mark.parametrize("what", ["side_by_side", "divisible"])
def test_servers_that_cannot_be_side_by_side_are_groups_of_one(
    both: Rounds, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    asked: Any = []
    monkeypatch.setattr(planning, "groups", lambda *_, **named: asked.append(named) or [])
    if what == "divisible":
        testbed = replace(both.made.run.testbed, database=replace(both.made.run.testbed.database, divisible=False))  # type: ignore[type-var]
        both.it._run = replace(both.made.run, testbed=testbed)
    else:
        both.made.fake.runtime.side_by_side = False
    both.have("_visits")
    both.have("_allocation")
    both.it.measure()
    assert asked == [{"side_by_side": False}]


def test_those_that_disturb_come_again_by_themselves_and_nobody_leaves_then(both: Rounds) -> None:
    both.it._alone = {"b"}
    both.have("_visits")
    both.have("_allocation")
    both.it.measure()
    assert both.happened[1] == ("_visits", [[both.planned["b"]]], {"may_separate": False})
    assert both.it._alone == set()


@pytest.mark.parametrize(
    ("change", "asked"),
    [("", False), ("fresh", True), ("recently", True), ("alike", True)],
)
def test_all_cells_are_measured_alike_but_where_windows_decide(tmp_path: Path, change: str, asked: bool) -> None:
    allocated: list[Any] = []

    def allocate(*words: Any, **named: Any) -> Allocation:
        allocated.append((words[2], named))
        return Allocation(cells=[("a", "json"), ("a", "json")], text="more")

    made = Rounds(tmp_path, allocate=alike if change == "alike" else allocate)
    made.up("a", "json")
    made.up("b", "json")
    made.it._fleet.owing = lambda: [("b", "json"), ("a", "json")]  # type: ignore[method-assign]
    made.clock.sleep(19.9 if change == "recently" else 20.0)
    found = made.it._wanted({"a"} if change == "fresh" else set(), 1100.0)
    if asked:
        assert found == [("a", "json"), ("b", "json")]
        assert allocated == []
    else:
        assert found == [("a", "json"), ("a", "json"), ("b", "json")]  # and who is still to be audited
        assert allocated == [
            (
                {("a", "json"): 0, ("b", "json"): 0},
                {"window_seconds": WINDOW, "remaining_seconds": pytest.approx(100.0 - 20.0 - 4.2), "seed": 1},
            )
        ]
        assert made.it._info.outlook == "more"
        assert made.it._allocated_at == 1020.0


def test_windows_at_the_headline_level_are_what_was_measured(tmp_path: Path) -> None:
    seen: Any = []
    made = Rounds(tmp_path, allocate=lambda *words, **named: seen.append((words, named)) or Allocation(cells=[]))
    for name, kind, level in (
        ("a", "json", C64),
        ("a", "json", C64),
        ("a", "json", Closed(connections=16)),
        ("a", "query", Q20),
        ("z", "json", C64),
    ):
        made.made.run.store.add_sample(
            SAMPLE.model_copy(update={"implementation": name, "test_type": kind, "level": level})
        )
    made.it._number = 3
    made.it._allocation({("a", "json"): 0, ("a", "query"): 0, ("b", "json"): 0}, 55.0)
    ((words, named),) = seen
    assert (len(words[1]), words[2]) == (5, {("a", "json"): 2, ("a", "query"): 1, ("b", "json"): 0})
    assert (named["seed"], named["remaining_seconds"]) == (4, 55.0)
    assert words[0].run_id == made.made.info.run_id


def test_the_ranking_is_made_anew_after_thirty_seconds(both: Rounds) -> None:
    path = both.made.run.store.folder / "ranking.json"
    both.clock.sleep(29.9)
    both.it._rank()
    assert not path.exists()
    both.clock.sleep(0.1)
    both.it._rank()
    assert '"test_types"' in path.read_text()
    assert both.it._ranked_at == pytest.approx(1030.0)


def round_of(made: Rounds, *, measured: Any = True, fresh: Any = frozenset(), sweeps: int = 1) -> int:
    """One round of everything that is up, whose windows take three seconds."""

    def measure(cell: Cell, number: int, seconds: float) -> bool:
        made.happened.append(("measure", cell.label, number, seconds))
        made.clock.sleep(3.0)
        return bool(measured(cell) if callable(measured) else measured)

    made.it._fleet.measure = measure  # type: ignore[method-assign]
    return made.it._round(made.planned, set(fresh), 1200.0, Shape(rounds=sweeps), 4)


def test_a_round_measures_each_headline_and_what_was_never_measured(both: Rounds) -> None:
    assert round_of(both) == 9
    assert {(words[1], words[3]) for words in both.happened} == {
        ("a json c64", 2.0),
        ("a query c64 q20", 2.0),
        ("b json c64", 2.0),
        *((f"{name} json {level}", 1.0) for name in "ab" for level in ("c16", "c256")),
        *((f"a query c64 q{number}", 1.0) for number in (1, 5)),
    }
    assert both.it._number == 1


def test_a_round_is_recorded_and_told_and_its_windows_are_learned_from(tmp_path: Path) -> None:
    made = Rounds(tmp_path)
    made.up("a", "json")
    assert round_of(made) == 3
    assert Counter(words[2] for words in made.happened) == {0: 3}
    folder = made.made.run.store.folder
    (schedule,) = store.read(folder).info.schedule
    assert list(schedule) == [words[1] for words in made.happened]
    assert made.made.display.lines[-1] == "round 5 of 5"
    overhead = 0.35
    for words in made.happened:
        overhead += 0.1 * (3.0 - words[3] - overhead)
    assert made.it._time.overhead == pytest.approx(overhead)
    made.happened.clear()
    assert round_of(made, fresh={"a"}) == 1  # of other levels no more, but where there are rounds enough
    assert round_of(made, fresh={"a"}, sweeps=16) == 3
    assert round_of(made, fresh={"b"}, sweeps=16) == 1
    assert round_of(made, fresh={"a"}, sweeps=15) == 1
    assert made.it._number == 5


def test_a_window_that_was_lost_is_none_and_its_server_comes_back_warm(both: Rounds) -> None:
    fleet = both.it._fleet
    both.have("start", of=fleet)
    both.have("_warm")

    def dies(cell: Cell) -> bool:
        fleet.members.pop("b", None)
        return cell.implementation == "a"

    measured = round_of(both, measured=dies)
    mine = [words for words in both.happened if words[0] == "measure" and words[1].startswith("a")]
    assert measured == len(mine)
    starts = [place for place, words in enumerate(both.happened) if words[0] == "start"]
    assert both.happened[starts[0]] == ("start", both.planned["b"])
    what, who, seconds = both.happened[starts[0] + 1]
    assert (what, who) == ("_warm", {"b": both.planned["b"]})
    now = 1000.0 + 3.0 * sum(words[0] == "measure" for words in both.happened[: starts[0]])
    assert seconds == pytest.approx(0.33 * (1200.0 - now))
    assert not any(cell.implementation == "b" for cell in both.it._measured)


def test_a_round_ends_with_its_time_and_with_postgresql(both: Rounds) -> None:
    both.clock.sleep(190.0)
    assert round_of(both) == 1  # 1193 + 4.8 s of closing leave no window
    both.it._run = replace(
        both.made.run,
        testbed=replace(both.made.run.testbed, database=SimpleNamespace(obituary=lambda: "PostgreSQL ended")),
    )
    both.have("_fits_a_window", answer=True)
    with pytest.raises(DatabaseDiedError, match=r"^PostgreSQL ended$"):
        round_of(both)


class Ends:
    """A group that ends so, one time after the other."""

    def __init__(self, made: Rounds, *errors: Exception | None) -> None:
        self.errors = list(errors)
        self.made = made

    def __call__(self, group: Any, seconds: float, processes: int, **named: Any) -> None:
        self.made.happened.append(("group", group, seconds, processes, named))
        self.made.clock.sleep(10.0)
        if error := self.errors.pop(0):
            self.made.it._fleet.lost = {("b", 0), ("a", 1)}
            raise error


def test_a_group_that_postgresql_ended_goes_on_in_the_time_that_is_left(both: Rounds) -> None:
    both.it._fleet.members.clear()
    both.it._group = Ends(both, DatabaseDiedError("PostgreSQL was killed"), None)  # type: ignore[method-assign]
    both.it._turn(both.group, 100.0, 3, may_separate=True)
    named = {"may_separate": True}
    assert both.happened == [("group", both.group, 100.0, 3, named), ("group", both.group, 90.0, 3, named)]
    assert both.made.display.lines == ["! PostgreSQL was killed; what it took is measured again: a, b"]
    assert ("restore", "hello_world") in both.made.fake.world.events


def test_postgresql_may_end_twice_in_a_turn(both: Rounds) -> None:
    both.it._fleet.members.clear()
    died = DatabaseDiedError("gone")
    both.it._group = Ends(both, died, died, died)  # type: ignore[method-assign]
    with pytest.raises(DatabaseDiedError, match="gone"):
        both.it._turn(both.group, 100.0, 3, may_separate=True)
    assert [words[2] for words in both.happened] == [100.0, 90.0, 80.0]


def test_a_machine_is_waited_for_and_its_group_goes_on(both: Rounds, monkeypatch: pytest.MonkeyPatch) -> None:
    both.it._fleet.members.clear()
    waited: list[Any] = []
    monkeypatch.setattr(vanishing, "await_return", lambda *words: waited.append(words))
    lost = MachineLostError("app is away")
    both.it._group = Ends(both, lost, None)  # type: ignore[method-assign]
    both.it._turn(both.group, 100.0, 3, may_separate=False)
    assert waited == [(both.made.run, {("b", 0), ("a", 1)}, lost)]
    assert [words[2] for words in both.happened] == [100.0, 90.0]
    assert ("restore", "hello_world") in both.made.fake.world.events


def test_records_of_what_was_lost_are_forgotten_with_it(both: Rounds) -> None:
    for name, process in (("a", 0), ("a", 1)):
        level = C64 if process else Q20
        both.made.run.store.add_sample(
            SAMPLE.model_copy(update={"implementation": name, "process": process, "level": level, "test_type": "json"})
        )
    both.it._recall()
    assert len(both.it._measured) == 2
    both.it._fleet.members.clear()
    both.it._group = Ends(both, DatabaseDiedError("gone"), None)  # type: ignore[method-assign]
    both.it._turn(both.group, 100.0, 3, may_separate=False)
    assert both.it._measured == {Cell(implementation="a", test_type="json", level=Q20)}


def test_a_run_that_goes_on_has_the_rest_of_its_time_processes_and_rounds(tmp_path: Path) -> None:
    """Of two processes of each of two, a has one: three quarters of the time are left."""
    again = Rounds(tmp_path, done=frozenset({("a", 0)}))
    assert again.it._time.deadline == 1000.0 + 450.0
    assert again.it._processes == 2
    assert again.it._number == 0  # no sample was kept
    assert again.it._fleet._next == {"a": 1, "b": 0}
    store_ = again.made.run.store
    audited = SAMPLE.model_copy(update={"implementation": "a", "process": 0, "round": 6})
    store_.add_sample(audited.model_copy(update={"audited": AUDITED}))
    store_.add_sample(audited.model_copy(update={"round": None}))
    third = rounds._Measurement(
        again.made.run,
        again.made.plan,
        again.made.info,
        frozenset({("a", 0)}),
        again.it._rules,
        again.group,
        alike,
    )
    assert third._number == 7
    assert third._fleet.audited == {("a", "query")}
    assert third._measured == {Cell(implementation="a", test_type="query", level=SAMPLE.level)}


@pytest.mark.parametrize(
    ("done", "finished"), [((), 0), ((0,), 1), ((0, 1), 2), ((1,), 0), ((0, 2), 1), ((0, 1, 2, 5), 3)]
)
def test_processes_are_finished_up_to_the_first_gap(done: tuple[int, ...], finished: int) -> None:
    assert rounds._finished(frozenset({*(("a", n) for n in done), ("b", 0)}), "a") == finished


def test_whoever_has_all_processes_is_not_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = set_up(tmp_path, quick())
    seen: list[Any] = []

    class Measured:
        def __init__(self, *words: Any) -> None:
            seen.append(words)

        def measure(self) -> str:
            return "measured"

    monkeypatch.setattr(rounds, "_Measurement", Measured)
    both = frozenset((name, number) for name in "ab" for number in (0, 1))
    assert rounds.measure(made.run, made.plan, made.info, both) is made.info
    assert seen == []
    some = both - {("b", 1)}
    assert str(rounds.measure(made.run, made.plan, made.info, some)) == "measured"
    run, plan, info, done, rules, candidates, allocate = seen[0]
    assert (run, plan, info, done, rules) == (made.run, made.plan, made.info, some, quick().rounds)
    assert [planned.implementation for planned in candidates] == ["b"]
    assert allocate is where_it_decides
    every = set_up(tmp_path / "every", quick(every_level=True))
    rounds.measure(every.run, every.plan, every.info, frozenset())
    assert seen[1][-1] is alike


def schedule(tmp_path: Path, **rules: Any) -> Schedule:
    made = set_up(tmp_path, quick(**rules))
    own = made.run.testbed.profile.rounds
    assert own is not None
    return Schedule(1, made.plan.blocks[0], own)


def labels(cells: Sequence[Cell]) -> list[str]:
    return [cell.label for cell in cells]


def test_a_round_has_the_wanted_headlines_as_often_as_they_are_wanted_and_the_others_before(tmp_path: Path) -> None:
    plan = schedule(tmp_path)
    planned = {each.implementation: each for each in plan.candidates}
    others = [cell for cell in other_cells(planned["a"]) if cell.test_type == "json"]
    wanted = [("a", "json"), ("a", "json"), ("b", "query"), ("c", "json")]
    first, second = plan.laps(0, wanted, others)
    assert Counter(labels(first)) == {"a json c64": 1, "b query c64 q20": 1, "a json c16": 1, "a json c256": 1}
    assert [cell.level for cell in first if cell.implementation == "a"][-1] == C64
    assert labels(second) == ["a json c64"]
    assert [plan.seconds(cell) for cell in first if cell.implementation == "a"] == [1.0, 1.0, 2.0]
    (empty,) = plan.laps(0, [], ())
    assert empty == []


def test_the_windows_of_one_table_stand_next_to_one_another(tmp_path: Path) -> None:
    """And the servers' order within it differs from table to table and from round to round."""
    plan = schedule(tmp_path)
    wanted = [(name, kind) for name in "ab" for kind in ("json", "query")]
    others = [cell for planned in plan.candidates for cell in other_cells(planned)]
    firsts: set[tuple[str, str]] = set()
    for number in range(8):
        (lap,) = plan.laps(number, wanted, others)
        assert len(lap) == len({cell.label for cell in lap}) == 2 * 2 * 3
        pairs = list(zip(lap[::2], lap[1::2], strict=True))
        assert all((one.test_type, one.level) == (other.test_type, other.level) for one, other in pairs)
        assert all({one.implementation, other.implementation} == {"a", "b"} for one, other in pairs)
        for kind, last in (("json", C64), ("query", Closed(connections=64, queries=20))):
            assert [one.level for one, _ in pairs if one.test_type == kind][-1] == last
        firsts |= {(one.implementation, one.test_type) for one, _ in pairs}
    assert firsts == set(wanted)


def test_who_would_be_alone_in_its_round_has_the_next_most_wanted_beside_it(tmp_path: Path) -> None:
    plan = schedule(tmp_path)
    _, second, third = plan.laps(0, [*[("a", "json")] * 3, ("b", "json"), *[("b", "query")] * 2], ())
    assert Counter(labels(second)) == {"a json c64": 1, "b json c64": 1, "b query c64 q20": 1}
    assert Counter(labels(third)) == {"a json c64": 1, "b json c64": 1}


def test_the_order_of_a_round_is_drawn_by_seed_and_number(tmp_path: Path) -> None:
    plan = schedule(tmp_path)
    wanted = [(name, kind) for name in "ab" for kind in ("json", "query")] * 2

    def orders(plan: Schedule) -> list[list[list[str]]]:
        return [[labels(lap) for lap in plan.laps(number, wanted, ())] for number in range(12)]

    assert len({str(order) for order in orders(plan)}) > 5
    assert any(first != second for first, second in orders(plan))
    assert orders(plan) == orders(plan)
    assert orders(plan) != orders(replace(plan, seed=2))


def test_where_every_level_counts_they_are_mixed_and_equally_long(tmp_path: Path) -> None:
    plan = schedule(tmp_path, every_level=True)
    (one, _) = plan.candidates
    others = other_cells(one)
    wanted = [(one.implementation, kind) for kind in ("json", "query")]
    rounds_ = [plan.laps(number, wanted, others)[0] for number in range(6)]
    assert {plan.seconds(cell) for cell in rounds_[0]} == {2.0}
    assert any(cells[-1].label not in {cell.label for cell in headline_cells(one)} for cells in rounds_)


def test_what_is_wanted_again_is_a_round_of_its_own(tmp_path: Path) -> None:
    """Its samples have another number, and it is not begun where there is no time for a window of it."""
    made = Rounds(tmp_path, allocate=lambda *_, **__: Allocation(cells=[("a", "json"), ("a", "json"), ("b", "json")]))
    made.up("a", "json")
    made.up("b", "json")
    made.it._measured = {cell for planned in made.group for cell in other_cells(planned)}
    made.it._allocated_at = made.clock.monotonic() - 60
    assert round_of(made) == 4
    assert [words[2] for words in made.happened if words[0] == "measure"] == [0, 0, 1, 1]
    assert made.it._number == 2
    folder = made.made.run.store.folder
    assert [len(words) for words in store.read(folder).info.schedule] == [2, 2]


def test_sizes_are_the_largest_that_the_latest_five_runs_saw(tmp_path: Path) -> None:
    for number, (name, peak) in enumerate([("old", 9e9), ("a", 1e8), ("a", 3e8), ("a", 2e8), ("b", None), ("c", 5e7)]):
        made = RunStore(tmp_path / f"2026010{number}-000000", started_at=0.0)
        source = set_up(tmp_path / "sources" / str(number), quick())
        made.write_info(source.info)
        server = SAMPLE.server.model_copy(update={"rss_peak": peak})
        made.add_sample(SAMPLE.model_copy(update={"implementation": name, "server": server}))
    (tmp_path / "20260105-000000" / "run.json").with_name("other").touch()
    assert known_sizes(tmp_path) == {"a": 3e8, "c": 5e7}
    (tmp_path / "20260102-000000" / "run.json").write_text("broken")
    assert known_sizes(tmp_path) == {"a": 2e8, "c": 5e7}
    assert known_sizes(tmp_path / "nothing") == {}


def grouped(made: Rounds, *, rounds_fit: int, measured: int = 1, replaced: Any = None, separate: bool = False) -> None:
    """A group whose rounds take ten seconds each, all of whose steps are noted."""
    fits = iter([True] * rounds_fit + [False])
    made.have("_start_all")
    made.have("_warm")
    made.have("_least_seconds", answer=20.0)
    made.have("_shape", answer=Shape(rounds=3))
    made.have("_fits_a_window", answer=lambda until: made.happened.append(("until", until)) or next(fits))
    made.have("_replace", answer={"b"})
    made.have("_separate", answer=separate)

    def one(by_name: Any, fresh: set[str], until: float, shape: Shape, number: int) -> int:
        made.happened.append(("round", sorted(by_name), sorted(fresh), until, shape, number))
        made.clock.sleep(10.0)
        return measured

    made.it._round = one  # type: ignore[method-assign]


def test_a_group_is_started_warmed_and_measured_round_after_round(
    both: Rounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "turnover", lambda _: {0: ["a"], 2: ["b"]})
    grouped(both, rounds_fit=3)
    both.it._group(both.group, 100.0, 2, may_separate=True)
    steps = [words for words in both.happened if words[0] not in ("until", "_fits_a_window")]
    shape = Shape(rounds=3)
    names = ["a", "b"]
    assert steps == [
        ("_start_all", both.group, {"may_separate": True}),
        ("_warm", {p.implementation: p for p in both.group}, pytest.approx(33.0)),
        ("_least_seconds", both.group),
        ("_shape", both.group, 1000.0, 1100.0, 2),
        ("round", names, names, 1100.0, shape, 0),
        ("_separate",),
        ("round", names, [], 1100.0, shape, 1),
        ("_separate",),
        ("_replace", [both.planned["b"]], 1100.0),
        ("round", names, ["b"], 1100.0, shape, 2),
        ("_separate",),
    ]
    assert [words for words in both.happened if words[0] == "until"] == [("until", 1100.0)] * 4


def test_a_group_whose_start_took_its_time_has_its_least_and_ends_where_nothing_can_be_measured(
    both: Rounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "turnover", lambda _: {})
    grouped(both, rounds_fit=9, measured=0)
    both.it._group(both.group, 5.0, 2, may_separate=True)
    assert [words[3] for words in both.happened if words[0] == "round"] == [1020.0]
    assert not any(words[0] == "_separate" for words in both.happened)


def test_those_that_leave_a_group_take_their_share_of_its_time_along(
    both: Rounds, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "turnover", lambda _: {})
    grouped(both, rounds_fit=2, separate=True)
    both.it._alone = {"c", "d"}
    both.it._group(both.group, 100.0, 2, may_separate=True)
    untils = [words[3] for words in both.happened if words[0] == "round"]
    assert untils == [1050.0, 1010.0 + 40.0 / 2]  # two of four, once more after the first
    both.happened.clear()
    grouped(both, rounds_fit=2, separate=True)
    both.it._alone = set()
    both.it._group(both.group, 100.0, 2, may_separate=False)
    assert not any(words[0] == "_separate" for words in both.happened)
