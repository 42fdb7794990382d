"""What of a cell's trials is told of it."""

from collections.abc import Sequence

import pytest

from harness.stats.values import Cell
from harness.studies.runs import trial

SETTLED, FALLING = (10.0, 10.5, 9.5, 10.0), (20.0, 14.0, 11.0, 10.0)  # microseconds of CPU per request


def cell(*processes: Sequence[float], steady: bool | None = False) -> Cell:
    return Cell(
        [
            trial("jit", 1000.0, number, round_, cpu=cost * 1e-6).model_copy(
                update={"steady": steady, "started_at": 100.0 * number + round_}
            )
            for number, costs in enumerate(processes)
            for round_, cost in enumerate(costs)
        ]
    )


def test_a_server_whose_cost_falls_while_it_is_measured_is_not_warm() -> None:
    assert not cell(FALLING).warm
    assert not cell(SETTLED, FALLING).warm
    assert "not warmed up" in cell(FALLING).flags


def test_a_warm_up_that_saw_nothing_settle_is_judged_by_the_trials() -> None:
    assert cell(SETTLED).warm
    assert cell(SETTLED[::-1], tuple(reversed(FALLING))).warm  # a machine that slows down says nothing of warm-up
    assert "not warmed up" not in cell(SETTLED).flags


@pytest.mark.parametrize("steady", [True, None])
def test_a_warm_up_that_settled_is_not_believed_against_the_trials(steady: bool | None) -> None:
    assert not cell(FALLING, steady=steady).warm
    assert cell((10.0,), steady=steady).warm


def test_one_trial_after_an_unsettled_warm_up_shows_nothing() -> None:
    assert not cell((10.0,)).warm


def test_one_late_trial_of_many_is_too_little_to_flag() -> None:
    assert cell((13.0, 10.0, 10.0, 10.0)).warm  # the figure is 7 % above that of the later half
    assert not cell((16.0, 10.0, 10.0, 10.0)).warm
