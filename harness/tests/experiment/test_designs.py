"""Designs: which steps they ask for, in which order, and what they make of what each showed."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import pytest

from harness.experiment import designs
from harness.experiment.loop import carry_out
from harness.experiment.predicted import Prediction, predict
from harness.experiment.steps import Failed, Late, Measure, Measured, Process, Rest, Shown, Start, Step, Stop, Warm
from harness.plan import profile as profiles
from harness.plan.plan import Candidate, Plan, headline
from harness.plan.profile import Processes, Profile
from harness.records.models import Closed, Gate, Load, Open, Outcome, Scenario, Trial

JSON = (Closed(connections=16), Closed(connections=64), Closed(connections=256))
QUERY = (Closed(connections=64, queries=1), Closed(connections=64, queries=20))


def plan_of(names: str = "ab", profile: str | Profile = "quick", jit: str = "", **changes: object) -> Plan:
    chosen = profiles.load(profile) if isinstance(profile, str) else profile
    candidates = tuple(
        Candidate(implementation=name, test_types={"json": JSON, "query": QUERY}, jit=name in jit) for name in names
    )
    return Plan(candidates=candidates, profile=chosen, **changes)  # type: ignore[arg-type]


def steps_of(
    plan: Plan, instead: Callable[[Step], Shown | None] = lambda _: None, seed: int = 1,
    told: Callable[[Measure], Mapping[str, object]] = lambda _: {},
) -> list[Step]:  # fmt: skip
    """Answered as a prediction does, but for what ``instead`` and ``told`` of a trial say."""
    found: list[Step] = []

    class Answers(Prediction):
        def carry_out(self, step: Step) -> Shown:
            found.append(step)
            shown = instead(step) or super().carry_out(step)
            if isinstance(step, Measure) and isinstance(shown, Measured):
                return Measured(trial=shown.trial.model_copy(update=dict(told(step))))
            return shown

    answers = Answers(plan)
    carry_out(
        designs.DESIGNS[plan.profile.design](plan, seed),
        answers.carry_out,
        answers,
        plan.profile.interleaved.time_seconds,
    )
    return found


def measured(steps: Sequence[Step]) -> list[Measure]:
    return [step for step in steps if isinstance(step, Measure)]


def short(name: str = "quick", **interleaved: object) -> Profile:
    profile = profiles.load(name)
    return profile.model_copy(update={"interleaved": profile.interleaved.model_copy(update=interleaved)})


def test_the_default_run_ends_in_its_time_with_two_processes_and_rounds_of_every_cell() -> None:
    plan = plan_of("abcd")
    found = predict(plan, seed=1)
    assert 0.9 * 690 < found.seconds < 1.02 * 690
    assert found.measuring > 0.45 * found.seconds
    loads = measured(steps_of(plan))
    rounds = Counter(
        (s.cell.process, s.cell.test_type) for s in loads if s.purpose == "measure" and s.cell.load == JSON[1]
    )
    assert {process.number for process, _ in rounds} == {0, 1}
    assert min(rounds.values()) >= 4


def test_a_round_visits_each_cell_once_and_a_table_stands_together() -> None:
    loads = [s for s in measured(steps_of(plan_of("abc"))) if s.purpose == "measure" and s.round == 1]
    first = loads[:6]
    assert len({(s.cell.process.implementation, s.cell.test_type) for s in first}) == 6
    kinds = [s.cell.test_type for s in first]
    assert kinds in (["json"] * 3 + ["query"] * 3, ["query"] * 3 + ["json"] * 3)


def test_the_order_is_another_in_another_seed_and_the_same_in_the_same() -> None:
    def order(seed: int) -> list[tuple[str, str]]:
        return [
            (s.cell.process.implementation, s.cell.load.label) for s in measured(steps_of(plan_of("abcd"), seed=seed))
        ]

    assert order(1) == order(1) != order(2)


def test_other_loads_are_visited_once_before_the_headline_one() -> None:
    loads = [s for s in measured(steps_of(plan_of("a"))) if s.cell.test_type == "json" and s.purpose == "measure"]
    counts = Counter(s.cell.load for s in loads)
    assert counts[JSON[0]] == counts[JSON[2]] == 1
    assert counts[JSON[1]] > 4
    assert [s.cell.load for s in loads[:3]][-1] == JSON[1]


def test_a_test_type_whose_load_fails_twice_is_left_out_of_that_process() -> None:
    def fails(step: Step) -> Shown | None:
        bad = isinstance(step, Measure) and step.cell.process == Process("a", 0) and step.cell.test_type == "query"
        return Failed() if bad else None

    steps = steps_of(plan_of("ab"), fails)
    assert len([s for s in measured(steps) if s.cell.process == Process("a", 0) and s.cell.test_type == "query"]) == 2
    assert [s for s in measured(steps) if s.cell.process == Process("a", 1) and s.cell.test_type == "query"]


def test_a_run_without_a_time_makes_its_rounds_and_stops_when_all_is_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    def decided(
        trials: Sequence[Trial], expected: Sequence[tuple[str, str]], _: Processes
    ) -> Sequence[tuple[str, str]]:
        return [pair for pair in expected if pair == ("b", "json") and len({t.process for t in trials}) < 7]

    monkeypatch.setattr(designs, "undecided", decided)
    loads = measured(steps_of(plan_of("ab", "standard")))
    by_cell = Counter(
        (s.cell.process.implementation, s.cell.test_type, s.cell.load) for s in loads if s.purpose == "measure"
    )
    assert by_cell["a", "json", JSON[0]] == 5 * 2
    assert by_cell["b", "json", JSON[0]] == 7 * 2
    assert by_cell["b", "query", QUERY[0]] == 5 * 2


def test_every_server_is_warmed_in_bursts_between_those_of_others() -> None:
    warm = [s.cell.process for s in steps_of(plan_of("ab", jit="ab")) if isinstance(s, Warm)]
    changes = sum(one != other for one, other in pairwise(warm))
    assert changes > len(warm) / 4


def test_bursts_of_one_server_have_rests_between_them_and_those_of_several_none() -> None:
    for names, rests in (("a", [1.5]), ("ab", [])):
        steps = steps_of(plan_of(names, jit=names))
        behind = [later for step, later in pairwise(steps) if isinstance(step, Warm)]
        assert [each.seconds for each in behind[:1] if isinstance(each, Rest)] == rests


@pytest.mark.parametrize(("ends", "asked"), [(Failed(gone=True), 1), (Failed(), 2), (Late(), 2)])
def test_a_server_that_ends_while_it_is_warmed_is_asked_nothing_more_and_not_waited_for(
    ends: Shown, asked: int
) -> None:
    lost = Process("a", 0)
    steps = steps_of(plan_of("ab"), lambda s: ends if isinstance(s, Warm) and s.cell.process == lost else None)
    place, end = next((place, s) for place, s in enumerate(steps) if isinstance(s, Rest) and s.seconds > 2)
    bursts = [step.cell.process for step in steps[:place] if isinstance(step, Warm)]
    assert (bursts.count(lost), set(bursts)) == (asked, {lost, Process("b", 0)})
    assert (lost in end.quiet) == (ends != Failed(gone=True))


def test_the_first_trial_of_a_test_type_carries_its_warm_up() -> None:
    loads = [s for s in measured(steps_of(plan_of("a"))) if s.cell.test_type == "json" and s.cell.process.number == 0]
    assert loads[0].warm_up is not None
    assert [s.warm_up for s in loads[1:]] == [None] * (len(loads) - 1)
    assert {s.steady for s in loads} == {True}


def test_techempowers_order_is_one_server_at_a_time_levels_ascending_with_its_warm_up() -> None:
    steps = steps_of(plan_of("ab", "techempower"))
    up = 0
    for step in steps:
        up += isinstance(step, Start) - isinstance(step, Stop)
        assert up <= 1
    one = [s for s in steps if isinstance(s, Warm | Measure) and s.cell.process.implementation == "a"]
    json = [s for s in one if s.cell.test_type == "json"]
    assert [(type(s), s.seconds) for s in json[:2]] == [(Warm, 5.0), (Warm, 15.0)]
    warm = {s.cell.test_type: s.cell.load.queries for s in one if isinstance(s, Warm)}
    assert warm == {"json": None, "query": 20}
    loads = [s for s in json if isinstance(s, Measure) and s.purpose == "measure"]
    assert [s.cell.load for s in loads] == list(JSON)
    assert {s.seconds for s in loads} == {15.0}
    witnesses = [(s.cell.test_type, s.cell.load) for s in one if isinstance(s, Measure) and s.purpose == "witness"]
    assert witnesses == [("json", JSON[1]), ("query", QUERY[1])]


@pytest.mark.parametrize(("reverse", "order"), [(False, "abcdef"), (True, "fedcba")])
def test_techempowers_order_is_that_of_the_names(reverse: bool, order: str) -> None:
    steps = steps_of(plan_of("cafebd", "techempower", reverse=reverse))
    assert "".join(step.process.implementation for step in steps if isinstance(step, Start)) == order


@pytest.mark.parametrize(("loads", "main"), [(JSON, JSON[1]), (QUERY, QUERY[1]), (JSON[:2], JSON[0])])
def test_the_headline_load_is_the_highest_count_or_the_middle(loads: Sequence[Load], main: Load) -> None:
    assert headline(loads) == main


def test_the_order_services_capacity_is_searched_by_factors() -> None:
    profile = profiles.load("quick")
    open_loop = profile.open_loop.model_copy(update={"search_loads": 2})
    profile = profile.model_copy(update={"design": "search", "open_loop": open_loop})
    order = (Scenario(factor=8.0, connections=64),)
    plan = Plan(candidates=(Candidate(implementation="a", test_types={"order": order}, jit=False),), profile=profile)
    factors = [s.cell.load.factor for s in measured(steps_of(plan)) if isinstance(s.cell.load, Scenario)]
    assert factors[0] == 8.0
    assert factors[1] > 8.0  # it met the goal


def gate() -> Plan:
    """Three sides with one request, for four minutes."""
    plan = plan_of("abc", short("gate", time_seconds=240.0))
    one = {"json": (Closed(connections=32),)}
    return replace(plan, candidates=tuple(replace(each, test_types=one) for each in plan.candidates))


def test_a_gate_measures_every_side_at_the_rate_of_the_slowest_in_all_its_processes() -> None:
    def told(step: Measure) -> dict[str, object]:
        return {"throughput": 123.0} if step.cell.process.implementation == "b" else {}

    found = measured(steps_of(replace(gate(), room=1.0), told=told))  # side by side, also with little memory
    rates = {step.cell.load.rate for step in found if isinstance(step.cell.load, Open)}
    assert rates == {62.0}  # half of what b answers, two digits
    assert isinstance(found[0].cell.load, Closed)
    first, later = (
        [s.seconds for s in found if isinstance(s.cell.load, Closed) and s.cell.process.number == n] for n in range(2)
    )
    assert later == [seconds / 2 for seconds in first]  # in later processes it sets no rate
    at_rate = Counter(step.cell.process for step in found if isinstance(step.cell.load, Open))
    assert {process.implementation for process in at_rate} == set("abc")
    assert {process.number for process in at_rate} == set(range(2))
    for number in range(2):
        counts = [count for process, count in at_rate.items() if process.number == number]
        assert max(counts) - min(counts) <= 1


@pytest.mark.parametrize(("late", "lowered"), [("a", False), ("ab", True)])
def test_a_rate_that_more_than_one_side_of_a_gate_falls_short_of_is_lowered_for_all(late: str, lowered: bool) -> None:
    missed = Gate(name="achieved-rate", outcome=Outcome.FAIL, value=0.3, threshold=0.01)

    def told(step: Measure) -> dict[str, object]:
        load = step.cell.load
        if isinstance(load, Open) and load.rate > 700 and step.cell.process.implementation in late:
            return {"throughput": 700.0, "gates": (missed,)}
        return {"throughput": 2000.0}

    seen = [
        (step.cell.load.rate, step.cell.process.number == 0 and step.round == 1)
        for step in measured(steps_of(gate(), told=told))
        if isinstance(step.cell.load, Open)
    ]
    assert {rate for rate, first in seen if first} == {1000.0}
    assert {rate for rate, first in seen if not first} == {350.0 if lowered else 1000.0}


def test_a_gate_without_a_rate_ends() -> None:
    """A closed loop that failed gives none."""
    failed = Gate(name="errors", outcome=Outcome.FAIL, value=1.0, threshold=0.0)
    found = measured(steps_of(gate(), told=lambda _: {"gates": (failed,)}))
    assert found
    assert all(isinstance(step.cell.load, Closed) for step in found)


def test_a_gate_ends_when_a_side_is_lost() -> None:
    lost = Process("b", 0)
    does_not_start = steps_of(gate(), lambda s: Failed() if s == Start(process=lost) else None)
    assert not measured(does_not_start)
    dies = steps_of(gate(), lambda s: Failed(gone=True) if isinstance(s, Measure) and s.cell.process == lost else None)
    for steps in (does_not_start, dies):
        assert {step.process.number for step in steps if isinstance(step, Start)} == {0}
        assert {step.process.implementation for step in steps if isinstance(step, Stop)} == {"a", "c"}


def test_no_time_is_no_time_for_anybody() -> None:
    steps = steps_of(plan_of("a", short(time_seconds=1.0)))
    assert [s.round for s in measured(steps) if s.purpose == "measure"] == [0, 0]  # each test type once, whatever
    assert isinstance(steps[-1], Stop)


def test_servers_that_did_not_come_up_take_no_time_from_the_others() -> None:
    def fails(step: Step) -> Shown | None:
        return Failed() if isinstance(step, Start) and step.process.implementation != "a" else None

    alone, beside = (measured(steps_of(plan_of(names, short(time_seconds=80.0)), fails)) for names in ("a", "abcde"))
    assert [step.cell for step in beside] == [step.cell for step in alone]
