"""Windows go to what is open, within the time, and more time is priced."""

from collections import Counter

import pytest

from harness.benchmarks.allocated import summary
from harness.stats.allocation import Pair, next_cells, windows_wanted


def pair(one: str, other: str, difference: float, *, decided: bool = False, fixed: float = 0.0) -> Pair:
    return Pair(
        test_type="json",
        one=one,
        other=other,
        difference=difference,
        squared_error=0.0025,
        fixed_squared_error=fixed,
        critical=3.0,
        decided=decided,
    )


MEASURED = {(name, "json"): 5 for name in "abcd"}
PAIRS = [pair("a", "b", 0.1), pair("a", "c", 0.9, decided=True), pair("c", "d", 0.8, decided=True)]


def test_the_open_pair_gets_most_windows_and_the_decided_ones_the_least() -> None:
    plan = next_cells(PAIRS, MEASURED, window_seconds=1.0, remaining_seconds=100.0, seed=1, batch=5)
    counts = Counter(name for name, _ in plan.cells)
    assert len(plan.cells) == 20
    assert counts["a"] == counts["b"] == 9
    assert counts["c"] + counts["d"] == 2


def test_no_more_is_planned_than_the_time_allows() -> None:
    assert len(next_cells(PAIRS, MEASURED, window_seconds=2.0, remaining_seconds=7.0, seed=1, batch=5).cells) == 3


def test_the_same_seed_gives_the_same_plan() -> None:
    plans = [next_cells(PAIRS, MEASURED, window_seconds=1.0, remaining_seconds=9.0, seed=s, batch=3) for s in (4, 4)]
    assert plans[0] == plans[1]


def test_the_windows_a_pair_wants_are_those_at_which_its_error_is_small_enough() -> None:
    more = windows_wanted(pair("a", "b", 0.1), 5)
    assert more == 7
    assert 0.1 / (0.0025 * 5 / (5 + more)) ** 0.5 >= 3.0 > 0.1 / (0.0025 * 5 / (4 + more)) ** 0.5


def test_where_processes_differ_more_than_the_servers_windows_buy_nothing() -> None:
    assert windows_wanted(pair("a", "b", 0.1, fixed=0.002), 5) is None
    plan = next_cells([pair("a", "b", 0.1, fixed=0.002)], MEASURED, window_seconds=1.0, remaining_seconds=9.0, seed=1)
    assert plan.text == "1 pairs are open, and more windows alone would not decide them: more processes may"


def test_more_time_is_priced_cheapest_first() -> None:
    plan = next_cells(
        [pair("a", "b", 0.06), pair("c", "d", 0.1)], MEASURED, window_seconds=2.0, remaining_seconds=9.0, seed=1
    )
    assert [(each.one, each.windows, each.seconds) for each in plan.wanted] == [("c", 7, 28.0), ("a", 27, 108.0)]
    assert plan.text == (
        "2 pairs are open; about 136 s of load would decide 2 of them, c and d in json the first after 28 s"
    )


def test_a_run_whose_orders_are_decided_wants_nothing() -> None:
    plan = next_cells(PAIRS[1:], MEASURED, window_seconds=1.0, remaining_seconds=9.0, seed=1)
    assert plan.wanted == ()
    assert plan.text == "every order is decided or known to be a tie"


@pytest.mark.parametrize("adaptive", [False, True])
def test_ties_stay_ties_wherever_the_windows_go(adaptive: bool) -> None:
    false, _, _ = summary((0.0, 0.0, 0.0, 0.0), 25, adaptive=adaptive)
    assert false <= 0.05
