"""Rank intervals and tie groups follow from what is decided."""

import numpy as np

from harness.stats.pairs import Decisions
from harness.stats.ranks import ranks


def decided(size: int, *pairs: tuple[int, int]) -> Decisions:
    matrix = np.zeros((size, size), dtype=bool)
    for winner, loser in pairs:
        matrix[winner, loser] = True
    return matrix


def test_nothing_decided_leaves_every_rank_open_in_one_tie_group() -> None:
    result = ranks(np.array([3.0, 2.0, 1.0]), decided(3))
    assert result.low.tolist() == [1, 1, 1]
    assert result.high.tolist() == [3, 3, 3]
    assert result.tie_group.tolist() == [1, 1, 1]


def test_everything_decided_gives_single_ranks() -> None:
    result = ranks(np.array([1.0, 3.0, 2.0]), decided(3, (1, 0), (1, 2), (2, 0)))
    assert result.position.tolist() == [3, 1, 2]
    assert result.low.tolist() == result.high.tolist() == [3, 1, 2]
    assert result.tie_group.tolist() == [3, 1, 2]


def test_a_middle_one_that_ties_with_both_ends_belongs_to_the_first_group_and_shows_it_in_its_interval() -> None:
    result = ranks(np.array([3.0, 2.0, 1.0]), decided(3, (0, 2)))
    assert result.low.tolist() == [1, 1, 2]
    assert result.high.tolist() == [2, 3, 3]
    assert result.tie_group.tolist() == [1, 1, 2]


def test_an_interval_holds_the_place_of_its_median_even_where_the_test_on_means_disagrees() -> None:
    result = ranks(np.array([2.0, 1.0]), decided(2, (1, 0)))
    assert (result.low.tolist(), result.high.tolist()) == ([1, 1], [2, 2])
