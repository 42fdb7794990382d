"""The steps that each design yields, and how designs react to results."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import pytest

from harness.experiment import designs
from harness.experiment.loop import Deadline, run_design
from harness.experiment.predicted import Prediction, predict
from harness.experiment.steps import (
    Cell,
    Done,
    Failed,
    Measure,
    Process,
    Rest,
    Start,
    Step,
    StepResult,
    Stop,
    TrialResult,
    Warm,
)
from harness.plan import profile as profiles
from harness.plan.plan import Candidate, Plan, headline_load
from harness.plan.profile import ProcessLimits, Profile
from harness.plugins import Extensions
from harness.records.loads import ClosedLoop, Load, OpenLoop, Scenario
from harness.records.measurements import ErrorCounts
from harness.records.trial_record import Trial, ValidityCheck
from harness.records.verification_record import Outcome
from harness.tests.approve import approve
from harness.tests.doubles.fakes_world import FakeClock

JSON = (ClosedLoop(connections=16), ClosedLoop(connections=64), ClosedLoop(connections=256))
QUERY = (ClosedLoop(connections=64, queries=1), ClosedLoop(connections=64, queries=20))


def plan_of(names: str = "ab", profile: str | Profile = "quick", jit: str = "", **changes: object) -> Plan:
    chosen = profiles.load_profile(profile) if isinstance(profile, str) else profile
    candidates = tuple(
        Candidate(implementation=name, test_types={"json": JSON, "query": QUERY}, jit=name in jit) for name in names
    )
    return Plan(candidates=candidates, profile=chosen, **changes)  # type: ignore[arg-type]


def steps_of(
    plan: Plan, instead: Callable[[Step], StepResult | None] = lambda _: None, seed: int = 1,
    trial_changes: Callable[[Measure], Mapping[str, object]] = lambda _: {},
) -> list[Step]:  # fmt: skip
    """Return a design's steps. ``instead`` and ``trial_changes`` override predicted results and trials."""
    recorded: list[Step] = []

    class Answers(Prediction):
        def execute(self, step: Step) -> StepResult:
            recorded.append(step)
            result = instead(step) or super().execute(step)
            if isinstance(step, Measure) and isinstance(result, TrialResult):
                changes: dict[str, Any] = {"busy": result.busy, **trial_changes(step)}
                busy = changes.pop("busy")
                return TrialResult(trial=result.trial.model_copy(update=changes), busy=busy)
            return result

    answers = Answers(plan)
    run_design(
        designs.find_design(plan.profile.design)(plan, seed),
        answers.execute,
        answers,
        plan.profile.interleaved.time_seconds,
    )
    return recorded


def measured(steps: Sequence[Step]) -> list[Measure]:
    return [step for step in steps if isinstance(step, Measure)]


def short(name: str = "quick", **interleaved: object) -> Profile:
    profile = profiles.load_profile(name)
    return profile.model_copy(update={"interleaved": profile.interleaved.model_copy(update=interleaved)})


def gate(*kinds: str, seconds: float = 240.0) -> Plan:
    """Return a plan of the regression gate with three sides and the given requests, by default "json"."""
    if "gate" not in Extensions[object]("designs").names():
        pytest.skip("needs harness/extras/gate")
    plan = plan_of("abc", short("gate", time_seconds=seconds))
    one = dict.fromkeys(kinds or ("json",), (ClosedLoop(connections=32),))
    return replace(plan, candidates=tuple(replace(each, test_types=one) for each in plan.candidates))


def describe_step(step: Step) -> tuple[str, str]:
    """Return a step's action, and its process or cell."""
    if isinstance(step, Rest):
        return f"rest {step.seconds:g} s", " ".join(f"{name}.{number}" for name, number in step.quiet)
    if isinstance(step, Start | Stop):
        return type(step).__name__.lower(), f"{step.process.implementation}.{step.process.number}"
    cell = step.cell
    subject = f"{cell.process.implementation}.{cell.process.number} {cell.test_type} {cell.load.label}"
    until = "" if step.until is None else f", until {step.until:.3g}"
    if isinstance(step, Warm):
        return f"warm {step.seconds:g} s{until}", subject
    share = "" if step.share is None else f" {step.share:g}"
    first = f" (first after {step.warm_up.duration:g} s)" if step.warm_up else ""
    warm = {None: "", True: " steady", False: " cold"}[step.steady]
    action = f"{step.purpose}{share} {step.seconds:g} s, round {step.round}{until}"
    return action, f"{subject}{warm}{first}"


def of_orders() -> Plan:
    profile = short("quick", time_seconds=80.0)
    open_loop = profile.open_loop.model_copy(update={"search_loads": 3})
    profile = profile.model_copy(update={"design": "search", "open_loop": open_loop})
    order = {"order": (Scenario(factor=8.0, connections=64),)}
    return Plan(candidates=(Candidate(implementation="a", test_types=order, jit=False),), profile=profile)


def processes(profile: Profile, number: int, **sections: object) -> Profile:
    return profile.model_copy(update={"processes": ProcessLimits(minimum=number, maximum=number), **sections})


LATENCY = profiles.load_profile("latency")
RATES = LATENCY.rates.model_copy(update={"shares": (0.5, 0.9), "common": (1_000.0, 4_750.0, 4_751.0)})
ROUNDS: dict[str, Any] = {"time_seconds": None, "rounds": 2, "every_load": True, "witness": False}
A, B = Process("a", 0), Process("b", 0)
PLANS: dict[str, Plan] = {
    "interleaved": plan_of("ab", short(time_seconds=180.0), jit="b"),
    "interleaved-without-time": plan_of("ab", short(time_seconds=75.0), jit="b"),
    "interleaved-in-rounds": plan_of("acd", short(**ROUNDS)),
    "search": plan_of("ab", processes(short("latency", time_seconds=130.0), 1, rates=RATES)),
    "search-orders": of_orders(),
    "techempower": plan_of("abc", processes(short("techempower"), 2, duration_seconds=12.0)),
}
if "gate" in Extensions[object]("designs").names():
    # The gate ignores the memory limit: its sides must always be up at the same time.
    PLANS["gate"] = replace(gate("json", "query", seconds=150.0), memory_limit=1.0)


def answer(step: Step) -> StepResult | None:
    """Return a full or partial failure for some steps of the approved plans, otherwise None."""
    match step:
        case Start(process=Process("c", 0)):
            return Done(test_types=frozenset({"json"}))
        case Start(process=Process(implementation="d")):
            return Failed()
        case Warm(cell=Cell(process=Process("b", 1), test_type="query")):
            return Failed()
        case (
            Warm(cell=Cell(process=Process("c", 0), load=ClosedLoop(connections=8)))
            | Warm(cell=Cell(process=Process("c", 1), load=ClosedLoop(connections=64)))
            | Measure(cell=Cell(process=Process("a", 0)), purpose="common")
        ):
            return Failed(server_exited=True)
        case Measure(cell=Cell(process=Process("a", 1), test_type="json", load=ClosedLoop(connections=64))):
            return Failed()
    return None


def says(step: Measure) -> dict[str, object]:
    """Return changes to a trial. Server ``a`` is slow. The others meet the latency goal up to 3,000 requests/s."""
    cell = step.cell
    if isinstance(cell.load, OpenLoop):
        late = cell.load.rate / 2 if cell.load.rate > 3_000 else 0
        return {"due": round(cell.load.rate), "late": round(late), "throughput": cell.load.rate}
    slowly = {"json": 2_345.0, "query": 13.0 if cell.load.connections == 32 else 2_345.0}
    busy = {"busy": frozenset({B})} if (cell.process.number, cell.test_type, step.round) == (0, "json", 1) else {}
    return {"throughput": slowly.get(cell.test_type, 1.0) if cell.process.implementation == "a" else 5_000.0, **busy}


@pytest.mark.parametrize("name", PLANS)
def test_designs_yield_the_approved_steps(name: str) -> None:
    prediction = predict(PLANS[name], seed=1)
    figures = [prediction.seconds, prediction.measuring, prediction.trials, len(prediction.measured_cells)]
    steps = groupby(map(describe_step, steps_of(PLANS[name], answer, trial_changes=says)), key=lambda step: step[0])
    lines = [f"{action}: {', '.join(subject for _, subject in group)}" for action, group in steps]
    approve(f"experiment-steps-{name}", {"figures": figures, "shortage": prediction.shortage, "steps": lines})


def test_the_default_run_fits_its_time() -> None:
    plan = plan_of("abcd")
    prediction = predict(plan, seed=1)
    assert 0.9 * 690 < prediction.seconds < 1.02 * 690
    assert prediction.measuring > 0.45 * prediction.seconds
    loads = measured(steps_of(plan))
    rounds = Counter(
        (s.cell.process, s.cell.test_type) for s in loads if s.purpose == "measure" and s.cell.load == JSON[1]
    )
    assert {process.number for process, _ in rounds} == {0, 1}
    assert min(rounds.values()) >= 4


def test_a_round_visits_cells_table_by_table() -> None:
    loads = [s for s in measured(steps_of(plan_of("abc"))) if s.purpose == "measure" and s.round == 1]
    first = loads[:6]
    assert len({(s.cell.process.implementation, s.cell.test_type) for s in first}) == 6
    kinds = [s.cell.test_type for s in first]
    assert kinds in (["json"] * 3 + ["query"] * 3, ["query"] * 3 + ["json"] * 3)


def test_the_order_depends_on_the_seed() -> None:
    def order(seed: int) -> list[tuple[str, str]]:
        return [
            (s.cell.process.implementation, s.cell.load.label) for s in measured(steps_of(plan_of("abcd"), seed=seed))
        ]

    assert order(1) == order(1) != order(2)


def test_all_sides_get_the_rate_of_the_slowest() -> None:
    def trial_changes(step: Measure) -> dict[str, object]:
        return {"throughput": 123.0} if step.cell.process.implementation == "b" else {}

    # The gate ignores the memory limit: its sides must always be up at the same time.
    loads = measured(steps_of(replace(gate(), memory_limit=1.0), trial_changes=trial_changes))
    rates = {step.cell.load.rate for step in loads if isinstance(step.cell.load, OpenLoop)}
    assert rates == {62.0}  # half of b's throughput, rounded to two digits
    assert isinstance(loads[0].cell.load, ClosedLoop)
    first, later = (
        [s.seconds for s in loads if isinstance(s.cell.load, ClosedLoop) and s.cell.process.number == n]
        for n in range(2)
    )
    # Only the first process needs long closed loops, because they set the rate.
    assert later == [seconds / 2 for seconds in first]
    at_rate = Counter(step.cell.process for step in loads if isinstance(step.cell.load, OpenLoop))
    assert {process.implementation for process in at_rate} == set("abc")
    assert {process.number for process in at_rate} == set(range(2))
    for number in range(2):
        counts = [count for process, count in at_rate.items() if process.number == number]
        assert max(counts) - min(counts) <= 1


def test_a_run_without_limit_stops_when_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    def decided(
        trials: Sequence[Trial], expected: Sequence[tuple[str, str]], _: ProcessLimits
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


@pytest.mark.parametrize(("reverse", "order"), [(False, "abcdef"), (True, "fedcba")])
def test_techempowers_order_is_alphabetical(reverse: bool, order: str) -> None:
    steps = steps_of(plan_of("cafebd", "techempower", reverse=reverse))
    assert "".join(step.process.implementation for step in steps if isinstance(step, Start)) == order


@pytest.mark.parametrize(("loads", "main"), [(JSON, JSON[1]), (QUERY, QUERY[1]), (JSON[:2], JSON[0])])
def test_the_headline_load_is_highest_or_middle(loads: Sequence[Load], main: Load) -> None:
    assert headline_load(loads) == main


@pytest.mark.parametrize(("late", "lowered"), [("a", False), ("ab", True)])
def test_a_rate_missed_by_several_sides_is_lowered(late: str, lowered: bool) -> None:
    missed = ValidityCheck(name="achieved-rate", outcome=Outcome.FAIL, value=0.3, threshold=0.01)

    def trial_changes(step: Measure) -> dict[str, object]:
        load = step.cell.load
        if isinstance(load, OpenLoop) and load.rate > 700 and step.cell.process.implementation in late:
            return {"throughput": 700.0, "validity": (missed,)}
        return {"throughput": 2000.0}

    rates = [
        (step.cell.load.rate, step.cell.process.number == 0 and step.round == 1)
        for step in measured(steps_of(gate(), trial_changes=trial_changes))
        if isinstance(step.cell.load, OpenLoop)
    ]
    assert {rate for rate, first in rates if first} == {1000.0}
    assert {rate for rate, first in rates if not first} == {350.0 if lowered else 1000.0}


@pytest.mark.parametrize(
    ("slow", "most", "used"),
    [("b", 8, [32, 8]), ("abc", 8, [32, 8]), ("c", 3, [32, 8, 2]), ("a", 1, [32, 8, 2, 1]), ("a", 0, [32, 8, 2, 1])],
    ids=["one side", "all sides", "twice", "one connection", "always late"],
)
def test_late_responses_reduce_the_connections_of_all_sides(slow: str, most: int, used: list[int]) -> None:
    """``used`` lists the connection counts that the design tries, in order."""

    def trial_changes(step: Measure) -> dict[str, object]:
        if step.cell.process.implementation in slow and step.cell.load.connections > most:
            return {"errors": ErrorCounts(timeout=3), "validity": (LATE,)}
        return {"throughput": 100.0}

    loads = measured(steps_of(gate(), trial_changes=trial_changes))
    assert list(dict.fromkeys(step.cell.load.connections for step in loads)) == used
    at_rate = {step.cell.load for step in loads if isinstance(step.cell.load, OpenLoop)}
    assert at_rate == ({OpenLoop(rate=50.0, connections=used[-1])} if most else set())
    last = {s.cell.process.implementation for s in loads if s.cell.load == ClosedLoop(connections=used[-1])}
    assert last == set("abc")


@pytest.mark.parametrize(("throughput", "seconds"), [(100.0, 0.0), (2.0, 8.0), (0.1, 30.0), (0.0, 30.0)])
def test_abandoned_requests_do_not_delay_the_next(throughput: float, seconds: float) -> None:
    def trial_changes(step: Measure) -> dict[str, object]:
        if step.cell.load.connections == 32:
            return {"errors": ErrorCounts(timeout=3), "validity": (LATE,), "throughput": throughput}
        return {"throughput": 100.0}

    steps = steps_of(gate(), trial_changes=trial_changes)
    late = next(i for i, step in enumerate(steps) if isinstance(step, Measure) and step.cell.load.connections == 32)
    assert steps[late + 1] == Rest(seconds=seconds)
    assert [step for step in steps if isinstance(step, Rest) and not step.quiet] == [Rest(seconds=seconds)]


LATE = ValidityCheck(name="timeouts", outcome=Outcome.FAIL, value=3.0, threshold=0.0)


@pytest.mark.parametrize(("throughput", "connections"), [(100.0, 8), (1.7, 3), (0.8, 1), (0.0, 1)])
def test_the_throughput_limits_reduced_connections(throughput: float, connections: int) -> None:
    """The reduced connection count follows from the throughput of the overloaded server."""

    def trial_changes(step: Measure) -> dict[str, object]:
        if step.cell.load.connections == 32:
            return {"errors": ErrorCounts(timeout=3), "validity": (LATE,), "throughput": throughput}
        return {"throughput": 1.0, "requests": 4 if step.seconds < 10.0 else 9}

    loads = measured(steps_of(gate(), trial_changes=trial_changes))
    assert list(dict.fromkeys(step.cell.load.connections for step in loads)) == [32, connections]
    closed = {s.cell.process for s in loads if s.cell.load == ClosedLoop(connections=connections)}
    assert closed == {s.cell.process for s in loads}
    first = [s for s in loads if s.cell.process.number == 0 and isinstance(s.cell.load, OpenLoop)]
    assert {s.cell.process.implementation for s in first if s.round == 1} == set("abc")


def test_closed_loops_of_slow_services_are_longer() -> None:
    def trial_changes(step: Measure) -> dict[str, object]:
        slow = step.cell.process.implementation == "b"
        return {"requests": round(0.4 * step.seconds), "throughput": 0.4} if slow else {"throughput": 100.0}

    loads = measured(steps_of(gate(), trial_changes=trial_changes))
    closed = {s.cell.process.implementation: s.seconds for s in loads if isinstance(s.cell.load, ClosedLoop)}
    assert set(closed.values()) == {10.0}
    assert {s.cell.load.rate for s in loads if isinstance(s.cell.load, OpenLoop)} == {0.2}


def test_refused_connections_reduce_the_connections() -> None:
    def refuse(step: Step) -> StepResult | None:
        return Failed() if isinstance(step, Measure) and step.cell.load.connections > 2 else None

    loads = measured(steps_of(gate(), refuse))
    assert list(dict.fromkeys(step.cell.load.connections for step in loads)) == [32, 8, 2]
    assert {step.cell.process.implementation for step in loads if isinstance(step.cell.load, OpenLoop)} == set("abc")


@pytest.mark.parametrize(("start", "seconds", "expected"), [(1.0, 240.0, 5), (20.0, 300.0, 3), (200.0, 240.0, 1)])
def test_slow_starts_make_processes_fewer(start: float, seconds: float, expected: int) -> None:
    """Slow starts use up the time limit, so fewer processes fit."""
    took: list[float] = []
    plan = gate(seconds=seconds)
    plan = replace(plan, profile=processes(plan.profile, 5))

    class Slow(Prediction):
        def execute(self, step: Step) -> StepResult:
            if isinstance(step, Start):
                self.sleep(start)
                took.append(step.process.number)
            return super().execute(step)

    clock = Slow(plan)
    run_design(designs.find_design("gate")(plan, 1), clock.execute, clock, seconds)
    assert len(set(took)) == expected
    assert clock.seconds < seconds + 3 * (start + 10.0)


def test_the_regression_gate_ends_without_a_rate() -> None:
    """Open loops get their rate from closed loops. If all closed loops fail, there is no rate and no open loop runs."""
    failed = ValidityCheck(name="errors", outcome=Outcome.FAIL, value=1.0, threshold=0.0)
    loads = measured(steps_of(gate(), trial_changes=lambda _: {"validity": (failed,)}))
    assert loads
    assert all(isinstance(step.cell.load, ClosedLoop) for step in loads)


def test_the_regression_gate_ends_without_a_side() -> None:
    lost = Process("b", 0)
    does_not_start = steps_of(gate(), lambda s: Failed() if s == Start(process=lost) else None)
    assert not measured(does_not_start)
    dies = steps_of(
        gate(), lambda s: Failed(server_exited=True) if isinstance(s, Measure) and s.cell.process == lost else None
    )
    for steps in (does_not_start, dies):
        assert {step.process.number for step in steps if isinstance(step, Start)} == {0}
        assert {step.process.implementation for step in steps if isinstance(step, Stop)} == {"a", "c"}


def test_a_load_must_leave_time_to_stop_processes() -> None:
    """Stopping two processes takes 8 s of the 50 s. A 1 s load takes 1.8 s."""
    cells = {name: Cell(process=Process(name, 0), test_type="json", load=JSON[0]) for name in "abcde"}
    for until, seconds, now, passed in (
        (0.5, 100.0, 40.1, False), (0.5, 100.0, 40.3, True), (1.0, 100.0, 90.3, True), (None, 100.0, 1e9, False),
        (0.5, None, 1e9, False),
    ):  # fmt: skip
        clock = FakeClock()
        deadline = Deadline(clock, seconds, started_at=clock.now)
        for name, cell in cells.items():
            deadline.note(Start(process=cell.process), Failed() if name == "c" else Done())
        deadline.note(Warm(cell=cells["d"], seconds=1.0), Failed(server_exited=True))
        deadline.note(Measure(cell=cells["a"], seconds=1.0), Failed())
        deadline.note(Stop(process=cells["e"].process), Done())
        clock.sleep(now)
        assert deadline.passed(Measure(cell=cells["a"], seconds=1.0, until=until)) is passed
        assert deadline.passed(Warm(cell=cells["a"], seconds=1.0, until=until)) is passed
        assert not deadline.passed(Rest(seconds=99.0))


def test_without_time_each_test_type_is_measured_once() -> None:
    steps = steps_of(plan_of("a", short(time_seconds=1.0)))
    assert [s.round for s in measured(steps) if s.purpose == "measure"] == [0, 0]
    assert isinstance(steps[-1], Stop)


def test_failed_starts_take_no_time_from_others() -> None:
    def fails(step: Step) -> StepResult | None:
        return Failed() if isinstance(step, Start) and step.process.implementation != "a" else None

    alone, beside = (measured(steps_of(plan_of(names, short(time_seconds=80.0)), fails)) for names in ("a", "abcde"))
    assert [step.cell for step in beside] == [step.cell for step in alone]


def test_a_dead_server_spares_others_in_techempowers_order() -> None:
    lost = Process("a", 0)
    steps = steps_of(
        plan_of("ab", "techempower"),
        lambda s: Failed(server_exited=True) if isinstance(s, Measure) and s.cell.process == lost else None,
    )
    assert len([s for s in measured(steps) if s.cell.process == lost]) == 1
    assert {s.cell.test_type for s in measured(steps) if s.cell.process == Process("b", 0)} == {"json", "query"}
