"""Which cells need more processes."""

import math

import numpy as np
import pytest

from harness.plan.profile import Processes
from harness.records.models import Trial
from harness.stats.stopping import alpha_at, undecided
from harness.studies.runs import LOAD, trials
from harness.studies.worlds import World, draw

RULES = Processes(minimum=3, maximum=10, looks=(3, 5), half_width=0.02)
NAMES = ["a", "b", "c"]
EXPECTED = [(name, "json") for name in NAMES]


def measured(truth: tuple[float, ...], processes: int, noise: float = 0.02) -> list[Trial]:
    world = World(truth=truth, processes=processes, tables=1, process=noise, window=noise, correlation=0.0, drift=0.0)
    return trials({("json", LOAD): draw(world, np.random.default_rng(2))[0]}, NAMES)


def test_the_looks_share_out_the_error() -> None:
    assert sum(alpha_at(RULES, look) for look in (3, 5, 10)) == pytest.approx(0.05)
    assert alpha_at(RULES, 4) == alpha_at(RULES, 5)


def test_all_wait_until_the_first_look() -> None:
    assert undecided(measured((0, 1, 2), 2), EXPECTED, RULES) == EXPECTED


def test_a_clear_order_is_decided_at_the_first_look() -> None:
    assert not undecided(measured((0, 1, 2), 3), EXPECTED, RULES)


def test_neighbours_that_are_not_told_apart_need_more() -> None:
    assert undecided(measured((0.0, 0.0, 2.0), 3), EXPECTED, RULES) == EXPECTED[:2]


def test_a_tie_known_narrowly_enough_is_done() -> None:
    assert not undecided(measured((0.0, 0.0, 2.0), 5, noise=0.001), EXPECTED, RULES)


def test_what_was_decided_at_a_look_stays_decided_and_the_maximum_ends_it() -> None:
    made = [t for t in measured((0.0, 0.0, 2.0), 5) if t.implementation != "c" or t.process < 3]
    assert undecided(made, EXPECTED, RULES) == EXPECTED[:2]
    assert not undecided(measured((0.0, 0.0, 0.0), 10), EXPECTED, RULES)


def test_a_cell_without_a_figure_waits() -> None:
    made = [t for t in measured((0, 1, 2), 3) if t.implementation != "b"]
    assert undecided(made, EXPECTED, RULES) == [("b", "json")]


def test_a_server_by_itself_needs_a_narrow_interval() -> None:
    alone = [t for t in measured((0.0, math.log(2), 2.0), 3) if t.implementation == "a"]
    assert undecided(alone, [("a", "json")], RULES) == [("a", "json")]
