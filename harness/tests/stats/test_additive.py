"""Block effects agree with the two-way analysis of variance, and leave the variances of rows."""

import numpy as np
import pytest
from scipy import stats as reference

from harness.stats import additive
from harness.tests.stats.test_estimates import LOGS


def test_the_block_effect_of_complete_data_is_the_f_test_of_two_way_anova() -> None:
    rows, columns = LOGS.shape
    grand, by_row, by_column = LOGS.mean(), LOGS.mean(axis=1), LOGS.mean(axis=0)
    blocks = rows * ((by_column - grand) ** 2).sum() / (columns - 1)
    residual = LOGS - by_row[:, None] - by_column[None, :] + grand
    error = (residual**2).sum() / ((rows - 1) * (columns - 1))
    expected = reference.f.sf(blocks / error, columns - 1, (rows - 1) * (columns - 1))
    assert additive.fit(LOGS).p_value == pytest.approx(expected)


def test_the_variances_of_complete_rows_average_to_the_residual_mean_square() -> None:
    found = additive.fit(LOGS + np.array([0.0, 0.4, -0.3, 0.1, 0.5, 0.2]))
    residual = LOGS - LOGS.mean(axis=1)[:, None] - LOGS.mean(axis=0)[None, :] + LOGS.mean()
    assert found.freedom.sum() == pytest.approx(3 * 5)
    assert (found.variance * found.freedom).sum() / 15 == pytest.approx((residual**2).sum() / 15)
    assert found.leverage == pytest.approx(np.full(4, 1 / 6))


def test_a_row_that_missed_the_slow_blocks_is_put_beside_the_others() -> None:
    drift = np.array([0.0, 0.0, -0.5, -0.5])
    logs = np.array([[0.0], [0.1], [0.2], [0.3]]) + drift
    logs[3, 2:] = np.nan
    found = additive.fit(logs)
    assert np.diff(found.mean) == pytest.approx([0.1, 0.1, 0.1])
    assert found.leverage[3] > 1 / 2
    assert found.leverage[0] == pytest.approx(1 / 4)


def test_the_leverage_of_incomplete_rows_is_that_of_least_squares() -> None:
    present = np.array([[1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 0, 0]], dtype=bool)
    design = [
        [*(float(i == row) for i in range(3)), *(float(j == column) for j in range(1, 4))]
        for row, column in zip(*np.nonzero(present), strict=True)
    ]
    inverse = np.linalg.inv(np.array(design).T @ np.array(design))
    contrast = np.array([1.0, 0.0, -1.0, 0.0, 0.0, 0.0])
    logs = np.where(present, np.random.default_rng(1).normal(size=present.shape), np.nan)
    leverage = additive.fit(logs).leverage
    assert leverage[0] + leverage[2] == pytest.approx(contrast @ inverse @ contrast)


@pytest.mark.parametrize("apart", [False, True])
def test_the_inverse_of_a_design_is_the_pseudo_inverse_also_where_blocks_share_no_row(apart: bool) -> None:
    seen = np.array([[1, 1, 0, 0, 0], [0, 1, 1, 0, 0], [0, 0, 0, 1, 1], [1, 0, 1, 0, 0]], dtype=float)
    if not apart:
        seen[2, 0] = 1
    design = np.diag(seen.sum(axis=0)) - seen.T @ (seen / seen.sum(axis=1, keepdims=True))
    assert additive._pseudo_inverse(design) == pytest.approx(np.linalg.pinv(design))


def test_blocks_that_do_not_differ_are_seen_not_to() -> None:
    generator = np.random.default_rng(2)
    assert additive.fit(generator.normal(size=(8, 6))).p_value > additive.PRETEST_LEVEL
