"""Estimates agree with textbook implementations of the same formulas."""

import numpy as np
import pytest
from scipy import stats as reference

from harness.stats import estimates

LOGS = np.log(
    [
        [100.0, 104.0, 98.0, 101.0, 103.0, 97.0],
        [108.0, 113.0, 109.0, 111.0, 115.0, 107.0],
        [90.0, 130.0, 100.0, 80.0, 95.0, 120.0],
        [101.0, 102.0, 99.0, 104.0, 100.0, 98.0],
    ]
)


def test_the_median_is_that_of_the_values_and_the_interval_is_t_on_their_logs() -> None:
    stats = estimates.moments(LOGS)
    low, high = estimates.intervals(stats, 0.95)
    assert stats.median[0] == pytest.approx(np.median(np.exp(LOGS[0])))
    expected = reference.t.interval(0.95, 5, loc=LOGS[0].mean(), scale=reference.sem(LOGS[0]))
    assert (low[0], high[0]) == pytest.approx(tuple(np.exp(expected)))


def test_missing_values_are_left_out_and_one_value_has_no_interval() -> None:
    logs = np.array([[1.0, np.nan, 3.0], [2.0, np.nan, np.nan]])
    stats = estimates.moments(logs)
    low, high = estimates.intervals(stats, 0.95)
    assert stats.count.tolist() == [2, 1]
    assert stats.mean.tolist() == [2.0, 2.0]
    assert low[0] < np.exp(2.0) < high[0]
    assert estimates.finite(low[1]) is None
    assert estimates.finite(high[1]) is None


def test_an_unpaired_ratio_is_welchs_t() -> None:
    stats = estimates.moments(LOGS)
    ratios = estimates.ratios(LOGS, stats, 0, False, 0.95)
    for row in (1, 2, 3):
        expected = reference.ttest_ind(LOGS[row], LOGS[0], equal_var=False).confidence_interval(0.95)
        assert (ratios.low[row], ratios.high[row]) == pytest.approx((np.exp(expected.low), np.exp(expected.high)))


def test_a_paired_ratio_is_the_t_of_the_differences_within_blocks() -> None:
    ratios = estimates.ratios(LOGS, estimates.moments(LOGS), 0, True, 0.95)
    for row in (1, 2, 3):
        expected = reference.ttest_rel(LOGS[row], LOGS[0]).confidence_interval(0.95)
        assert (ratios.low[row], ratios.high[row]) == pytest.approx((np.exp(expected.low), np.exp(expected.high)))
        assert ratios.value[row] == pytest.approx(np.exp((LOGS[row] - LOGS[0]).mean()))


def test_the_reference_itself_is_exactly_one() -> None:
    ratios = estimates.ratios(LOGS, estimates.moments(LOGS), 2, True, 0.95)
    assert (ratios.value[2], ratios.low[2], ratios.high[2]) == (1.0, 1.0, 1.0)


def test_a_paired_ratio_uses_only_the_blocks_that_both_have() -> None:
    logs = LOGS.copy()
    logs[0, 5] = np.nan
    ratios = estimates.ratios(logs, estimates.moments(logs), 0, True, 0.95)
    assert ratios.value[1] == pytest.approx(np.exp((LOGS[1, :5] - LOGS[0, :5]).mean()))


def test_implementations_that_share_no_block_have_a_ratio_without_an_interval() -> None:
    logs = np.array([[0.0, 0.1, np.nan, np.nan], [np.nan, np.nan, 0.5, 0.6]])
    ratios = estimates.ratios(logs, estimates.moments(logs), 0, True, 0.95)
    assert ratios.value[1] == pytest.approx(np.exp(0.5))
    assert estimates.finite(ratios.low[1]) is None
