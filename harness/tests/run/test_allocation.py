"""Which cells a round measures: the pairs that are open at the headline level, and what is asked about them."""

import math
from typing import Any

import pytest

from harness.benchmarks.simulation import run_info, sample
from harness.plan.profile import Replication
from harness.records.models import Closed, Load, RunInfo, Sample
from harness.run import allocation
from harness.run.allocation import Allocation, alike, open_pairs, where_it_decides
from harness.stats import allocation as pairing

RULES = Replication(minimum=3, maximum=8, looks=(3, 5, 8), half_width=0.025)
C16, C64, C256 = (Closed(connections=number) for number in (16, 64, 256))
MEASURED = {("a", "json"): 3, ("b", "json"): 4}


def info_of(*names: str, **levels: tuple[Load, ...]) -> RunInfo:
    return run_info(names, RULES, levels=levels or {"json": (C16, C64, C256)})


def samples_of(kind: str = "json", level: Load = C64, **throughput: tuple[float, ...]) -> list[Sample]:
    """A window of each of these throughputs, a process each."""
    return [
        sample(name, process, value, test_type=kind, level=level)
        for name, row in throughput.items()
        for process, value in enumerate(row)
    ]


A, B, C = (1000.0, 1010.0, 990.0), (500.0, 503.0, 498.0), (1005.0, 995.0, 1001.0)


def test_two_implementations_are_a_pair_in_throughput_and_in_cost() -> None:
    found = open_pairs(info_of("a", "b"), samples_of(a=A, b=B))
    assert [(pair.test_type, pair.one, pair.other) for pair in found] == [("json", "a", "b")] * 2
    throughput, cost = found
    assert throughput.difference == pytest.approx(-math.log(2.0), abs=0.01)
    assert cost.difference == pytest.approx(math.log(2.0), abs=0.01)  # in these windows its inverse
    assert throughput.decided
    assert 0 < throughput.fixed_squared_error == pytest.approx(throughput.squared_error)  # one window a process


def test_equal_ones_are_open_and_each_pair_is_there_in_each_test_type() -> None:
    info = info_of("a", "b", "c", json=(C16, C64, C256), db=(C64,))
    samples = [*samples_of(a=A, b=B, c=C), *samples_of("db", a=A, c=C)]
    found = open_pairs(info, samples)
    assert [(pair.test_type, pair.one, pair.other) for pair in found] == [
        *[("json", one, other) for one, other in (("a", "b"), ("a", "c"), ("b", "c"))] * 2,
        *[("db", "a", "c")] * 2,
    ]
    decided = {(pair.one, pair.other) for pair in found[:6] if pair.decided}
    assert decided == {("a", "b"), ("b", "c")}


def test_one_implementation_alone_and_other_levels_make_no_pair() -> None:
    assert open_pairs(info_of("a", "b"), samples_of(a=A)) == []
    assert open_pairs(info_of("a", "b"), [*samples_of(a=A), *samples_of(level=C16, b=B)]) == []
    assert (
        open_pairs(info_of("a", "b", json=(C16,), db=(C64,)), [*samples_of(level=C16, a=A), *samples_of("db", b=B)])
        == []
    )


def test_a_tie_that_is_known_to_be_one_is_decided() -> None:
    """Twelve processes that differ by nothing: the interval is narrower than a fortieth."""
    same = tuple(1000.0 + 0.1 * (number % 3) for number in range(12))
    found = open_pairs(info_of("a", "b"), samples_of(a=same, b=same))
    assert {pair.decided for pair in found} == {True}
    wide = tuple(1000.0 * (1.0 + 0.2 * (number % 3)) for number in range(12))
    other = (*wide[1:], wide[0])
    assert {pair.decided for pair in open_pairs(info_of("a", "b"), samples_of(a=wide, b=other))} == {False}


def test_what_further_windows_leave_as_it_is_lies_between_processes() -> None:
    """Two processes of many windows each that differ much: more windows of them help little."""
    windows = [
        one.model_copy(update={"round": number, "block": process, "process": process, "replicate": process})
        for name, base in (("a", 1000.0), ("b", 1000.0))
        for process, factor in enumerate((1.0, 1.3))
        for number in range(10)
        for one in [sample(name, process, base * factor * (1 + 0.01 * (number % 3)), level=C64)]
    ]
    found = open_pairs(info_of("a", "b"), windows)
    for pair in found:
        assert 0.5 * pair.squared_error < pair.fixed_squared_error <= pair.squared_error


def test_windows_go_where_the_open_pairs_say(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def next_cells(*words: Any, **named: Any) -> pairing.Plan:
        asked.append((words, named))
        return pairing.Plan(cells=(("b", "json"), ("a", "json")), wanted=())

    monkeypatch.setattr(allocation, "open_pairs", lambda *words: ("pairs", *words))
    monkeypatch.setattr(pairing, "next_cells", next_cells)
    info, samples = info_of("a", "b"), samples_of(a=A, b=B)
    found = where_it_decides(info, samples, MEASURED, window_seconds=2.5, remaining_seconds=80.0, seed=7)
    assert found == Allocation(cells=(("b", "json"), ("a", "json")), text="every order is decided or known to be a tie")
    how = {"window_seconds": 2.5, "remaining_seconds": 80.0, "seed": 7}
    assert asked == [((("pairs", info, samples), MEASURED), how)]


def test_alike_is_each_cell_once() -> None:
    found = alike(info_of("a", "b"), (), MEASURED, window_seconds=2.5, remaining_seconds=80.0, seed=7)
    assert found == Allocation(cells=(("a", "json"), ("b", "json")), text="")
