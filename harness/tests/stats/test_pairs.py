"""Tests for Holm's correction, ranks and tie groups, with values computed by hand."""

import numpy as np
import pytest

from harness.stats import pairs
from harness.stats.moderation import RowMeans


def rows(means: list[float], error: float = 0.01, df: float = 1e6) -> RowMeans:
    count = len(means)
    return RowMeans(
        names=[f"s{i}" for i in range(count)], mean=np.array(means), squared_error=np.full(count, error**2),
        df=np.full(count, df), moderated=False,
    )  # fmt: skip


def test_holm_stops_at_the_first_large_p_value() -> None:
    p_values = np.array([0.04, 0.001, 0.02, 0.013])
    assert pairs.holm(p_values, 0.05).tolist() == [True, True, True, True]
    assert pairs.holm(np.array([0.01, 0.04, 0.03]), 0.05).tolist() == [True, False, False]


def test_differences_are_decided_over_all_pairs() -> None:
    """A difference has a standard error of 1.414 %.

    A difference of 3 % has z = 2.12 (p = 0.034). This is significant for one pair, but not for three.
    """
    assert pairs.significant(rows([0.0, 0.03]), 0.05).tolist() == [[False, True], [True, False]]
    assert not pairs.significant(rows([0.0, 0.03, 0.0]), 0.05).any()


def test_ranks_leave_open_what_is_not_decided() -> None:
    """Server a beats c and d, and b beats d. The ranks are therefore a 1–2, b 1–3, c 2–4 and d 3–4."""
    table = rows([0.09, 0.06, 0.03, 0.0])
    ranks = pairs.ranks(table, table.mean, 0.05, higher_is_better=True)
    assert list(ranks) == [(1, 1, 2, 1), (2, 1, 3, 1), (3, 2, 4, 2), (4, 3, 4, 2)]


def test_moderated_variances_are_wider_in_the_tails() -> None:
    places = np.array([0]), np.array([1])
    table = rows([0.0, 0.1], df=8.0)
    alike = RowMeans(**{**table.__dict__, "moderated": True})
    one, other = (pairs.differences(each, each, *places) for each in (table, alike))
    assert one.half_width(0.95)[0] == pytest.approx(2.306 * 0.01 * 2**0.5, rel=1e-3)
    assert pairs.differences(table, alike, *places).half_width(0.95)[0] == one.half_width(0.95)[0]
    assert other.half_width(0.95)[0] == pytest.approx(one.half_width(0.95)[0], rel=0.02)
