"""The search for the capacity at a latency goal, and the tables of loads at given rates."""

from collections.abc import Callable

import pytest

from harness.plan.orders import CREATE
from harness.plan.profile import OpenLoop, Orders, Processes
from harness.records import models
from harness.records.models import Gate, Latency, LatencyGoal, Load, Open, Outcome, Purpose, RunInfo, Scenario, Trial
from harness.stats.capacity import ORDER, bracket, next_load
from harness.stats.ranking import rank
from harness.stats.tables import percentiles
from harness.tests.doubles.invented import verdict
from harness.tests.doubles.runs import LOAD, run_info, trial

GOAL, SLOW = LatencyGoal(percentile=99, seconds=0.01), LatencyGoal(percentile=99, seconds=0.1)
LAG = Gate(name="generator-lag", outcome=Outcome.FAIL, value=1.0, threshold=0.2, word="generator lag")
SHORT = Gate(name="achieved-rate", outcome=Outcome.FAIL, value=0.5, threshold=0.01, word="rate not achieved")
SERVICE = Scenario(factor=8.0, connections=64)


def times(seconds: float, histogram: tuple[tuple[float, int], ...] = ()) -> Latency:
    return Latency(
        basis="open-loop, intended send time", mean=seconds, stdev=0.0, min=seconds, max=seconds * 9,
        percentiles={"50": seconds, "99": seconds * 3}, histogram=histogram,
    )  # fmt: skip


def at(
    rate: float, late: float, *, name: str = "a", process: int = 0, due: int = 5000, gates: tuple[Gate, ...] = (),
    purpose: Purpose = "search", share: float | None = None,
) -> Trial:  # fmt: skip
    made = trial(name, rate, process, load=Open(rate=rate, connections=64), gates=gates)
    counted = {"due": due, "answered": due, "late": round(late * due), "purpose": purpose, "share": share}
    return made.model_copy(update={**counted, "latency": times(0.002)})


def arrivals(
    factor: float, late: float, *, name: str = "a", process: int = 0, purpose: Purpose = "search", seconds: float = 0.02
) -> Trial:
    """A thousand arrivals, each with a "create order" of 20 ms, or of a second where it is late."""
    slow = round(1000 * late)
    histogram = ((seconds, 1000 - slow), (1.0, slow)) if slow else ((seconds, 1000),)
    create = models.OperationTimes(
        use_case="bulk", operation=CREATE, due=1000, answered=1000, errors=models.Errors(),
        latency=times(0.02, histogram),
    )  # fmt: skip
    whole = models.UseCaseTimes(use_case="bulk", due=1000, done=990, latency=times(0.1))
    made = trial(name, 7.4 * factor, process, test_type=ORDER, load=Scenario(factor=factor, connections=64), cpu=0.01)
    told = models.Arrivals(due=1000, done=990, failed=10, unfinished=0, operations=(create,), use_cases=(whole,))
    return made.model_copy(update={"arrivals": told, "purpose": purpose, "database_cpu_seconds": 5.0})


def info_of(names: str, count: int, load: Load, reference: str, **profile: OpenLoop | Orders) -> RunInfo:
    loads = {ORDER if load == SERVICE else "json": (load,)}
    info = run_info([*names], Processes(minimum=count, maximum=count), reference=reference, loads=loads)
    settings = {"profile": {name: part.model_dump() for name, part in profile.items()}}
    return info.model_copy(update={"settings": settings})


def search(load: Callable[[float], Trial], start: float, first: list[Trial] | None = None) -> tuple[list[Trial], int]:
    tried, loads = list(first or []), 0
    while (found := next_load(tried, GOAL if first is None else SLOW, start=start, seconds=2.0)) and loads < 40:
        tried.append(load(found))
        loads += 1
    return tried, loads


def ends(trials: list[Trial], goal: LatencyGoal = GOAL) -> tuple[float | None, float | None]:
    low, high = bracket(trials, goal)
    return low.rate if low else None, high.rate if high else None


@pytest.mark.parametrize("capacity", [700.0, 4000.0, 9000.0, 11_000.0])
def test_the_search_ends_around_the_true_capacity(capacity: float) -> None:
    tried, loads = search(lambda rate: at(rate, 0.0 if rate <= capacity else 0.5), 10_000.0)
    low, high = ends(tried)
    assert low <= capacity < (high or 0.0) <= low * 1.05
    assert loads < 14


def test_the_same_search_finds_a_factor_of_the_arrivals() -> None:
    first = [arrivals(8.0, 0.0, purpose="measure")]
    tried, _ = search(lambda factor: arrivals(factor, 0.0 if factor <= 100 else 0.3), 8.0, first)
    low, high = ends(tried, SLOW)
    assert low <= 100 < (high or 0.0) <= low * 1.05


def test_a_server_that_never_meets_the_goal_ends_the_search() -> None:
    tried, loads = search(lambda rate: at(rate, 0.5), 10_000.0)
    assert ends(tried)[0] is None
    assert loads < 10


def test_a_miss_while_the_generator_was_late_itself_counts_for_nothing() -> None:
    missed = at(1000, 0.5, gates=(LAG,))
    assert next_load([missed], GOAL, start=2000, seconds=2.0) == 1000
    assert ends([missed, at(1000, 0.0)]) == (1000, None)
    assert ends([at(1000, 0.0, gates=(SHORT,)), at(500, 0.0)]) == (500, 1000)


def test_one_stall_at_a_low_rate_is_not_the_capacity() -> None:
    assert ends([at(100, 0.5), at(200, 0.0), at(400, 0.0), at(800, 0.0), at(1600, 0.5)]) == (800, 1600)


def test_a_load_too_short_to_show_the_goal_is_repeated() -> None:
    tried = [at(1000, 0.0, due=1000), at(1040, 0.012, due=1000)]
    assert next_load(tried, GOAL, start=2000, seconds=2.0) == 1040
    assert ends([at(1000, 0.0, due=300)])[0] is None  # not one late shows nothing yet


def test_it_goes_down_to_the_rate_at_which_a_load_still_has_requests_enough() -> None:
    assert next_load([at(400, 0.5, due=800)], GOAL, start=1000, seconds=2.0) == 200
    assert next_load([at(300, 0.5, due=600)], GOAL, start=1000, seconds=2.0) == 184  # 368 in two seconds
    assert next_load([at(184, 0.5, due=368)], GOAL, start=1000, seconds=2.0) is None


def test_one_process_is_provisional_and_what_fails_verification_has_no_capacity() -> None:
    info = info_of("ab", 1, LOAD, "a", open_loop=OpenLoop(goal=GOAL))
    made = [each for name in "ab" for each in (trial(name, 3000.0), at(1000, 0.0, name=name), at(1040, 0.5, name=name))]
    good, bad = rank(info, made, [], [verdict("b", "json", failed=True)]).latency["json"].rows
    assert (good.implementation, good.ranked, good.flags) == ("a", True, ("provisional",))
    assert (bad.implementation, bad.capacity, bad.reason.split(":")[0]) == ("b", None, "verification failed")


def test_capacities_rank_and_stand_beside_latency_over_load() -> None:
    info = info_of("abc", 3, LOAD, "a", open_loop=OpenLoop(goal=GOAL))
    made = []
    for name, capacity in (("a", 1000.0), ("b", 2000.0), ("c", 10.0)):
        for process in range(3):
            high = capacity * (1 + 0.01 * process)
            made += [trial(name, 3000.0 + process, process), at(high, 0.0, name=name, process=process)]
            made.append(at(high * 1.04, 0.5, name=name, process=process))
            made.append(at(500, 0.0 if name != "c" else 0.5, name=name, process=process, purpose="share", share=0.5))
    made = [t for t in made if not (t.implementation == "c" and isinstance(t.load, Open) and t.load.rate < 12)]
    table = rank(info, made, [], []).latency["json"]
    assert [row.implementation for row in table.rows] == ["b", "a", "c"]
    best, other, none = table.rows
    assert best.capacity.to_reference.value == pytest.approx(2.0)
    assert best.capacity.rank.label == "1"
    assert best.above == pytest.approx(2000 * 1.01 * 1.04)
    assert other.closed_loop == 3001
    assert none.reason == "p99 ≤ 10 ms shown at no load in 3 of 3 processes"
    (point,) = other.points
    assert (point.purpose, point.share, point.percentiles["50"].processes) == ("share", 0.5, 3)
    assert point.percentiles["50"].median == pytest.approx(0.002)
    assert "99" in point.percentiles


def test_a_capacity_is_as_open_as_its_bracket_however_many_processes_have_the_same() -> None:
    """True ones of 18.9, 19.1 and 22.5: the search tries 16.0, 19.03 and 22.6, in each process."""
    truth = {"a": 18.9, "b": 19.1, "c": 22.5}
    info = info_of("abc", 3, SERVICE, "b", orders=Orders(goal=SLOW))
    tried = []
    for name, capacity in truth.items():
        for process in range(3):
            own = [arrivals(8.0, 0.0, name=name, process=process, purpose="measure")]
            for _ in range(4):
                factor = next_load(own, SLOW, start=8.0, seconds=3.6) or 0.0
                own.append(arrivals(factor, 0.0 if factor <= capacity else 0.3, name=name, process=process))
            tried += own
    orders = rank(info, tried, [], []).orders
    assert orders.goal == SLOW
    rows = {row.implementation: row for row in orders.capacities}
    for name, capacity in truth.items():
        found = rows[name].capacity
        assert (found.estimate.low or 99) < found.estimate.median <= capacity < (rows[name].above or 0)
        assert (rows[name].above or 99) < (found.estimate.high or 0)
    found = rows["a"].capacity
    assert (found.to_reference.low or 9) < 0.8 < 0.9 < (found.to_reference.high or 0)
    assert {found.rank.label for name in "bc" if (found := rows[name].capacity)} == {"1–2"}


def test_a_percentile_is_that_of_all_loads_of_each_process() -> None:
    loads = [(0, {"50": 0.01}, 1000), (0, {"50": 0.04}, 1000), (1, {"50": 0.02, "99": 0.1}, 1000)]
    found = percentiles(loads)
    assert found.keys() == {"50"}  # no load of process 0 has a p99
    assert found["50"].values == pytest.approx((0.02, 0.02))
    assert percentiles([(0, {"99": 0.1}, 100)]) == {}  # one slower request is no percentile


def test_the_order_service_is_ranked_by_its_answers_and_keeps_every_operation() -> None:
    info = info_of("ab", 2, SERVICE, "a", orders=Orders())
    made = []
    for name, slow in (("a", 0.6), ("b", 0.0)):
        for process in range(3):
            made.append(arrivals(8.0, slow, name=name, process=process, purpose="measure"))
            made += [arrivals(16.0, slow, name=name, process=process), arrivals(16.5, 0.9, name=name, process=process)]
    ranking = rank(info, made, [], [])
    (table,) = ranking.orders.tables
    assert [row.implementation for row in table.rows] == ["b", "a"]
    best = table.rows[0]
    medians = best.response.estimate.median, best.database_cpu_per_arrival.median
    assert medians == pytest.approx((0.02, 0.005))
    assert best.cpu_per_request
    assert [(row.implementation, row.ranked) for row in ranking.orders.capacities] == [("b", True), ("a", False)]
    points = {(p.use_case, p.operation): p for p in ranking.orders.points["b"]}
    assert (points["bulk", CREATE].answered, points["bulk", ""].failed, ranking.overall) == (3000, 30, ())


@pytest.mark.parametrize(("looks", "groups"), [((), [1, 2]), ((3, 15), [1, 1])])
def test_response_times_are_decided_with_their_look_s_share_of_the_error(
    looks: tuple[int, ...], groups: list[int]
) -> None:
    """Paired t: p = 0.011, enough at 5 % and too much for a first look at three of fifteen processes."""
    rules = Processes(minimum=3, maximum=max(looks, default=3), looks=looks)
    info = run_info(["a", "b"], rules, loads={ORDER: (SERVICE,)})
    made = [
        arrivals(8.0, 0.0, name=name, process=process, purpose="measure", seconds=0.02 * slower)
        for process, gap in enumerate((1.041, 1.05, 1.059))
        for name, slower in (("a", 1.0), ("b", gap))
    ]
    orders = rank(info, made, [], []).orders
    assert [row.response.tie_group for row in orders.tables[0].rows if row.response] == groups
