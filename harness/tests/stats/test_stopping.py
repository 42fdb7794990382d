"""Which cells need more processes."""

import math

import numpy as np
import pytest

from harness.plan.profile import Processes
from harness.records.models import Trial
from harness.stats.stopping import alpha_at, undecided
from harness.studies.worlds import World, draw
from harness.tests.doubles.runs import LOAD, trials

RULES = Processes(minimum=3, maximum=10, looks=(3, 5), half_width=0.02)
NAMES = ["a", "b", "c"]
EXPECTED = [(name, "json") for name in NAMES]


def measured(truth: tuple[float, ...], processes: int, noise: float = 0.02) -> list[Trial]:
    world = World(truth=truth, processes=processes, tables=1, process=noise, window=noise, correlation=0.0, drift=0.0)
    return trials({("json", LOAD): draw(world, np.random.default_rng(2))[0]}, NAMES)


def test_the_looks_share_out_the_error() -> None:
    assert sum(alpha_at(RULES, look) for look in (3, 5, 10)) == pytest.approx(0.05)
    assert alpha_at(RULES, 4) == alpha_at(RULES, 5)


@pytest.mark.parametrize(
    ("truth", "processes", "noise", "waiting"),
    [
        ((0, 1, 2), 2, 0.02, EXPECTED),  # all wait until the first look
        ((0, 1, 2), 3, 0.02, []),  # where a clear order is decided
        ((0.0, 0.0, 2.0), 3, 0.02, EXPECTED[:2]),  # and neighbours that are not told apart need more
        ((0.0, 0.0, 2.0), 5, 0.001, []),  # but for a tie that is known narrowly enough
        ((0.0, 0.0, 0.0), 10, 0.02, []),  # and the maximum ends it
    ],
)
def test_what_is_not_decided_at_a_look_waits(
    truth: tuple[float, ...], processes: int, noise: float, waiting: list[tuple[str, str]]
) -> None:
    assert list(undecided(measured(truth, processes, noise), EXPECTED, RULES)) == waiting


def test_what_was_decided_at_a_look_stays_decided() -> None:
    made = [t for t in measured((0.0, 0.0, 2.0), 5) if t.implementation != "c" or t.process < 3]
    assert undecided(made, EXPECTED, RULES) == EXPECTED[:2]


def test_a_cell_without_a_figure_waits() -> None:
    made = [t for t in measured((0, 1, 2), 3) if t.implementation != "b"]
    assert undecided(made, EXPECTED, RULES) == [("b", "json")]


def test_a_server_by_itself_needs_a_narrow_interval() -> None:
    alone = [t for t in measured((0.0, math.log(2), 2.0), 3) if t.implementation == "a"]
    assert undecided(alone, [("a", "json")], RULES) == [("a", "json")]
