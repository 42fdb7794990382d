"""The sample of planted defects gives each module its share, and the score says how sure it is."""

import os
import signal
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from harness.tests import mutation
from harness.tests.mutation import Bounds, drawn, module, table

ALL = [f"harness.run.a.x_f__mutmut_{n}" for n in range(300)] + [
    f"harness.measure.b.x_g__mutmut_{n}" for n in range(100)
]


def test_every_beginning_of_a_sample_gives_each_module_its_share() -> None:
    for size in (40, 80, 200):
        count = Counter(module(name) for name in drawn(ALL, size, seed=1))
        assert abs(count["harness.measure.b"] - size / 4) <= 2


def test_the_seed_decides_which_are_drawn() -> None:
    assert drawn(ALL, 40, seed=1) == drawn(ALL[::-1], 40, seed=1)
    assert set(drawn(ALL, 40, seed=1)) != set(drawn(ALL, 40, seed=2))


def test_the_score_has_an_interval_and_names_what_no_test_noticed() -> None:
    found = {**dict.fromkeys(ALL[:8], "killed"), ALL[8]: "timeout", ALL[9]: "survived", ALL[300]: "no tests"}
    assert table(found).splitlines() == [
        "harness.measure.b: 0 of 1 noticed",
        "harness.run.a: 9 of 10 noticed",
        "all: 9 of 11 noticed, 1 by their time: 81.8% (95 % interval 52.3% to 94.9%)",
        "not noticed (no tests): harness.measure.b.x_g__mutmut_0",
        "not noticed (survived): harness.run.a.x_f__mutmut_9",
    ]


@pytest.mark.parametrize(("test", "seconds"), [("known", 10.0 + 5 * 2.5), ("new", 10.0)])
def test_a_test_has_ten_seconds_of_cpu_and_five_times_its_usual_ones(
    monkeypatch: pytest.MonkeyPatch, test: str, seconds: float
) -> None:
    timers: list[object] = []
    handlers: list[object] = []
    monkeypatch.setattr(signal, "setitimer", lambda *words: timers.append(words))
    monkeypatch.setattr(signal, "signal", lambda *words: handlers.append(words))
    item: Any = SimpleNamespace(nodeid=test)
    protocol = Bounds({"known": 2.5}).pytest_runtest_protocol(item)
    next(protocol)
    assert timers == [(signal.ITIMER_PROF, seconds)]
    with pytest.raises(StopIteration) as ended:
        protocol.send("the test's own outcome")
    assert ended.value.value == "the test's own outcome"
    assert timers[1:] == [(signal.ITIMER_PROF, 0)]
    assert handlers == [(signal.SIGPROF, mutation._too_long)]


def test_a_test_that_takes_too_long_ends_all_with_mutmut_s_own_code(monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[int] = []
    monkeypatch.setattr(os, "_exit", left.append)
    mutation._too_long()
    assert left == [mutation.TOO_LONG] == [36]
