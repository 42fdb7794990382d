"""What runs decided, and what they decided wrongly."""

from harness.plan.profile import Processes
from harness.stats.model import Ranking
from harness.stats.ranking import rank
from harness.studies.decisions import pairs, wrong
from harness.tests.doubles.runs import run_info, trial


def ranking(a: float, b: float) -> Ranking:
    figures = {"a": a, "b": b, "c": 1000.0, "d": 2000.0}
    made = [
        trial(name, figure * (1 + 0.001 * ((p * 7 + i * 3) % 5)), p)
        for i, (name, figure) in enumerate(figures.items())
        for p in range(6)
    ]
    return rank(run_info(list(figures), Processes(minimum=6, maximum=6)), made, [], [])


def test_what_one_run_decides_against_all_together_or_between_two_of_a_kind_is_wrong() -> None:
    runs = [*pairs("1", ranking(100.0, 200.0)), *pairs("2", ranking(100.0, 180.0)), *pairs("3", ranking(150.0, 100.0))]
    assert {(pair.run, pair.names) for pair in wrong(runs)} == {("3", ("a", "b"))}
    same = frozenset({frozenset({"c", "d"})})
    assert {pair.run for pair in wrong(runs, same) if pair.names == ("c", "d")} == {"1", "2", "3"}
