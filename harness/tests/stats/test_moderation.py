"""Variances learn from each other as far as they are alike, and no further."""

import numpy as np
import pytest
from scipy import special

from harness.stats import basis
from harness.stats.moderation import UNLEARNED, Prior, Spreads, learn, moderate, outliers, prior_freedom


def spreads(generator: np.random.Generator, *, rows: int, freedom: float, prior: float) -> Spreads:
    true = np.ones(rows) if np.isinf(prior) else prior / generator.chisquare(prior, rows)
    variance = true * generator.chisquare(freedom, rows) / freedom
    return Spreads(names=[str(row) for row in range(rows)], variance=variance, freedom=np.full(rows, freedom))


def test_the_freedom_of_a_prior_solves_the_trigamma_equation() -> None:
    found = prior_freedom(np.asarray([0.01, 0.5, 4.0]))
    assert special.polygamma(1, found / 2) == pytest.approx([0.01, 0.5, 4.0])
    assert prior_freedom(np.asarray([-1.0]))[0] == np.inf


def test_a_prior_is_learned_with_caution_and_about_right_from_many_rows() -> None:
    table = spreads(np.random.default_rng(1), rows=2000, freedom=4, prior=6.0)
    assert 4.5 < learn([table]).freedom < 6.3


def test_variances_that_are_all_the_same_are_worth_many_degrees_of_freedom() -> None:
    assert learn([spreads(np.random.default_rng(2), rows=2000, freedom=4, prior=np.inf)]).freedom > 40


def test_three_implementations_teach_nothing_and_keep_their_own_variances() -> None:
    table = spreads(np.random.default_rng(3), rows=3, freedom=2, prior=np.inf)
    assert learn([table]) == UNLEARNED
    assert moderate(table, UNLEARNED).variance == pytest.approx(table.variance)


def test_a_moderated_variance_is_the_weighted_mean_of_the_pooled_one_and_its_own() -> None:
    table = Spreads(names=["a", "b"], variance=np.array([1.0, 3.0]), freedom=np.array([2.0, 4.0]))
    found = moderate(table, Prior(freedom=2.0, rows=9))
    pooled = (2 * 1 + 4 * 3) / 6
    assert found.variance == pytest.approx([(2 * pooled + 2 * 1) / 4, (2 * pooled + 4 * 3) / 6])
    assert found.freedom == pytest.approx([4.0, 6.0])


def test_moderated_rows_have_no_more_degrees_of_freedom_than_all_together() -> None:
    table = Spreads(names=["a", "b"], variance=np.array([1.0, 3.0]), freedom=np.array([2.0, 2.0]))
    assert moderate(table, Prior(freedom=np.inf, rows=9)).freedom.tolist() == [4.0, 4.0]


def test_a_row_far_above_the_others_keeps_its_own_variance() -> None:
    table = spreads(np.random.default_rng(4), rows=40, freedom=4, prior=np.inf)
    table.variance[7] = 500.0
    assert np.flatnonzero(outliers(table)).tolist() == [7]
    found = moderate(table, Prior(freedom=20.0, rows=40))
    assert (found.variance[7], found.freedom[7]) == (500.0, 4.0)
    assert found.variance.max() == 500.0
    assert np.sort(found.variance)[-2] < 2.5


def test_a_table_says_on_what_basis_its_rows_are_compared() -> None:
    generator = np.random.default_rng(5)
    logs = generator.normal(size=(30, 3))
    names = [str(row) for row in range(30)]
    assert basis.alone(logs, names).basis == "moderated"
    assert basis.alone(logs[:3], names[:3]).basis == "paired"
    wild = logs * np.exp(3 * generator.normal(size=(30, 1)))
    assert basis.alone(wild, names).basis != "moderated"
