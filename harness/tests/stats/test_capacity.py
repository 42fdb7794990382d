"""Tests for the capacity search and for latency tables."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from harness.extras.orders.test_type import CREATE
from harness.plan.profile import OpenLoopSettings, ProcessLimits, ScenarioLoads
from harness.records.loads import Load, OpenLoop, Scenario
from harness.records.measurements import Arrivals, ErrorCounts, Latency, LatencyGoal, OperationTimes, UseCaseTimes
from harness.records.run_info import RunInfo
from harness.records.trial_record import Purpose, Trial, ValidityCheck
from harness.records.verification_record import Outcome
from harness.stats.capacity import bracket, next_load
from harness.stats.ranking import rank
from harness.stats.value_tables import estimate_percentiles
from harness.tests.approve import approve, describe_tables
from harness.tests.doubles.invented import verdict
from harness.tests.doubles.runs import LOAD, run_info, trial
from harness.tests.stats.dense import dense, luck

ORDER_TEST_TYPE = "order"
GOAL, SLOW = LatencyGoal(percentile=99, seconds=0.01), LatencyGoal(percentile=99, seconds=0.1)
LAG = ValidityCheck(name="generator-lag", outcome=Outcome.FAIL, value=1.0, threshold=0.2, flag="generator lag")
SHORT = ValidityCheck(name="achieved-rate", outcome=Outcome.FAIL, value=0.5, threshold=0.01, flag="rate not achieved")
SIZE = ValidityCheck(name="response-size", outcome=Outcome.FAIL, value=0.5, threshold=0.01, flag="size")
CLOSE = ValidityCheck(name="generator-lag", outcome=Outcome.WARN, value=0.19, threshold=0.2, flag="lag")
CALM = ValidityCheck(name="generator-lag", outcome=Outcome.PASS, value=0.0, threshold=0.2)
SERVICE = Scenario(factor=8.0, connections=64)


def times(seconds: float, histogram: tuple[tuple[float, int], ...] = ()) -> Latency:
    return Latency(
        basis="open-loop, intended send time", mean=seconds, stdev=0.0, min=seconds, max=seconds * 9,
        percentiles={"50": seconds, "99": seconds * 3}, histogram=histogram,
    )  # fmt: skip


def at(rate: float, late: float, *, name: str = "a", process: int = 0, due: int = 5000, **fields: Any) -> Trial:
    """Return a search trial at the given rate. ``late`` is the share of late requests."""
    plain = trial(name, rate, process, load=OpenLoop(rate=rate, connections=64))
    counted = {"due": due, "answered": due, "late": round(late * due), "purpose": "search", **fields}
    return plain.model_copy(update={**counted, "latency": times(0.002)})


def arrivals(
    factor: float, late: float, *, name: str = "a", process: int = 0, seconds: float = 0.02, **fields: Any
) -> Trial:
    """Return a trial with 1000 arrivals.

    "create order" takes ``seconds``, or 1 s in a share ``late`` of them.
    """
    slow = round(1000 * late)
    histogram = ((seconds, 1000 - slow), (1.0, slow)) if slow else ((seconds, 1000),)
    create = OperationTimes(
        use_case="bulk", operation=CREATE, due=1000, answered=1000, errors=ErrorCounts(),
        latency=times(0.02, histogram),
    )  # fmt: skip
    use_case = UseCaseTimes(use_case="bulk", due=1000, done=990, latency=times(0.1))
    plain = trial(
        name,
        7.4 * factor,
        process,
        test_type=ORDER_TEST_TYPE,
        load=Scenario(factor=factor, connections=64),
        cpu_per_request=0.01,
    )
    counts = {"due": fields.pop("due", 1000), "done": 990, "failed": 10, "unfinished": 0}
    sent = Arrivals(**counts, operations=(create,), use_cases=(use_case,))
    return plain.model_copy(update={"arrivals": sent, "purpose": "search", "database_cpu_seconds": 5.0, **fields})


def changed(one: Trial, **update: object) -> Trial:
    return one.model_copy(update=update)


def info_of(names: str, count: int, load: Load, reference: str, **profile: OpenLoopSettings | ScenarioLoads) -> RunInfo:
    loads = {ORDER_TEST_TYPE if load == SERVICE else "json": (load,)}
    info = run_info([*names], ProcessLimits(minimum=count, maximum=count), reference=reference, loads=loads)
    settings = {"profile": {name: part.model_dump() for name, part in profile.items()}}
    return info.model_copy(update={"settings": settings})


def search(late: Callable[[float], float]) -> list[Trial]:
    tried: list[Trial] = []
    while (rate := next_load(tried, GOAL, start=10_000.0, seconds=2.0)) and len(tried) < 14:
        tried.append(at(rate, late(rate)))
    return tried


@pytest.mark.parametrize("capacity", [700.0, 4000.0, 9000.0, 11_000.0])
def test_the_search_ends_around_the_true_capacity(capacity: float) -> None:
    tried = search(lambda rate: 0.0 if rate <= capacity else 0.5)
    low, high = bracket(tried, GOAL)
    assert low.rate <= capacity < high.rate <= low.rate * 1.05
    assert len(tried) < 14


def test_search_ends_if_no_load_meets_goal() -> None:
    tried = search(lambda _: 0.5)
    assert bracket(tried, GOAL)[0] is None
    assert len(tried) < 10


def test_equal_brackets_do_not_narrow_the_capacity() -> None:
    """The true capacities are 18.9, 19.1 and 22.5. All processes of a server end with the same bracket."""
    truth = {"a": 18.9, "b": 19.1, "c": 22.5}
    info = info_of("abc", 3, SERVICE, "b", orders=ScenarioLoads(goal=SLOW))
    tried = []
    for name, capacity in truth.items():
        for process in range(3):
            arrivals_of_a = [arrivals(8.0, 0.0, name=name, process=process, purpose="measure")]
            for _ in range(4):
                factor = next_load(arrivals_of_a, SLOW, start=8.0, seconds=3.6) or 0.0
                arrivals_of_a.append(arrivals(factor, 0.0 if factor <= capacity else 0.3, name=name, process=process))
            tried += arrivals_of_a
    orders = rank(info, tried, [], []).orders
    assert orders.goal == SLOW
    rows = {row.implementation: row for row in orders.capacities}
    for name, capacity in truth.items():
        capacity_of_a = rows[name].capacity
        assert (capacity_of_a.estimate.low or 99) < capacity_of_a.estimate.median <= capacity < (rows[name].above or 0)
        assert (rows[name].above or 99) < (capacity_of_a.estimate.high or 0)
    capacity_of_a = rows["a"].capacity
    assert (capacity_of_a.to_reference.low or 9) < 0.8 < 0.9 < (capacity_of_a.to_reference.high or 0)
    assert {capacity_of_a.rank.label for name in "bc" if (capacity_of_a := rows[name].capacity)} == {"1–2"}


def test_capacities_within_process_variance_tie() -> None:
    """Student's t of the log capacities is 1.4. A significant difference would need 2.8."""
    info = info_of("ab", 3, SERVICE, "a", orders=ScenarioLoads(goal=SLOW))
    tried = [
        arrivals(factor * above, late, name=name, process=process)
        for name, factors in (("a", (8.0, 9.0, 10.0)), ("b", (9.5, 10.0, 10.5)))
        for process, factor in enumerate(factors)
        for above, late in ((1.0, 0.0), (1.01, 0.3))
    ]
    tried += [
        arrivals(4.0, 0.0, name=name, process=process, purpose="measure") for name in "ab" for process in range(3)
    ]
    standings = {row.implementation: row.capacity for row in rank(info, tried, [], []).orders.capacities}
    assert {name: each and each.rank.label for name, each in standings.items()} == {"a": "1–2", "b": "1–2"}


def test_percentile_covers_all_loads_of_a_process() -> None:
    loads = [(0, {"50": 0.01}, 1000), (0, {"50": 0.04}, 1000), (1, {"50": 0.02, "99": 0.1}, 1000)]
    estimates = estimate_percentiles(loads)
    assert estimates.keys() == {"50"}  # process 0 lacks a p99
    assert estimates["50"].values == pytest.approx((0.02, 0.02))
    # A percentile is estimated only if at least five requests were slower.
    assert estimate_percentiles([(0, {"99": 0.1}, 100)]) == {}


@pytest.mark.parametrize(("looks", "groups"), [((), [1, 2]), ((3, 15), [1, 1])])
def test_response_times_use_the_error_of_the_look(looks: tuple[int, ...], groups: list[int]) -> None:
    """The paired t test yields p = 0.011. This is significant at 5 %, but not at the first of three looks."""
    rules = ProcessLimits(minimum=3, maximum=max(looks, default=3), looks=looks)
    info = run_info(["a", "b"], rules, loads={ORDER_TEST_TYPE: (SERVICE,)})
    measured = [
        arrivals(8.0, 0.0, name=name, process=process, purpose="measure", seconds=0.02 * slower)
        for process, gap in enumerate((1.041, 1.05, 1.059))
        for name, slower in (("a", 1.0), ("b", gap))
    ]
    orders = rank(info, measured, [], []).orders
    assert [row.response.tie_group for row in orders.tables[0].rows if row.response] == groups
    assert (orders.goal, orders.capacities) == (None, ())  # there are no search trials


UNKNOWN = {"due": None, "late": None, "arrivals": None}
# Name -> (loads of a process, expected result of ``describe_search``).
SEARCHES: dict[str, tuple[list[Trial], str]] = {
    "nothing": ([], "– to –, then [4, 2000]"),
    "met": ([changed(at(1000, 0), late=None)], "1000 (0 of 5000 late, decided) to –, then [1100, 2000]"),
    "met above the start": ([at(9000, 0.01), at(1000, 0)], "9000 (50 of 5000 late) to –, then [9900, 9900]"),
    "missed": ([at(4000, 0.0102)], "– to 4000 (51 of 5000 late), then [2000, 2000]"),
    "missed low": ([at(60, 0.5)], "– to 60 (2500 of 5000 late, decided), then [–, 40]"),
    "missed lowest": ([at(92, 0.5)], "– to 92 (2500 of 5000 late, decided), then [–, 46]"),
    "missed once": ([at(1000, 1, due=1)], "– to 1000 (1 of 1 late, decided), then [500, 500]"),
    "on the edge": (
        [at(1000, 0.01), at(1050, 0.0102)],
        "1000 (50 of 5000 late) to 1050 (51 of 5000 late), then [1000, 1000]",
    ),
    "just apart": (
        [at(1000, 0), at(1051, 0.5)],
        "1000 (0 of 5000 late, decided) to 1051 (2500 of 5000 late, decided), then [1025.18, 1025.18]",
    ),
    "too few": (
        [at(1000, 0, due=367), changed(at(1000, 0), **UNKNOWN), at(1040, 0.5, due=1)],
        "– to –, then [4, 2000]",
    ),
    "enough": ([at(1000, 0, due=368)], "1000 (0 of 368 late, decided) to –, then [1100, 2000]"),
    "repeated": (
        [at(1000, 0.02), at(1000, 0), at(1000, 0.009), at(2000, 1)],
        "1000 (145 of 15000 late) to 2000 (5000 of 5000 late, decided), then [1414.21, 1414.21]",
    ),
    "one stall": (
        [at(100, 0.5), at(200, 0), at(400, 0), at(800, 0), at(1600, 0.5)],
        "800 (0 of 5000 late, decided) to 1600 (2500 of 5000 late, decided), then [1131.37, 1131.37]",
    ),
    "contradicting": (
        [at(100, 0.5), at(200, 0), at(400, 0.5), at(800, 0), at(1600, 0.5), at(3200, 0)],
        "– to 100 (2500 of 5000 late, decided), then [92, 50]",
    ),
    "no rates": (
        [changed(trial("a", 9), due=5000, late=0), changed(at(1000, 0), **UNKNOWN)],
        "– to –, then [4, 2000]",
    ),
    "restarted": (
        [
            changed(at(1000, 0.0), restarted=True),
            at(500, 0.002, validity=(LAG,)),
            at(2000, 0.5, validity=(CALM,)),
        ],
        "500 (10 of 5000 late, decided) to 2000 (2500 of 5000 late, decided), then [1000, 1000]",
    ),
    "lagged": (
        [at(1000, 0.5, validity=(CLOSE,)), at(2000, 0.5, validity=(SHORT, LAG)), at(3000, 0, validity=(SIZE,))],
        "– to 2000 (5000 of 5000 late, decided), then [1000, 1000]",
    ),
    "arrivals": (
        [arrivals(8, 0), arrivals(8, 0.012), arrivals(16, 0.03, seconds=0.1)],
        "8 (12 of 2000 late) to 16 (30 of 1000 late, decided), then [11.3137, 11.3137]",
    ),
    "arrivals met": (
        [changed(arrivals(8, 0), late=900), arrivals(4, 0, seconds=0.1001)],
        "– to 4 (1000 of 1000 late, decided), then [2, –]",
    ),
    "arrivals lost": ([arrivals(8, 0.5, due=600)], "– to 8 (100 of 600 late, decided), then [4.90667, –]"),
    "arrivals missed low": ([arrivals(0.05, 0.5)], "– to 0.05 (500 of 1000 late, decided), then [–, –]"),
    "arrivals unknown": (
        [changed(arrivals(8, 0), **{**UNKNOWN, "due": 700, "late": 7})],
        "8 (7 of 700 late) to –, then [16, 16]",
    ),
}


def describe_search(trials: Sequence[Trial]) -> str:
    """Return both ends of the bracket, and the loads that follow for a low and a high starting rate."""
    goal = SLOW if any(isinstance(one.load, Scenario) for one in trials) else GOAL
    low, high = (
        f"{end.rate:g} ({end.late} of {end.due} late{', decided' * end.decided(goal)})" if end else "–"
        for end in bracket(trials, goal)
    )
    following = (next_load(trials, goal, start=start, seconds=start / 2) for start in (8.0, 4000.0))
    return f"{low} to {high}, then [{', '.join(f'{load:.6g}' if load else '–' for load in following)}]"


@pytest.mark.parametrize("name", SEARCHES)
def test_search_chooses_the_next_load(name: str) -> None:
    trials, expected = SEARCHES[name]
    assert describe_search(trials) == expected


SPOILED = {("a", 0.9, 1): (SHORT,), ("b", 0.9, 0): (SIZE,), ("c", 0.5, 0): (LAG,), ("d", 0.9, 2): (CLOSE,)}
# (purpose, share, rate in requests/s or as a multiple of the capacity, share of late requests)
LOADS: tuple[tuple[Purpose, float | None, float, float], ...] = (
    ("search", None, 1.0, 0.0), ("search", None, 1.04, 0.5), ("share", 0.5, 0.5, 0.0), ("share", 0.9, 0.9, 0.001),
    ("common", None, 300.0, 0.0), ("common", None, 600.0, 0.0),
)  # fmt: skip


def latency_run() -> tuple[RunInfo, list[Trial]]:
    """Return a run with a witness, generator lag and rates that servers do not sustain. Some capacities are unknown."""
    alone = changed(at(77.0, 0.0, process=2, purpose="share", share=0.1), latency=times(0.001))
    collected = [alone, changed(alone, load=OpenLoop(rate=88.0, connections=64), share=0.2, latency=None)]
    collected += [changed(trial("b", 1e6), purpose="witness"), trial("a", 1e6, validity=(SIZE,))]
    for (position, name), process in itertools.product(enumerate("abcd", 1), range(5)):
        if process >= {"a": 5, "c": 1}.get(name, 3):
            continue
        top = 1000 * position * (1 + 0.02 * luck(name, process))
        collected.append(trial(name, top * 1.3, process))
        for purpose, share, part, late in LOADS:
            one = at(part * top if part < 2 else part, late, name=name, process=process, purpose=purpose, share=share)
            seconds = 0.002 * position * (1 + 0.1 * luck(name, purpose, part, process))
            own = {"validity": SPOILED.get((name, share or 0.0, process), ()), "latency": times(seconds)}
            if (name, purpose) != ("d", "search") or process == 2:
                collected.append(changed(one, **own, answered=None if (name, purpose) == ("d", "common") else 1000))
    info = info_of("abcde", 3, LOAD, "b", open_loop=OpenLoopSettings(goal=GOAL))
    return info.model_copy(update={"loads": {"db": (LOAD,), **info.loads}}), collected


def test_latency_over_load_and_capacities_are_as_approved() -> None:
    info, measured = latency_run()
    ranking = rank(info, measured, [], [verdict("c", "json", failed=True)])
    capacities = {row.implementation: row.capacity and row.capacity.estimate for row in ranking.latency["json"].rows}
    tables = {title: rows for title, rows in describe_tables(info, ranking).items() if not title.startswith("json, at")}
    approve("stats-latency", {**tables, "capacities": dense(capacities)})


def orders_run() -> tuple[RunInfo, list[Trial]]:
    """Return a run with two factors, several operations, missing values and a search."""
    info = info_of("abcd", 3, SERVICE, "b", orders=ScenarioLoads(goal=SLOW))
    collected = []
    for (position, name), process, factor in itertools.product(enumerate("abc"), range(3), (8.0, 16.0, 20.0, 20.5)):
        seconds = 0.02 * (2 - position / 4) * factor**0.1 * (1 + 0.01 * luck(name, process, factor))
        late = 0.0075 * position + 0.5 * (factor == 20.5 and name != "c")
        purpose: Purpose = "search" if factor > 16 else "measure"
        one = arrivals(factor, late, name=name, process=process, purpose=purpose, seconds=seconds)
        (create,) = one.arrivals.operations
        other = create.model_copy(update={"operation": "pay", "answered": 900, "latency": times(seconds / 2)})
        sick = create.model_copy(update={"use_case": "sick", "latency": None, "due": 7, "answered": 0})
        fields: dict[str, object] = {
            "arrivals": one.arrivals.model_copy(update={"operations": (create, other, sick)}),
            "database_cpu_seconds": None if (name, process) == ("a", 1) else 5.0 + position + process,
            "validity": (LAG,) if (name, process, factor) == ("b", 2, 8.0) else (), "requests": 3000,
        }  # fmt: skip
        collected.append(changed(one, **fields))
    planned = {ORDER_TEST_TYPE: (Scenario(factor=16.0, connections=64), SERVICE)}
    others = [changed(collected[0], arrivals=None, process=3), trial("a", 5.0, test_type=ORDER_TEST_TYPE)]
    return info.model_copy(update={"loads": planned}), [*collected, *others]


def test_the_order_service_is_ranked_as_approved() -> None:
    info, made = orders_run()
    ranking = rank(info, made, [], [verdict("c", ORDER_TEST_TYPE, failed=True)])
    orders = ranking.orders
    assert orders
    points = {
        (name, each.factor, each.use_case, each.operation): [*each.percentiles.values(), each.answered, each.failed]
        for name, own in orders.points.items()
        for each in own
        if name == "b"
    }
    approve("stats-orders", {"tables": describe_tables(info, ranking), "points": dense(points)})


def ends(trials: list[Trial]) -> tuple[float | None, float | None]:
    low, high = bracket(trials, GOAL)
    return low.rate if low else None, high.rate if high else None


def test_misses_with_generator_lag_are_ignored() -> None:
    missed = at(1000, 0.5, validity=(LAG,))
    assert next_load([missed], GOAL, start=2000, seconds=2.0) == 1000
    assert ends([missed, at(1000, 0.0)]) == (1000, None)
    for held_no_rate in (SHORT, SIZE):
        assert ends([at(1000, 0.0, validity=(held_no_rate,)), at(500, 0.0)]) == (500, 1000)


def test_stall_at_low_rate_is_not_the_capacity() -> None:
    assert ends([at(100, 0.5), at(200, 0.0), at(400, 0.0), at(800, 0.0), at(1600, 0.5)]) == (800, 1600)
